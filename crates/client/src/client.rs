//! One connection as its user sees it: questions with answers, and the frames of the streams.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_protocol::{
    Answer, Command, FRAME_LIMIT, FromHost, FromViewer, OpenDoor, SessionView, VERSION, WireError,
    decode, encode,
};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, ReadHalf,
    WriteHalf,
};
use tokio::sync::{mpsc, oneshot};

/// Why a question has no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClientError {
    /// The host said no.
    #[error("{0}")]
    Refused(Box<WireError>),
    /// The connection ended before the answer came.
    #[error("the connection to the host ended: {0}")]
    Gone(String),
    /// The host said something that is no answer to this.
    #[error("the host answered something else than was asked")]
    Unexpected,
}

/// Stream frames that wait for their reader; the connection is read no further while it is full.
const STREAM: usize = 1_024;

type Reply = oneshot::Sender<Result<Answer, ClientError>>;

#[derive(Default)]
struct Pending {
    replies: HashMap<String, Reply>,
    gone: Option<String>,
}

/// A connection. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    out: mpsc::Sender<Vec<u8>>,
    pending: Arc<Mutex<Pending>>,
    next: Arc<AtomicU64>,
    run: Arc<str>,
}

/// The frames of a connection's streams, in order.
pub struct Streams(mpsc::Receiver<FromHost>);

impl Streams {
    /// The next frame; none when the connection has ended.
    pub async fn next(&mut self) -> Option<FromHost> {
        self.0.recv().await
    }
}

impl Client {
    /// Greets the host over a connection that stands. `program` is the viewer's name and version;
    /// `run` makes its command ids unique.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when the host does not greet back.
    pub async fn greet<S>(
        stream: S,
        program: &str,
        run: &str,
    ) -> Result<(Self, Streams), ClientError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (read, mut write) = tokio::io::split(stream);
        let hello = FromViewer::Hello {
            version: VERSION,
            features: Vec::new(),
            program: program.to_owned(),
        };
        let mut bytes = encode(&hello);
        bytes.push(b'\n');
        write
            .write_all(&bytes)
            .await
            .map_err(|fault| ClientError::Gone(fault.to_string()))?;
        let mut lines = BufReader::new(read);
        greeted(&mut lines).await?;
        let (out, outgoing) = mpsc::channel(64);
        let (streamed, streams) = mpsc::channel(STREAM);
        let pending = Arc::new(Mutex::new(Pending::default()));
        tokio::spawn(write_all(write, outgoing));
        tokio::spawn(read_all(lines, Arc::clone(&pending), streamed));
        let client = Self {
            out,
            pending,
            next: Arc::new(AtomicU64::new(1)),
            run: Arc::from(run),
        };
        Ok((client, Streams(streams)))
    }

    /// Opens a door of another protocol over a connection that stands; from then on it speaks that
    /// one, both ways.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when the host has no such door, or refuses what it is opened with.
    pub async fn open_door<S>(
        stream: S,
        open: OpenDoor,
    ) -> Result<(BufReader<ReadHalf<S>>, WriteHalf<S>), ClientError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (read, mut write) = tokio::io::split(stream);
        let mut bytes = encode(&FromViewer::OpenDoor(Box::new(open)));
        bytes.push(b'\n');
        write
            .write_all(&bytes)
            .await
            .map_err(|fault| ClientError::Gone(fault.to_string()))?;
        let mut lines = BufReader::new(read);
        greeted(&mut lines).await?;
        Ok((lines, write))
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when the host refuses or is gone.
    pub async fn ask(&self, command: Command) -> Result<Answer, ClientError> {
        self.post(command).await?.await.unwrap_or_else(|_gone| {
            let reason = lock(&self.pending).gone.clone().unwrap_or_default();
            Err(ClientError::Gone(reason))
        })
    }

    /// Rows of all sessions, or of one tree, in order of birth: all pages of them.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when the host refuses or is gone.
    pub async fn sessions(&self, root: Option<&str>) -> Result<Vec<SessionView>, ClientError> {
        let mut all: Vec<SessionView> = Vec::new();
        loop {
            let command = Command::ListSessions {
                root_session_id: root.map(str::to_owned),
                after_session_id: all.last().map(|last| last.session_id.clone()),
            };
            match self.ask(command).await? {
                Answer::Sessions { mut sessions, more } => {
                    all.append(&mut sessions);
                    if !more {
                        return Ok(all);
                    }
                }
                _ => return Err(ClientError::Unexpected),
            }
        }
    }

    /// What follows in an item's text after the bytes that are known.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when the host refuses or is gone.
    pub async fn rest_of_text(
        &self,
        session_id: &str,
        position: u64,
        known: usize,
    ) -> Result<String, ClientError> {
        let mut rest = String::new();
        loop {
            let command = Command::ReadText {
                session_id: session_id.to_owned(),
                position,
                offset: (known + rest.len()) as u64,
            };
            match self.ask(command).await? {
                Answer::Text { text, more } => {
                    rest.push_str(&text);
                    if !more {
                        return Ok(rest);
                    }
                }
                _ => return Err(ClientError::Unexpected),
            }
        }
    }

    /// Says a frame as it is. The answer to it, which this connection did not make the id of, comes among the frames of the
    /// streams.
    ///
    /// # Errors
    ///
    /// [`ClientError::Gone`] when the connection has ended.
    pub async fn say(&self, frame: &FromViewer) -> Result<(), ClientError> {
        let mut bytes = encode(frame);
        bytes.push(b'\n');
        let said = self.out.send(bytes).await;
        said.map_err(|_gone| ClientError::Gone(self.why_gone()))
    }

    /// Why the connection has ended; empty while it stands.
    #[must_use]
    pub fn why_gone(&self) -> String {
        lock(&self.pending).gone.clone().unwrap_or_default()
    }

    /// Sends a question without waiting for its answer, so that several can be under way.
    ///
    /// # Errors
    ///
    /// [`ClientError::Gone`] when the connection has ended.
    pub async fn post(
        &self,
        command: Command,
    ) -> Result<oneshot::Receiver<Result<Answer, ClientError>>, ClientError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{number}", self.run);
        let (reply, answer) = oneshot::channel();
        {
            let mut pending = lock(&self.pending);
            if let Some(reason) = &pending.gone {
                return Err(ClientError::Gone(reason.clone()));
            }
            pending.replies.insert(id.clone(), reply);
        }
        let mut bytes = encode(&FromViewer::command(id, command));
        bytes.push(b'\n');
        self.out
            .send(bytes)
            .await
            .map_err(|_gone| ClientError::Gone("the host is gone".to_owned()))?;
        Ok(answer)
    }
}

/// Waits for the host's greeting.
async fn greeted<S: AsyncRead>(lines: &mut BufReader<ReadHalf<S>>) -> Result<(), ClientError> {
    match read_frame(lines).await {
        Ok(FromHost::Hello { .. }) => Ok(()),
        Ok(FromHost::OperationError { error, .. }) => Err(ClientError::Refused(Box::new(error))),
        Ok(FromHost::GoingAway { reason }) => Err(ClientError::Gone(reason)),
        Ok(_) => Err(ClientError::Unexpected),
        Err(reason) => Err(ClientError::Gone(reason)),
    }
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn write_all<S: AsyncWrite>(mut socket: WriteHalf<S>, mut out: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = out.recv().await {
        if socket.write_all(&bytes).await.is_err() {
            return;
        }
    }
    // The other end may be gone already.
    let _shut = socket.shutdown().await;
}

async fn read_frame<S: AsyncRead>(lines: &mut BufReader<ReadHalf<S>>) -> Result<FromHost, String> {
    let mut line = Vec::new();
    let mut limited = lines.take(FRAME_LIMIT as u64 + 2);
    match limited.read_until(b'\n', &mut line).await {
        Ok(0) => Err("the host closed it".to_owned()),
        Ok(_) => decode(line.trim_ascii_end()).map_err(|fault| fault.to_string()),
        Err(fault) => Err(fault.to_string()),
    }
}

async fn read_all<S: AsyncRead>(
    mut lines: BufReader<ReadHalf<S>>,
    pending: Arc<Mutex<Pending>>,
    streamed: mpsc::Sender<FromHost>,
) {
    let reason = loop {
        let frame = match read_frame(&mut lines).await {
            Ok(frame) => frame,
            Err(reason) => break reason,
        };
        let asked = match &frame {
            FromHost::Answer { command_id, .. } => Some(command_id),
            FromHost::OperationError { command_id, .. } => command_id.as_ref(),
            _ => None,
        };
        let reply = asked.and_then(|id| lock(&pending).replies.remove(id));
        // Whoever asked may no longer wait, and a user who follows no stream has dropped its end: nothing is lost then.
        match (frame, reply) {
            (FromHost::Answer { body, .. }, Some(reply)) => drop(reply.send(Ok(*body))),
            (FromHost::OperationError { error, .. }, Some(reply)) => {
                drop(reply.send(Err(ClientError::Refused(Box::new(error)))));
            }
            (
                FromHost::OperationError {
                    command_id: None,
                    error,
                },
                None,
            ) => break error.message,
            (FromHost::GoingAway { reason }, _) => {
                let frame = FromHost::GoingAway {
                    reason: reason.clone(),
                };
                let _followed = streamed.send(frame).await;
                break reason;
            }
            (frame, _) => drop(streamed.send(frame).await),
        }
    };
    let mut pending = lock(&pending);
    pending.gone = Some(reason.clone());
    for (_, reply) in pending.replies.drain() {
        drop(reply.send(Err(ClientError::Gone(reason.clone()))));
    }
}
