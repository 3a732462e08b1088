//! Whose limits bind a session, what its appends are charged with, and who is told when a limit runs out. The rules are in
//! `session`; the counters are the store's.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_session::{
    Answer, Bill, Bounds, BudgetChange, Command, Due, ErrorCode, Event, Limit, Payer, Refusal,
    SessionId, Spent, Stamped, dues, is_nearly_spent, spent,
};
use attache_store::{Charge, ReadError, RowFilter};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::ask::Shared;
use crate::error::EngineError;
use crate::handle::EngineHandle;
use crate::lineage;
use crate::recovery::LOADS_AT_ONCE;
use crate::view::SessionRow;

/// Generations that are followed at most; a log that says otherwise is no tree.
const GENERATIONS: usize = 10_000;

/// The bounds of sessions that were asked for in this life of the host, with their spawners. Only this host changes them.
#[derive(Default)]
pub(crate) struct AllBounds {
    known: Mutex<HashMap<SessionId, Known>>,
    /// Held by each append from the moment at which its charges are worked out until what it changes of bounds is known:
    /// alone by one that sets limits, shared by all others.
    order: RwLock<()>,
}

/// The place of an append in the order of charges and limits. Dropping it lets others go on.
pub(crate) enum Order<'a> {
    Charges { _held: RwLockReadGuard<'a, ()> },
    Sets { _held: RwLockWriteGuard<'a, ()> },
}

#[derive(Clone)]
struct Known {
    spawner: Option<SessionId>,
    bounds: Arc<Bounds>,
}

impl AllBounds {
    /// Waits for the place of an append. What is charged beside a limit that is being set would be missed by its counter:
    /// it is neither among what has been used before nor charged under the limit.
    pub(crate) async fn order(&self, sets: bool) -> Order<'_> {
        if sets {
            let _held = self.order.write().await;
            Order::Sets { _held }
        } else {
            let _held = self.order.read().await;
            Order::Charges { _held }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session has these bounds from now on.
    pub(crate) fn put(&self, session: SessionId, spawner: Option<SessionId>, bounds: &Arc<Bounds>) {
        let bounds = Arc::clone(bounds);
        self.lock().insert(session, Known { spawner, bounds });
    }

    /// A session has ended; whoever needs its bounds still finds them in the store.
    pub(crate) fn forget(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    fn known(&self, session: SessionId) -> Option<Known> {
        self.lock().get(&session).cloned()
    }
}

impl Shared {
    /// Those whose limits bind a session, the root first, itself last.
    pub(crate) fn chain(&self, session: SessionId) -> Result<Vec<Payer>, ReadError> {
        let mut chain = Vec::new();
        let mut next = Some(session);
        while let Some(session) = next.take()
            && chain.len() < GENERATIONS
        {
            let known = match self.bounds.known(session) {
                Some(known) => known,
                None => {
                    // An ancestor that was deleted binds nobody any more.
                    let Some(row) = self.config.store.row(session)? else {
                        break;
                    };
                    let bounds = Arc::clone(&row.summary.bounds);
                    self.bounds.put(session, row.spawner, &bounds);
                    Known {
                        spawner: row.spawner,
                        bounds,
                    }
                }
            };
            next = known.spawner;
            chain.push(Payer {
                session,
                bounds: known.bounds,
            });
        }
        chain.reverse();
        Ok(chain)
    }

    /// What is used of a limit.
    pub(crate) fn used(&self, session: SessionId, limit: Limit) -> u64 {
        let used = self.config.store.quota(session, limit.as_str());
        // What cannot be read refuses nothing here: the append that follows will not be taken either.
        u64::try_from(used.unwrap_or(0)).unwrap_or(0)
    }

    /// The limit that is used up, if one of those that bind the session is.
    pub(crate) fn spent(&self, session: SessionId) -> Result<Option<Refusal>, EngineError> {
        let chain = self.chain(session)?;
        Ok(spent(&chain, |session, limit| self.used(session, limit)))
    }

    /// What an append of these events and births is charged with. `bounds` are the session's own after it.
    pub(crate) fn dues(
        &self,
        session: SessionId,
        bounds: &Arc<Bounds>,
        events: &[Stamped],
        births: usize,
    ) -> Result<Vec<Due>, ReadError> {
        let mut chain = self.chain(session)?;
        let mut seeds = Vec::new();
        if let Some(own) = chain.last_mut()
            && own.bounds != *bounds
        {
            // A limit that is new counts what has been used before it.
            for (limit, _) in bounds.budget.iter() {
                if own.bounds.budget.get(limit).is_none() {
                    seeds.extend(self.seed(session, limit)?);
                    if limit == Limit::Wall {
                        self.busy.count_from_now(session);
                    }
                }
            }
            own.bounds = Arc::clone(bounds);
        }
        seeds.extend(dues(&chain, &Bill::of(events), births));
        if events.iter().any(|stamped| is_a_step(&stamped.event)) {
            seeds.extend(self.busy.dues(&chain));
        }
        Ok(seeds)
    }

    /// Sets the counter of a new limit to what the tree has used by now.
    fn seed(&self, session: SessionId, limit: Limit) -> Result<Option<Due>, ReadError> {
        if !matches!(limit, Limit::Agents | Limit::Tokens | Limit::Usd) {
            // The others are counted from here on.
            return Ok(None);
        }
        let rows = self.charged_to(session)?;
        let summaries = rows.iter().map(|row| &row.view.summary);
        let used = match limit {
            // One that an earlier life of the host left is given back when its end is written down.
            Limit::Agents => {
                let living = rows.iter().filter(|row| row.view.summary.epoch.is_some());
                living.filter(|row| row.session != session).count() as u64
            }
            Limit::Tokens => summaries
                .map(|it| it.usage.input.unwrap_or(0) + it.usage.output.unwrap_or(0))
                .sum(),
            _ => {
                let mut sum = Spent::default();
                for summary in summaries {
                    sum.add(&summary.spent);
                }
                sum.usd_nanos.unwrap_or(0)
            }
        };
        let stored = self.config.store.quota(session, limit.as_str())?;
        let amount = i64::try_from(used)
            .unwrap_or(i64::MAX)
            .saturating_sub(stored);
        Ok((amount != 0).then_some(Due {
            session,
            limit,
            amount,
            most: None,
        }))
    }

    /// The rows of a session and of all that was spawned below it: what they use is charged to it. A further child is not
    /// one of them.
    fn charged_to(&self, session: SessionId) -> Result<Vec<SessionRow>, ReadError> {
        let Some(top) = self.config.store.row(session)? else {
            return Ok(Vec::new());
        };
        let tree = lineage::rows(self, RowFilter::Tree(top.root))
            .map_err(|error| ReadError::Failed(error.message))?;
        let mut inside = HashSet::from([session]);
        // Birth order: a spawner stands before what it spawned.
        let mut is_inside = |row: &SessionRow| {
            let spawned = row.spawner.is_some_and(|it| inside.contains(&it));
            spawned && inside.insert(row.session) || row.session == session
        };
        Ok(tree.into_iter().filter(|row| is_inside(row)).collect())
    }

    /// Writes down the ends of those in a session's tree that an earlier life of the host left with an epoch: until then
    /// they hold the places of living sessions. The answer is whether there was any.
    pub(crate) async fn end_left_behind(
        self: &Arc<Self>,
        session: SessionId,
    ) -> Result<bool, EngineError> {
        let root = self.known_row(session)?.root;
        let mut tree = lineage::rows(self, RowFilter::Tree(root))?;
        tree.retain(is_left_behind);
        for group in tree.chunks(LOADS_AT_ONCE) {
            let loads: Vec<_> = group.iter().map(|row| self.sync(row.session)).collect();
            for load in loads {
                // One that cannot be loaded holds its place on.
                let _loaded = load.await;
            }
        }
        Ok(!tree.is_empty())
    }

    /// How many living sessions count under a limit that stands at a session.
    fn living(&self, session: SessionId) -> u64 {
        let counted = self.used(session, Limit::Agents);
        let rows = self.charged_to(session).unwrap_or_default();
        let left = rows.iter().filter(|row| row.session != session);
        counted.saturating_sub(left.filter(|row| is_left_behind(row)).count() as u64)
    }

    /// Tells those of whose limits an append has used the last fifth. They know whether they have been told.
    pub(crate) fn tell_of(self: &Arc<Self>, dues: &[Due]) {
        for due in dues.iter().filter(|due| due.limit.is_spent()) {
            let Some(known) = self.bounds.known(due.session) else {
                continue;
            };
            let limit = due.limit;
            let Some(most) = known.bounds.budget.get(limit) else {
                continue;
            };
            let used = self.used(due.session, limit);
            if is_nearly_spent(used, most) && !known.bounds.told.contains(&limit) {
                let command = Command::NearlySpent { limit, used, most };
                // One that takes no message now is told with the next charge.
                let _posted = self.post(due.session, command, None);
            }
        }
    }
}

/// A limit that stands at a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LimitUse {
    /// The limit.
    pub limit: Limit,
    /// What is used of it, in its units; none where nobody counts.
    pub used: Option<u64>,
    /// The most that may be used.
    pub most: u64,
}

impl EngineHandle {
    /// The limits that stand at a session with what is used of them, and whether its tree is paused.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown or the store cannot be read.
    pub fn budget(&self, session: SessionId) -> Result<(Vec<LimitUse>, bool), EngineError> {
        let shared = self.shared();
        let bounds = Arc::clone(&shared.known_row(session)?.view.summary.bounds);
        let limits = bounds.budget.iter().map(|(limit, most)| {
            let used = match limit {
                Limit::Depth => None,
                Limit::Concurrent => Some(shared.places.taken(session)),
                Limit::Agents => Some(shared.living(session)),
                _ => Some(shared.used(session, limit)),
            };
            LimitUse { limit, used, most }
        });
        Ok((limits.collect(), bounds.paused))
    }

    /// Sets or lifts limits of a session's tree, or pauses it. True when that changed anything.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown, the store refuses, or money is limited for a model of unknown price.
    pub async fn set_budget(
        &self,
        session: SessionId,
        change: BudgetChange,
        paused: Option<bool>,
    ) -> Result<bool, EngineError> {
        let shared = self.shared();
        if change
            .iter()
            .any(|(limit, most)| limit == Limit::Usd && most.is_some())
        {
            let created = lineage::created(shared, session)?;
            if created.runs_turns {
                lineage::priced(shared, &created.model, &shared.environment(created.root))?;
            }
        }
        let command = Command::SetBounds { change, paused };
        Ok(shared.ask(session, command).await? != Answer::Unchanged)
    }
}

/// Whether its log says that it lives and this life of the host knows nothing of that.
fn is_left_behind(row: &SessionRow) -> bool {
    row.view.summary.epoch.is_some() && !row.view.is_live()
}

fn is_a_step(event: &Event) -> bool {
    matches!(event, Event::Said { .. } | Event::TurnEnded { .. })
}

/// A charge as the store takes it.
pub(crate) fn charge(due: &Due) -> Charge {
    Charge {
        session: due.session,
        key: due.limit.as_str().to_owned(),
        amount: due.amount,
        limit: due.most.map(|most| i64::try_from(most).unwrap_or(i64::MAX)),
    }
}

/// What whoever wanted more than the limits allow is told.
pub(crate) fn refused(refusal: &Refusal) -> EngineError {
    let code = match refusal {
        Refusal::Exceeds { .. } => ErrorCode::ExceedsParent,
        Refusal::Paused { .. } | Refusal::Depth { .. } | Refusal::Spent { .. } => {
            ErrorCode::LimitReached
        }
    };
    EngineError::new(code, refusal.to_string())
}
