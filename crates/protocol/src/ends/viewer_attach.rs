//! A viewer's end of an attachment: what it says on each connection, and what it makes of what it hears. Commands that have
//! no answer yet outlive their connection and are said again on the next one, under the same id, so that each takes effect
//! once. What is shown comes from the host alone: a command changes nothing here.

use std::collections::VecDeque;

use super::mirror::{Mirror, Seen};
use crate::answer::Answer;
use crate::command::{Command, Resume};
use crate::error::WireError;
use crate::frame::{FromHost, FromViewer, Stream, VERSION};

/// See the module. It knows no socket: who drives it sends what it is given and hands in what comes.
#[derive(Clone, Debug)]
pub struct ViewerAttach {
    session_id: String,
    program: String,
    read_only: bool,
    /// Begins every command id, so that no other viewer makes the same.
    run: String,
    next: u64,
    mirror: Mirror,
    /// What the host calls this attachment.
    attachment: Option<String>,
    /// The command that attaches, while it has no answer.
    attaching: Option<String>,
    /// Whether that one comes back to an attachment.
    returns: bool,
    is_connected: bool,
    pending: VecDeque<(String, Command)>,
}

/// What a viewer hears.
#[derive(Clone, PartialEq, Debug)]
pub enum Heard {
    /// Something of the session.
    Seen(Seen),
    /// A command was carried out or refused, as its answer says.
    Answered {
        /// The command's id.
        command_id: String,
        /// What came of it.
        answer: Result<Box<Answer>, Box<WireError>>,
    },
    /// The viewer is attached. With `replays` the stream goes on where it stood.
    Attached {
        /// Whether it goes on where it stood; otherwise a snapshot follows.
        replays: bool,
    },
    /// The host does not take this viewer, or lets it see no such session.
    Refused(Box<WireError>),
    /// The host ends, and says why; nothing follows on this connection.
    GoingAway(String),
}

impl ViewerAttach {
    /// A viewer of a session. `run` begins its command ids; `program` is its name and version.
    #[must_use]
    pub fn new(session_id: &str, program: &str, run: &str, read_only: bool) -> Self {
        Self {
            session_id: session_id.to_owned(),
            program: program.to_owned(),
            read_only,
            run: run.to_owned(),
            next: 1,
            mirror: Mirror::default(),
            attachment: None,
            attaching: None,
            returns: false,
            is_connected: false,
            pending: VecDeque::new(),
        }
    }

    /// What the host has said of the session so far.
    #[must_use]
    pub fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// Ids of the commands that have no answer yet, in the order in which they were given.
    pub fn pending(&self) -> impl Iterator<Item = &str> {
        self.pending.iter().map(|(id, _)| id.as_str())
    }

    /// A connection stands: what is to be said first. It goes on where the viewer stood, if the host still can.
    pub fn connected(&mut self) -> Vec<FromViewer> {
        self.is_connected = true;
        let hello = FromViewer::Hello {
            version: VERSION,
            features: Vec::new(),
            program: self.program.clone(),
        };
        let attach = self.attach();
        let pending = self.pending.iter();
        let again = pending.map(|(id, body)| FromViewer::command(id.clone(), body.clone()));
        [hello, attach].into_iter().chain(again).collect()
    }

    /// The connection is gone.
    pub fn lost(&mut self) {
        self.is_connected = false;
        self.attaching = None;
    }

    /// Gives a command: its id, and the frame to send now if a connection stands.
    pub fn command(&mut self, body: Command) -> (String, Option<FromViewer>) {
        let id = self.fresh();
        self.pending.push_back((id.clone(), body.clone()));
        let frame = self
            .is_connected
            .then(|| FromViewer::command(id.clone(), body));
        (id, frame)
    }

    /// Attaches once more over the connection that stands: after the end of an epoch, for example.
    pub fn again(&mut self) -> FromViewer {
        self.attach()
    }

    /// Takes in a frame of the host. What is heard comes with what is to be sent at once.
    pub fn handle(&mut self, frame: FromHost) -> (Vec<Heard>, Vec<FromViewer>) {
        match frame {
            FromHost::Hello { .. } => (Vec::new(), Vec::new()),
            FromHost::Answer { command_id, body } => {
                (self.answered(command_id, Ok(body)), Vec::new())
            }
            FromHost::OperationError {
                command_id: Some(id),
                error: _,
            } if self.returns && self.attaching.as_ref() == Some(&id) => {
                // What it came back to is over: it looks at the session as it is now.
                self.attachment = None;
                (Vec::new(), vec![self.attach()])
            }
            FromHost::OperationError {
                command_id: Some(id),
                error,
            } => (self.answered(id, Err(Box::new(error))), Vec::new()),
            FromHost::OperationError {
                command_id: None,
                error,
            } => (vec![Heard::Refused(Box::new(error))], Vec::new()),
            FromHost::GoingAway { reason } => (vec![Heard::GoingAway(reason)], Vec::new()),
            frame => {
                if !self.is_ours(&frame) {
                    return (Vec::new(), Vec::new());
                }
                let seen = self.mirror.apply(frame);
                let is_lost = seen.contains(&Seen::Lost);
                let anew = is_lost.then(|| self.attach());
                let heard = seen.into_iter().map(Heard::Seen);
                (heard.collect(), anew.into_iter().collect())
            }
        }
    }

    fn answered(&mut self, id: String, answer: Result<Box<Answer>, Box<WireError>>) -> Vec<Heard> {
        if self.attaching.as_ref() == Some(&id) {
            self.attaching = None;
            return match answer.map(|answer| *answer) {
                Ok(Answer::Attached {
                    attachment,
                    replays,
                }) => {
                    self.attachment = Some(attachment);
                    vec![Heard::Attached { replays }]
                }
                Ok(_) => Vec::new(),
                Err(error) => vec![Heard::Refused(error)],
            };
        }
        let Some(place) = self.pending.iter().position(|(other, _)| *other == id) else {
            // Answered before, on another connection.
            return Vec::new();
        };
        self.pending.remove(place);
        vec![Heard::Answered {
            command_id: id,
            answer,
        }]
    }

    fn is_ours(&self, frame: &FromHost) -> bool {
        match frame {
            FromHost::Snapshot(snapshot) => {
                let mut sessions = snapshot.sessions.iter();
                snapshot.stream == Stream::Session
                    && sessions.any(|session| session.session_id == self.session_id)
            }
            FromHost::Delta(delta) => {
                delta.stream == Stream::Session && delta.session_id == self.session_id
            }
            FromHost::SessionTerminal { session_id, .. } => *session_id == self.session_id,
            _ => false,
        }
    }

    fn attach(&mut self) -> FromViewer {
        let id = self.fresh();
        self.attaching = Some(id.clone());
        let resume = self.attachment.clone().map(|attachment| Resume {
            attachment,
            place: self.mirror.place(),
        });
        self.returns = resume.is_some();
        let attach = Command::Attach {
            session_id: self.session_id.clone(),
            resume,
            read_only: self.read_only,
        };
        FromViewer::command(id, attach)
    }

    fn fresh(&mut self) -> String {
        let number = self.next;
        self.next += 1;
        format!("{}-{number}", self.run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::QueueView;

    fn interrupt() -> Command {
        Command::Interrupt {
            session_id: "s".to_owned(),
            tree: false,
        }
    }

    fn ids(frames: &[FromViewer]) -> Vec<&str> {
        frames.iter().map(name).collect()
    }

    fn name(frame: &FromViewer) -> &str {
        match frame {
            FromViewer::Command { command_id, .. } => command_id,
            _ => "",
        }
    }

    fn attached(id: &str) -> FromHost {
        let body = Answer::Attached {
            attachment: "a".to_owned(),
            replays: false,
        };
        FromHost::answer(id, body)
    }

    #[test]
    fn a_command_without_an_answer_is_said_again_under_its_id_and_answered_once() {
        let mut viewer = ViewerAttach::new("s", "p", "r", false);
        let (first, frame) = viewer.command(interrupt());
        assert_eq!((first.as_str(), frame), ("r-1", None));
        assert_eq!(ids(&viewer.connected()), ["", "r-2", "r-1"]);
        let (_, frame) = viewer.command(interrupt());
        assert_eq!(ids(&[frame.unwrap()]), ["r-3"]);
        viewer.handle(attached("r-2"));
        viewer.lost();
        // Where it stood is said with the name that the host gave.
        let again = viewer.connected();
        assert_eq!(ids(&again), ["", "r-4", "r-1", "r-3"]);
        let FromViewer::Command {
            body: Command::Attach { resume, .. },
            ..
        } = &again[1]
        else {
            panic!("{again:?}");
        };
        assert_eq!(resume.as_ref().unwrap().attachment, "a");
        let done = || FromHost::answer("r-1", Answer::Done { changed: true });
        assert_eq!(viewer.handle(done()).0.len(), 1);
        assert_eq!(viewer.handle(done()).0, []);
        assert_eq!(viewer.pending().collect::<Vec<_>>(), ["r-3"]);
    }

    #[test]
    fn who_comes_back_too_late_attaches_anew_and_asks_once() {
        let mut viewer = ViewerAttach::new("s", "p", "r", false);
        viewer.connected();
        viewer.handle(attached("r-1"));
        viewer.lost();
        assert_eq!(ids(&viewer.connected()), ["", "r-2"]);
        let refused = |id: &str| FromHost::OperationError {
            command_id: Some(id.to_owned()),
            error: WireError {
                code: "unknown-session".to_owned(),
                category: "not-found".to_owned(),
                retryable: false,
                message: "there is no session s".to_owned(),
                hint: None,
                correlation_id: "1".to_owned(),
                current_revision: None,
            },
        };
        let (heard, send) = viewer.handle(refused("r-2"));
        assert_eq!(heard, []);
        let [
            FromViewer::Command {
                command_id,
                body: Command::Attach { resume, .. },
            },
        ] = &send[..]
        else {
            panic!("{send:?}");
        };
        assert_eq!((command_id.as_str(), resume), ("r-3", &None));
        let (heard, send) = viewer.handle(refused("r-3"));
        assert!(matches!(&heard[..], [Heard::Refused(_)]) && send.is_empty());
    }

    #[test]
    fn what_is_missing_or_somebody_elses_is_noticed() {
        let mut viewer = ViewerAttach::new("s", "p", "r", false);
        viewer.connected();
        let delta = |session_id: &str, sequence| {
            FromHost::Delta(Box::new(crate::frame::Delta {
                stream: Stream::Session,
                epoch: None,
                sequence,
                session_id: session_id.to_owned(),
                live: false,
                patch: crate::frame::Patch::QueuePut {
                    queue: QueueView {
                        queue_id: "default".to_owned(),
                        name: "default".to_owned(),
                        immediacy: crate::session::Immediacy::Queue,
                        revision: 1,
                        waiting: 0,
                        items: Vec::new(),
                    },
                },
            }))
        };
        assert_eq!(viewer.handle(delta("other", 7)), (vec![], vec![]));
        let (heard, send) = viewer.handle(delta("s", 7));
        assert_eq!(heard, [Heard::Seen(Seen::Lost)]);
        assert_eq!(ids(&send), ["r-2"]);
        assert!(viewer.mirror().queues.is_empty());
    }
}
