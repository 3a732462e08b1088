//! The way out of a connection: whoever has something to say waits until what came before it is written. So nothing piles up
//! for a socket that nobody reads, and there is no step between a stream and its socket.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use attache_protocol::{FromHost, encode};
use bytes::Bytes;
use futures_util::{Sink, SinkExt};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Outgoing(Arc<Mutex<Way>>);

struct Way {
    transport: Transport,
    is_gone: bool,
}

/// How a transport sets frames apart.
enum Transport {
    /// By lines.
    Lines(Box<dyn AsyncWrite + Send + Unpin>),
    /// By messages.
    Messages(Messages),
}

/// What takes messages, and sends them when it is flushed. A frame goes in as it was encoded, without a copy.
pub(crate) type Messages = Pin<Box<dyn Sink<Message, Error = io::Error> + Send>>;

/// What goes out over a transport of messages.
pub(crate) enum Message {
    /// A frame.
    Frame(Bytes),
    /// A question whether the other end is still there.
    Ping,
}

/// How long a transport may take to say goodbye to an end that reads no further.
const GOODBYE: Duration = Duration::from_secs(1);

impl Outgoing {
    /// Out to a byte stream.
    pub(crate) fn lines(socket: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self::over(Transport::Lines(Box::new(socket)))
    }

    /// Out to a transport of messages.
    pub(crate) fn messages(messages: Messages) -> Self {
        Self::over(Transport::Messages(messages))
    }

    fn over(transport: Transport) -> Self {
        Self(Arc::new(Mutex::new(Way {
            transport,
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
        self.frames_if(frames, || true).await.map(drop)
    }

    /// The same for frames that are still wanted when it is their turn; false when they are not. So nothing follows behind
    /// the answer which says that nothing does.
    ///
    /// # Errors
    ///
    /// That of the socket: nothing can be said there any more.
    pub(crate) async fn frames_if(
        &self,
        frames: &[Arc<[u8]>],
        are_wanted: impl FnOnce() -> bool,
    ) -> io::Result<bool> {
        let mut way = self.0.lock().await;
        if !are_wanted() {
            return Ok(false);
        }
        let Way { transport, is_gone } = &mut *way;
        if std::mem::replace(is_gone, true) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        transport.write(frames).await?;
        *is_gone = false;
        Ok(true)
    }

    /// Asks the other end whether it is there, where the transport does not tell that by itself.
    ///
    /// # Errors
    ///
    /// That of the socket: nothing can be said there any more.
    pub(crate) async fn ping(&self) -> io::Result<()> {
        let mut way = self.0.lock().await;
        let Way { transport, is_gone } = &mut *way;
        let Transport::Messages(messages) = transport else {
            return Ok(());
        };
        if std::mem::replace(is_gone, true) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        messages.send(Message::Ping).await?;
        *is_gone = false;
        Ok(())
    }

    /// Waits until what a transport has to say by itself has left.
    pub(crate) async fn settle(&self) {
        if let Transport::Messages(messages) = &mut self.0.lock().await.transport {
            // A socket that is gone is noticed by the reader.
            let _ready = std::future::poll_fn(|cx| messages.as_mut().poll_ready(cx)).await;
        }
    }

    /// Ends this way of the connection in good order.
    pub(crate) async fn shut(&self) {
        let shut = async {
            let mut way = self.0.lock().await;
            match &mut way.transport {
                Transport::Lines(socket) => socket.shutdown().await,
                Transport::Messages(messages) => messages.close().await,
            }
        };
        // The other end may be gone already, or there and read no further.
        let _shut = tokio::time::timeout(GOODBYE, shut).await;
    }
}

impl Transport {
    async fn write(&mut self, frames: &[Arc<[u8]>]) -> io::Result<()> {
        match self {
            Self::Lines(socket) => {
                // Nothing is copied here: who reads slowly holds frames that are there once for all.
                let parts = frames.iter().flat_map(|frame| [&**frame, b"\n"]);
                let mut parts: Vec<IoSlice<'_>> = parts.map(IoSlice::new).collect();
                let mut rest = &mut parts[..];
                while !rest.is_empty() {
                    let written = socket.write_vectored(rest).await?;
                    if written == 0 {
                        return Err(io::ErrorKind::WriteZero.into());
                    }
                    IoSlice::advance_slices(&mut rest, written);
                }
                Ok(())
            }
            Self::Messages(messages) => {
                for frame in frames {
                    let frame = Bytes::from_owner(Arc::clone(frame));
                    messages.feed(Message::Frame(frame)).await?;
                }
                messages.flush().await
            }
        }
    }
}
