//! The way out of a connection: whoever has something to say waits until what came before it is written. So nothing piles up
//! for a socket that nobody reads, and there is no step between a stream and its socket.

use std::io;
use std::sync::Arc;

use attache_protocol::{FromHost, encode};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Outgoing(Arc<Mutex<Lines>>);

/// A socket that sets frames apart by lines.
struct Lines {
    socket: Box<dyn AsyncWrite + Send + Unpin>,
    buffer: Vec<u8>,
    is_gone: bool,
}

/// Bytes of a buffer that is kept for the next write.
const KEPT: usize = 64 * 1024;

impl Outgoing {
    pub(crate) fn new(socket: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self(Arc::new(Mutex::new(Lines {
            socket: Box::new(socket),
            buffer: Vec::new(),
            is_gone: false,
        })))
    }

    /// Writes a frame.
    ///
    /// # Errors
    ///
    /// That of the socket: nothing can be said there any more.
    pub(crate) async fn frame(&self, frame: &FromHost) -> io::Result<()> {
        self.frames(&[encode(frame).into()]).await
    }

    /// Writes frames, in one piece. Whoever gives up in the middle ends the connection with it.
    ///
    /// # Errors
    ///
    /// That of the socket: nothing can be said there any more.
    pub(crate) async fn frames(&self, frames: &[Arc<[u8]>]) -> io::Result<()> {
        let mut lines = self.0.lock().await;
        let Lines {
            socket,
            buffer,
            is_gone,
        } = &mut *lines;
        if std::mem::replace(is_gone, true) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        buffer.clear();
        for frame in frames {
            buffer.extend_from_slice(frame);
            buffer.push(b'\n');
        }
        socket.write_all(buffer).await?;
        *is_gone = false;
        if buffer.capacity() > KEPT {
            *buffer = Vec::new();
        }
        Ok(())
    }

    /// Ends this way of the connection in good order.
    pub(crate) async fn shut(&self) {
        // The other end may be gone already.
        let _shut = self.0.lock().await.socket.shutdown().await;
    }
}
