//! One task owns a session's state: it takes what waits, decides all of it on a copy, commits it
//! as one append, applies, publishes, and starts the effects. It never waits on slow work, and has
//! at most one append in flight.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use attache_session::{
    Command, Effect, EndReason, Event, Generation, Mail, Position, SessionId, State, StepText,
    StopReason, Summary,
};
use attache_store::{Append, Born, LogItem, Refused};
use futures_util::FutureExt;

use crate::ask::Shared;
use crate::error::EngineError;
use crate::mailbox::{Failed, Message, SharedMailbox, Taken};
use crate::observe::{Change, Snapshot};
use crate::plan::{Plan, Work, read_answer};
use crate::{recovery, turn_task};

/// Most mail that one append takes.
const MAIL_AT_ONCE: usize = 1_000;

/// Events that are read at once while a log is folded.
const FOLD_AT_ONCE: usize = 4_096;

/// A group that is refused for mail that came in between is decided again this often.
const MAIL_RETRIES: usize = 16;

/// How long an actor waits before it tries again to write down the end of a run that the store
/// refused.
const STORAGE_RETRY: Duration = Duration::from_secs(1);

/// Starts the actor of a session whose mailbox says that one is needed.
pub(crate) fn start(shared: Arc<Shared>, session: SessionId, mailbox: SharedMailbox) {
    tokio::spawn(async move {
        let run = run(&shared, session, &mailbox);
        if AssertUnwindSafe(run).catch_unwind().await.is_err() && mailbox.abandon(shared.now()) {
            start(Arc::clone(&shared), session, mailbox);
            return;
        }
        drop(mailbox);
        shared.registry.tidy(session);
    });
}

async fn run(shared: &Arc<Shared>, session: SessionId, mailbox: &SharedMailbox) {
    let mut actor = None;
    loop {
        let Some(taken) = mailbox.take() else {
            if let Some(actor) = &mut actor
                && Actor::has_orphan(actor)
                && !Actor::end_orphan(actor).await
            {
                let _rung = tokio::time::timeout(STORAGE_RETRY, mailbox.bell.notified()).await;
                continue;
            }
            if let Some(actor) = &mut actor
                && Actor::end_released(actor).await
            {
                continue;
            }
            if mailbox.try_leave() {
                return;
            }
            mailbox.bell.notified().await;
            continue;
        };
        if actor.is_none() {
            match Actor::load(shared, session, mailbox).await {
                Ok(loaded) => actor = Some(loaded),
                Err(error) => {
                    refuse_all(taken, &error);
                    continue;
                }
            }
        }
        if let Some(loaded) = &mut actor
            && loaded.handle(taken).await == Standing::Lost
        {
            // The store knows better: what waits is decided by a fresh look.
            actor = None;
        }
    }
}

fn refuse_all(taken: Taken, error: &EngineError) {
    for message in taken.messages {
        match message {
            // A caller that has gone needs no answer.
            Message::Command(ask) => drop(ask.reply.send(Err(error.clone()))),
            Message::Snapshot(reply) => drop(reply.send(Err(error.clone()))),
            Message::Sync(reply) => drop(reply),
        }
    }
}

#[derive(PartialEq, Eq)]
enum Standing {
    Sound,
    Lost,
}

struct Actor<'a> {
    shared: &'a Arc<Shared>,
    mailbox: &'a SharedMailbox,
    session: SessionId,
    generation: Generation,
    state: State,
    /// The last parent gave it up while a viewer held it: it ends when that one leaves.
    release_due: bool,
}

impl<'a> Actor<'a> {
    /// Folds the session's log, and writes down first what an earlier life of the host left open.
    async fn load(
        shared: &'a Arc<Shared>,
        session: SessionId,
        mailbox: &'a SharedMailbox,
    ) -> Result<Actor<'a>, EngineError> {
        let store = &shared.config.store;
        let row = store
            .row(session)?
            .ok_or_else(|| EngineError::unknown(session))?;
        let mut state = State::empty(session);
        loop {
            let events = store.events(session, state.position, FOLD_AT_ONCE)?;
            for item in &events {
                state.apply(&item.event);
            }
            if events.len() < FOLD_AT_ONCE {
                break;
            }
            tokio::task::yield_now().await;
        }
        let generation = row.generation;
        let mut actor = Actor {
            shared,
            mailbox,
            session,
            generation,
            state,
            release_due: false,
        };
        let failed = mailbox.take_failed();
        if actor.state.epoch.is_some() && actor.state.epoch != shared.registry.epoch(session) {
            let partial = recovery::partial(shared, session, &actor.state);
            let recover = Work::own(Command::Recover { partial });
            if actor.commit(vec![recover]).await == Standing::Lost || actor.state.is_live() {
                // Not written down: a start would find it live and do nothing.
                return Err(EngineError::lost());
            }
        } else if let Some(turn) = actor.state.turn.as_ref().map(|turn| turn.id)
            && mailbox.running_turn().is_none()
        {
            if failed.is_some() {
                actor.end_orphan().await;
            } else {
                // Just born, with a turn that nobody runs yet.
                actor.run_turn(turn);
            }
        }
        if failed == Some(Failed::Again) {
            let stop = Command::Stop {
                reason: StopReason::Terminated,
                partial: None,
            };
            actor.commit(vec![Work::own(stop)]).await;
        }
        Ok(actor)
    }

    /// Ends a session whose last parent gave it up while a viewer held it, once that viewer has
    /// left. True when that was due.
    async fn end_released(&mut self) -> bool {
        if !self.release_due || self.mailbox.is_viewed() {
            return false;
        }
        self.release_due = false;
        let held = self.state.parents.iter().any(|parent| parent.holds);
        if held || !self.state.is_live() {
            return false;
        }
        let stop = Command::Stop {
            reason: StopReason::Disposed,
            partial: None,
        };
        self.commit(vec![Work::own(stop)]).await;
        true
    }

    async fn handle(&mut self, taken: Taken) -> Standing {
        let mut works = Vec::with_capacity(taken.messages.len() + 1);
        let mut after = Vec::new();
        let mut look = taken.mail;
        for message in taken.messages {
            match message {
                Message::Command(ask) => works.push(Work::from(ask)),
                other => {
                    look |= matches!(other, Message::Sync(_));
                    after.push(other);
                }
            }
        }
        if look && let Some(take) = self.take_mail() {
            self.release_due |= take.releases() && self.mailbox.is_viewed();
            works.insert(0, take);
        }
        if self.has_orphan() {
            works.insert(0, self.orphan_end());
        }
        let standing = if works.is_empty() {
            Standing::Sound
        } else {
            self.commit(works).await
        };
        for message in after {
            match message {
                // A caller that has gone needs no answer.
                Message::Snapshot(reply) => drop(reply.send(Ok(self.snapshot()))),
                Message::Sync(reply) => drop(reply.send(())),
                Message::Command(_) => {}
            }
        }
        standing
    }

    /// Whether the log has a turn that nobody runs: the store refused its end.
    fn has_orphan(&self) -> bool {
        self.state.turn.is_some() && self.mailbox.running_turn().is_none()
    }

    fn orphan_end(&self) -> Work {
        let turn = self
            .state
            .turn
            .as_ref()
            .map_or(self.state.last_turn, |turn| turn.id);
        Work::own(Command::EndTurn {
            turn,
            reason: EndReason::StorageError,
            step: None,
            error: Some("the run ended on a fault of the host or its store".into()),
        })
    }

    async fn end_orphan(&mut self) -> bool {
        let end = self.orphan_end();
        self.commit(vec![end]).await;
        !self.has_orphan()
    }

    fn take_mail(&self) -> Option<Work> {
        // What cannot be read now is looked for again at the next wake.
        let mail = self
            .shared
            .config
            .store
            .mail(self.session, MAIL_AT_ONCE)
            .unwrap_or_default();
        if mail.len() == MAIL_AT_ONCE {
            let _running = self.mailbox.wake();
        }
        self.take_work(mail)
    }

    fn take_work(&self, mail: Vec<Mail>) -> Option<Work> {
        let viewed = self.mailbox.is_viewed();
        let registry = &self.shared.registry;
        let living = mail
            .iter()
            .map(|letter| letter.from)
            .filter(|from| registry.epoch(*from).is_some())
            .collect();
        (!mail.is_empty()).then(|| {
            Work::own(Command::Take {
                mail,
                viewed,
                living,
            })
        })
    }

    /// Commits a batch; when the store refuses it for one of its parts, each part alone.
    async fn commit(&mut self, works: Vec<Work>) -> Standing {
        let mut rest = works;
        while !rest.is_empty() {
            let mut batch = rest;
            // One append remembers one command: the next keyed one begins the next batch.
            let second = batch
                .iter()
                .enumerate()
                .filter(|(_, work)| work.key.is_some())
                .nth(1);
            let cut = second.map_or(batch.len(), |(index, _)| index);
            rest = batch.split_off(cut);
            let mut retries = 0;
            loop {
                match self.try_commit(&mut batch).await {
                    Ok(()) => break,
                    Err(Refused::MailWaiting | Refused::MailGone { .. })
                        if retries < MAIL_RETRIES =>
                    {
                        retries += 1;
                        batch.retain(|work| !matches!(work.command, Command::Take { .. }));
                        if let Some(take) = self.take_mail() {
                            batch.insert(0, take);
                        }
                    }
                    Err(Refused::Fenced { .. } | Refused::Moved { .. }) => {
                        let error = EngineError::new(
                            attache_session::ErrorCode::EpochFenced,
                            "the session has another owner now",
                        );
                        for work in batch.iter_mut().chain(&mut rest) {
                            work.answer(Err(error.clone()));
                        }
                        return Standing::Lost;
                    }
                    Err(refused) if batch.len() == 1 => {
                        batch[0].answer(Err(refused.into()));
                        break;
                    }
                    Err(_) => {
                        // One at a time finds the one that is refused.
                        batch.append(&mut rest);
                        for work in batch {
                            let alone = Box::pin(self.commit(vec![work]));
                            if alone.await == Standing::Lost {
                                return Standing::Lost;
                            }
                        }
                        return Standing::Sound;
                    }
                }
            }
        }
        Standing::Sound
    }

    async fn try_commit(&mut self, works: &mut [Work]) -> Result<(), Refused> {
        let mut plan = Plan::new(self.state.clone());
        for work in works.iter_mut() {
            if let Command::Stop { partial, .. } = &mut work.command {
                // Looked at here, where it is known whether it is on record already.
                *partial = self.streamed_of(&plan.scratch);
            }
            plan.add(self.shared, work);
        }
        if plan.is_empty() {
            self.finish(plan, works);
            return Ok(());
        }
        let starts = plan.starts();
        let before = self.register(&starts);
        match self.append(&mut plan).await {
            Ok(()) => {
                self.finish(plan, works);
                Ok(())
            }
            Err(Refused::CommandKnown { answer, .. }) => {
                self.unregister(before);
                let answer = read_answer(&answer);
                for work in works.iter_mut() {
                    work.answer(Ok(answer.clone()));
                }
                Ok(())
            }
            Err(refused) => {
                self.unregister(before);
                Err(refused)
            }
        }
    }

    /// What the turn that is open in `state` has streamed and not recorded.
    fn streamed_of(&self, state: &State) -> Option<StepText> {
        let turn = state.turn.as_ref()?.id;
        let model = &state.created.as_ref()?.model;
        let same = self.mailbox.live.read(|live| live.turn == turn.0);
        if same {
            streamed(self.mailbox, model)
        } else {
            None
        }
    }

    async fn append(&self, plan: &mut Plan) -> Result<(), Refused> {
        let Some(summary) = Summary::of(&plan.scratch) else {
            return Err(Refused::Unknown {
                session: self.session,
            });
        };
        let births = plan
            .births
            .iter()
            .filter_map(|birth| Born::of(birth, Generation(1)))
            .collect();
        let append = Append {
            session: self.session,
            generation: self.generation,
            expected: self.state.position,
            events: plan.events.clone(),
            summary,
            mail: std::mem::take(&mut plan.mail),
            taken: std::mem::take(&mut plan.taken),
            charges: Vec::new(),
            births,
            links: std::mem::take(&mut plan.links),
            command: plan.command.take(),
            expects: std::mem::take(&mut plan.expects),
        };
        for mail in &append.mail {
            plan.touched.push(mail.to);
        }
        plan.touched.extend(&append.links);
        if !append.taken.is_empty() {
            // Mail that tells nothing any more leaves no event, but the row is another one.
            plan.touched.push(self.session);
        }
        #[cfg(feature = "fault")]
        plan.kinds.extend(attache_store::fault::kinds(&append));
        self.shared
            .config
            .store
            .commit(append)
            .await
            .map(|_position| ())
    }

    /// Registers epochs before the append that starts them: no reader ever sees one of them
    /// stored and unknown.
    fn register(
        &self,
        starts: &[(SessionId, attache_session::Epoch)],
    ) -> Vec<(SessionId, Option<attache_session::Epoch>)> {
        let registry = &self.shared.registry;
        starts
            .iter()
            .map(|(id, epoch)| (*id, registry.set_epoch(*id, Some(*epoch))))
            .collect()
    }

    fn unregister(&self, before: Vec<(SessionId, Option<attache_session::Epoch>)>) {
        for (session, epoch) in before.into_iter().rev() {
            self.shared.registry.set_epoch(session, epoch);
        }
    }

    /// Applies, publishes, answers, and starts the effects, in this order.
    fn finish(&mut self, plan: Plan, works: &mut [Work]) {
        let from = self.state.position;
        #[cfg(feature = "fault")]
        for kind in &plan.kinds {
            attache_store::fault::reached(kind, attache_store::fault::Place::BeforeEffect);
        }
        let Plan {
            scratch,
            events,
            effects,
            answers,
            touched,
            ..
        } = plan;
        self.state = scratch;
        if self.state.epoch.is_none() && self.shared.registry.epoch(self.session).is_some() {
            self.shared.registry.set_epoch(self.session, None);
        }
        let steering = self.state.turn.is_some()
            && self
                .state
                .queues
                .iter()
                .any(|queue| queue.steers() && !queue.items.is_empty());
        self.mailbox.set_steering(steering);
        let began = events
            .iter()
            .any(|stamped| matches!(stamped.event, Event::Started { .. }));
        if !events.is_empty() {
            self.publish(from, events);
        }
        if began {
            // Notices that a stopped session leaves unread are work from now on.
            let _running = self.mailbox.wake();
        }
        for session in touched {
            self.shared.changed(session);
        }
        for (work, answer) in works.iter_mut().zip(answers) {
            if let Some(answer) = answer {
                work.answer(Ok(answer));
            }
        }
        for effect in effects {
            match effect {
                Effect::RunTurn { turn } => {
                    if self.state.turn.as_ref().is_some_and(|open| open.id == turn) {
                        self.run_turn(turn);
                    }
                    if self.shared.is_closing() {
                        // No new work: it ends before it has asked for anything.
                        self.mailbox.cancel(Some(turn), EndReason::Interrupted);
                    }
                }
                Effect::CancelTurn { turn, reason } => {
                    self.mailbox.cancel(Some(turn), reason);
                }
                Effect::Wake { session } => self.shared.wake(session),
            }
        }
    }

    fn publish(&self, from: Position, events: Vec<attache_session::Stamped>) {
        if events
            .iter()
            .any(|stamped| matches!(stamped.event, Event::Said { .. }))
        {
            self.mailbox.live.settled();
        }
        let first = self
            .shared
            .registry
            .number(self.session, events.len() as u64);
        if let Some(observation) = self.mailbox.observation() {
            let state = Arc::new(self.state.clone());
            let changes = events
                .into_iter()
                .enumerate()
                .map(|(index, event)| Change::Record {
                    sequence: first + index as u64,
                    item: Arc::new(LogItem {
                        position: from.plus(index + 1),
                        event,
                    }),
                    state: Arc::clone(&state),
                });
            observation.publish(changes);
        }
        self.shared.changed(self.session);
    }

    fn run_turn(&self, turn: attache_session::TurnId) {
        let token = self.mailbox.turn_begins(turn);
        turn_task::start(
            Arc::clone(self.shared),
            self.session,
            Arc::clone(self.mailbox),
            turn,
            token,
        );
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            state: Arc::new(self.state.clone()),
            epoch: self.state.epoch,
            sequence: self.shared.registry.number(self.session, 0),
            live: self.mailbox.live.read(Clone::clone),
            window_end: self
                .mailbox
                .observation()
                .map_or(0, |observation| observation.end()),
        }
    }
}

/// The step that a live buffer holds, as what an end of the epoch keeps of it.
pub(crate) fn streamed(mailbox: &SharedMailbox, model: &Arc<str>) -> Option<StepText> {
    mailbox.live.read(|live| {
        let step = StepText {
            text: live.text.as_str().into(),
            reasoning: live.reasoning.as_str().into(),
            model: Arc::clone(model),
            incomplete: true,
            ..StepText::default()
        };
        (!step.is_silent()).then_some(step)
    })
}
