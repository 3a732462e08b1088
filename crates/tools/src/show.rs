//! How sessions, events and times are shown to a model. Every list and text is bounded.

use std::sync::Arc;

use attache_agent::offer::{Json, ToolSpec};
use attache_agent::session::{
    Ledger, LedgerEntry, NestedCall, Picture, Receipt, RowView, Timestamp, Usage, preview,
};
use attache_agent::{EventPage, EventView, SessionDetail, SessionInfo};
use serde_json::{Value, json};

/// Characters of an event's preview.
pub(crate) const EVENT_PREVIEW: usize = 500;

/// Characters of an event that is shown in full: whatever can be sent is whole.
const FULL_TEXT: usize = crate::arguments::TEXT_LIMIT;

/// Characters of a sent text that its receipt repeats.
const RECEIPT_PREVIEW: usize = 60;

/// Characters of a running item's preview.
const RUNNING_PREVIEW: usize = 200;

/// Running items that are shown.
const RUNNING_ITEMS: usize = 10;

/// The offer of a tool. `schema` is the `properties` object; what is required is listed apart.
pub(crate) fn spec(
    name: &str,
    description: &str,
    properties: &Value,
    required: &[&str],
) -> ToolSpec {
    ToolSpec {
        name: Arc::from(name),
        description: Arc::from(description),
        input_schema: Json::from_value(&json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })),
    }
}

/// RFC 3339, UTC, always six fraction digits.
pub(crate) fn time(at: Timestamp) -> String {
    match jiff::Timestamp::from_microsecond(at.0) {
        Ok(at) => format!("{at:.6}"),
        Err(_) => String::from("unknown"),
    }
}

/// The cursor that a text means. A time that is cut short means the moment before its unit begins,
/// because a cursor shows what comes after it.
pub(crate) fn read_time(text: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = text.parse().ok()?;
    let digits = text.split_once('.').map_or(0, |(_, rest)| {
        rest.bytes().take_while(u8::is_ascii_digit).count()
    });
    let at = at.as_microsecond();
    Some(Timestamp(if digits >= 6 { at } else { at - 1 }))
}

pub(crate) fn usage(usage: &Usage) -> Value {
    let Usage {
        input,
        output,
        cache_read,
        cache_write,
        reasoning,
    } = usage;
    json!({
        "input_tokens": input,
        "output_tokens": output,
        "cache_read_tokens": cache_read,
        "cache_write_tokens": cache_write,
        "reasoning_tokens": reasoning,
    })
}

/// A session in a list.
pub(crate) fn listed(info: &SessionInfo) -> Value {
    let summary = &info.row.summary;
    let mut shown = json!({
        "session_id": info.session.to_string(),
        "name": &*summary.name,
        "status": info.status.as_str(),
        "outcome": info.row.outcome().map(attache_agent::session::Outcome::as_str),
        "created_at": time(summary.created_at),
        "last_activity_at": time(summary.last_activity_at),
        "usage": usage(&summary.usage),
        "context_tokens": summary.context_tokens,
    });
    put_side_effects(&mut shown, &info.row);
    shown
}

/// Where an item has got to that the caller sent.
fn receipt(receipt: &Receipt) -> Value {
    let mut shown = json!({
        "item_id": receipt.item.to_string(),
        "state": receipt.stage.as_str(),
        "preview": preview(&receipt.text, RECEIPT_PREVIEW).0,
    });
    if let Some(reason) = receipt.reason {
        shown["reason"] = json!(reason.as_str());
    }
    if let Some(turn) = receipt.turn {
        shown["turn"] = json!(turn.0);
    }
    if let Some(position) = receipt.position {
        shown["position"] = json!(position.0);
    }
    shown
}

/// What the calls of a run that was cut may have done; a run that came to its own end says nothing of it.
fn put_side_effects(shown: &mut Value, row: &RowView) {
    if let Some(effects) = row.side_effects() {
        shown["side_effects"] = json!(effects.as_str());
    }
}

/// A session in detail: the shape of `agent_session_get`.
pub(crate) fn detail(detail: &SessionDetail) -> Value {
    let summary = &detail.row.summary;
    let running: Vec<Value> = detail
        .running_items
        .iter()
        .take(RUNNING_ITEMS)
        .map(|item| json!({ "role": item.role, "preview": preview(&item.text, RUNNING_PREVIEW).0 }))
        .collect();
    let mut shown = json!({
        "session_id": detail.session.to_string(),
        "status": detail.status.as_str(),
        "is_busy": detail.status == attache_agent::session::Status::Running,
        "running_items": running,
        "queued": detail.row.waiting(),
        "waiting_for": detail.waiting_for.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "outcome": detail.outcome().map(attache_agent::session::Outcome::as_str),
        "end_reason": detail.end_reason().map(attache_agent::session::EndReason::as_str),
        "result_preview": summary.result.as_deref(),
        "last_activity_at": time(summary.last_activity_at),
        "usage": usage(&summary.usage),
        "receipts": detail.receipts.iter().map(receipt).collect::<Vec<_>>(),
    });
    if summary.result_earlier {
        // The run's last step said nothing.
        shown["result_is_earlier"] = json!(true);
    }
    put_side_effects(&mut shown, &detail.row);
    shown
}

/// The calls of a run, in few words: without digests, and with what not every call has only where it has it.
pub(crate) fn ledger(ledger: &Ledger) -> Value {
    let Ledger { calls, total } = ledger;
    json!({ "total": total, "calls": calls.iter().map(ledger_entry).collect::<Vec<_>>() })
}

fn ledger_entry(entry: &LedgerEntry) -> Value {
    let LedgerEntry {
        name,
        arguments,
        arguments_digest: _,
        result_digest: _,
        outcome,
        duration_micros,
        changes_state,
        detail,
        nested,
        nested_total,
    } = entry;
    let mut shown = json!({
        "name": &**name,
        "arguments": &**arguments,
        "outcome": outcome.as_str(),
        "changes_state": changes_state,
    });
    if let Some(micros) = duration_micros {
        shown["duration_micros"] = json!(micros);
    }
    if let Some(detail) = detail {
        shown["detail"] = json!(&**detail);
    }
    if *nested_total > 0 {
        shown["nested"] = nested.iter().map(nested_call).collect();
        shown["nested_total"] = json!(nested_total);
    }
    shown
}

fn nested_call(call: &NestedCall) -> Value {
    let NestedCall {
        name,
        arguments,
        failed: _,
        changes_state,
    } = call;
    json!({
        "name": &**name,
        "arguments": &**arguments,
        "outcome": call.outcome().as_str(),
        "changes_state": changes_state,
    })
}

/// An event; with `full`, its whole text.
pub(crate) fn event(event: &EventView, full: bool) -> Value {
    let limit = if full { FULL_TEXT } else { EVENT_PREVIEW };
    let (text, more) = preview(&event.text, limit);
    let mut shown = json!({
        "timestamp": time(event.at),
        "event_type": event.event_type,
        "role": event.role,
        "content_preview": text,
        "has_more_content": more,
    });
    if let Some(about) = event.about {
        let member = if event.event_type == "tool_result" {
            "spawned_session_id"
        } else {
            "origin_session_id"
        };
        shown[member] = json!(about.to_string());
    }
    if let Some(told) = &event.told {
        let said = if full { FULL_TEXT } else { EVENT_PREVIEW };
        shown["origin_said"] = json!(preview(&told.text, said).0);
    }
    if !event.pictures.is_empty() {
        shown["pictures"] = event.pictures.iter().map(picture).collect();
    }
    shown
}

/// A picture, told of: never its bytes.
fn picture(picture: &Picture) -> Value {
    let Picture {
        media_type,
        base64: _,
        bytes,
    } = picture;
    json!({ "media_type": &**media_type, "bytes": bytes })
}

pub(crate) fn events(page: &EventPage, full: bool) -> Vec<Value> {
    page.events.iter().map(|item| event(item, full)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_time_is_its_own_cursor() {
        for micros in [0, 1, 1_764_460_800_000_000, 1_764_460_800_123_456] {
            assert_eq!(read_time(&time(Timestamp(micros))), Some(Timestamp(micros)));
        }
    }

    #[test]
    fn a_time_that_is_cut_short_never_skips() {
        let whole = read_time("2026-11-30T00:00:00Z").unwrap();
        let micros = read_time("2026-11-30T00:00:00.000000Z").unwrap();
        assert_eq!(whole.0 + 1, micros.0);
        let millis = read_time("2026-11-30T00:00:00.123Z").unwrap();
        let exact = read_time("2026-11-30T00:00:00.123000Z").unwrap();
        assert_eq!(millis.0 + 1, exact.0);
        for bad in ["", "yesterday", "2026-11-30", "2026-13-30T00:00:00Z"] {
            assert_eq!(read_time(bad), None, "{bad}");
        }
    }
}
