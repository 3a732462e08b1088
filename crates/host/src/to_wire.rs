//! Conversions from the engine's values to frames. Each takes its source apart without `..`, so a
//! new field breaks the build here and not at a viewer.

use attache_engine::{EngineError, EngineHandle, LiveItem, SessionRow};
use attache_protocol::{
    EventKind, FRAME_LIMIT, HistoryItem, Immediacy, InputOrigin, PictureView, QueueItemView,
    QueueView, RunningItem, SessionView, Status, UsageView, WireError,
};
use attache_session::{
    CallResult, Event, Origin, Picture, Position, Queue, QueueId, QueuedItem, Stamped, Summary,
    Timestamp, Usage, preview,
};
use uuid::Uuid;

/// Characters of an item's text on the wire.
const TEXT_CHARS: usize = 128 * 1024;

/// Bytes of the same as it is written in a frame: a snapshot holds an item of the history, what runs, and the queues.
const TEXT_BYTES: usize = FRAME_LIMIT / 3;

/// Characters of a waiting item's text on the wire.
const WAITING_CHARS: usize = 1_024;

/// Items of a queue on the wire; `waiting` says how many there are.
const WAITING_ITEMS: usize = 16;

/// RFC 3339, UTC, always six fraction digits.
pub(crate) fn time(at: Timestamp) -> String {
    match jiff::Timestamp::from_microsecond(at.0) {
        Ok(at) => format!("{at:.6}"),
        Err(_) => "9999-12-30T22:00:00.000000Z".to_owned(),
    }
}

pub(crate) fn status(status: attache_session::Status) -> Status {
    match status {
        attache_session::Status::Running => Status::Running,
        attache_session::Status::Idle => Status::Idle,
        attache_session::Status::Stopped => Status::Stopped,
        attache_session::Status::Error => Status::Error,
    }
}

fn usage(usage: Usage) -> UsageView {
    let Usage {
        input,
        output,
        cache_read,
        cache_write,
        reasoning,
    } = usage;
    UsageView {
        input_tokens: input,
        output_tokens: output,
        cache_read_tokens: cache_read,
        cache_write_tokens: cache_write,
        reasoning_tokens: reasoning,
    }
}

pub(crate) fn session(engine: &EngineHandle, row: &SessionRow) -> SessionView {
    let SessionRow {
        session,
        root,
        spawner: _,
        generation,
        head: _,
        last_at: _,
        status: is,
        view,
        note,
    } = row;
    let outcome = view.outcome().map(|outcome| outcome.as_str().to_owned());
    let end_reason = view.end_reason().map(|reason| reason.as_str().to_owned());
    let Summary {
        name,
        agent,
        model,
        working_directory,
        takes_input: _,
        runs_turns: _,
        parents,
        created_at,
        last_activity_at,
        epoch: _,
        stop: _,
        turn: _,
        action,
        deliverable: _,
        queued,
        watching,
        end_reason: _,
        result,
        result_earlier,
        side_effects: _,
        changing: _,
        usage: tokens,
        spent,
        context_tokens,
        bounds,
        continue_in_background,
        asks,
    } = &*view.summary;
    let live = view.turn().is_some();
    let mut waiting_for: Vec<String> = engine
        .waiting_for(*session)
        .iter()
        .map(ToString::to_string)
        .collect();
    if view.is_live() {
        waiting_for.extend(watching.iter().map(ToString::to_string));
    }
    waiting_for.sort_unstable();
    waiting_for.dedup();
    SessionView {
        session_id: session.to_string(),
        name: name.to_string(),
        status: status(*is),
        outcome,
        end_reason,
        agent: agent.to_string(),
        model: model.to_string(),
        working_directory: working_directory.to_string(),
        parent_session_ids: parents.iter().map(ToString::to_string).collect(),
        root_session_id: root.to_string(),
        created_at: time(*created_at),
        last_activity_at: time(*last_activity_at),
        usage: usage(*tokens),
        cost_usd: spent.usd_nanos.map(|nanos| nanos as f64 / 1e9),
        cost_at_least: spent.at_least,
        context_tokens: *context_tokens,
        result_preview: result.as_deref().map(str::to_owned),
        result_is_earlier: *result_earlier,
        side_effects: view.side_effects().map(|it| it.as_str().to_owned()),
        action: action.as_deref().filter(|_| live).map(str::to_owned),
        note: note.as_ref().map(ToString::to_string),
        queued: *queued,
        unread: view.unread.inputs + view.unread.notices,
        waiting_for,
        generation: generation.0,
        paused: bounds.paused,
        continue_in_background: *continue_in_background,
        asks: if live { *asks } else { 0 },
    }
}

pub(crate) fn origin(origin: &Origin) -> InputOrigin {
    match origin {
        Origin::Viewer => InputOrigin::Viewer {},
        Origin::Session(from) => InputOrigin::Session {
            session_id: from.to_string(),
        },
        Origin::Notice { about, watch, told } => InputOrigin::Notice {
            session_id: about.to_string(),
            notice_id: watch.to_string(),
            result_preview: told.as_ref().map(|told| told.text.to_string()),
            result_is_earlier: told.as_ref().is_some_and(|told| told.earlier),
        },
    }
}

/// As much of a text as a frame shows of it, and whether that is not all.
fn beginning(text: &str) -> (&str, bool) {
    let (shown, cut) = preview(text, TEXT_CHARS);
    let (shown, shorter) = within(shown, TEXT_BYTES);
    (shown, cut || shorter)
}

/// An item with as much of its text as there is room for.
pub(crate) fn shortened(mut item: HistoryItem, bytes: usize) -> HistoryItem {
    let (shown, cut) = within(&item.text, bytes);
    if cut {
        item.text = shown.to_owned();
        item.cut = true;
    }
    item
}

/// As much of a text as has these bytes when it is written in a frame, and whether that is not all.
fn within(shown: &str, most: usize) -> (&str, bool) {
    // Most texts are far too short for what follows.
    if shown.len() <= most / 6 {
        return (shown, false);
    }
    let mut bytes = 0;
    let end = shown.char_indices().find(|(_, character)| {
        bytes += match character {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            other => other.len_utf8(),
        };
        bytes > most
    });
    match end {
        Some((end, _)) => (&shown[..end], true),
        None => (shown, false),
    }
}

/// An event as an item of the history; none when it is no part of it.
pub(crate) fn item(position: Position, stamped: &Stamped) -> Option<HistoryItem> {
    let Stamped {
        at,
        observed: _,
        event,
    } = stamped;
    let blank = |kind: EventKind, text: &str| {
        let (shown, cut) = beginning(text);
        HistoryItem {
            position: position.0,
            at: time(*at),
            kind,
            text: shown.to_owned(),
            cut,
            turn: None,
            call_id: None,
            name: None,
            is_error: false,
            incomplete: false,
            spawned_session_id: None,
            origin: None,
            pictures: Vec::new(),
        }
    };
    match event {
        Event::Consumed {
            turn,
            queue: _,
            item,
        } => {
            let kind = match item.origin {
                Origin::Notice { .. } => EventKind::Diagnostic,
                Origin::Viewer | Origin::Session(_) => EventKind::User,
            };
            Some(HistoryItem {
                turn: Some(turn.0),
                origin: Some(origin(&item.origin)),
                ..blank(kind, &item.text)
            })
        }
        Event::Acknowledged { queue: _, item } => Some(HistoryItem {
            origin: Some(origin(&item.origin)),
            ..blank(EventKind::Diagnostic, &item.text)
        }),
        Event::Said { turn, step } if !step.text.trim().is_empty() => Some(HistoryItem {
            turn: Some(turn.0),
            incomplete: step.incomplete,
            ..blank(EventKind::Assistant, &step.text)
        }),
        Event::CallStarted { turn, call } => Some(HistoryItem {
            turn: Some(turn.0),
            call_id: Some(call.id.to_string()),
            name: Some(call.name.to_string()),
            ..blank(EventKind::ToolCall, &call.arguments)
        }),
        Event::CallEnded { turn, result } => {
            let CallResult {
                call,
                content,
                is_error,
                spawned,
                origin: _,
                images,
                took_micros: _,
                report: _,
            } = result;
            Some(HistoryItem {
                turn: Some(turn.0),
                call_id: Some(call.to_string()),
                is_error: *is_error,
                spawned_session_id: spawned.map(|child| child.to_string()),
                pictures: images.iter().map(picture).collect(),
                ..blank(EventKind::ToolResult, content)
            })
        }
        Event::Compacted { step, .. } => Some(HistoryItem {
            name: Some("compacted".to_owned()),
            ..blank(EventKind::Diagnostic, &step.text)
        }),
        Event::Noted { code, text } => Some(HistoryItem {
            name: Some(code.to_string()),
            ..blank(EventKind::Diagnostic, text)
        }),
        _ => None,
    }
}

/// A picture is told of; its bytes would fill more than a frame.
fn picture(picture: &Picture) -> PictureView {
    let Picture {
        media_type,
        base64: _,
        bytes,
    } = picture;
    PictureView {
        media_type: media_type.to_string(),
        bytes: *bytes,
    }
}

/// The whole text of an event that a viewer sees as an item.
pub(crate) fn text(event: &Event) -> Option<&str> {
    match event {
        Event::Consumed { item, .. } | Event::Acknowledged { item, .. } => Some(&item.text),
        Event::Said { step, .. } | Event::Compacted { step, .. } => Some(&step.text),
        Event::CallStarted { call, .. } => Some(&call.arguments),
        Event::CallEnded { result, .. } => Some(&result.content),
        Event::Noted { text, .. } => Some(text),
        _ => None,
    }
}

pub(crate) fn queue(queue: &Queue) -> QueueView {
    let Queue {
        id,
        name,
        immediacy,
        before_hold: _,
        revision,
        items,
    } = queue;
    QueueView {
        queue_id: queue_id(*id),
        name: name.to_string(),
        immediacy: match immediacy {
            attache_session::Immediacy::Immediate => Immediacy::Immediate,
            attache_session::Immediacy::Queue => Immediacy::Queue,
            attache_session::Immediacy::Held => Immediacy::Held,
        },
        revision: *revision,
        waiting: u32::try_from(items.len()).unwrap_or(u32::MAX),
        items: items
            .iter()
            .take(WAITING_ITEMS)
            .map(|item| waiting(item))
            .collect(),
    }
}

pub(crate) fn queue_id(id: QueueId) -> String {
    match id {
        QueueId::Immediate => "immediate".to_owned(),
        QueueId::Default => "default".to_owned(),
        QueueId::Custom(number) => format!("custom-{number}"),
    }
}

fn waiting(item: &QueuedItem) -> QueueItemView {
    let QueuedItem {
        id,
        revision,
        text,
        origin: from,
    } = item;
    QueueItemView {
        item_id: id.to_string(),
        revision: *revision,
        text: preview(text, WAITING_CHARS).0.to_owned(),
        origin: origin(from),
    }
}

pub(crate) fn running(live: &LiveItem) -> Option<RunningItem> {
    let LiveItem {
        turn,
        step,
        text,
        reasoning: _,
        calls,
        note: _,
    } = live;
    (*turn > 0).then(|| RunningItem {
        turn: *turn,
        step: *step,
        text: beginning(text).0.to_owned(),
        calls: calls.iter().map(|(_, name)| name.to_string()).collect(),
    })
}

/// An error with an id that names this very occurrence.
pub(crate) fn error(error: &EngineError) -> WireError {
    let EngineError {
        code,
        message,
        current_revision,
    } = error;
    WireError {
        code: code.as_str().to_owned(),
        category: code.category().as_str().to_owned(),
        retryable: code.retryable(),
        message: message.clone(),
        hint: code.hint().map(str::to_owned),
        current_revision: *current_revision,
        correlation_id: correlation_id(),
    }
}

fn correlation_id() -> String {
    let time: &dyn attache_engine::Time = &attache_engine::SystemTime;
    let id: Uuid = time.fresh();
    id.as_simple().to_string()[20..].to_owned()
}
