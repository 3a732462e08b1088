//! `attache chat`: a session line by line. A line is sent, the answer is streamed; Ctrl-C ends the
//! run and keeps the session, end of input leaves it.

use std::io::IsTerminal;

use attache_client::protocol::{
    Answer, Command, EventKind, FromHost, ModalView, QueueRef, SessionView, Status,
};
use attache_client::{ClientError, Mirror, Seen};
use tokio::io::{AsyncBufReadExt, BufReader, Stdin};

use super::events::whole;
use super::follow::GAP;
use super::{attach, detach, done, new_session};
use crate::cli::Chat;
use crate::fail::Failure;
use crate::find;
use crate::interrupts::Interrupts;
use crate::link::{self, Link};
use crate::modals;
use crate::output::Output;
use crate::tree_view::short;

pub(crate) async fn chat(chat: Chat, output: &Output) -> Result<u8, Failure> {
    let Chat { id, choice } = chat;
    let mut link = Link::daemon().await?;
    let new = id.is_none();
    let session = match id {
        Some(id) => find::session(&link.client, &id).await?,
        None => {
            let new = new_session(&choice, None, false)?;
            match link
                .client
                .ask(Command::CreateSession(Box::new(new)))
                .await?
            {
                Answer::Session { session } => *session,
                _ => return Err(ClientError::Unexpected.into()),
            }
        }
    };
    output.note(&format!(
        "session {} ({}); Ctrl-C ends a run, Ctrl-D leaves",
        short(&session.session_id),
        session.model
    ));
    attach(&link.client, &session.session_id).await?;
    let mut talk = Talk {
        output,
        interrupts: Interrupts::listen()?,
        session,
        mirror: Mirror::default(),
        reach: String::new(),
        open_line: false,
    };
    let mut lines = BufReader::new(tokio::io::stdin());
    loop {
        talk.until_idle(&mut link).await?;
        match talk.line(&mut lines, &mut link).await? {
            None => {
                if new && talk.mirror.items.is_empty() {
                    // Nobody said anything: nothing is kept of it.
                    let session_id = talk.session.session_id.clone();
                    let client = link.client.clone();
                    let delete = done(&client, Command::Delete { session_id });
                    link.beside(delete).await?;
                }
                detach(&mut link, &talk.session.session_id).await?;
                talk.goodbye();
                return Ok(0);
            }
            Some(text) if talk.asked().is_some() => talk.answer(&mut link, &text).await?,
            Some(text) if text.trim().is_empty() => {}
            Some(text) => {
                let ask = Command::Enqueue {
                    session_id: talk.session.session_id.clone(),
                    queue: QueueRef::Default {},
                    text,
                    start: true,
                    environment: link::environment(),
                };
                let client = link.client.clone();
                let Answer::Accepted { .. } = link.beside(client.ask(ask)).await? else {
                    return Err(ClientError::Unexpected.into());
                };
                let session_id = talk.session.session_id.clone();
                let get = client.ask(Command::GetSession { session_id });
                match link.beside(get).await? {
                    Answer::Session { session } => talk.reach = session.last_activity_at,
                    _ => return Err(ClientError::Unexpected.into()),
                }
            }
        }
    }
}

struct Talk<'a> {
    output: &'a Output,
    interrupts: Interrupts,
    session: SessionView,
    mirror: Mirror,
    /// How far the stream must have come before the session can be called idle: an answer may
    /// overtake the frames of what it answers. A time of fixed width, which sorts as text.
    reach: String,
    open_line: bool,
}

impl Talk<'_> {
    /// Shows what comes until the session no longer runs.
    async fn until_idle(&mut self, link: &mut Link) -> Result<(), Failure> {
        while self.mirror.session.is_none()
            || self.asked().is_none()
                && (self.session.status == Status::Running
                    || self.session.last_activity_at < self.reach)
        {
            tokio::select! {
                biased;
                () = self.interrupts.pressed() => self.interrupt(link).await?,
                frame = link.next() => match frame {
                    Some(frame) => self.frame(link, frame).await?,
                    None => return Err(ClientError::Gone("the stream ended".to_owned()).into()),
                },
            }
        }
        Ok(())
    }

    /// Says what becomes of the session, where that can be told.
    fn goodbye(&self) {
        let Some(detail) = &self.mirror.detail else {
            return;
        };
        let others = detail.viewers.len() > 1;
        if others || detail.retention.continue_in_background || self.mirror.items.is_empty() {
            return;
        }
        let id = short(&self.session.session_id);
        self.output.note(&format!(
            "nobody looks at session {id} any more, so it ends; `attache chat {id}` goes on with it, and `attache \
             background {id} on` lets such a session go on by itself"
        ));
    }

    /// The question to a person that is to be answered first.
    fn asked(&self) -> Option<&ModalView> {
        self.mirror.detail.as_ref()?.modals.first()
    }

    /// Answers it.
    async fn answer(&mut self, link: &mut Link, line: &str) -> Result<(), Failure> {
        let Some(modal) = self.asked() else {
            return Ok(());
        };
        let answer = match modals::answer(modal, line) {
            Ok(answer) => answer,
            Err(why) => {
                self.output.note(&format!("  {why}"));
                return Ok(());
            }
        };
        let ask = Command::RespondModal {
            session_id: modal.session_id.clone(),
            modal_id: modal.modal_id.clone(),
            answer,
        };
        let asked = modal.modal_id.clone();
        let client = link.client.clone();
        match link.beside(client.ask(ask)).await {
            Err(ClientError::Refused(error)) => {
                self.output.note(&format!("  {}", error.message));
                return Ok(());
            }
            other => drop(other?),
        }
        // Until that it is gone has come, the next line would go to it too.
        while self.asked().is_some_and(|modal| modal.modal_id == asked) {
            match link.next().await {
                Some(frame) => self.frame(link, frame).await?,
                None => return Err(ClientError::Gone("the stream ended".to_owned()).into()),
            }
        }
        Ok(())
    }

    /// Asks a person for the next line; a program needs no asking.
    fn prompt(&self) {
        if std::io::stdin().is_terminal() {
            self.output.progress("> ");
        }
    }

    async fn interrupt(&self, link: &mut Link) -> Result<(), Failure> {
        let session_id = self.session.session_id.clone();
        let tree = false;
        let client = link.client.clone();
        let interrupt = done(&client, Command::Interrupt { session_id, tree });
        link.beside(interrupt).await?;
        Ok(())
    }

    /// The next line of input; what comes meanwhile is shown.
    async fn line(
        &mut self,
        lines: &mut BufReader<Stdin>,
        link: &mut Link,
    ) -> Result<Option<String>, Failure> {
        self.prompt();
        let mut bytes = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = self.interrupts.pressed() => {
                    // It may run on somebody else's account.
                    if self.session.status == Status::Running {
                        self.interrupt(link).await?;
                    } else {
                        self.output.note("nothing runs that Ctrl-C could end; Ctrl-D leaves");
                        self.prompt();
                    }
                }
                frame = link.next() => match frame {
                    Some(frame) => self.frame(link, frame).await?,
                    None => return Err(ClientError::Gone("the stream ended".to_owned()).into()),
                },
                read = lines.read_until(b'\n', &mut bytes) => {
                    return match read {
                        Ok(0) => Ok(None),
                        Ok(_) => {
                            let text = String::from_utf8_lossy(&bytes).into_owned();
                            Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
                        }
                        Err(fault) => {
                            Err(Failure::usage(format!("standard input cannot be read: {fault}")))
                        }
                    };
                }
            }
        }
    }

    async fn frame(&mut self, link: &mut Link, frame: FromHost) -> Result<(), Failure> {
        // What was said before this chat is shown from both sides.
        let before = self.mirror.session.is_none();
        for seen in self.mirror.apply(frame) {
            match seen {
                Seen::Fresh => {
                    if let Some(session) = &self.mirror.session {
                        self.session = session.clone();
                    }
                }
                Seen::Gap => self.output.note(GAP),
                Seen::Lost => {
                    let anew = Command::attach(self.session.session_id.clone());
                    drop(link.client.post(anew).await?);
                }
                Seen::Queues | Seen::Detail => {}
                Seen::Asked(modal) => self.output.note(&modals::asked(&modal)),
                Seen::Settled { modal, end } => {
                    self.output.note(&modals::settled(&modal, &end));
                }
                Seen::Text(text) => {
                    self.output.answer(&text);
                    self.open_line = true;
                }
                Seen::Item { mut item, streamed } => {
                    if item.kind == EventKind::Assistant {
                        let client = link.client.clone();
                        let rest = whole(&client, &self.session.session_id, &mut item);
                        link.beside(rest).await?;
                    }
                    if before && item.kind == EventKind::User {
                        self.output.text(&format!("> {}\n", item.text));
                    }
                    self.item(item.kind, &item.text, streamed, item.name.as_deref());
                }
                Seen::Session(session) => self.session = *session,
                Seen::Terminal(reason) => {
                    self.output.note(&format!("the session ended: {reason}"));
                    self.session.status = Status::Stopped;
                }
            }
        }
        Ok(())
    }

    fn item(&mut self, kind: EventKind, text: &str, streamed: usize, name: Option<&str>) {
        match kind {
            EventKind::Assistant => {
                self.output.answer(text.get(streamed..).unwrap_or_default());
                self.output.line("");
                self.open_line = false;
            }
            EventKind::ToolCall => {
                if std::mem::take(&mut self.open_line) {
                    self.output.line("");
                }
                self.output.note(&format!("  [{}]", name.unwrap_or("tool")));
            }
            EventKind::Diagnostic => self.output.note(&format!("  {text}")),
            EventKind::User | EventKind::ToolResult => {}
        }
    }
}
