//! What must hold of a small world: in every state, and where nothing can happen by itself.

use attache_session::{
    Decision, Event, ItemId, Mail, MailBody, Notice, Origin, State, StopReason, WatchId,
};

use super::world::{Broken, World};

impl World {
    /// Who is told that a live session has settled can rely on it.
    pub(super) fn told(&self, index: usize, notice: &Notice) -> Result<(), Broken> {
        let state = &self.sessions[index];
        let pending = state.turn.is_some() || state.deliverable() > 0 || {
            let me = state.id;
            state.watches.iter().any(|watch| watch.target != me)
        };
        if !notice.stopped && pending {
            return Err(format!(
                "session {index} told that it has settled, and had work"
            ));
        }
        if !notice.stopped && self.box_of(index).next().is_some() {
            return Err(format!(
                "session {index} told that it has settled, and had mail"
            ));
        }
        if notice.stopped == state.is_live() {
            return Err(format!("session {index} told a wrong end: {notice:?}"));
        }
        Ok(())
    }

    /// A registration ends with its answer, or is taken back.
    pub(super) fn ended(
        &self,
        index: usize,
        decision: &Decision,
        ended: WatchId,
    ) -> Result<(), Broken> {
        let answered = decision.events.iter().any(|stamped| {
            matches!(&stamped.event, Event::Queued { item, .. }
                if matches!(&item.origin, Origin::Notice { watch, .. } if *watch == ended))
        });
        let own = decision
            .events
            .iter()
            .any(|it| matches!(&it.event, Event::WatcherRemoved { watch } if *watch == ended));
        let taken_back = decision
            .mail
            .iter()
            .any(|it| matches!(&it.body, MailBody::Unwatch { watch } if *watch == ended));
        if answered || own || taken_back {
            return Ok(());
        }
        Err(format!("a watch of session {index} ends without a word"))
    }

    /// What must hold in every state.
    pub(super) fn check(&self) -> Result<(), Broken> {
        let mut lie: Vec<ItemId> = Vec::new();
        for (index, state) in self.sessions.iter().enumerate() {
            if !state.is_live() && state.turn.is_some() {
                return Err(format!("session {index} is stopped and has a turn"));
            }
            if state.is_live() && state.turn.is_none() && state.deliverable() > 0 {
                return Err(format!("session {index} has input and does nothing"));
            }
            lie.extend(
                state
                    .queues
                    .iter()
                    .flat_map(|queue| queue.items.iter().map(|it| it.id)),
            );
            lie.extend(self.box_of(index).filter_map(|mail| match &mail.body {
                MailBody::Input { item, .. } => Some(*item),
                _ => None,
            }));
            self.check_watches(index, state)?;
            self.check_holds(index, state)?;
        }
        lie.sort_unstable();
        if !lie.iter().eq(&self.open) {
            return Err(format!("accepted {:?}, but there lie {lie:?}", self.open));
        }
        Ok(())
    }

    /// Each open registration is known in one place, and nothing is known of any other.
    fn check_watches(&self, index: usize, state: &State) -> Result<(), Broken> {
        let host_ended = [StopReason::HostShutdown, StopReason::HostRestart];
        let for_good = state.stop.is_some_and(|why| !host_ended.contains(&why));
        if for_good && !state.watches.is_empty() {
            return Err(format!("session {index} has ended and keeps its watches"));
        }
        for watch in &state.watches {
            let target = self.index(watch.target);
            let there = &self.sessions[target].watchers;
            let asked = self.box_of(target).filter(
                |mail| matches!(&mail.body, MailBody::Watch { watch: id, .. } if *id == watch.id),
            );
            let kept = there.iter().filter(|watcher| watcher.watch == watch.id);
            let answered = self
                .box_of(index)
                .filter(|mail| matches!(&mail.body, MailBody::Notice(it) if it.watch == watch.id));
            let places = asked.count() + kept.count() + answered.count();
            if places != 1 {
                return Err(format!("a watch of session {index} is in {places} places"));
            }
        }
        for watcher in &state.watchers {
            let from = self.index(watcher.session);
            let open = self.sessions[from]
                .watches
                .iter()
                .any(|it| it.id == watcher.watch);
            let given_up = self.box_of(index).any(
                |mail| matches!(&mail.body, MailBody::Unwatch { watch } if *watch == watcher.watch),
            );
            if open == given_up {
                return Err(format!("session {index} keeps a watcher that is not there"));
            }
        }
        Ok(())
    }

    /// Both ends of a hold agree once the mail is read, and nobody lives that nobody holds.
    fn check_holds(&self, index: usize, state: &State) -> Result<(), Broken> {
        let words = |mail: &&Mail| matches!(mail.body, MailBody::Hold | MailBody::Release { .. });
        for (held, _) in state.children.iter() {
            let there = self.index(held.id);
            if self
                .box_of(there)
                .filter(words)
                .any(|mail| mail.from == state.id)
            {
                continue;
            }
            let parents = &self.sessions[there].parents;
            let holds = parents
                .iter()
                .any(|parent| parent.id == state.id && parent.holds);
            if holds != held.held {
                return Err(format!("session {index} and its child {there} disagree"));
            }
        }
        let orphan = !state.parents.is_empty() && state.parents.iter().all(|it| !it.holds);
        if orphan && state.is_live() && !self.started {
            return Err(format!("session {index} lives and nobody holds it"));
        }
        Ok(())
    }

    /// What must hold where nothing can happen by itself.
    pub(super) fn check_rest(&self) -> Result<(), Broken> {
        for (index, state) in self.sessions.iter().enumerate() {
            if state.is_live() && self.known[index] && !self.settled(index) {
                return Err(format!("session {index} waits for ever"));
            }
            for watch in &state.watches {
                let lies = self
                    .box_of(index)
                    .any(|mail| matches!(&mail.body, MailBody::Notice(it) if it.watch == watch.id));
                // On itself it may wait for the end of the next run.
                if !lies || (state.is_live() && self.known[index]) {
                    return Err(format!("a watch of session {index} is never answered"));
                }
            }
            if let Some(mail) = self.box_of(index).find(|mail| !self.stays(index, mail)) {
                return Err(format!("session {index} never reads {mail:?}"));
            }
        }
        Ok(())
    }
}
