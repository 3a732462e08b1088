//! One session on a desk: decides commands, folds what they decide, and keeps the log, so that a
//! test reads as a list of steps. It checks at each step what must hold of any step.

use std::sync::Arc;

use attache_session::{
    Answer, Command, Created, Decision, Effect, EndReason, Epoch, Event, ItemId, Json, Mail,
    MailBody, MailId, NewCall, NewSession, Origin, QueueId, Rejected, ResultOrigin, SessionId,
    Stamped, Starts, State, StepText, StopReason, Summary, Timestamp, TurnId, WatchId,
    decide_within,
};
use uuid::Uuid;

/// A session's id by number.
pub(crate) fn sid(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(0xA000 + number))
}

/// An item's id by number.
pub(crate) fn iid(number: u128) -> ItemId {
    ItemId(Uuid::from_u128(0xB000 + number))
}

/// A registration's id by number.
pub(crate) fn wid(number: u128) -> WatchId {
    WatchId(Uuid::from_u128(0xC000 + number))
}

/// An epoch by number.
pub(crate) fn eid(number: u128) -> Epoch {
    Epoch(Uuid::from_u128(0xD000 + number))
}

/// The session that most tests are about.
pub(crate) const ME: u128 = 1;

/// What a session is born with.
pub(crate) fn created(root: SessionId, parents: &[SessionId]) -> Created {
    Created {
        name: "helper".into(),
        agent: "helper".into(),
        definition: Json::empty_object(),
        model: "puppet/puppet".into(),
        working_directory: "/work".into(),
        root,
        parents: parents.to_vec(),
        takes_input: true,
        runs_turns: true,
        owning_profile: Uuid::from_u128(0xE000),
        executor_bindings: Json::from_checked("[]"),
        trust: None,
        continue_in_background: false,
        budget: attache_session::Budget::NONE,
    }
}

/// A child to be born.
pub(crate) fn child(number: u128, parent: SessionId, first: Option<&str>) -> NewSession {
    NewSession {
        id: sid(number),
        epoch: eid(100 + number),
        created: created(parent, &[parent]),
        first: first.map(|text| (iid(900 + number), text.into(), Origin::Session(parent))),
    }
}

/// A step that says something.
pub(crate) fn said(text: &str) -> StepText {
    StepText {
        text: text.into(),
        model: "puppet/puppet".into(),
        ..StepText::default()
    }
}

/// A call that may change something.
pub(crate) fn call(id: &str) -> NewCall {
    NewCall {
        id: id.into(),
        name: "shell".into(),
        arguments: "{}".into(),
        changes_state: true,
    }
}

/// A tool's own result of a call.
pub(crate) fn result(id: &str) -> attache_session::CallResult {
    attache_session::CallResult {
        call: id.into(),
        content: "ok".into(),
        is_error: false,
        spawned: None,
        origin: ResultOrigin::Tool,
        images: Vec::new(),
        took_micros: None,
        report: None,
    }
}

/// The kinds of events, in order, in one line.
pub(crate) fn kinds(events: &[Stamped]) -> String {
    let names: Vec<&str> = events.iter().map(|stamped| stamped.event.kind()).collect();
    names.join(" ")
}

/// What a mail says, by name.
pub(crate) fn body(body: &MailBody) -> &'static str {
    match body {
        MailBody::Input { .. } => "input",
        MailBody::Watch { .. } => "watch",
        MailBody::Unwatch { .. } => "unwatch",
        MailBody::Notice(_) => "notice",
        MailBody::Report { .. } => "report",
        MailBody::Hold => "hold",
        MailBody::Release { .. } => "release",
    }
}

/// An answer by name.
pub(crate) fn answer(answer: &Answer) -> &'static str {
    match answer {
        Answer::Done => "done",
        Answer::Unchanged => "unchanged",
        Answer::Accepted { .. } => "accepted",
        Answer::QueueMade { .. } => "queue-made",
        Answer::Steered { .. } => "steered",
        Answer::Child { .. } => "child",
        Answer::FiredAtOnce => "fired-at-once",
    }
}

/// An effect by name.
pub(crate) fn effect(effect: &Effect) -> &'static str {
    match effect {
        Effect::RunTurn { .. } => "run",
        Effect::CancelTurn { .. } => "cancel",
        Effect::Wake { .. } => "wake",
    }
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) state: State,
    pub(crate) log: Vec<Stamped>,
    pub(crate) now: i64,
    next: u128,
    next_mail: u64,
}

impl Desk {
    /// A live root without input.
    pub(crate) fn new() -> Self {
        Self::of(created(sid(ME), &[]))
    }

    /// A live session with these parents.
    pub(crate) fn child_of(parents: &[u128]) -> Self {
        let parents: Vec<SessionId> = parents.iter().map(|parent| sid(*parent)).collect();
        Self::of(created(parents[0], &parents))
    }

    /// A live session.
    pub(crate) fn of(created: Created) -> Self {
        let new = NewSession {
            id: sid(ME),
            epoch: eid(1),
            created,
            first: None,
        };
        let mut next = 0;
        let birth = attache_session::Birth::of(&new, Timestamp(1_000), &mut || {
            next += 1;
            Uuid::from_u128(next)
        });
        Self {
            state: birth.state,
            log: birth.events,
            now: 2_000,
            next,
            next_mail: 0,
        }
    }

    /// Decides without folding.
    pub(crate) fn ask(&mut self, command: &Command) -> Result<Decision, Rejected> {
        self.within(Starts::All, command)
    }

    /// The same while not all turns may start.
    pub(crate) fn within(
        &mut self,
        starts: Starts,
        command: &Command,
    ) -> Result<Decision, Rejected> {
        let next = &mut self.next;
        decide_within(
            &self.state,
            command,
            starts,
            Timestamp(self.now),
            &mut || {
                *next += 1;
                Uuid::from_u128(*next)
            },
        )
    }

    /// Decides and folds; checks what holds of every decision.
    pub(crate) fn attempt(&mut self, command: &Command) -> Result<Decision, Rejected> {
        self.now += 1_000;
        let before = self.state.clone();
        let decided = self.ask(command);
        assert_eq!(before, self.state, "a decision changes nothing by itself");
        let decision = decided?;
        for stamped in &decision.events {
            assert!(stamped.at > self.state.last_at, "times strictly increase");
            self.state.apply(stamped);
            self.log.push(stamped.clone());
        }
        let mut fresh = State::empty(self.state.id);
        self.log.iter().for_each(|stamped| fresh.apply(stamped));
        assert_eq!(fresh, self.state, "the log folds to the state");
        self.consistent();
        Ok(decision)
    }

    /// Decides, folds, and expects that it was done.
    pub(crate) fn does(&mut self, command: Command) -> Decision {
        self.attempt(&command)
            .unwrap_or_else(|refused| panic!("{command:?} was refused: {refused:?}"))
    }

    /// Decides, and expects that it was refused.
    pub(crate) fn refuses(&mut self, command: Command) -> Rejected {
        match self.attempt(&command) {
            Err(refused) => refused,
            Ok(done) => panic!("{command:?} was done: {done:?}"),
        }
    }

    fn consistent(&self) {
        let state = &self.state;
        assert!(
            state.is_live() || state.turn.is_none(),
            "no turn when stopped"
        );
        assert_eq!(state.is_live(), state.stop.is_none());
        if state.is_live() && state.turn.is_none() {
            assert_eq!(state.deliverable(), 0, "deliverable input starts a turn");
        }
        let summary = Summary::of(state).expect("a session that was born");
        assert_eq!(summary.epoch, state.epoch);
        assert_eq!(summary.turn, state.turn.as_ref().map(|turn| turn.id));
        assert_eq!(summary.deliverable as usize, state.deliverable());
        assert_eq!(summary.end_reason, state.end_reason);
        let queued: usize = state.queues.iter().map(|queue| queue.items.len()).sum();
        assert_eq!(summary.queued as usize, queued);
        let waits = state
            .watches
            .iter()
            .filter(|watch| watch.target != state.id);
        assert_eq!(summary.watching.len(), waits.count());
    }

    /// Takes mail.
    pub(crate) fn takes(&mut self, mail: &[(u128, MailBody)]) -> Decision {
        let mail = self.letters(mail);
        self.does(take(mail, false))
    }

    /// Mail with numbers.
    pub(crate) fn letters(&mut self, mail: &[(u128, MailBody)]) -> Vec<Mail> {
        mail.iter()
            .map(|(from, body)| {
                self.next_mail += 1;
                Mail {
                    id: MailId(self.next_mail),
                    from: sid(*from),
                    body: body.clone(),
                }
            })
            .collect()
    }

    /// Enqueues and gives the item.
    pub(crate) fn says(&mut self, queue: QueueId, text: &str) -> ItemId {
        match self.does(enqueue(None, queue, text)).answer {
            Answer::Accepted { item } => item,
            other => panic!("{other:?}"),
        }
    }

    /// Ends the turn that runs.
    pub(crate) fn ends(&mut self, reason: EndReason) -> Decision {
        let turn = self.turn();
        self.does(Command::EndTurn {
            turn,
            reason,
            step: None,
            error: None,
        })
    }

    /// Says something and makes calls.
    pub(crate) fn steps(&mut self, calls: &[&str]) -> Decision {
        let turn = self.turn();
        self.does(Command::RecordStep {
            turn,
            step: said("on it"),
            calls: calls.iter().map(|id| call(id)).collect(),
        })
    }

    /// Records results.
    pub(crate) fn results(&mut self, calls: &[&str]) -> Decision {
        let turn = self.turn();
        self.does(Command::RecordResults {
            turn,
            results: calls.iter().map(|id| result(id)).collect(),
        })
    }

    /// Stops.
    pub(crate) fn stops(&mut self, reason: StopReason) -> Decision {
        self.does(Command::Stop {
            reason,
            partial: None,
        })
    }

    /// Starts an epoch.
    pub(crate) fn starts(&mut self, epoch: u128) -> Decision {
        self.does(Command::Start { epoch: eid(epoch) })
    }

    /// The turn that runs, or the last one.
    pub(crate) fn turn(&self) -> TurnId {
        self.state.last_turn
    }

    /// The texts in a queue.
    pub(crate) fn waiting(&self, queue: QueueId) -> Vec<String> {
        let queue = self.state.queue(queue).expect("the queue exists");
        queue
            .items
            .iter()
            .map(|item| item.text.to_string())
            .collect()
    }

    /// The texts that turns took, in order.
    pub(crate) fn consumed(&self) -> Vec<String> {
        texts(&self.log)
    }
}

/// The texts that turns took, in order.
pub(crate) fn texts(events: &[Stamped]) -> Vec<String> {
    let taken = events.iter().filter_map(|stamped| match &stamped.event {
        Event::Consumed { item, .. } => Some(item.text.to_string()),
        _ => None,
    });
    taken.collect()
}

/// The command that takes mail, of senders that are live.
pub(crate) fn take(mail: Vec<Mail>, viewed: bool) -> Command {
    let living = mail.iter().map(|letter| letter.from).collect();
    Command::Take {
        mail,
        viewed,
        living,
    }
}

/// The command that accepts input of a viewer.
pub(crate) fn enqueue(item: Option<ItemId>, queue: QueueId, text: &str) -> Command {
    Command::Enqueue {
        item,
        queue,
        text: Arc::from(text),
        origin: Origin::Viewer,
    }
}
