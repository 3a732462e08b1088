//! What an earlier life of the host left open: which sessions have it, and the text that they had
//! streamed. It is written down when a session is loaded, and for all others soon after a start;
//! until then it already reads so, because status is computed.

use std::sync::Arc;

use attache_session::{SessionId, State, StepText, Unread};
use attache_store::RowFilter;

use crate::ask::Shared;
use crate::turn_task::partial_step;

/// The text of the open turn that was checkpointed before the crash.
pub(crate) fn partial(shared: &Shared, session: SessionId, state: &State) -> Option<StepText> {
    let turn = state.turn.as_ref()?.id;
    let partial = shared.config.store.partial(session).ok()??;
    partial_step(partial, turn)
}

/// Rows that are looked at between two pauses.
const ROWS_AT_ONCE: usize = 500;

/// Sessions that are loaded at the same time while an earlier life is written down.
pub(crate) const LOADS_AT_ONCE: usize = 16;

/// Writes down for every session with an open turn that an earlier life of the host cut it, so that
/// its watchers are told, and lets each look at mail that it had not read: a watch or the end of a
/// hold among it is answered without a start. So does one whose input could start no turn because its
/// host or its tree was being ended. Other sessions that only had an epoch are left until they
/// are used; whoever watches one of them has been told, or it waits for one of the others.
pub(crate) async fn recover_all(shared: Arc<Shared>) {
    let mut after = None;
    loop {
        let Ok(rows) = shared
            .config
            .store
            .rows(RowFilter::All, after, ROWS_AT_ONCE)
        else {
            return;
        };
        let Some(last) = rows.last() else { return };
        after = Some(last.session);
        let open: Vec<SessionId> = rows
            .iter()
            .filter(|row| {
                let summary = &row.summary;
                // Input that was kept back: it had not settled, and its watchers were not told.
                let kept_back = summary.epoch.is_some() && summary.deliverable > 0;
                summary.turn.is_some() || kept_back || row.unread != Unread::default()
            })
            .filter(|row| {
                let epoch = shared.registry.epoch(row.session);
                epoch.is_none() || epoch != row.summary.epoch
            })
            .map(|row| row.session)
            .collect();
        for group in open.chunks(LOADS_AT_ONCE) {
            let loads: Vec<_> = group.iter().map(|id| shared.sync(*id)).collect();
            for load in loads {
                // A session that cannot be loaded says so to whoever opens it.
                let _loaded = load.await;
            }
        }
        tokio::task::yield_now().await;
    }
}
