//! How an actor decides what waits and has it committed: all on one copy, as one append. What the
//! store refuses is decided again, or part by part.

use attache_session::{
    Command, Epoch, Generation, Holder, SessionId, State, StepText, StopReason, Summary,
};
use attache_store::{Append, Born, Refused};

use super::{Actor, Standing, streamed};
use crate::bounds::charge;
use crate::error::EngineError;
use crate::plan::{Plan, Work, read_answer};

/// A group that is refused for mail that came in between is decided again this often.
const MAIL_RETRIES: usize = 16;

impl Actor<'_> {
    /// Commits a batch; when the store refuses it for one of its parts, each part alone.
    pub(super) async fn commit(&mut self, works: Vec<Work>) -> Standing {
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
                    // Decided again, once: what only tells the removed one of an end is left out.
                    Err(Refused::Unknown { session })
                        if session != self.session && self.removed.insert(session) => {}
                    Err(Refused::Fenced { .. } | Refused::Moved { .. }) => {
                        for work in batch.iter_mut().chain(&mut rest) {
                            work.answer(Err(EngineError::fenced()));
                        }
                        return Standing::Lost;
                    }
                    Err(refused) if batch.len() == 1 => {
                        self.look_due |= matches!(batch[0].command, Command::Take { .. });
                        batch[0].answer(Err(refused.into()));
                        break;
                    }
                    Err(_) => {
                        // One at a time finds the one that is refused.
                        batch.append(&mut rest);
                        let mut works = batch.into_iter();
                        while let Some(work) = works.next() {
                            let alone = Box::pin(self.commit(vec![work]));
                            if alone.await == Standing::Lost {
                                works.for_each(|mut it| it.answer(Err(EngineError::fenced())));
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
            // Looked at here, where it is known whether it is on record already.
            match &mut work.command {
                Command::Stop { reason, partial } => {
                    *partial = self.cut_off(&plan.scratch, *reason);
                }
                Command::StopUnviewed {
                    held_by, partial, ..
                } => {
                    let held = self.shared.held_from_outside(self.session);
                    // What cannot be read is decided when it can.
                    *held_by = held.map_or(vec![Holder::Children], |(holders, _)| holders);
                    if plan.scratch.ends_unviewed(held_by) {
                        *partial = self.cut_off(&plan.scratch, StopReason::LastViewerLeft);
                    }
                }
                Command::EndWith { parents, partial } if !plan.scratch.is_held_beside(parents) => {
                    *partial = self.cut_off(&plan.scratch, StopReason::ParentEnded);
                }
                _ => {}
            }
            plan.add(self.shared, work);
        }
        if plan.is_empty() {
            self.finish(plan, works);
            return Ok(());
        }
        let sets = plan.scratch.bounds.budget != self.state.bounds.budget;
        let shared = self.shared;
        let _order = shared.bounds.order(sets).await;
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

    /// What the turn that is open in `state` has streamed and not recorded. It is told to end first,
    /// so that nothing more is seen of it than will be on record.
    fn cut_off(&self, state: &State, reason: StopReason) -> Option<StepText> {
        let turn = state.turn.as_ref()?.id;
        self.mailbox.cancel(Some(turn), reason.ends_runs_as());
        let model = &state.model();
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
        let removed = &self.removed;
        plan.mail
            .retain(|mail| !(mail.body.is_farewell() && removed.contains(&mail.to)));
        let births = plan
            .births
            .iter()
            .filter_map(|birth| Born::of(birth, Generation(1)))
            .collect();
        let dues = self
            .shared
            .dues(
                self.session,
                &plan.scratch.bounds,
                &plan.events,
                plan.births.len(),
            )
            .map_err(|error| Refused::Failed(error.to_string()))?;
        let append = Append {
            session: self.session,
            generation: self.generation,
            expected: self.state.position,
            events: plan.events.clone(),
            summary,
            mail: std::mem::take(&mut plan.mail),
            taken: std::mem::take(&mut plan.taken),
            charges: dues.iter().map(charge).collect(),
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
        match self.shared.config.store.commit(append).await {
            Ok(_position) => {
                plan.dues = dues;
                Ok(())
            }
            Err(refused) => {
                self.shared.busy.take_back(&dues);
                Err(refused)
            }
        }
    }

    /// Registers epochs before the append that starts them: no reader ever sees one of them
    /// stored and unknown.
    fn register(&self, starts: &[(SessionId, Epoch)]) -> Vec<(SessionId, Option<Epoch>)> {
        let registry = &self.shared.registry;
        starts
            .iter()
            .map(|(id, epoch)| (*id, registry.set_epoch(*id, Some(*epoch))))
            .collect()
    }

    fn unregister(&self, before: Vec<(SessionId, Option<Epoch>)>) {
        for (session, epoch) in before.into_iter().rev() {
            self.shared.registry.set_epoch(session, epoch);
        }
    }
}
