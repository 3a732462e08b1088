//! Carries a stream to a viewer's socket, as fast as both sides are.

use std::sync::Arc;

use attache_protocol::{FromHost, Taken, encode};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Follower;
use super::tree::TreeStream;
use crate::host::Host;
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

/// Who follows a session, and by which way.
pub(crate) struct Viewer {
    pub(crate) host: Host,
    /// The attachment.
    pub(crate) name: String,
    /// The connection that holds it.
    pub(crate) connection: u64,
    pub(crate) outgoing: Outgoing,
}

/// Sends what follows for a viewer of a session until its end is told, which is the end of the attachment too, or the
/// socket is gone.
pub(crate) fn follow_session(viewer: Viewer, mut follower: Follower) -> Pump {
    let Viewer {
        host,
        name,
        connection,
        outgoing,
    } = viewer;
    Pump::new(move |mut stopped| async move {
        let attachments = &host.0.attachments;
        let mut bell = follower.stream.bell();
        loop {
            bell.mark_unchanged();
            let (taken, is_last) = follower.stream.take(follower.next);
            let mut is_wanted = || stopped.try_recv() == Err(oneshot::error::TryRecvError::Empty);
            let sent = match taken {
                Taken::Frames(frames) if frames.is_empty() && !is_last => {
                    tokio::select! {
                        biased;
                        _stopped = &mut stopped => return,
                        // The other end lives in the stream that is held here: it cannot be gone.
                        _rung = bell.changed() => continue,
                    }
                }
                Taken::Frames(frames) => {
                    follower.next += frames.len() as u64;
                    outgoing.frames_if(&frames, &mut is_wanted).await
                }
                Taken::Passed => match host.0.streams.attach(follower.stream.session()).await {
                    Ok((snapshot, anew)) => {
                        follower = anew;
                        attachments.moved(&name, connection, &follower.stream);
                        bell = follower.stream.bell();
                        outgoing.frames_if(&[snapshot], &mut is_wanted).await
                    }
                    Err(_gone) => return,
                },
            };
            if !matches!(sent, Ok(true)) {
                return;
            }
            if is_last {
                attachments.ended(&name, connection, is_wanted);
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
