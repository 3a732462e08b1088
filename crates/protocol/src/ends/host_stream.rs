//! The host's end of a session's stream: what changes becomes numbered frames, each encoded once for all viewers.

use std::sync::Arc;

use super::window::{Taken, WINDOW_LIMIT, Window};
use crate::codec::encode;
use crate::command::StreamPlace;
use crate::frame::{Delta, FromHost, Patch, Stream};

/// The stream of one attached session.
///
/// Its frames are numbered without gaps, live ones too, and the numbers of one session only grow while its host lives.
#[derive(Debug)]
pub struct HostStream {
    session_id: Arc<str>,
    epoch: Option<Arc<str>>,
    window: Window,
    is_over: bool,
}

impl HostStream {
    /// A stream whose first frame has the number `first`: greater than any that the session has had before.
    #[must_use]
    pub fn new(session_id: &str, epoch: Option<&str>, first: u64) -> Self {
        Self {
            session_id: session_id.into(),
            epoch: epoch.map(Arc::from),
            window: Window::new(first),
            is_over: false,
        }
    }

    /// The number that the next frame gets.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.window.next()
    }

    /// The number of the oldest frame that is kept.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.window.first()
    }

    /// Bytes of the frames that are kept.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.window.bytes()
    }

    /// Whether the epoch has ended: nothing follows.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The session has an epoch from here on.
    pub fn starts(&mut self, epoch: &str) {
        self.epoch = Some(epoch.into());
    }

    /// Something changed. `live` is what is never a record; `room` is what all windows of the host leave for this one, in
    /// bytes.
    pub fn put(&mut self, live: bool, patch: Patch, room: usize) {
        let frame = FromHost::Delta(Box::new(Delta {
            stream: Stream::Session,
            epoch: self.epoch.as_deref().map(str::to_owned),
            sequence: self.next(),
            session_id: self.session_id.to_string(),
            live,
            patch,
        }));
        self.push(&frame, room);
    }

    /// The epoch has ended, which is the last word of the stream.
    pub fn ends(&mut self, reason: &str, room: usize) {
        let frame = FromHost::SessionTerminal {
            session_id: self.session_id.to_string(),
            epoch: self.epoch.as_deref().map(str::to_owned),
            sequence: self.next(),
            reason: reason.to_owned(),
        };
        self.push(&frame, room);
        self.is_over = true;
    }

    fn push(&mut self, frame: &FromHost, room: usize) {
        if !self.is_over {
            self.window
                .put(encode(frame).into(), room.min(WINDOW_LIMIT));
        }
    }

    /// Where a viewer that comes back goes on; none when it needs a snapshot: also when it was told that this stream is over.
    #[must_use]
    pub fn resumes(&self, place: &StreamPlace) -> Option<u64> {
        let same = place.epoch.as_deref() == self.epoch.as_deref();
        let was_told = self.is_over && place.sequence == self.next();
        (same && !was_told && self.window.reaches(place.sequence)).then_some(place.sequence)
    }

    /// What there is for a viewer that wants this frame next.
    #[must_use]
    pub fn take(&self, next: u64) -> Taken {
        self.window.take(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_heard_the_end_of_a_stream_does_not_go_on_in_it() {
        let mut stream = HostStream::new("s", Some("e"), 7);
        let resumes = |stream: &HostStream, sequence| {
            let epoch = Some("e".to_owned());
            stream.resumes(&StreamPlace { epoch, sequence })
        };
        assert_eq!(resumes(&stream, 7), Some(7));
        stream.ends("terminated", WINDOW_LIMIT);
        assert_eq!(resumes(&stream, 7), Some(7), "it hears the end");
        assert_eq!(resumes(&stream, 8), None, "it has heard it");
    }
}
