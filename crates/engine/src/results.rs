//! Reading on in a long result: a model was given its beginning and its end, the whole is on record.

use attache_agent::{ResultPage, result_page};
use attache_session::{Event, SessionId, Timestamp};
use attache_store::{Kind, PageQuery};

use crate::ask::Shared;
use crate::error::EngineError;

/// Results that are looked at together.
const AT_ONCE: usize = 64;

/// A page of the result of a session's call; none when there is no such call, or no result of it yet.
pub(crate) fn page_of(
    shared: &Shared,
    session: SessionId,
    call: &str,
    cursor: u64,
) -> Result<Option<ResultPage>, EngineError> {
    let mut after: Option<Timestamp> = None;
    loop {
        let query = PageQuery {
            after,
            up_to: None,
            kinds: vec![Kind::ToolResult],
            search: None,
            limit: AT_ONCE,
            newest: false,
        };
        let page = shared.config.store.page(session, &query)?;
        for item in &page.items {
            if let Event::CallEnded { result, .. } = &item.event.event
                && *result.call == *call
            {
                return Ok(Some(result_page(&result.content, cursor)));
            }
            after = Some(item.event.at);
        }
        if !page.more {
            return Ok(None);
        }
    }
}
