//! Conversions from frames to the engine's values: ids, times, queries, digests.

use std::collections::BTreeMap;
use std::str::FromStr;

use attache_engine::parts::{Kind, PageQuery};
use attache_engine::{EngineError, Environment};
use attache_protocol::{Command, EventKind, HistoryQuery, PAGE_LIMIT};
use attache_session::{BudgetChange, ErrorCode, SessionId, Timestamp};
use sha2::{Digest, Sha256};

/// Longest input, in bytes.
pub(crate) const TEXT_LIMIT: usize = 1024 * 1024;

/// A session's id. What is no id names no session: one answer for both.
pub(crate) fn session(text: &str) -> Result<SessionId, EngineError> {
    SessionId::from_str(text).map_err(|_no_id| {
        let (shown, _) = attache_session::preview(text, 60);
        EngineError::new(
            ErrorCode::UnknownSession,
            format!("there is no session {shown:?}"),
        )
    })
}

/// Text that a person or a program sends.
pub(crate) fn text(text: &str) -> Result<(), EngineError> {
    if text.len() > TEXT_LIMIT {
        return Err(EngineError::new(
            ErrorCode::TextTooLarge,
            format!(
                "the text has {} bytes; at most {TEXT_LIMIT} are taken",
                text.len()
            ),
        ));
    }
    if text.trim().is_empty() {
        return Err(EngineError::new(
            ErrorCode::InvalidArguments,
            "the text is empty",
        ));
    }
    if text.contains('\0') {
        return Err(EngineError::new(
            ErrorCode::InvalidArguments,
            "the text holds the character NUL",
        ));
    }
    Ok(())
}

/// Limits as they are written; none changes none.
pub(crate) fn budget(text: Option<&str>) -> Result<BudgetChange, EngineError> {
    BudgetChange::parse(text.unwrap_or_default())
        .map_err(|error| EngineError::new(ErrorCode::InvalidArguments, format!("budget: {error}")))
}

/// A cursor. A time that is cut short means the moment before its unit begins.
fn cursor(text: &str) -> Result<Timestamp, EngineError> {
    let at: jiff::Timestamp = text.parse().map_err(|_fault| {
        let (shown, _) = attache_session::preview(text, 60);
        EngineError::new(
            ErrorCode::InvalidArguments,
            format!("{shown:?} is no time like 2026-11-30T12:00:00.000000Z"),
        )
    })?;
    let digits = text.split_once('.').map_or(0, |(_, rest)| {
        rest.bytes().take_while(u8::is_ascii_digit).count()
    });
    let at = at.as_microsecond();
    Ok(Timestamp(if digits >= 6 { at } else { at - 1 }))
}

fn kind(kind: EventKind) -> Kind {
    match kind {
        EventKind::User => Kind::User,
        EventKind::Assistant => Kind::Assistant,
        EventKind::ToolCall => Kind::ToolCall,
        EventKind::ToolResult => Kind::ToolResult,
        EventKind::Diagnostic => Kind::Diagnostic,
    }
}

pub(crate) fn query(query: HistoryQuery) -> Result<PageQuery, EngineError> {
    let HistoryQuery {
        after,
        kinds,
        search,
        limit,
        newest,
    } = query;
    if limit == 0 || limit > PAGE_LIMIT {
        return Err(EngineError::new(
            ErrorCode::InvalidArguments,
            format!("a page has 1 to {PAGE_LIMIT} items, not {limit}"),
        ));
    }
    Ok(PageQuery {
        after: after.as_deref().map(cursor).transpose()?,
        up_to: None,
        kinds: kinds.into_iter().map(kind).collect(),
        search: search.filter(|search| !search.is_empty()),
        limit: limit as usize,
        newest,
    })
}

/// Variables that a viewer may hand over: our own, those that name providers, and those that hold
/// keys of configured ones. Everything else is left out, whatever the viewer sends.
pub(crate) fn environment(
    given: BTreeMap<String, String>,
    key_variables: &[String],
) -> Environment {
    let wanted = |name: &str| {
        name.starts_with("ATTACHE_")
            || name.ends_with("_API_KEY")
            || name.ends_with("_BASE_URL")
            || matches!(
                name,
                "AZURE_OPENAI_ENDPOINT" | "OLLAMA_HOST" | "PATH" | "LANG" | "LC_ALL"
            )
            || key_variables.iter().any(|known| known == name)
    };
    Environment(given.into_iter().filter(|(name, _)| wanted(name)).collect())
}

/// What a command says, as a digest: a repeat of its id with other content is refused.
pub(crate) fn digest(command: &Command) -> [u8; 32] {
    Sha256::digest(attache_protocol::encode(command)).into()
}
