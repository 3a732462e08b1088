//! A WebSocket as a transport of frames: one frame is one text message. Both ways share it, and neither holds it while it
//! waits.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use attache_protocol::FRAME_LIMIT;
use futures_util::{Sink, SinkExt};
use tokio::io::{AsyncRead, AsyncWrite};
use yawc::close::CloseCode;
use yawc::{DeflatePool, Frame, OpCode, Options, WebSocket, WebSocketError};

use crate::incoming::{Incoming, Said};
use crate::outgoing::{Message, Outgoing};

/// Shortest message that is compressed, in bytes.
const COMPRESSED: usize = 128;

/// States for reading compressed messages that are kept for whoever needs one next.
const POOL: usize = 8;

/// How sockets are set up. What the host says is compressed with what it said before, since frames are much alike; what
/// viewers say is little, and is not worth that memory.
pub(super) fn options() -> Options {
    Options::default()
        // Both are the first length that is refused.
        .with_limits(FRAME_LIMIT + 1, FRAME_LIMIT + 1)
        .with_utf8()
        .with_low_latency_compression()
        .with_compression_threshold(COMPRESSED)
        .client_no_context_takeover()
        .with_deflate_pool(DeflatePool::new(POOL))
}

/// A socket and what became of it.
struct Shared<S> {
    socket: WebSocket<S>,
    /// A message was larger than any frame: one more thing is said, and then nothing.
    is_too_large: bool,
}

type Both<S> = Arc<Mutex<Shared<S>>>;

fn lock<S>(both: &Both<S>) -> MutexGuard<'_, Shared<S>> {
    both.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The two ways of a socket, and what is set whenever something has come from the other end.
pub(super) fn ways<S>(socket: WebSocket<S>) -> (SocketIn<S>, Outgoing, Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let both = Arc::new(Mutex::new(Shared {
        socket,
        is_too_large: false,
    }));
    let outgoing = Outgoing::messages(Box::pin(SocketOut(Arc::clone(&both))));
    let heard = Arc::new(AtomicBool::new(false));
    let incoming = SocketIn {
        both,
        outgoing: outgoing.clone(),
        heard: Arc::clone(&heard),
    };
    (incoming, outgoing, heard)
}

/// The way in.
pub(super) struct SocketIn<S> {
    both: Both<S>,
    outgoing: Outgoing,
    heard: Arc<AtomicBool>,
}

impl<S> SocketIn<S>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Result<Frame, WebSocketError>> {
        let mut shared = lock(&self.both);
        let read = ready!(shared.socket.poll_next_frame(cx));
        shared.is_too_large |= matches!(read, Err(WebSocketError::FrameTooLarge));
        Poll::Ready(read)
    }
}

impl<S> Incoming for SocketIn<S>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    async fn next(&mut self) -> Said {
        loop {
            let read = std::future::poll_fn(|cx| self.poll_frame(cx)).await;
            self.heard.store(true, Ordering::Relaxed);
            match read {
                Ok(frame) => match frame.opcode() {
                    OpCode::Text => return Said::of(frame.payload()),
                    OpCode::Binary => {
                        return Said::Invalid(
                            "a frame is a text message, not a binary one".to_owned(),
                        );
                    }
                    OpCode::Close => return Said::Gone,
                    // Its answer leaves before anything more is read: whoever asks and asks has to read.
                    OpCode::Ping => self.outgoing.settle().await,
                    OpCode::Pong | OpCode::Continuation => {}
                },
                Err(WebSocketError::FrameTooLarge) => {
                    return Said::Broken("a frame has at most 1 MiB".to_owned());
                }
                Err(_gone) => return Said::Gone,
            }
        }
    }
}

/// The way out.
struct SocketOut<S>(Both<S>);

impl<S> Sink<Message> for SocketOut<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    type Error = io::Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shared = lock(&self.0);
        if shared.is_too_large {
            // The socket wants to say goodbye first, and then nobody would be told why.
            return Poll::Ready(Ok(()));
        }
        shared.socket.poll_ready_unpin(cx).map_err(io::Error::other)
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> io::Result<()> {
        let frame = match message {
            Message::Frame(bytes) => Frame::text(bytes),
            Message::Ping => Frame::ping(Vec::new()),
        };
        let sent = lock(&self.0).socket.start_send_unpin(frame);
        sent.map_err(io::Error::other)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shared = lock(&self.0);
        shared.socket.poll_flush_unpin(cx).map_err(io::Error::other)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shared = lock(&self.0);
        let Shared {
            socket,
            is_too_large,
        } = &mut *shared;
        if std::mem::take(is_too_large) {
            let goodbye = Frame::close(CloseCode::Size, "a frame has at most 1 MiB");
            socket.start_send_unpin(goodbye).map_err(io::Error::other)?;
        } else {
            // What the socket itself has to say: its answer to a goodbye, or what was wrong.
            ready!(socket.poll_ready_unpin(cx)).map_err(io::Error::other)?;
        }
        socket.poll_close_unpin(cx).map_err(io::Error::other)
    }
}
