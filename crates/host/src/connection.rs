//! One connection: frames in, commands carried out in order, answers and streams out.
//!
//! The reader carries commands out one after the other, so a viewer may send several without
//! waiting; only waits and streams run beside it. All frames leave by one way, and whoever comes second
//! waits: a stream that waits too long falls off its window and begins anew.

mod answer;
mod attach;
mod authorise;
mod queues;
mod tokens;

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use attache_engine::{EngineError, Quiet, Viewing};
use attache_protocol::{Answer, Command, FromHost, FromViewer, Reach, VERSION, WireError};
use attache_session::{ErrorCode, SessionId, preview};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::attachments::GRACE;
use crate::grant::Grant;
use crate::host::Host;
use crate::incoming::{Incoming, Lines, Said};
use crate::outgoing::Outgoing;
use crate::repeats::{Before, Claim};
use crate::streams::Pump;
use crate::{doors, from_wire, repeats, to_wire};

use authorise::Below;

static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// Characters of a program's name that other viewers are told.
const PROGRAM_CHARS: usize = 100;

/// How long a connection waits for one more question once its host has ended all work: whoever was
/// just told how a session ended may ask for the rest of it.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How long that may go on.
const LEAVING: Duration = Duration::from_secs(1);

/// The number of a connection that comes now: taken before it first speaks, so that of two of one viewer the later one has
/// the higher number.
pub(crate) fn number() -> u64 {
    CONNECTIONS.fetch_add(1, Ordering::Relaxed)
}

/// Serves a connection over a byte stream of this machine until its other end is gone. It is its user's own: it may do
/// everything, and its first frame may open a door of another protocol.
pub(crate) async fn serve<S>(host: Host, stream: S)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let number = number();
    let (read, write) = tokio::io::split(stream);
    let mut lines = Lines::new(read);
    let mut going_away = host.going_away();
    let first = tokio::select! {
        biased;
        _reason = leaving(&mut going_away) => None,
        said = lines.next() => Some(said),
    };
    if let Some(Said::Frame(FromViewer::OpenDoor(open))) = first {
        doors::open(&host, *open, tokio::io::join(lines.into_rest(), write)).await;
        return;
    }
    let outgoing = Outgoing::lines(write);
    let never = std::future::pending();
    converse(host, number, Grant::OWNER, lines, first, outgoing, never).await;
}

/// Serves frames until the other end is gone, or until `cut` ends, with what is still to be told if it may be; `first` is
/// what was said already.
pub(crate) async fn converse(
    host: Host,
    number: u64,
    grant: Grant,
    incoming: impl Incoming,
    first: Option<Said>,
    outgoing: Outgoing,
    cut: impl Future<Output = Option<EngineError>>,
) {
    let mut connection = Connection {
        host,
        outgoing: outgoing.clone(),
        number,
        grant,
        below: grant.subtree.map(Below::new),
        greeted: false,
        sessions: HashMap::new(),
        only_looks: HashSet::new(),
        tree: None,
        waits: Vec::new(),
        program: "".into(),
        own: HashMap::new(),
    };
    let last = tokio::select! {
        biased;
        last = cut => last,
        () = connection.read(incoming, first) => None,
    };
    connection.close();
    if let Some(error) = last {
        // One that reads no further is not waited for.
        let _told = tokio::time::timeout(LAST_WORDS, connection.refuse(None, &error)).await;
    }
    drop(connection);
    outgoing.shut().await;
}

/// Whether this host can talk to an end that speaks this version and those before it.
pub(crate) fn spoken(version: u32) -> Result<(), EngineError> {
    if version >= VERSION {
        return Ok(());
    }
    let text = format!(
        "this host speaks version {VERSION}, the viewer only {version}; `attache restart` starts the \
         newer program"
    );
    Err(EngineError::new(ErrorCode::HostIncompatible, text))
}

/// Waits until the host ends, and says why it does.
pub(crate) async fn leaving(going_away: &mut watch::Receiver<Option<String>>) -> String {
    // A host that is gone without a word ends this task too.
    let reason = going_away.wait_for(Option::is_some).await;
    reason
        .ok()
        .and_then(|reason| reason.clone())
        .unwrap_or_default()
}

struct Connection {
    host: Host,
    outgoing: Outgoing,
    /// Its number among the connections of the host.
    number: u64,
    /// What it may do.
    grant: Grant,
    /// What it may see, where that is not all.
    below: Option<Below>,
    /// Whether the first frame, its greeting, has come.
    greeted: bool,
    /// Attachments that it holds, by name.
    sessions: HashMap<SessionId, String>,
    /// Sessions to which it asked to be attached for looking only, granted or not: what comes behind that question is said by
    /// somebody who only looks.
    only_looks: HashSet<SessionId>,
    tree: Option<Pump>,
    waits: Vec<JoinHandle<()>>,
    /// Name and version of the viewer's program.
    program: Arc<str>,
    /// Sessions that this connection created, to look on, and has not attached to yet.
    own: HashMap<SessionId, Viewing>,
}

impl Connection {
    /// Carries out what comes, after what was said `first`.
    async fn read(&mut self, mut incoming: impl Incoming, first: Option<Said>) {
        let mut going_away = self.host.going_away();
        if let Some(first) = first
            && !self.heard(first).await
        {
            return;
        }
        let reason = loop {
            let said = tokio::select! {
                biased;
                reason = leaving(&mut going_away) => break reason,
                said = incoming.next() => said,
            };
            if !self.heard(said).await {
                return;
            }
        };
        let last_words = async {
            // First whoever waits for an end of work that has come.
            for wait in self.waits.drain(..) {
                // One that failed has nobody to tell.
                let _told = wait.await;
            }
            while self.greeted
                && let Ok(said) = tokio::time::timeout(LAST_WORDS, incoming.next()).await
            {
                if !self.heard(said).await {
                    return;
                }
            }
        };
        // Whoever reads no further, or asks on and on, does not hold the host up.
        let _over = tokio::time::timeout(LEAVING, last_words).await;
        self.send(FromHost::GoingAway { reason }).await;
    }

    /// Carries out what was said; false when the connection is over.
    async fn heard(&mut self, said: Said) -> bool {
        match said {
            Said::Gone => return false,
            Said::Broken(why) => {
                self.refuse(None, &invalid(&why)).await;
                return false;
            }
            Said::Invalid(why) => self.refuse(None, &invalid(&why)).await,
            Said::Frame(FromViewer::Hello {
                version,
                features: _,
                program,
            }) => {
                if let Err(error) = spoken(version) {
                    self.refuse(None, &error).await;
                    return false;
                }
                self.greeted = true;
                self.program = preview(&program, PROGRAM_CHARS).0.into();
                let program = self.host.0.program.clone();
                self.send(FromHost::Hello {
                    version: VERSION,
                    features: Vec::new(),
                    program,
                })
                .await;
            }
            Said::Frame(FromViewer::OpenDoor(_)) => {
                let text = "a door is opened by the first frame over the local socket";
                self.refuse(None, &invalid(text)).await;
            }
            Said::Frame(FromViewer::Command { command_id, body }) if self.greeted => {
                self.carry_out(command_id, body).await;
            }
            Said::Frame(FromViewer::Command { command_id, .. }) => {
                self.refuse(
                    Some(command_id),
                    &invalid("the first frame must be `hello`"),
                )
                .await;
            }
        }
        true
    }

    async fn send(&self, frame: FromHost) {
        // A socket that is gone is noticed by the reader.
        let _sent = self.outgoing.frame(&frame).await;
    }

    async fn refuse(&self, command_id: Option<String>, error: &EngineError) {
        let error = to_wire::error(error);
        log(&error);
        self.send(FromHost::OperationError { command_id, error })
            .await;
    }

    async fn carry_out(&mut self, id: String, mut command: Command) {
        let answered = match self.authorise(&mut command) {
            Ok(Some(answer)) => Ok(Some(answer)),
            Ok(None) => self.answer_once(&id, command).await,
            Err(refused) => Err(refused),
        };
        match answered {
            Ok(Some(answer)) => self.send(FromHost::answer(id, answer)).await,
            Ok(None) => {}
            Err(error) => self.refuse(Some(id), &error).await,
        }
    }

    /// Carries a command out unless it was already.
    async fn answer_once(
        &mut self,
        id: &str,
        command: Command,
    ) -> Result<Option<Answer>, EngineError> {
        let session = command.changes().filter(|_| repeats::is_for(&command));
        let Some(session) = session else {
            return self.answer(id, command, &mut None).await;
        };
        let session = from_wire::session(session)?;
        self.may_change(session)?;
        let key = (key_of(id), from_wire::digest(&command));
        let repeats = Arc::clone(&self.host.0.repeats);
        match repeats.look(session, key).await? {
            Before::Answered(answer) => Ok(Some(answer)),
            Before::New(claim) => {
                let mut claim = Some(claim);
                let answer = self.answer(id, command, &mut claim).await?;
                if let (Some(answer), Some(claim)) = (&answer, claim) {
                    claim.done(answer);
                }
                Ok(answer)
            }
        }
    }

    /// The model is asked beside what else this connection does; the answer comes when it has said it.
    fn compact(&mut self, id: String, session: SessionId, claim: Option<Claim>) {
        let engine = self.host.engine().clone();
        let outgoing = self.outgoing.clone();
        self.waits.retain(|wait| !wait.is_finished());
        self.waits.push(tokio::spawn(async move {
            let frame = match engine.compact(session).await {
                Ok(()) => {
                    let answer = Answer::Done { changed: true };
                    if let Some(claim) = claim {
                        claim.done(&answer);
                    }
                    FromHost::answer(id, answer)
                }
                Err(error) => FromHost::OperationError {
                    command_id: Some(id),
                    error: to_wire::error(&error),
                },
            };
            // A socket that is gone is noticed by the reader.
            let _sent = outgoing.frame(&frame).await;
        }));
    }

    fn wait(&mut self, id: String, session: SessionId, reach: Reach, seconds: Option<u64>) {
        let engine = self.host.engine().clone();
        let outgoing = self.outgoing.clone();
        self.waits.retain(|wait| !wait.is_finished());
        let mut going_away = self.host.going_away();
        self.waits.push(tokio::spawn(async move {
            let reach = match reach {
                Reach::Itself => Quiet::Itself,
                Reach::Tree => Quiet::Tree,
            };
            let settled = engine.settled(session, reach);
            let settled = async {
                match seconds {
                    None => Some(settled.await),
                    Some(seconds) => tokio::time::timeout(Duration::from_secs(seconds), settled)
                        .await
                        .ok(),
                }
            };
            let ended = tokio::select! {
                biased;
                ended = settled => ended,
                _reason = leaving(&mut going_away) => {
                    // All work has ended: what has not settled by now never will. One last look.
                    let look = engine.settled(session, reach);
                    match tokio::time::timeout(Duration::ZERO, look).await {
                        Ok(settled) => Some(settled),
                        // The word that the host ends is the answer.
                        Err(_never) => return,
                    }
                }
            };
            let row = engine.row(session);
            let frame = match (ended, row) {
                (Some(Ok(())), Ok(row)) => {
                    let session = Box::new(to_wire::session(&engine, &row));
                    FromHost::answer(id, Answer::Session { session })
                }
                (Some(Err(error)), _) | (_, Err(error)) => FromHost::OperationError {
                    command_id: Some(id),
                    error: to_wire::error(&error),
                },
                (None, Ok(row)) => FromHost::OperationError {
                    command_id: Some(id),
                    error: timed_out(&row),
                },
            };
            // A socket that is gone is noticed by the reader.
            let _sent = outgoing.frame(&frame).await;
        }));
    }

    fn close(&mut self) {
        if let Some(tree) = self.tree.take() {
            tree.abort();
        }
        self.waits.drain(..).for_each(|wait| wait.abort());
        let attached: Vec<String> = self.sessions.drain().map(|(_, name)| name).collect();
        let own: Vec<Viewing> = self.own.drain().map(|(_, viewing)| viewing).collect();
        if attached.is_empty() && own.is_empty() {
            return;
        }
        let host = self.host.clone();
        host.0.attachments.lost(&attached, self.number);
        tokio::spawn(async move {
            tokio::time::sleep(GRACE).await;
            host.0.attachments.look();
            drop(own);
        });
    }
}

/// Faults that are not the viewer's go to the log, under the id that the viewer was told.
pub(crate) fn log(error: &WireError) {
    if matches!(error.category.as_str(), "internal" | "unavailable") {
        let WireError {
            code,
            message,
            correlation_id,
            ..
        } = error;
        let mut log = std::io::stderr().lock();
        // Where the log cannot be written there is nobody left to tell.
        let _written = writeln!(log, "{correlation_id} {code}: {message}");
    }
}

fn invalid(text: &str) -> EngineError {
    EngineError::new(ErrorCode::InvalidMessage, text)
}

fn timed_out(row: &attache_engine::SessionRow) -> WireError {
    let mut error = to_wire::error(&EngineError::new(
        ErrorCode::Internal,
        format!(
            "session {} is still {}",
            row.session,
            to_wire::status(row.status).as_str()
        ),
    ));
    "timeout".clone_into(&mut error.code);
    "timeout".clone_into(&mut error.category);
    error.retryable = true;
    error.hint = Some("Wait again, or look at it with `attache show`.".to_owned());
    error
}

/// Command ids are the viewer's own; within a session each names one command.
fn key_of(id: &str) -> Uuid {
    id.parse().unwrap_or_else(|_no_uuid| {
        let digest = from_wire::digest(&Command::Resolve {
            text: id.to_owned(),
        });
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        Uuid::from_bytes(bytes)
    })
}
