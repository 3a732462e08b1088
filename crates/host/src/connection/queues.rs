//! Changes of queues and of what waits in them. Each names the revision that it was made against.

use std::str::FromStr;

use attache_engine::{EngineError, EngineHandle};
use attache_protocol::{Answer, Command, Immediacy};
use attache_session::{Answer as Decided, Command as Rule, ErrorCode, ItemId, QueueId};
use uuid::Uuid;

use crate::{from_wire, to_wire};

/// Carries out a change of a queue or of an item in one; `key` is the command's id with a digest of what it says.
pub(super) async fn change(
    engine: &EngineHandle,
    command: Command,
    key: (Uuid, [u8; 32]),
) -> Result<Answer, EngineError> {
    let session = command.changes().map(from_wire::session).transpose()?;
    let (Some(session), Some(rule)) = (session, rule(command)?) else {
        return Err(EngineError::new(
            ErrorCode::Internal,
            "no change of a queue",
        ));
    };
    Ok(match engine.command(session, rule, Some(key)).await? {
        Decided::QueueMade { queue } => Answer::QueueMade {
            queue_id: to_wire::queue_id(queue),
        },
        answer => Answer::Done {
            changed: answer != Decided::Unchanged,
        },
    })
}

/// The rule that a change goes by; none for another command.
fn rule(command: Command) -> Result<Option<Rule>, EngineError> {
    Ok(Some(match command {
        Command::EditItem {
            item_id,
            text,
            expected_revision: expected,
            ..
        } => {
            from_wire::text(&text)?;
            Rule::Edit {
                item: item(&item_id)?,
                text: text.into(),
                expected,
            }
        }
        Command::RemoveItem {
            item_id,
            expected_revision: expected,
            ..
        } => Rule::Withdraw {
            item: item(&item_id)?,
            expected,
        },
        Command::MoveItem {
            item_id,
            queue_id,
            before_item_id,
            expected_revision: expected,
            ..
        } => Rule::Move {
            item: item(&item_id)?,
            queue: queue(&queue_id)?,
            before: before_item_id.as_deref().map(item).transpose()?,
            expected,
        },
        Command::CreateQueue {
            name, immediacy, ..
        } => Rule::CreateQueue {
            name: name.map(Into::into),
            immediacy: of_wire(immediacy),
        },
        Command::ConfigureQueue {
            queue_id,
            immediacy,
            expected_revision,
            ..
        } => Rule::ConfigureQueue {
            queue: queue(&queue_id)?,
            immediacy: immediacy.map(of_wire),
            expected: Some(expected_revision),
        },
        Command::DeleteQueue {
            queue_id,
            expected_revision: expected,
            ..
        } => Rule::DeleteQueue {
            queue: queue(&queue_id)?,
            expected,
        },
        _ => return Ok(None),
    }))
}

fn of_wire(immediacy: Immediacy) -> attache_session::Immediacy {
    match immediacy {
        Immediacy::Immediate => attache_session::Immediacy::Immediate,
        Immediacy::Queue => attache_session::Immediacy::Queue,
        Immediacy::Held => attache_session::Immediacy::Held,
    }
}

fn item(text: &str) -> Result<ItemId, EngineError> {
    Uuid::from_str(text)
        .map(ItemId)
        .map_err(|_no_id| nothing("item", text))
}

fn queue(text: &str) -> Result<QueueId, EngineError> {
    match text {
        "immediate" => Ok(QueueId::Immediate),
        "default" => Ok(QueueId::Default),
        other => other
            .strip_prefix("custom-")
            .and_then(|number| number.parse().ok())
            .map(QueueId::Custom)
            .ok_or_else(|| nothing("queue", text)),
    }
}

fn nothing(what: &str, text: &str) -> EngineError {
    let (shown, _) = attache_session::preview(text, 60);
    let text = format!("there is no {what} {shown:?}");
    EngineError::new(ErrorCode::InvalidArguments, text)
}
