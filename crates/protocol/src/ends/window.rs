//! The frames of one stream that viewers may still ask for. Replay, live delivery and lag are one mechanism: a viewer is a
//! number, the next frame that it wants; one that the window has passed begins anew with a snapshot.

use std::collections::VecDeque;
use std::sync::Arc;

/// Most bytes of one window. The newest frame is kept however large it is.
pub const WINDOW_LIMIT: usize = 4 * 1024 * 1024;

/// Most bytes that are handed to one viewer at once, but for a single frame that is larger.
pub const CHUNK_LIMIT: usize = 64 * 1024;

/// See the module. Frames are encoded once, whoever reads them.
#[derive(Debug)]
pub(super) struct Window {
    /// The number of the first frame that is kept.
    first: u64,
    frames: VecDeque<Arc<[u8]>>,
    bytes: usize,
}

/// What a window has for a viewer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Taken {
    /// Frames from the one that was wanted on, in order, without line ends; empty when there is none yet.
    Frames(Vec<Arc<[u8]>>),
    /// What was wanted is not kept any more, or never was: the viewer needs a snapshot.
    Passed,
}

impl Window {
    /// An empty one, whose first frame will have this number.
    pub(super) fn new(first: u64) -> Self {
        Self {
            first,
            frames: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The number that the next frame gets.
    pub(super) fn next(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    /// The number of the oldest frame that is kept.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Bytes of all frames that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts a frame behind the others; the oldest make room for it, so that all of them together have at most `most` bytes.
    pub(super) fn put(&mut self, frame: Arc<[u8]>, most: usize) {
        self.bytes += frame.len();
        self.frames.push_back(frame);
        while self.bytes > most && self.frames.len() > 1 {
            let gone = self.frames.pop_front();
            self.bytes -= gone.map_or(0, |frame| frame.len());
            self.first += 1;
        }
    }

    /// Frames for a viewer that wants this one next, of at most [`CHUNK_LIMIT`] bytes.
    pub(super) fn take(&self, next: u64) -> Taken {
        if !self.reaches(next) {
            return Taken::Passed;
        }
        let skip = usize::try_from(next - self.first).unwrap_or(usize::MAX);
        let mut frames = Vec::new();
        let mut bytes = 0;
        for frame in self.frames.iter().skip(skip) {
            bytes += frame.len();
            if bytes > CHUNK_LIMIT && !frames.is_empty() {
                break;
            }
            frames.push(Arc::clone(frame));
        }
        Taken::Frames(frames)
    }

    /// Whether a viewer that wants this frame next can go on.
    pub(super) fn reaches(&self, next: u64) -> bool {
        (self.first..=self.next()).contains(&next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: usize) -> Arc<[u8]> {
        vec![b'x'; bytes].into()
    }

    fn lengths(taken: &Taken) -> Option<Vec<usize>> {
        match taken {
            Taken::Frames(frames) => Some(frames.iter().map(|frame| frame.len()).collect()),
            Taken::Passed => None,
        }
    }

    #[test]
    fn a_viewer_goes_on_where_it_stood_or_begins_anew() {
        let mut window = Window::new(7);
        assert_eq!(lengths(&window.take(7)), Some(vec![]));
        for bytes in [1, 2, 3] {
            window.put(frame(bytes), 100);
        }
        let rows = [
            (6, None),
            (7, Some(vec![1, 2, 3])),
            (9, Some(vec![3])),
            (10, Some(vec![])),
            // A number from another life.
            (11, None),
        ];
        for (next, expected) in rows {
            assert_eq!(lengths(&window.take(next)), expected, "{next}");
        }
    }

    #[test]
    fn the_oldest_frames_make_room_and_the_newest_is_always_there() {
        let mut window = Window::new(0);
        for _ in 0..10 {
            window.put(frame(30), 100);
        }
        assert_eq!((window.first(), window.next(), window.bytes()), (7, 10, 90));
        window.put(frame(1_000), 100);
        assert_eq!(lengths(&window.take(10)), Some(vec![1_000]));
        assert_eq!(lengths(&window.take(9)), None);
        window.put(frame(1), 100);
        assert_eq!((window.first(), window.bytes()), (11, 1));
    }

    #[test]
    fn what_is_handed_out_at_once_is_bounded() {
        let mut window = Window::new(0);
        for bytes in [CHUNK_LIMIT / 2, CHUNK_LIMIT / 2, 1, CHUNK_LIMIT * 2, 1] {
            window.put(frame(bytes), WINDOW_LIMIT);
        }
        let counts: Vec<usize> = [0, 2, 3, 4]
            .map(|next| lengths(&window.take(next)).unwrap().len())
            .to_vec();
        assert_eq!(counts, [2, 1, 1, 1]);
    }
}
