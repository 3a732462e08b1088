//! Waiting without polling: a look, and when it says "not yet", on whose account; then a change of
//! that session, and another look.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use attache_session::{Position, RowView, SessionId, Settled, Unread, is_settled};
use attache_store::RowFilter;

use crate::ask::Shared;
use crate::error::EngineError;
use crate::lineage;

/// How far a wait goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quiet {
    /// Until the session itself has settled.
    Itself,
    /// Until it and every descendant have settled.
    Tree,
}

/// Whether a session has settled, from one moment: what was read is read again, and a second
/// reading that says the same shows that there was a moment at which all of it held.
pub(crate) fn settled(shared: &Shared, session: SessionId) -> Result<Settled, EngineError> {
    loop {
        let mut seen: HashMap<SessionId, (Position, Unread)> = HashMap::new();
        let mut fault = None;
        let verdict = is_settled(session, &mut |id| match shared.row(id) {
            Ok(Some(row)) => {
                seen.insert(id, (row.head, row.view.unread));
                Some(row.view)
            }
            Ok(None) => None,
            Err(error) => {
                fault = Some(error);
                None
            }
        });
        if let Some(error) = fault {
            return Err(error);
        }
        if verdict != Settled::Yes || seen.len() < 2 {
            return Ok(verdict);
        }
        let mut same = true;
        for (id, before) in seen {
            let now = shared.row(id)?.map(|row| (row.head, row.view.unread));
            same &= now == Some(before);
        }
        if same {
            return Ok(verdict);
        }
    }
}

/// Whether a session and all its descendants have settled.
fn quiet(shared: &Shared, session: SessionId) -> Result<Settled, EngineError> {
    // The cheap look first: while the root of the wait works, the tree need not be read.
    if let working @ Settled::WaitsFor(_) = settled(shared, session)? {
        return Ok(working);
    }
    let row = shared.known_row(session)?;
    let rows = lineage::rows(shared, RowFilter::Tree(row.root))?;
    let rows: Vec<(SessionId, RowView)> = rows
        .into_iter()
        .map(|row| (row.session, row.view))
        .collect();
    let mut inside = std::collections::HashSet::from([session]);
    // Birth order: a parent stands before its children.
    let by_id: HashMap<SessionId, &RowView> = rows.iter().map(|(id, view)| (*id, view)).collect();
    let mut working = None;
    for (id, view) in &rows {
        if *id != session
            && !view
                .summary
                .parents
                .iter()
                .any(|parent| inside.contains(parent))
        {
            continue;
        }
        inside.insert(*id);
        let lookup = &mut |id| by_id.get(&id).map(|view| (*view).clone());
        if view.is_live()
            && let Settled::WaitsFor(on) = is_settled(*id, lookup)
        {
            working = Some(on);
        }
    }
    Ok(working.map_or(Settled::Yes, Settled::WaitsFor))
}

/// Waits until a session, or its tree, has settled.
pub(crate) async fn until_settled(
    shared: &Shared,
    session: SessionId,
    reach: Quiet,
) -> Result<(), EngineError> {
    let mut witness = session;
    let mut changes = shared.registry.changes(witness);
    loop {
        let verdict = match reach {
            Quiet::Itself => settled(shared, session)?,
            Quiet::Tree => quiet(shared, session)?,
        };
        match verdict {
            Settled::Yes => break,
            Settled::WaitsFor(on) if on != witness => {
                witness = on;
                changes = shared.registry.changes(on);
            }
            // The other end lives in the registry while somebody waits: it is not gone.
            Settled::WaitsFor(_) => drop(changes.changed().await),
        }
    }
    drop(changes);
    shared.registry.tidy(witness);
    Ok(())
}

/// Which sessions wait for which, by a tool call that is under way.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<HashMap<SessionId, Vec<SessionId>>>);

/// One wait under way; dropping it ends it.
pub(crate) struct WaitGuard {
    shared: Arc<Shared>,
    waiter: SessionId,
    target: SessionId,
}

impl Waiting {
    pub(crate) fn of(&self, waiter: SessionId) -> Vec<SessionId> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.get(&waiter).cloned().unwrap_or_default()
    }
}

impl WaitGuard {
    pub(crate) fn new(shared: &Arc<Shared>, waiter: SessionId, target: SessionId) -> Self {
        let mut waiting = shared
            .waiting
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        waiting.entry(waiter).or_default().push(target);
        drop(waiting);
        Self {
            shared: Arc::clone(shared),
            waiter,
            target,
        }
    }
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        let mut waiting = self
            .shared
            .waiting
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(targets) = waiting.get_mut(&self.waiter) {
            if let Some(place) = targets.iter().position(|target| *target == self.target) {
                targets.swap_remove(place);
            }
            if targets.is_empty() {
                waiting.remove(&self.waiter);
            }
        }
    }
}
