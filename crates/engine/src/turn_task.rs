//! Drives one turn: carries out what the pure machine asks for, and tells it what came of it.
//!
//! The task owns the model's stream and the tool calls; when it ends, both end with it. What must
//! be durable goes through the session's actor, in order.

mod carry;

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use attache_agent::asking::is_progress;
use attache_agent::{
    CallContext, Caller, Cancel, Doing, Input, Limits, OnStall, ToolError, ToolOutcome, ToolStart,
    Turn,
};
use attache_model::{Delta, Deltas};
use attache_session::{
    Answer, CallId, Command, EndReason, ErrorCode, SessionId, StepText, Timestamp, TurnId,
};
use attache_store::Partial;
use futures_util::FutureExt;
use tokio::sync::{oneshot, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use crate::ask::Shared;
use crate::asking::{Asked, Asking};
use crate::clock;
use crate::error::EngineError;
use crate::live::Note;
use crate::mailbox::SharedMailbox;
use crate::places::{NoPlace, Standing};
use crate::port::Port;
use crate::prepare::{Prepared, prepare};
use crate::stalls::{Stalls, told};

/// What a turn is doing whose model is asked for a summary.
const MAKING_ROOM: &str = "making room in the context";

/// Text that has streamed for longer than this is checkpointed with the next group.
const CHECKPOINT_MICROS: i64 = 1_000_000;

/// Starts the task of a turn that is on record.
pub(crate) fn start(
    shared: Arc<Shared>,
    session: SessionId,
    mailbox: SharedMailbox,
    turn: TurnId,
    token: watch::Receiver<Option<EndReason>>,
) {
    tokio::spawn(async move {
        let run = run(&shared, session, &mailbox, turn, token);
        // After a panic the turn is open and nobody runs it; the actor then ends it.
        let _ended = AssertUnwindSafe(run).catch_unwind().await;
        mailbox.live.clear(turn);
        mailbox.turn_ends(turn);
        shared.registry.changed(session);
        drop(mailbox);
        shared.registry.tidy(session);
    });
}

async fn run(
    shared: &Arc<Shared>,
    session: SessionId,
    mailbox: &SharedMailbox,
    turn: TurnId,
    token: watch::Receiver<Option<EndReason>>,
) {
    if let Ok(Some(row)) = shared.row(session)
        && row.view.summary.turn != Some(turn)
    {
        // It was over before it began: its history goes to no model.
        return;
    }
    match prepare(shared, session, turn) {
        Ok(mut prepared) => {
            let history = std::mem::take(&mut prepared.history);
            let machine = Turn::new(prepared.config.clone(), history);
            let chain = std::mem::take(&mut prepared.chain);
            shared.busy.begins(&chain);
            let mut driver = Driver::new(shared, session, mailbox, turn, token, machine, prepared);
            driver.place = Standing::new(&shared.places, &chain);
            // A root has people who look at it.
            driver.stalls = (chain.len() > 1).then(|| Stalls::new(driver.limits()));
            let drive = AssertUnwindSafe(driver.drive()).catch_unwind();
            let _ended = drive.await;
            shared.busy.ends(&chain);
        }
        Err((reason, text)) => {
            let end = Command::EndTurn {
                turn,
                reason,
                step: None,
                error: Some(text.as_str().into()),
            };
            // Refused only when the turn is over already, or the store fails: the actor sees to it.
            let _ended = shared.ask(session, end).await;
        }
    }
}

/// What is on its way to the record.
enum Record {
    Step,
    Results,
    Note,
    Cut(Arc<str>),
    End,
}

type Reply = oneshot::Receiver<Result<Answer, EngineError>>;

struct Driver<'a> {
    shared: &'a Arc<Shared>,
    session: SessionId,
    mailbox: &'a SharedMailbox,
    turn: TurnId,
    /// Says when and how the turn is to end.
    token: watch::Receiver<Option<EndReason>>,
    machine: Turn,
    prepared: Prepared,
    /// Whether what the model says now is its answer, for viewers to see as it comes.
    shows: bool,
    asking: Option<Asking>,
    deltas: Deltas,
    tools: JoinSet<ToolOutcome>,
    /// Calls that run.
    calls: HashMap<Id, Running>,
    /// Places under the limits of turns at once; none while it waits for other sessions, or for a place.
    place: Standing,
    records: VecDeque<(Record, Reply)>,
    set_cancel: watch::Sender<bool>,
    cancel: Cancel,
    /// Calls that are to be started, in order.
    starting: VecDeque<ToolStart>,
    checkpointed_at: Timestamp,
    /// The limit that ends it.
    refusal: Option<Arc<str>>,
    /// Watches its progress; none where there is nobody to tell.
    stalls: Option<Stalls>,
    /// It waits for its turn at the provider, or for a retry.
    delayed: bool,
}

/// A call that runs.
struct Running {
    call: CallId,
    /// Whether it does nothing but wait for other sessions.
    waits: bool,
    begun: Instant,
}

/// A call that has ended.
struct Ended {
    call: CallId,
    outcome: ToolOutcome,
    took: Duration,
}

enum Next {
    Cancelled(EndReason),
    Recorded(Record, Result<Answer, EngineError>),
    Tool(Ended),
    /// There is a place, or a reason to wait for one.
    Placed(Option<NoPlace>),
    /// Nothing has come for so long.
    Stalled(Duration),
    Model(Asked),
}

impl<'a> Driver<'a> {
    fn new(
        shared: &'a Arc<Shared>,
        session: SessionId,
        mailbox: &'a SharedMailbox,
        turn: TurnId,
        token: watch::Receiver<Option<EndReason>>,
        machine: Turn,
        prepared: Prepared,
    ) -> Self {
        let (set_cancel, cancel) = Cancel::new();
        Self {
            shared,
            session,
            mailbox,
            turn,
            token,
            machine,
            prepared,
            shows: true,
            asking: None,
            deltas: Deltas::new(),
            tools: JoinSet::new(),
            calls: HashMap::new(),
            place: Standing::new(&shared.places, &[]),
            records: VecDeque::new(),
            set_cancel,
            cancel,
            starting: VecDeque::new(),
            checkpointed_at: shared.now(),
            refusal: None,
            stalls: None,
            delayed: false,
        }
    }

    /// Looked at before each request: what is used up was used by steps that are on record.
    fn is_out_of_budget(&mut self) -> Result<bool, EngineError> {
        let refusal = self.shared.spent(self.session)?;
        self.refusal = refusal.map(|refusal| refusal.to_string().into());
        Ok(self.refusal.is_some())
    }

    async fn drive(&mut self) {
        if self.carry_out(Input::Begin).is_err() {
            return;
        }
        let mut ending = false;
        loop {
            let next = match self.start_tools().await {
                Some(ended) => Next::Tool(ended),
                None => self.next(ending).await,
            };
            let input = match next {
                Next::Cancelled(reason) => {
                    ending = true;
                    Input::Cancel(reason)
                }
                Next::Recorded(Record::End, _) => return,
                // Nothing waits for it.
                Next::Recorded(Record::Note, Ok(_)) => continue,
                Next::Recorded(Record::Step, Ok(_)) => Input::StepRecorded,
                Next::Recorded(Record::Results, Ok(Answer::Steered { items })) => {
                    Input::ResultsRecorded { steered: items }
                }
                Next::Recorded(Record::Cut(restated), Ok(_)) => {
                    Input::CompactionRecorded { restated }
                }
                // The turn is over in the record, or the store fails: nothing more can be said
                // here, and the actor ends what is open.
                Next::Recorded(_, _) => return,
                Next::Tool(Ended {
                    call,
                    outcome,
                    took,
                }) => {
                    self.mailbox.live.call_ends(&call);
                    self.progress();
                    Input::ToolEnded {
                        call,
                        outcome,
                        took,
                    }
                }
                Next::Stalled(passed) => match self.tell_of_stall(passed) {
                    Ok(None) => continue,
                    Ok(Some(reason)) => {
                        ending = true;
                        Input::Cancel(reason)
                    }
                    Err(_) => return,
                },
                Next::Placed(short) => {
                    self.note(short.map(Note::Place));
                    continue;
                }
                Next::Model(asked) => {
                    if self.take_deltas().is_err() {
                        return;
                    }
                    match asked {
                        Asked::Bytes => continue,
                        Asked::Note(note) => {
                            self.delayed = note.is_some();
                            let making = || Note::Text(MAKING_ROOM.into());
                            let note = note.or_else(|| (!self.shows).then(making));
                            self.note(note);
                            continue;
                        }
                        Asked::End => {
                            self.delayed = false;
                            Input::ModelEnded
                        }
                        Asked::Failed(error) => {
                            let model = &self.prepared.model_name;
                            self.shared.limits.learn(model, &error);
                            self.delayed = false;
                            Input::ModelFailed(error)
                        }
                    }
                }
            };
            if self.carry_out(input).is_err() {
                return;
            }
        }
    }

    fn limits(&self) -> Limits {
        self.prepared.compiled.definition.limits
    }

    fn progress(&mut self) {
        if let Some(stalls) = &mut self.stalls {
            stalls.progress();
        }
    }

    fn doing(&self) -> Doing {
        match &self.asking {
            Some(_) if self.delayed || !self.place.is_taken() => Doing::Waiting,
            None if self.calls.is_empty() => Doing::Asking,
            None if self.calls.values().all(|call| call.waits) => Doing::Waiting,
            None => Doing::Calling,
            Some(_) => Doing::Asking,
        }
    }

    /// Tells the parents that nothing comes; how the run is to end where its definition says so.
    fn tell_of_stall(&mut self, passed: Duration) -> Result<Option<EndReason>, EngineError> {
        let tools = self.mailbox.live.read(|live| {
            live.calls
                .iter()
                .map(|(_, name)| name.to_string())
                .collect::<Vec<_>>()
        });
        let ends = self.limits().on_stall == OnStall::Interrupt;
        let text: Arc<str> = told(self.session, passed, &tools, ends).into();
        let turn = self.turn;
        let report = Command::TellParents {
            code: "stalled".into(),
            turn,
            text: Arc::clone(&text),
        };
        self.record(Record::Note, report)?;
        if !ends {
            return Ok(None);
        }
        self.refusal = Some(text);
        Ok(Some(EndReason::Deadline))
    }

    /// Whether it has been told to end. From then on it asks no model and starts no call, also when
    /// it has not come to look yet.
    fn is_told_to_end(&self) -> bool {
        self.token.borrow().is_some()
    }

    async fn next(&mut self, ending: bool) -> Next {
        let doing = self.doing();
        if let Some(stalls) = &mut self.stalls {
            stalls.does(doing);
        }
        loop {
            tokio::select! {
                biased;
                reason = cancelled(&mut self.token), if !ending => return Next::Cancelled(reason),
                answer = front(&mut self.records) => {
                    if let Some((record, _)) = self.records.pop_front() {
                        return Next::Recorded(record, answer);
                    }
                }
                Some(ended) = self.tools.join_next_with_id() => {
                    let (id, outcome) = match ended {
                        Ok((id, outcome)) => (id, outcome),
                        Err(fault) => (fault.id(), ToolError::new(
                            ErrorCode::Internal,
                            "the tool failed on a fault of its own",
                        ).into()),
                    };
                    if let Some(Running { call, begun, .. }) = self.calls.remove(&id) {
                        let took = clock::instant().saturating_duration_since(begun);
                        return Next::Tool(Ended { call, outcome, took });
                    }
                }
                placed = self.place.taken(), if self.asking.is_some() && !self.place.is_taken() => {
                    return Next::Placed(placed);
                }
                asked = read(self.asking.as_mut(), &mut self.deltas), if self.place.is_taken() => {
                    return Next::Model(asked);
                }
                passed = stalled(self.stalls.as_mut()), if !ending => return Next::Stalled(passed),
            }
        }
    }

    fn take_deltas(&mut self) -> Result<(), EngineError> {
        if self.deltas.is_empty() {
            return Ok(());
        }
        let mut deltas = std::mem::take(&mut self.deltas);
        let mut outputs = Vec::new();
        let mut said = false;
        if self.stalls.is_some() && deltas.as_slice().iter().any(is_progress) {
            self.progress();
        }
        for delta in deltas.drain() {
            match &delta {
                Delta::Text(text) if self.shows => {
                    self.mailbox.live.text(text);
                    said = true;
                }
                Delta::Reasoning(text) if self.shows => self.mailbox.live.reasoning(text),
                _ => {}
            }
            outputs.append(&mut self.machine.handle(Input::Delta(delta)));
        }
        self.deltas = deltas;
        if said {
            if let Some(observation) = self.mailbox.observation() {
                observation.ring();
            }
            self.checkpoint();
        }
        outputs
            .into_iter()
            .try_for_each(|output| self.carry(output))
    }

    /// Shows what the request waits for.
    fn note(&self, note: Option<Note>) {
        self.mailbox.live.note(note);
        if let Some(observation) = self.mailbox.observation() {
            observation.ring();
        }
        self.shared.feeds.changed(self.session);
    }

    /// Streamed text survives a crash once it is older than a second.
    fn checkpoint(&mut self) {
        let now = self.shared.now();
        if now.0 - self.checkpointed_at.0 < CHECKPOINT_MICROS {
            return;
        }
        self.checkpointed_at = now;
        let model = &self.prepared.model_name;
        if let Some(step) = crate::actor::streamed(self.mailbox, model) {
            self.shared.config.store.checkpoint(
                self.session,
                Partial {
                    turn: self.turn,
                    step,
                },
            );
        }
    }

    /// Starts the calls that wait for it, in order: each gets as far as it gets at once, so that
    /// what they ask of the same session is asked in the order of the calls; then it goes on by
    /// itself. Stops at one that has ended already.
    async fn start_tools(&mut self) -> Option<Ended> {
        while !self.is_told_to_end()
            && let Some(ToolStart {
                call,
                name,
                arguments,
            }) = self.starting.pop_front()
        {
            let Some(tool) = self.prepared.compiled.belt.get(&name).cloned() else {
                continue;
            };
            let waits = tool.waits();
            self.mailbox.live.call_begins(&call, &name);
            let context = CallContext {
                caller: Caller {
                    session: self.session,
                    turn: self.turn,
                    call: CallId::clone(&call),
                },
                working_directory: self.prepared.working_directory.clone(),
                sessions: Arc::new(Port(Arc::clone(self.shared))),
                cancel: self.cancel.clone(),
            };
            let begun = clock::instant();
            let run = async move { tool.call(context, arguments).await };
            let mut run = Box::pin(AssertUnwindSafe(run).catch_unwind());
            match futures_util::poll!(&mut run) {
                Poll::Ready(ended) => {
                    return Some(Ended {
                        call,
                        outcome: ended.unwrap_or_else(|_fault| fault()),
                        took: clock::instant().saturating_duration_since(begun),
                    });
                }
                Poll::Pending => {
                    let task = self
                        .tools
                        .spawn(async move { run.await.unwrap_or_else(|_fault| fault()) });
                    self.calls.insert(task.id(), Running { call, waits, begun });
                }
            }
        }
        // Whoever only waits for others leaves its places to them.
        if self.asking.is_none()
            && !self.calls.is_empty()
            && self.calls.values().all(|call| call.waits)
        {
            self.place.give_up();
        }
        None
    }
}

pub(crate) fn fault() -> ToolOutcome {
    ToolError::new(ErrorCode::Internal, "the tool failed on a fault of its own").into()
}

async fn cancelled(token: &mut watch::Receiver<Option<EndReason>>) -> EndReason {
    match token.wait_for(Option::is_some).await {
        Ok(reason) => reason.unwrap_or(EndReason::Cancelled),
        // The control is gone with an actor that failed.
        Err(_gone) => EndReason::Cancelled,
    }
}

async fn front(records: &mut VecDeque<(Record, Reply)>) -> Result<Answer, EngineError> {
    match records.front_mut() {
        Some((_, reply)) => reply.await.unwrap_or_else(|_gone| Err(EngineError::lost())),
        None => std::future::pending().await,
    }
}

async fn stalled(stalls: Option<&mut Stalls>) -> Duration {
    match stalls {
        Some(stalls) => stalls.stalled().await,
        None => std::future::pending().await,
    }
}

async fn read(asking: Option<&mut Asking>, deltas: &mut Deltas) -> Asked {
    match asking {
        Some(asking) => asking.next(deltas).await,
        None => std::future::pending().await,
    }
}

/// A step of the text that a crash left in the store.
pub(crate) fn partial_step(partial: Partial, turn: TurnId) -> Option<StepText> {
    let step = StepText {
        incomplete: true,
        ..partial.step
    };
    (partial.turn == turn).then_some(step)
}
