//! The way into a connection: what a viewer says, frame by frame, whatever its transport sets frames apart by. What a
//! frame means is decided elsewhere.

use std::future::Future;

use attache_protocol::{FRAME_LIMIT, FromViewer, decode};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader, ReadHalf};

/// Bytes of a line's buffer that are kept for the next one: most fit, and one that was large costs nothing for long.
const KEPT: usize = 8 * 1024;

/// What a viewer said.
pub(crate) enum Said {
    /// A frame.
    Frame(FromViewer),
    /// Something that is none, and why. The connection goes on.
    Invalid(String),
    /// Something behind which nothing can be read any more, and why.
    Broken(String),
    /// Nothing, and nothing will come: the other end is gone.
    Gone,
}

impl Said {
    /// What a whole message says.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match decode(bytes) {
            Ok(frame) => Self::Frame(frame),
            Err(fault) => Self::Invalid(fault.to_string()),
        }
    }
}

/// Where frames come from.
pub(crate) trait Incoming: Send {
    /// The next one. Whoever gives up waiting loses nothing: the next call goes on with what has come.
    fn next(&mut self) -> impl Future<Output = Said> + Send;
}

/// Frames as lines of a byte stream.
pub(crate) struct Lines<S> {
    input: BufReader<ReadHalf<S>>,
    line: Vec<u8>,
}

impl<S: AsyncRead> Lines<S> {
    pub(crate) fn new(read: ReadHalf<S>) -> Self {
        Self {
            input: BufReader::new(read),
            line: Vec::new(),
        }
    }

    /// What has not been read yet, for another protocol.
    pub(crate) fn into_rest(self) -> BufReader<ReadHalf<S>> {
        self.input
    }
}

impl<S: AsyncRead + Send> Incoming for Lines<S> {
    async fn next(&mut self) -> Said {
        let room = (FRAME_LIMIT + 2).saturating_sub(self.line.len());
        let mut limited = (&mut self.input).take(room as u64);
        let said = match limited.read_until(b'\n', &mut self.line).await {
            Ok(0) | Err(_) => return Said::Gone,
            Ok(_) if self.line.last() != Some(&b'\n') && self.line.len() > FRAME_LIMIT => {
                Said::Broken("a frame has at most 1 MiB".to_owned())
            }
            Ok(_) => Said::of(self.line.trim_ascii_end()),
        };
        self.line.clear();
        self.line.shrink_to(KEPT);
        said
    }
}
