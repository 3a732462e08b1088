//! How far the end of a tree reaches, while it lasts: what lies below a session, or of that only what
//! no other living session holds.
//!
//! Whoever begins something asks here, so that a tree cannot grow faster than it is ended: from the
//! moment in which an end begins, nothing below it bears a child or begins a turn that goes on. Where
//! nothing is being ended, asking costs one look at a counter.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use attache_session::{EndReason, Mail, MailBody, SessionId, Starts};

use crate::actor::MAIL_AT_ONCE;
use crate::ask::Shared;
use crate::registry::Registry;
use crate::view::SessionRow;

/// What of a tree is ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// The session and all below it.
    All,
    /// Of those, what no living session outside holds.
    Held,
}

/// The end of a tree, under way.
pub(crate) struct Ending {
    reach: Reach,
    /// How a turn ends that begins meanwhile.
    reason: EndReason,
    starts: Starts,
    /// What has been found out: whether it reaches a session.
    known: Mutex<HashMap<SessionId, bool>>,
}

/// What an end looks at in a session's row.
pub(crate) struct Lineage {
    parents: Vec<SessionId>,
    /// Word of a hold lies unread: another parent has it.
    unsure: bool,
}

impl Ending {
    pub(crate) fn new(top: SessionId, reach: Reach, reason: EndReason, starts: Starts) -> Self {
        Self {
            reach,
            reason,
            starts,
            known: Mutex::new(HashMap::from([(top, true)])),
        }
    }

    /// Whether it reaches a session; `lineage` looks its parents and theirs up.
    pub(crate) fn reaches(
        &self,
        session: SessionId,
        registry: &Registry,
        lineage: &mut dyn FnMut(SessionId) -> Option<Lineage>,
    ) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // What may be otherwise soon is remembered for this look only.
        let mut now: HashMap<SessionId, bool> = HashMap::new();
        let mut entered = HashSet::new();
        let mut open = vec![session];
        while let Some(id) = open.last().copied() {
            if known.contains_key(&id) || now.contains_key(&id) {
                open.pop();
                continue;
            }
            let Some(line) = lineage(id) else {
                now.insert(id, false);
                continue;
            };
            // Lineage has no circle; a log that says otherwise ends no search.
            if entered.insert(id) {
                let before = open.len();
                let unknown = |parent: &&SessionId| {
                    !known.contains_key(parent)
                        && !now.contains_key(parent)
                        && !entered.contains(parent)
                };
                open.extend(line.parents.iter().filter(unknown));
                if open.len() > before {
                    continue;
                }
            }
            let inside = |parent: &SessionId| {
                known.get(parent).or_else(|| now.get(parent)).copied() == Some(true)
            };
            let below = line.parents.iter().any(inside);
            let reached = below
                && match self.reach {
                    Reach::All => true,
                    Reach::Held => {
                        let outside = |parent: &SessionId| {
                            !inside(parent) && registry.epoch(*parent).is_some()
                        };
                        !line.unsure && !line.parents.iter().any(outside)
                    }
                };
            // What is held from outside now may be given up while this end lasts.
            let may_turn =
                below || line.unsure || line.parents.iter().any(|it| now.contains_key(it));
            let lasting = reached || self.reach == Reach::All || !may_turn;
            if lasting {
                known.insert(id, reached);
            } else {
                now.insert(id, reached);
            }
        }
        known.get(&session).or_else(|| now.get(&session)).copied() == Some(true)
    }

    /// Whether it was found to reach a session.
    pub(crate) fn has_reached(&self, session: SessionId) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&session) == Some(&true)
    }

    /// A session turned out to be held from outside.
    pub(crate) fn spare(&self, session: SessionId) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(session, false);
    }

    /// The sessions that it was found to reach.
    fn reached(&self) -> Vec<SessionId> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let reached = known.iter().filter(|(_, reached)| **reached);
        reached.map(|(session, _)| *session).collect()
    }
}

/// The ends of trees that are under way.
#[derive(Default)]
pub(crate) struct Endings {
    count: AtomicUsize,
    all: Mutex<Vec<Arc<Ending>>>,
}

impl Endings {
    fn all(&self) -> Vec<Arc<Ending>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Ending>>)) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut all);
        self.count.store(all.len(), Ordering::Release);
    }
}

/// Keeps the end of a tree under way. When it goes, what was kept back meanwhile goes on.
pub(crate) struct EndGuard {
    shared: Arc<Shared>,
    ending: Arc<Ending>,
}

impl EndGuard {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        top: SessionId,
        reach: Reach,
        reason: EndReason,
        starts: Starts,
    ) -> Self {
        let ending = Arc::new(Ending::new(top, reach, reason, starts));
        shared.endings.change(|all| all.push(Arc::clone(&ending)));
        Self {
            shared: Arc::clone(shared),
            ending,
        }
    }
}

impl std::ops::Deref for EndGuard {
    type Target = Ending;

    fn deref(&self) -> &Ending {
        &self.ending
    }
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        let Self { shared, ending } = self;
        let others = |other: &Arc<Ending>| !Arc::ptr_eq(other, ending);
        shared.endings.change(|all| all.retain(others));
        // Where the process ends nobody goes on.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        for session in ending.reached() {
            let lives = shared.registry.epoch(session).is_some();
            let waits = || match shared.row(session) {
                Ok(Some(row)) => row.view.summary.deliverable > 0,
                Ok(None) | Err(_) => false,
            };
            if lives && (shared.registry.in_use(session).is_some() || waits()) {
                shared.wake(session);
            }
        }
    }
}

impl Shared {
    /// What an end looks at in a session's row.
    pub(crate) fn lineage(&self, session: SessionId) -> Option<Lineage> {
        let row = self.row(session).ok().flatten()?;
        Some(self.lineage_in(&row))
    }

    /// The same in a row that is there.
    pub(crate) fn lineage_in(&self, row: &SessionRow) -> Lineage {
        Lineage {
            parents: row.view.summary.parents.clone(),
            unsure: self.has_unread_hold(row),
        }
    }

    /// Whether word of a hold lies unread for a session.
    pub(crate) fn has_unread_hold(&self, row: &SessionRow) -> bool {
        let hold = |letter: &Mail| matches!(letter.body, MailBody::Hold);
        row.view.unread.other > 0
            && match self.config.store.mail(row.session, MAIL_AT_ONCE) {
                Ok(mail) => mail.iter().any(hold),
                Err(_) => true,
            }
    }

    /// How a turn of a session ends that begins now, and which may begin, where its tree is being
    /// ended.
    pub(crate) fn ending_of(&self, session: SessionId) -> Option<(EndReason, Starts)> {
        let all = self.endings.all();
        let mut look = |id| self.lineage(id);
        let reaching = all
            .iter()
            .filter(|ending| ending.reaches(session, &self.registry, &mut look));
        reaching
            .map(|ending| (ending.reason, ending.starts))
            .max_by_key(|(_, starts)| *starts == Starts::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attache_session::Epoch;
    use uuid::Uuid;

    fn id(number: u128) -> SessionId {
        SessionId(Uuid::from_u128(number))
    }

    /// Which of a family an end of session 1 reaches: each row is a session, its parents, whether it
    /// lives, and whether word of a hold lies unread for it.
    fn reached(reach: Reach, family: &[(u128, &[u128], bool, bool)]) -> Vec<u128> {
        let registry = Registry::default();
        let mut lines = HashMap::new();
        for (session, parents, lives, unsure) in family {
            if *lives {
                registry.set_epoch(id(*session), Some(Epoch(Uuid::from_u128(1))));
            }
            lines.insert(id(*session), (parents, *unsure));
        }
        let mut look = |session| {
            let (parents, unsure) = lines.get(&session)?;
            let parents = parents.iter().map(|parent| id(*parent)).collect();
            let unsure = *unsure;
            Some(Lineage { parents, unsure })
        };
        let ending = Ending::new(id(1), reach, EndReason::Cancelled, Starts::None);
        // Whoever asks first, the answers are the same.
        let mut forth: Vec<u128> = Vec::new();
        for (session, ..) in family {
            if ending.reaches(id(*session), &registry, &mut look) {
                forth.push(*session);
            }
        }
        let again = Ending::new(id(1), reach, EndReason::Cancelled, Starts::None);
        for (session, ..) in family.iter().rev() {
            let is = again.reaches(id(*session), &registry, &mut look);
            assert_eq!(is, forth.contains(session), "session {session}");
        }
        forth
    }

    #[test]
    fn an_end_reaches_what_lies_below_and_a_termination_only_what_nobody_else_holds() {
        let family: &[(u128, &[u128], bool, bool)] = &[
            (9, &[], true, false),
            (1, &[9], true, false),
            (8, &[9], true, false),
            // Held by the end's own alone.
            (2, &[1], true, false),
            (3, &[2, 1], true, false),
            // Held from outside, and so is what it holds alone.
            (4, &[1, 8], true, false),
            (5, &[4], true, false),
            // Its other parent does not live.
            (7, &[9], false, false),
            (6, &[1, 7], true, false),
            // Below one that does not live.
            (10, &[1], false, false),
            (11, &[10], true, false),
            // It may just have been held.
            (12, &[1], true, true),
            // Nobody's, and a circle that cannot be.
            (13, &[], true, false),
            (14, &[15], true, false),
            (15, &[14], true, false),
        ];
        assert_eq!(reached(Reach::All, family), [1, 2, 3, 4, 5, 6, 10, 11, 12]);
        assert_eq!(reached(Reach::Held, family), [1, 2, 3, 6, 10, 11]);
    }
}
