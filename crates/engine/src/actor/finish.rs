//! What an actor does once an append has returned: it applies, publishes, answers, and starts the
//! effects, in this order.

use std::sync::Arc;

use attache_session::{Birth, Due, Effect, Event, Limit, Position, Stamped, TurnId};
use attache_store::LogItem;

use super::Actor;
use crate::observe::Change;
use crate::plan::{Plan, Work};
use crate::turn_task;

impl Actor<'_> {
    /// Applies, publishes, answers, and starts the effects, in this order.
    pub(super) fn finish(&mut self, plan: Plan, works: &mut [Work]) {
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
            births,
            dues,
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
        self.bind(&births, &events, &dues);
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
                }
                Effect::CancelTurn { turn, reason } => {
                    self.mailbox.cancel(Some(turn), reason);
                }
                Effect::Wake { session } => self.shared.wake(session),
            }
        }
    }

    /// Makes known whose limits have changed, and has those told whose limits run out.
    fn bind(&self, births: &[Birth], events: &[Stamped], dues: &[Due]) {
        let shared = self.shared;
        for birth in births {
            let spawner = Some(self.session);
            shared
                .bounds
                .put(birth.session, spawner, &birth.state.bounds);
        }
        for stamped in events {
            match &stamped.event {
                Event::BoundsSet { bounds } => {
                    let spawner = self.state.parents.first().map(|parent| parent.id);
                    shared.bounds.put(self.session, spawner, bounds);
                    let most = bounds.budget.get(Limit::Concurrent);
                    shared.places.set_most(self.session, most);
                }
                Event::Stopped { .. } => {
                    self.mailbox.epoch_over();
                    shared.bounds.forget(self.session);
                    shared.places.forget(self.session);
                }
                _ => {}
            }
        }
        shared.tell_of(dues);
    }

    fn publish(&self, from: Position, events: Vec<Stamped>) {
        let modals: Vec<_> = events
            .iter()
            .filter_map(|stamped| match &stamped.event {
                Event::ModalSet { modal, state } => {
                    Some((Arc::clone(modal), state.clone(), stamped.at))
                }
                _ => None,
            })
            .collect();
        if events
            .iter()
            .any(|stamped| matches!(stamped.event, Event::Said { .. }))
        {
            self.mailbox.live.settled();
        }
        if let Some(observation) = self.mailbox.observation() {
            let state = Arc::new(self.state.clone());
            let changes = events
                .into_iter()
                .enumerate()
                .map(|(index, event)| Change::Record {
                    item: Arc::new(LogItem {
                        position: from.plus(index + 1),
                        event,
                    }),
                    state: Arc::clone(&state),
                });
            observation.publish(changes);
        }
        for (modal, state, at) in modals {
            self.shared.modal_changed(self.session, &modal, &state, at);
        }
        self.shared.changed(self.session);
    }

    pub(super) fn run_turn(&self, turn: TurnId) {
        let token = self.mailbox.turn_begins(turn);
        if let Some(reason) = self.shared.ends_at_once(self.session) {
            // It ends before it has asked for anything.
            self.mailbox.cancel(Some(turn), reason);
        }
        turn_task::start(
            Arc::clone(self.shared),
            self.session,
            Arc::clone(self.mailbox),
            turn,
            token,
        );
    }
}
