//! Follows a session that this command has started until its tree is quiet: streams its answer,
//! shows the tree while it works, and says how it ended.

use std::collections::VecDeque;
use std::time::Duration;

use attache_client::protocol::{
    Answer, Command, EventKind, FromHost, HistoryItem, HistoryQuery, ModalView, NewSession, Reach,
    Resume, RunningItem, SessionView, Status,
};
use attache_client::{ClientError, Mirror, Seen, TreeMirror};
use serde_json::json;
use tokio::sync::oneshot;

use super::events::whole;
use crate::fail::{self, FAILED, Failure, INTERRUPTED, REFUSED, TIMED_OUT};
use crate::interrupts::Interrupts;
use crate::link::{Link, is_elsewhere};
use crate::modals;
use crate::output::Output;
use crate::shape::{self, Money, Total};
use crate::tree_view::{self, Painter, short};

/// What a viewer is told that was too slow for the stream.
pub(crate) const GAP: &str = "some events came too fast to be shown; `attache events` has them all";

/// Changes of a tree that come within this time are painted together: nobody sees more.
const PAINT: Duration = Duration::from_millis(40);

/// What is shown beside the answer.
#[derive(Clone, Copy)]
pub(crate) struct Follow {
    /// Lines for the sub-agents' steps where there is no terminal.
    pub(crate) tree: bool,
}

/// Creates a session, follows it to its end, and gives the exit code of its outcome.
pub(crate) async fn run(
    mut link: Link,
    new: NewSession,
    follow: Follow,
    output: &Output,
) -> Result<u8, Failure> {
    let session_id = new.session_id.clone();
    let client = link.client.clone();
    // All four are under way at once: the host carries them out in order.
    let created = client.post(Command::CreateSession(Box::new(new))).await?;
    let attached = client.post(Command::attach(session_id.clone())).await?;
    let watches_tree = follow.tree || output.is_live();
    if watches_tree {
        let root_session_id = Some(session_id.clone());
        drop(client.post(Command::WatchTree { root_session_id }).await?);
    }
    let quiet = client.post(until_quiet(&session_id)).await?;
    answered(created).await?;
    let lost = |error| Failure::lost(error, &session_id);
    let attached = answered(attached).await.map_err(lost)?;
    let mut shown = Shown::new(output, session_id.clone(), follow.tree);
    shown.watches_tree = watches_tree;
    shown.attached(attached);
    let (session, interrupted) = shown.until_quiet(&mut link, quiet).await?;
    // From here on it is known how it ended, also if the daemon that told so is gone by now.
    let seen = loop {
        match finish(&mut link, &session_id, &mut shown).await {
            Err(error @ ClientError::Gone(_)) if is_elsewhere() => {
                drop(shown.comes_back(&mut link, error).await?);
            }
            seen => break seen,
        }
    };
    let client = link.client.clone();
    let session = unless_gone(seen)?.unwrap_or(session);
    // The tree's last rows, like the answer's last words, may still be on their way.
    let rows = link.beside(client.sessions(Some(&session_id))).await;
    let rows = unless_gone(rows)?.unwrap_or_default();
    let total = Total::of_tree(&rows);
    let tree = if watches_tree { rows } else { Vec::new() };
    super::detach(&mut link, &session_id).await?;
    shown.session(&session);
    let text = shown.answer.clone();
    shown.end(&tree);
    let outcome = session.outcome.as_deref().unwrap_or("unknown");
    if output.is_json() {
        let mut result = json!({
            "type": "result",
            "session_id": session.session_id,
            "outcome": session.outcome,
            "end_reason": session.end_reason,
            "text": text,
            "usage": shape::usage(&session.usage),
        });
        Money::of(&session).put(&mut result, "cost");
        total.put(&mut result);
        output.value(&result);
    } else if total.money.shown().is_some() || output.is_live() {
        // Without a price there is nothing that a pipe needs to know.
        if let Some(total) = total.shown() {
            output.note(&format!("attache: {total}"));
        }
    }
    // An interrupt alone leaves a session idle.
    let cut = outcome == "interrupted" && session.status == Status::Stopped && !interrupted;
    if cut && !output.is_json() {
        output.note(match is_elsewhere() {
            false => "attache: the daemon ended before the run did (interrupted)",
            true => {
                "attache: the run was cut while nobody looked on, or with its host (interrupted)"
            }
        });
        output.note(&format!("  {}", fail::go_on(&session_id)));
    } else if outcome != "succeeded" && !output.is_json() {
        let why = shown.note.as_deref().unwrap_or("the run did not succeed");
        output.note(&format!(
            "attache: {why} ({}, {outcome})",
            session.end_reason.as_deref().unwrap_or("unknown")
        ));
        output.note(&format!(
            "  `attache show {}` has the whole of it.",
            tree_view::short(&session_id)
        ));
    } else if let Some(odd @ ("no-output" | "iteration-limit")) = session.end_reason.as_deref()
        && !output.is_json()
    {
        // No failure, and yet not what a person expects.
        output.note(match odd {
            "no-output" => "attache: the run ended without an answer (no-output)",
            _ => "attache: the run ended at its limit of rounds (iteration-limit)",
        });
    }
    drop(client);
    link.close().await;
    Ok(match outcome {
        _ if interrupted => INTERRUPTED,
        "succeeded" => 0,
        _ if cut => FAILED,
        "interrupted" => INTERRUPTED,
        "timed-out" => TIMED_OUT,
        "out-of-budget" => REFUSED,
        _ => FAILED,
    })
}

/// A wait for the whole tree.
fn until_quiet(session_id: &str) -> Command {
    Command::Wait {
        session_id: session_id.to_owned(),
        reach: Reach::Tree,
        timeout_seconds: None,
    }
}

/// A person does not wait for the rest.
fn cut_short() -> Failure {
    Failure::new(INTERRUPTED, "interrupted", "interrupted")
}

type Reply = oneshot::Receiver<Result<Answer, ClientError>>;

async fn answered(reply: Reply) -> Result<Answer, ClientError> {
    reply
        .await
        .unwrap_or_else(|_gone| Err(ClientError::Gone("it ended before it answered".to_owned())))
}

/// The session as the answer to a wait has it.
fn ended(answer: Answer) -> Result<SessionView, ClientError> {
    match answer {
        Answer::Session { session } => Ok(*session),
        _ => Err(ClientError::Unexpected),
    }
}

/// What was asked of a daemon that may have left by now; none when it has.
fn unless_gone<T>(answer: Result<T, ClientError>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ClientError::Gone(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The session as it ended, and what of its history has not been seen: the wait is answered beside
/// the stream and may come first.
async fn finish(
    link: &mut Link,
    session_id: &str,
    shown: &mut Shown<'_>,
) -> Result<SessionView, ClientError> {
    let session_id = session_id.to_owned();
    let client = link.client.clone();
    shown.show(link).await?;
    let mut goes_on = true;
    while goes_on {
        let ask = Command::PageHistory {
            session_id: session_id.clone(),
            query: HistoryQuery {
                after: shown.last_at.clone(),
                kinds: Vec::new(),
                search: None,
                limit: 200,
                newest: false,
            },
        };
        let Answer::History { page } = link.beside(client.ask(ask)).await? else {
            return Err(ClientError::Unexpected);
        };
        for item in page.items {
            let streamed = shown.streamed_of(&item);
            let item = Box::new(item);
            shown.unshown.push_back(Seen::Item { item, streamed });
        }
        shown.show(link).await?;
        goes_on = page.next_cursor.is_some();
    }
    let get = client.ask(Command::GetSession { session_id });
    match link.beside(get).await? {
        Answer::Session { session } => Ok(*session),
        _ => Err(ClientError::Unexpected),
    }
}

/// What a person has seen so far.
struct Shown<'a> {
    output: &'a Output,
    session_id: String,
    mirror: Mirror,
    tree: TreeMirror,
    painter: Painter<'a>,
    /// Lines for sub-agents' steps, where nothing can be painted.
    lines: Option<tree_view::Steps>,
    /// Time of the last item that was shown, behind which the next one comes.
    last_at: Option<String>,
    /// The last text of the model.
    answer: String,
    /// The last note, which tells what went wrong.
    note: Option<String>,
    /// Rows have changed since the tree was painted.
    unpainted: bool,
    /// Text was printed, and its line is not ended.
    open_line: bool,
    status: String,
    /// What the run was last said to wait for.
    waits: Option<String>,
    /// What has come and is not shown yet.
    unshown: VecDeque<Seen>,
    /// What the host calls this attachment.
    attachment: Option<String>,
    /// Whether the rows of the tree are followed too.
    watches_tree: bool,
}

impl<'a> Shown<'a> {
    fn new(output: &'a Output, session_id: String, lines: bool) -> Self {
        let lines =
            (lines && !output.is_live() && !output.is_json()).then(tree_view::Steps::default);
        Self {
            output,
            session_id,
            mirror: Mirror::default(),
            tree: TreeMirror::default(),
            painter: Painter::new(output),
            lines,
            last_at: None,
            answer: String::new(),
            note: None,
            unpainted: false,
            open_line: false,
            status: String::new(),
            waits: None,
            unshown: VecDeque::new(),
            attachment: None,
            watches_tree: false,
        }
    }

    fn attached(&mut self, answer: Answer) {
        if let Answer::Attached { attachment, .. } = answer {
            self.attachment = Some(attachment);
        }
    }

    /// Goes on over another connection, where the last one was lost on its way to a host elsewhere.
    async fn comes_back(
        &mut self,
        link: &mut Link,
        mut error: ClientError,
    ) -> Result<Reply, Failure> {
        // What is read by a program goes on where it broke off.
        if self.output.is_live() {
            self.end_line();
        }
        loop {
            let again = link.again(error, self.output).await?;
            let back = match again {
                Ok(()) => self.takes_its_place(link).await,
                Err(error) => return Err(Failure::lost(error, &self.session_id)),
            };
            error = match back {
                Ok(quiet) => return Ok(quiet),
                Err(error) => error,
            };
        }
    }

    /// Comes back to where it stood, and asks once more to be told of the end.
    async fn takes_its_place(&mut self, link: &mut Link) -> Result<Reply, ClientError> {
        let client = link.client.clone();
        let back = self.mirror.place().zip(self.attachment.clone());
        let resume = back.map(|(place, attachment)| Resume {
            attachment,
            place: Some(place),
        });
        let attach = |resume| Command::Attach {
            session_id: self.session_id.clone(),
            resume,
            read_only: false,
        };
        let answer = match link.beside(client.ask(attach(resume))).await {
            // The attachment was let go, or the epoch is over: what is left is looked at.
            Err(ClientError::Refused(_)) => link.beside(client.ask(attach(None))).await?,
            answer => answer?,
        };
        self.attached(answer);
        self.show(link).await?;
        if self.watches_tree {
            let root_session_id = Some(self.session_id.clone());
            drop(client.post(Command::WatchTree { root_session_id }).await?);
        }
        client.post(until_quiet(&self.session_id)).await
    }

    /// Shows what comes until the tree is quiet; the answer is the session as it ended, and whether a
    /// person interrupted it.
    async fn until_quiet(
        &mut self,
        link: &mut Link,
        mut quiet: Reply,
    ) -> Result<(SessionView, bool), Failure> {
        let session_id = self.session_id.clone();
        let lost = |error| Failure::lost(error, &session_id);
        let mut interrupts = Interrupts::listen()?;
        let mut interrupted = false;
        let tick = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(tick);
        let mut ticks = false;
        let mut is_open = true;
        loop {
            if self.unpainted && !ticks {
                tick.set(tokio::time::sleep(PAINT));
                ticks = true;
            }
            tokio::select! {
                biased;
                () = interrupts.pressed() => {
                    if interrupted {
                        // The second time nobody waits for the rest.
                        return Err(cut_short());
                    }
                    interrupted = true;
                    self.interrupt(link).await?;
                }
                () = &mut tick, if ticks => {
                    ticks = false;
                    self.paint();
                }
                frame = link.next(), if is_open => match frame {
                    Some(frame) => match self.frame(link, frame).await {
                        // What became of the wait tells it too.
                        Err(ClientError::Gone(_)) | Ok(()) => {}
                        Err(error) => return Err(lost(error)),
                    },
                    // What became of the wait is known by now too.
                    None => is_open = false,
                },
                answer = &mut quiet => {
                    let answer = answer.unwrap_or_else(|_gone| {
                        Err(ClientError::Gone("it ended before it answered".to_owned()))
                    });
                    quiet = match answer.and_then(ended) {
                        Ok(session) => return Ok((session, interrupted)),
                        Err(error) => tokio::select! {
                            back = self.comes_back(link, error) => back?,
                            () = interrupts.pressed() => return Err(cut_short()),
                        },
                    };
                    is_open = true;
                    if interrupted {
                        self.interrupt(link).await?;
                    }
                }
            }
        }
    }

    /// Ends the runs of the tree.
    async fn interrupt(&self, link: &Link) -> Result<(), Failure> {
        let session_id = self.session_id.clone();
        let interrupt = Command::Interrupt {
            session_id,
            tree: true,
        };
        match link.client.post(interrupt).await {
            // It is said again on the next connection.
            Ok(_) | Err(ClientError::Gone(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Paints the tree as it is now, unless a line of the answer is open.
    fn paint(&mut self) {
        self.unpainted = false;
        if !self.open_line {
            self.painter.paint(self.tree.rows());
        }
    }

    async fn frame(&mut self, link: &mut Link, frame: FromHost) -> Result<(), ClientError> {
        if self.tree.apply(&frame) {
            tell_steps(&mut self.lines, self.output, self.tree.rows());
            self.unpainted = true;
            return Ok(());
        }
        self.unshown.extend(self.mirror.apply(frame));
        self.show(link).await
    }

    /// Shows what has come. An item whose rest could not be read stays, for the next connection.
    async fn show(&mut self, link: &mut Link) -> Result<(), ClientError> {
        while let Some(seen) = self.unshown.pop_front() {
            match seen {
                Seen::Fresh => {
                    if let Some(session) = self.mirror.session.clone() {
                        self.session(&session);
                    }
                }
                Seen::Gap => self.output.note(GAP),
                Seen::Lost => drop(
                    link.client
                        .post(Command::attach(self.session_id.clone()))
                        .await?,
                ),
                Seen::Queues | Seen::Detail | Seen::Settled { .. } => {}
                Seen::Asked(modal) => self.asks(&modal),
                Seen::Text(text) => self.text(&text),
                Seen::Item { mut item, streamed } => {
                    let shown = self.item(link, &mut item, streamed).await;
                    if shown.is_err() {
                        self.unshown.push_front(Seen::Item { item, streamed });
                    }
                    shown?;
                }
                Seen::Session(session) => self.session(&session),
                Seen::Terminal(reason) => self.note = Some(format!("the session ended: {reason}")),
            }
        }
        Ok(())
    }

    /// A question to a person: answered by whoever attaches to the session.
    fn asks(&mut self, modal: &ModalView) {
        if !self.output.is_json() {
            self.output.note(&modals::asked(modal));
            let id = short(&self.session_id);
            self.output.note(&format!(
                "  (`attache chat {id}` in another terminal answers it)"
            ));
        }
    }

    /// How much of an item's text was seen as it streamed. What streamed is that of one item.
    fn streamed_of(&mut self, item: &HistoryItem) -> usize {
        let is_it = |running: &mut RunningItem| {
            item.kind == EventKind::Assistant
                && item.turn == Some(running.turn)
                && (item.cut || item.text.starts_with(&running.text))
        };
        let streamed = self.mirror.running.take_if(is_it);
        streamed.map_or(0, |running| running.text.len())
    }

    fn text(&mut self, text: &str) {
        if self.output.is_json() {
            self.output.value(&json!({
                "type": "delta", "session_id": self.session_id, "text": text,
            }));
            return;
        }
        self.painter.clear();
        self.output.answer(text);
        self.open_line = !text.ends_with('\n');
    }

    async fn item(
        &mut self,
        link: &mut Link,
        item: &mut HistoryItem,
        streamed: usize,
    ) -> Result<(), ClientError> {
        if item.kind == EventKind::Assistant || self.output.is_json() {
            let client = link.client.clone();
            let rest = whole(&client, &self.session_id, item);
            link.beside(rest).await?;
        }
        self.last_at = Some(item.at.clone());
        match item.kind {
            EventKind::Assistant => {
                self.answer.clone_from(&item.text);
                if let Some(rest) = item.text.get(streamed..).filter(|rest| !rest.is_empty()) {
                    self.text(rest);
                }
                self.end_line();
            }
            EventKind::Diagnostic => self.note = Some(item.text.clone()),
            EventKind::User | EventKind::ToolCall | EventKind::ToolResult => {}
        }
        if self.output.is_json() {
            let mut value = shape::item(item);
            value["type"] = json!("item");
            value["session_id"] = json!(self.session_id);
            self.output.value(&value);
        }
        Ok(())
    }

    fn session(&mut self, session: &SessionView) {
        let status = session.status.as_str();
        let noted = self.waits != session.note;
        if self.output.is_json() && (self.status != status || noted) {
            self.output.value(&json!({
                "type": "status", "session_id": session.session_id, "status": status,
                "note": session.note,
            }));
        }
        status.clone_into(&mut self.status);
        if noted {
            self.waits.clone_from(&session.note);
            // A painted tree and its lines show it themselves.
            if let (Some(note), None, false) = (&self.waits, &self.lines, self.output.is_live()) {
                self.output.note(&format!("attache: {note}"));
            }
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.open_line) {
            self.output.line("");
        }
    }

    /// Leaves the tree as it ended.
    fn end(&mut self, tree: &[SessionView]) {
        self.end_line();
        tell_steps(&mut self.lines, self.output, tree);
        if self.output.is_live() {
            self.painter.paint(tree);
            self.painter.leave();
        }
    }
}

fn tell_steps(lines: &mut Option<tree_view::Steps>, output: &Output, rows: &[SessionView]) {
    if let Some(steps) = lines {
        for line in steps.news(rows) {
            output.note(&line);
        }
    }
}
