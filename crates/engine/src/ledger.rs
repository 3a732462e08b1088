//! The ledger of a session's last run, read from its stored history: as it is after a restart, a compaction, or while
//! the run goes on.

use attache_session::{Digest, Event, Ledger, LedgerFold, Position, SessionId, Stamped};
use attache_store::{Kind, PageQuery};
use sha2::{Digest as _, Sha256};

use crate::ask::Shared;
use crate::error::EngineError;

/// Events that are looked at together. A result can be long, and is forgotten with its page.
const AT_ONCE: usize = 32;

/// The calls of a session's last run, or of the one that runs now; none when it has had no run, or nothing is known of
/// it.
pub(crate) fn of(shared: &Shared, session: SessionId) -> Result<Option<Ledger>, EngineError> {
    let runs =
        || -> Result<bool, EngineError> { Ok(shared.known_row(session)?.view.turn().is_some()) };
    let ran = runs()?;
    let Some(beginning) = last_beginning(shared, session)? else {
        return Ok(None);
    };
    let bookkeeping = shared.config.toolsets.bookkeeping();
    let mut fold = LedgerFold::new(sha256, |name: &str| bookkeeping.contains(name));
    fold.push(&beginning);
    let mut query = PageQuery {
        after: Some(beginning.at),
        up_to: None,
        kinds: vec![Kind::Other, Kind::ToolCall, Kind::ToolResult],
        search: None,
        limit: AT_ONCE,
        newest: false,
    };
    loop {
        let page = shared.config.store.page(session, &query)?;
        for item in &page.items {
            fold.push(&item.event);
            query.after = Some(item.event.at);
        }
        if !page.more {
            break;
        }
    }
    // Asked on both sides of the reading: a turn may have begun or ended meanwhile, and an end that was read wins.
    Ok(fold.finish(ran || runs()?))
}

/// The newest beginning of a turn.
fn last_beginning(shared: &Shared, session: SessionId) -> Result<Option<Stamped>, EngineError> {
    let mut query = PageQuery {
        after: None,
        up_to: None,
        kinds: vec![Kind::Other],
        search: None,
        limit: AT_ONCE,
        newest: true,
    };
    loop {
        let page = shared.config.store.page(session, &query)?;
        let before = page.items.first().map(|item| item.position);
        let mut newest_first = page.items.into_iter().rev();
        let begins = newest_first
            .find(|item| matches!(item.event.event, Event::TurnStarted { .. }))
            .map(|item| item.event);
        if begins.is_some() {
            return Ok(begins);
        }
        match before {
            Some(Position(before)) if page.more => query.up_to = Some(Position(before - 1)),
            _ => return Ok(None),
        }
    }
}

fn sha256(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}
