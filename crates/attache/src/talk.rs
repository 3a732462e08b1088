//! A session line by line, for `chat` and `attach`: what comes is shown, what is typed is sent, answers a question or is a
//! command behind a slash. The connection comes back by itself; what is shown twice is a fault.

use std::io::IsTerminal;

use attache_client::protocol::{
    Answer, Command, EventKind, HistoryItem, ModalView, NotificationKind, Notifications, QueueRef,
    SessionView, Status, Typed, WireError,
};
use attache_client::{ClientError, Event, Heard, Seen, TreeMirror, Viewer};
use tokio::io::{AsyncBufReadExt, BufReader, Stdin};

use crate::command::GAP;
use crate::fail::Failure;
use crate::interrupts::Interrupts;
use crate::link;
use crate::modals;
use crate::notify::Bell;
use crate::output::Output;
use crate::tree_view::short;

/// How a talk goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Nothing is sent: it only looks.
    pub(crate) read_only: bool,
    /// The session is new: it goes again when nothing was said in it.
    pub(crate) is_new: bool,
}

pub(crate) struct Talk<'a> {
    output: &'a Output,
    interrupts: Interrupts,
    viewer: Viewer,
    session: SessionView,
    manner: Manner,
    /// How far the stream must have come before the session can be called idle: an answer may
    /// overtake the frames of what it answers. A time of fixed width, which sorts as text.
    reach: String,
    open_line: bool,
    /// Whether anything of the session has been seen.
    begun: bool,
    /// Position of the newest item that was there before this viewer came.
    before: u64,
    tree: TreeMirror,
    notifications: Notifications,
    bell: Bell,
    /// How it ends: 0, or as the last input that was refused says.
    exit: u8,
}

impl<'a> Talk<'a> {
    /// Attaches to a session.
    pub(crate) async fn with(
        session: SessionView,
        manner: Manner,
        output: &'a Output,
    ) -> Result<Self, Failure> {
        let place = link::place()?;
        let viewer = Viewer::attach(place, &session.session_id, manner.read_only).await?;
        Ok(Self {
            output,
            interrupts: Interrupts::listen()?,
            viewer,
            session,
            manner,
            reach: String::new(),
            open_line: false,
            begun: false,
            before: 0,
            tree: TreeMirror::default(),
            notifications: Notifications::default(),
            bell: Bell::chosen()?,
            exit: 0,
        })
    }

    /// Talks until the input ends or a person leaves.
    pub(crate) async fn go(mut self) -> Result<u8, Failure> {
        let hint = if self.manner.read_only {
            "looking only; Ctrl-C or Ctrl-D leaves"
        } else {
            "Ctrl-C ends a run, Ctrl-D leaves, /help lists commands"
        };
        let id = short(&self.session.session_id);
        self.output
            .note(&format!("session {id} ({}); {hint}", self.session.model));
        let mut lines = BufReader::new(tokio::io::stdin());
        loop {
            if !self.manner.read_only {
                self.until_idle().await?;
            }
            let Some(line) = self.line(&mut lines).await? else {
                return self.leave().await;
            };
            let text = line.trim();
            if matches!(text, "/quit" | "/exit") {
                return self.leave().await;
            }
            if text.is_empty() {
                continue;
            }
            if self.manner.read_only && !matches!(Typed::of(text), Typed::Slash(_)) {
                self.output.note("this viewer only looks");
                continue;
            }
            self.notifications.turned_to();
            match (self.asked(), Typed::of(text)) {
                (Some(_), Typed::Text) => self.answer(text).await?,
                (Some(_), Typed::Unknown) if text.starts_with("/no") => self.answer(text).await?,
                (_, Typed::Text) => self.send(&line).await?,
                (_, Typed::Unknown | Typed::Misused(_) | Typed::Slash(_)) => {
                    self.slash(&line).await?;
                }
            }
        }
    }

    /// Leaves at once, and says what becomes of the session.
    async fn leave(mut self) -> Result<u8, Failure> {
        let session_id = self.session.session_id.clone();
        if self.manner.is_new && self.viewer.mirror().items.is_empty() {
            // Nobody said anything: nothing is kept of it.
            self.ask(Command::Delete { session_id })
                .await?
                .map_err(refused)?;
            return Ok(0);
        }
        let ends = self.ends_with_us();
        // Who was let go already has nothing to leave.
        let _left = self.ask(Command::Detach { session_id }).await?;
        if ends {
            let id = short(&self.session.session_id);
            self.output.note(&format!(
                "nobody looks at session {id} any more, so it ends; `attache chat {id}` goes on with it, and `attache \
                 background {id} on` lets such a session go on by itself"
            ));
        }
        Ok(self.exit)
    }

    fn ends_with_us(&self) -> bool {
        let mirror = self.viewer.mirror();
        let last = mirror.detail.as_ref().is_some_and(|detail| {
            detail.viewers.len() <= 1 && !detail.retention.continue_in_background
        });
        last && !self.manner.read_only
            && self.session.status != Status::Stopped
            && self.session.parent_session_ids.is_empty()
    }

    /// Gives a command and waits for its answer; what comes meanwhile is shown.
    async fn ask(&mut self, body: Command) -> Result<Result<Answer, Box<WireError>>, Failure> {
        let id = self.viewer.command(body);
        loop {
            match self.viewer.next().await {
                Event::Heard(Heard::Answered { command_id, answer }) if command_id == id => {
                    return Ok(answer.map(|answer| *answer));
                }
                event => Box::pin(self.event(event)).await?,
            }
        }
    }

    async fn send(&mut self, line: &str) -> Result<(), Failure> {
        let enqueue = Command::Enqueue {
            session_id: self.session.session_id.clone(),
            queue: QueueRef::Default {},
            text: line.to_owned(),
            start: true,
            environment: link::environment(),
        };
        match self.ask(enqueue).await? {
            Ok(Answer::Accepted { .. }) => {}
            Ok(_) => return Err(ClientError::Unexpected.into()),
            Err(error) => {
                let failure = refused(error);
                if failure.code == "unknown-session" {
                    return Err(failure);
                }
                // There is more to see, and perhaps more that may be said.
                self.output.failure(&failure);
                self.exit = failure.exit;
                return Ok(());
            }
        }
        let session_id = self.session.session_id.clone();
        match self.ask(Command::GetSession { session_id }).await? {
            Ok(Answer::Session { session }) => self.reach = session.last_activity_at,
            Ok(_) => return Err(ClientError::Unexpected.into()),
            Err(error) => return Err(refused(error)),
        }
        Ok(())
    }

    /// Carries out what was typed behind a slash; what is no command goes to the agent.
    async fn slash(&mut self, line: &str) -> Result<(), Failure> {
        let slash = Command::SlashCommand {
            session_id: self.session.session_id.clone(),
            text: line.to_owned(),
        };
        match self.ask(slash).await? {
            Ok(Answer::Slash { known: false, .. }) => self.send(line).await,
            Ok(Answer::Slash { text, .. }) => {
                for line in text.lines() {
                    self.output.note(&format!("  {line}"));
                }
                Ok(())
            }
            Ok(_) => {
                self.output.note("  done");
                Ok(())
            }
            Err(error) => {
                self.output.note(&format!("  {}", error.message));
                Ok(())
            }
        }
    }

    /// The question to a person that is to be answered first.
    fn asked(&self) -> Option<&ModalView> {
        self.viewer.mirror().detail.as_ref()?.modals.first()
    }

    /// Answers it.
    async fn answer(&mut self, line: &str) -> Result<(), Failure> {
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
        let asked = modal.modal_id.clone();
        let respond = Command::RespondModal {
            session_id: modal.session_id.clone(),
            modal_id: asked.clone(),
            answer,
        };
        if let Err(error) = self.ask(respond).await? {
            self.output.note(&format!("  {}", error.message));
            return Ok(());
        }
        // Until that it is gone has come, the next line would go to it too.
        while self.asked().is_some_and(|modal| modal.modal_id == asked) {
            let event = self.viewer.next().await;
            self.event(event).await?;
        }
        Ok(())
    }

    /// Shows what comes until the session no longer runs, or a person is asked.
    async fn until_idle(&mut self) -> Result<(), Failure> {
        while !self.begun
            || self.asked().is_none()
                && (self.session.status == Status::Running
                    || self.session.last_activity_at < self.reach)
        {
            tokio::select! {
                biased;
                () = self.interrupts.pressed() => self.interrupt().await?,
                event = self.viewer.next() => self.event(event).await?,
            }
        }
        Ok(())
    }

    async fn interrupt(&mut self) -> Result<(), Failure> {
        let interrupt = Command::Interrupt {
            session_id: self.session.session_id.clone(),
            tree: false,
        };
        if let Err(error) = self.ask(interrupt).await? {
            self.output.note(&format!("  {}", error.message));
        }
        Ok(())
    }

    /// Asks a person for the next line; a program needs no asking.
    fn prompt(&self) {
        if std::io::stdin().is_terminal() && !self.manner.read_only {
            self.output.progress("> ");
        }
    }

    /// The next line of input, none at its end; what comes meanwhile is shown.
    async fn line(&mut self, lines: &mut BufReader<Stdin>) -> Result<Option<String>, Failure> {
        self.prompt();
        let mut bytes = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = self.interrupts.pressed() => {
                    // It may run on somebody else's account.
                    if self.manner.read_only {
                        return Ok(None);
                    } else if self.session.status == Status::Running {
                        self.interrupt().await?;
                    } else {
                        self.output.note("nothing runs that Ctrl-C could end; Ctrl-D leaves");
                        self.prompt();
                    }
                }
                event = self.viewer.next() => self.event(event).await?,
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

    async fn event(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Heard(Heard::Seen(seen)) => self.seen(seen).await?,
            Event::Heard(Heard::Attached { .. }) => {
                // Rows below, for what is to be told of sub-agents. Each connection watches anew.
                let root = self.session.session_id.clone();
                let watch = Command::WatchTree {
                    root_session_id: Some(root),
                };
                self.viewer.command(watch);
            }
            Event::Heard(Heard::Refused(error)) => return Err(refused(error)),
            Event::Heard(Heard::Answered { answer, .. }) => {
                if let Err(error) = answer {
                    self.output.note(&format!("  {}", error.message));
                }
            }
            Event::Heard(Heard::GoingAway(reason)) => {
                self.output.note(&format!("the host ends: {reason}"));
            }
            Event::Other(frame) => {
                self.tree.apply(&frame);
                self.look();
            }
            Event::Lost(reason) => {
                self.end_line();
                self.output.note(&format!(
                    "the connection is lost ({reason}); looking for the host"
                ));
            }
            Event::Back => self.output.note("the host is there again"),
            Event::Gone(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn seen(&mut self, seen: Seen) -> Result<(), Failure> {
        match seen {
            Seen::Fresh => {
                if let Some(session) = self.viewer.mirror().session.clone() {
                    self.session = session;
                }
                let first = !std::mem::replace(&mut self.begun, true);
                if first {
                    let newest = self.viewer.mirror().items.last();
                    self.before = newest.map_or(0, |item| item.position);
                } else if self.session.status == Status::Stopped {
                    let id = short(&self.session.session_id);
                    self.output.note(&format!(
                        "session {id} is stopped; the next message starts it"
                    ));
                }
                self.look();
            }
            Seen::Gap => self.output.note(GAP),
            // The viewer asks for a snapshot by itself.
            Seen::Lost | Seen::Queues | Seen::Detail => {}
            Seen::Asked(modal) => {
                self.end_line();
                self.output.note(&modals::asked(&modal));
                self.look();
            }
            Seen::Settled { modal, end } => {
                self.output.note(&modals::settled(&modal, &end));
                self.look();
            }
            Seen::Text(text) => {
                self.output.answer(&text);
                self.open_line = true;
            }
            Seen::Item { mut item, streamed } => {
                if item.kind == EventKind::Assistant {
                    self.whole(&mut item).await?;
                }
                // What was said before this viewer came, or by others, is shown from both sides.
                let is_old = item.position <= self.before;
                if item.kind == EventKind::User && (is_old || self.manner.read_only) {
                    self.output.text(&format!("> {}\n", item.text));
                }
                self.item(item.kind, &item.text, streamed, item.name.as_deref());
            }
            Seen::Session(session) => {
                self.session = *session;
                self.look();
            }
            Seen::Terminal(reason) => {
                self.end_line();
                self.output.note(&format!("the session ended: {reason}"));
                self.session.status = Status::Stopped;
                self.look();
                // What comes after it is seen too.
                self.viewer.again();
            }
        }
        Ok(())
    }

    /// Reads what follows in an item of which only the beginning came.
    async fn whole(&mut self, item: &mut HistoryItem) -> Result<(), Failure> {
        let mut more = std::mem::take(&mut item.cut);
        while more {
            let read = Command::ReadText {
                session_id: self.session.session_id.clone(),
                position: item.position,
                offset: item.text.len() as u64,
            };
            match self.ask(read).await? {
                Ok(Answer::Text { text, more: rest }) => {
                    item.text.push_str(&text);
                    more = rest;
                }
                Ok(_) => return Err(ClientError::Unexpected.into()),
                Err(error) => return Err(refused(error)),
            }
        }
        Ok(())
    }

    /// Tells a person who looks elsewhere what is new.
    fn look(&mut self) {
        let asked = self.viewer.mirror().detail.as_ref();
        let asked = asked.map_or(0, |detail| detail.modals.len());
        let new = self
            .notifications
            .look(&self.session, asked, self.tree.rows());
        for kind in new {
            self.tell(kind);
        }
    }

    fn tell(&self, kind: NotificationKind) {
        self.bell.ring(&self.session.name, kind);
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.open_line) {
            self.output.line("");
        }
    }

    fn item(&mut self, kind: EventKind, text: &str, streamed: usize, name: Option<&str>) {
        match kind {
            EventKind::Assistant => {
                self.output.answer(text.get(streamed..).unwrap_or_default());
                self.output.line("");
                self.open_line = false;
            }
            EventKind::ToolCall => {
                self.end_line();
                self.output.note(&format!("  [{}]", name.unwrap_or("tool")));
            }
            EventKind::Diagnostic => self.output.note(&format!("  {text}")),
            EventKind::User | EventKind::ToolResult => {}
        }
    }
}

fn refused(error: Box<WireError>) -> Failure {
    ClientError::Refused(error).into()
}
