//! Cutting conversations: what is told again beside a summary, and a cut that somebody asks for from outside. Where a
//! conversation is cut and what the model is asked is decided in `agent`.

use std::fmt::Write as _;
use std::sync::Arc;

use attache_agent::{budget, compaction_plan};
use attache_model::{Assembler, Deltas, ErrorKind, Message, ModelError, Request};
use attache_session::{Answer, Command, ErrorCode, SessionId, StepText, TurnId, Usage, preview};

use crate::ask::Shared;
use crate::asking::{Asked, Asking};
use crate::bounds::refused;
use crate::error::EngineError;
use crate::lineage;
use crate::prepare::prepare;

/// Children that are told again at most.
const CHILDREN: usize = 20;

/// Characters of a child's task and of its result that are told again.
const CHILD_CHARS: usize = 200;

/// Tries from outside: the second with half the room.
const TRIES: u32 = 2;

/// What is told again beside a summary: the request that is being worked on, and the children with what they were given
/// and what they said. Texts of children are quoted: they are information.
pub(crate) fn restated(shared: &Arc<Shared>, session: SessionId, request: &str) -> Arc<str> {
    let mut text = request.to_owned();
    let Ok(rows) = lineage::children(shared, session) else {
        return text.into();
    };
    if rows.is_empty() {
        return text.into();
    }
    let count = rows.len();
    let mut rows = rows;
    // Those at work first, then the newest.
    rows.sort_by_key(|row| {
        (
            row.view.turn().is_none(),
            std::cmp::Reverse(row.view.summary.created_at),
        )
    });
    text.push_str("\n\n[Your sub-agents, with what they were given and what they said last]");
    for row in rows.iter().take(CHILDREN) {
        let summary = &row.view.summary;
        let (name, _) = preview(&summary.name, 64);
        let _ = write!(text, "\n- {} {name:?}: {}", row.session, row.status);
        if let Some(outcome) = row.view.outcome() {
            let _ = write!(text, ", {outcome}");
        }
        if let Some(task) = first_input(shared, row.session) {
            let (task, _) = preview(&task, CHILD_CHARS);
            let _ = write!(text, "; task {task:?}");
        }
        if let Some(result) = &summary.result {
            let (result, _) = preview(result, CHILD_CHARS);
            let _ = write!(text, "; result {result:?}");
        }
    }
    if count > CHILDREN {
        let _ = write!(
            text,
            "\n- and {} more: agent_session_list shows them",
            count - CHILDREN
        );
    }
    text.into()
}

/// What a session was told first.
fn first_input(shared: &Shared, session: SessionId) -> Option<Arc<str>> {
    let query = attache_store::PageQuery {
        after: None,
        up_to: None,
        kinds: vec![attache_store::Kind::User],
        search: None,
        limit: 1,
        newest: false,
    };
    let page = shared.config.store.page(session, &query).ok()?;
    match &page.items.first()?.event.event {
        attache_session::Event::Consumed { item, .. } => Some(Arc::clone(&item.text)),
        _ => None,
    }
}

/// Cuts a conversation now. A run that is under way goes on with what it has; the next one begins with the summary.
pub(crate) async fn compact(shared: &Arc<Shared>, session: SessionId) -> Result<(), EngineError> {
    let row = shared.known_row(session)?;
    if let Some(refusal) = shared.spent(session)? {
        return Err(refused(&refusal));
    }
    let turn = TurnId(row.view.summary.turn.map_or(0, |turn| turn.0));
    let mut tries = 0;
    loop {
        let prepared = prepare(shared, session, turn)
            .map_err(|(_, text)| EngineError::new(ErrorCode::ProviderRefused, text))?;
        let config = &prepared.config;
        let said: usize = prepared
            .history
            .messages()
            .iter()
            .map(Message::text_len)
            .sum();
        // As many bytes as tokens: whoever asks for a cut wants a short conversation.
        let limit = config
            .context_limit
            .and_then(|limit| usize::try_from(limit).ok());
        let (keep, room) = budget(limit, said, tries);
        let nothing = || {
            let text = "there is nothing to cut: the conversation is short, or was just cut";
            EngineError::new(ErrorCode::RevisionConflict, text)
        };
        let plan = compaction_plan(&prepared.history, prepared.history.last_cut(), keep, room)
            .ok_or_else(nothing)?;
        let request = Request {
            model: Arc::clone(&config.model_id),
            system: Some(Arc::clone(&config.system)),
            messages: plan.messages,
            tools: Arc::clone(config.tools.offered()),
            tools_allowed: false,
            options: Arc::clone(&config.options),
        };
        tries += 1;
        let step = match ask(shared, &prepared.model, request).await {
            Ok(step) => step,
            Err(error) if error.kind == ErrorKind::ContextOverflow && tries < TRIES => {
                shared.limits.learn(&prepared.model_name, &error);
                continue;
            }
            Err(error) => return Err(failed(&error)),
        };
        let step = StepText {
            model: Arc::clone(&prepared.model_name),
            ..step
        };
        let command = Command::Compact {
            turn: None,
            cut: plan.cut,
            step: prepared.priced(step),
            restated: restated(shared, session, &plan.request),
            before: row.view.summary.context_tokens,
        };
        let answer = shared.ask(session, command).await?;
        debug_assert_eq!(answer, Answer::Done);
        return Ok(());
    }
}

async fn ask(
    shared: &Shared,
    model: &Arc<dyn attache_model::Model>,
    request: Request,
) -> Result<StepText, ModelError> {
    let mut asking = Asking::new(Arc::clone(model), request, shared.spread());
    let mut answer = Assembler::new();
    let mut deltas = Deltas::new();
    loop {
        let asked = asking.next(&mut deltas).await;
        for delta in deltas.drain() {
            answer.push(&delta);
        }
        match asked {
            Asked::Bytes | Asked::Note(_) => {}
            Asked::Failed(error) => return Err(error),
            Asked::End => break,
        }
    }
    let completion = answer.finish();
    if completion.text().trim().is_empty() {
        return Err(ModelError::new(
            ErrorKind::Malformed,
            "the model gave no summary",
        ));
    }
    let attache_model::Usage {
        input,
        output,
        cache_read,
        cache_write,
        reasoning,
    } = completion.usage;
    Ok(StepText {
        text: completion.text().into(),
        usage: Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
        },
        ..StepText::default()
    })
}

fn failed(error: &ModelError) -> EngineError {
    let code = match error.kind {
        ErrorKind::Auth => ErrorCode::ProviderAuth,
        ErrorKind::Unreachable | ErrorKind::Stalled | ErrorKind::Truncated => {
            ErrorCode::ProviderUnreachable
        }
        ErrorKind::Overloaded => ErrorCode::ProviderOverloaded,
        ErrorKind::ModelUnknown => ErrorCode::ModelUnknown,
        _ => ErrorCode::ProviderRefused,
    };
    EngineError::new(code, error.message.clone())
}
