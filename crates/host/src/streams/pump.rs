//! Carries a stream to a viewer's socket, as fast as both sides are.

use std::sync::Arc;

use attache_protocol::{FromHost, Taken, encode};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::tree::TreeStream;
use super::{Follower, Streams};
use crate::outgoing::Outgoing;

/// A stream on its way to a viewer. Dropping it ends that between two frames.
pub(crate) struct Pump {
    _stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Pump {
    fn new<F: Future<Output = ()> + Send + 'static>(
        run: impl FnOnce(oneshot::Receiver<()>) -> F,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self {
            _stop: stop,
            task: tokio::spawn(run(stopped)),
        }
    }

    /// Ends it at once: its socket is gone.
    pub(crate) fn abort(self) {
        self.task.abort();
    }
}

/// Sends what follows for a viewer of a session until its end is told or the socket is gone.
pub(crate) fn follow_session(
    streams: Arc<Streams>,
    mut follower: Follower,
    outgoing: Outgoing,
) -> Pump {
    Pump::new(move |mut stopped| async move {
        let mut bell = follower.stream.bell();
        loop {
            bell.mark_unchanged();
            let (taken, is_last) = follower.stream.take(follower.next);
            let sent = match taken {
                Taken::Frames(frames) if frames.is_empty() => {
                    tokio::select! {
                        biased;
                        _stopped = &mut stopped => return,
                        // The other end lives in the stream that is held here: it cannot be gone.
                        _rung = bell.changed() => continue,
                    }
                }
                Taken::Frames(frames) => {
                    follower.next += frames.len() as u64;
                    outgoing.frames(&frames).await
                }
                Taken::Passed => match streams.attach(follower.stream.session()).await {
                    Ok((snapshot, anew)) => {
                        follower = anew;
                        bell = follower.stream.bell();
                        outgoing.frames(&[snapshot]).await
                    }
                    Err(_gone) => return,
                },
            };
            if sent.is_err()
                || is_last
                || stopped.try_recv() != Err(oneshot::error::TryRecvError::Empty)
            {
                return;
            }
        }
    })
}

/// Sends what follows for a viewer of rows until the socket is gone.
pub(crate) fn follow_tree(mut stream: TreeStream, outgoing: Outgoing) -> Pump {
    Pump::new(move |mut stopped| async move {
        loop {
            let frames = tokio::select! {
                biased;
                _stopped = &mut stopped => return,
                frames = stream.next() => frames,
            };
            let frames: Vec<Arc<[u8]>> = frames
                .iter()
                .map(|frame: &FromHost| encode(frame).into())
                .collect();
            if outgoing.frames(&frames).await.is_err() {
                return;
            }
        }
    })
}
