//! Finds out that the other end of a socket has vanished without a word: it is asked every half minute, and counts as gone
//! when it has said nothing twice. Frames on their way know nothing of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock;
use crate::outgoing::Outgoing;

/// How often it is asked. Whoever vanishes is found within three times this.
const BEAT: Duration = Duration::from_secs(30);

/// Questions without an answer after which it counts as gone.
const SILENT: u32 = 2;

/// Ends when the other end has vanished. `heard` is set by whoever reads.
pub(super) async fn vanished(outgoing: &Outgoing, heard: &AtomicBool) {
    let mut beat = tokio::time::interval_at(clock::instant() + BEAT, BEAT);
    let (mut silent, mut asked) = (0, false);
    loop {
        beat.tick().await;
        silent = match heard.swap(false, Ordering::Relaxed) {
            false if asked => silent + 1,
            _ => 0,
        };
        if silent == SILENT {
            return;
        }
        asked = true;
        // A socket that takes nothing is asked no further: the question that waits there is enough.
        let question = outgoing.ping();
        tokio::pin!(question);
        loop {
            tokio::select! {
                biased;
                _asked = &mut question => break,
                _ = beat.tick() => {
                    silent = if heard.swap(false, Ordering::Relaxed) { 0 } else { silent + 1 };
                    if silent == SILENT {
                        return;
                    }
                }
            }
        }
    }
}
