//! The JSON shapes of the command line, in snake_case, made from what the protocol says.

use std::collections::HashMap;

use attache_client::protocol::{
    AgentView, EventKind, HistoryItem, InputOrigin, PictureView, QueueView, ReceiptView,
    SessionView, UsageView,
};
use serde_json::{Value, json};

pub(crate) fn usage(usage: &UsageView) -> Value {
    let UsageView {
        input_tokens,
        output_tokens,
        cache_read_tokens,
        cache_write_tokens,
        reasoning_tokens,
    } = usage;
    json!({
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cache_read_tokens": cache_read_tokens,
        "cache_write_tokens": cache_write_tokens,
        "reasoning_tokens": reasoning_tokens,
    })
}

pub(crate) fn session(session: &SessionView) -> Value {
    let SessionView {
        session_id,
        name,
        status,
        outcome,
        end_reason,
        agent,
        model,
        working_directory,
        parent_session_ids,
        root_session_id: _,
        created_at,
        last_activity_at,
        usage: tokens,
        cost_usd: _,
        cost_at_least: _,
        context_tokens,
        result_preview,
        action: _,
        note,
        queued: _,
        unread: _,
        waiting_for: _,
        generation: _,
        paused: _,
        continue_in_background: _,
        asks: _,
        result_is_earlier: _,
        side_effects: _,
    } = session;
    let mut value = json!({
        "session_id": session_id,
        "name": name,
        "status": status.as_str(),
        "outcome": outcome,
        "end_reason": end_reason,
        "agent": agent,
        "model": model,
        "working_directory": working_directory,
        "parent_session_ids": parent_session_ids,
        "created_at": created_at,
        "last_activity_at": last_activity_at,
        "usage": usage(tokens),
        "context_tokens": context_tokens,
        "result_preview": result_preview,
    });
    Money::of(session).put(&mut value, "cost");
    if let Some(note) = note {
        value["note"] = json!(note);
    }
    value
}

/// Trees of rows in order of birth: each root with its descendants; under a second parent a row is
/// only referred to.
pub(crate) fn trees(rows: &[SessionView]) -> Vec<Value> {
    let tree = Tree::of(rows);
    tree.roots.iter().map(|root| tree.node(root).0).collect()
}

/// Of each session that has children here: what it and everything under it has used and cost.
pub(crate) fn totals(rows: &[SessionView]) -> HashMap<String, Total> {
    let tree = Tree::of(rows);
    let mut totals: HashMap<String, Total> = HashMap::new();
    // In order of birth a child stands behind its parent: from behind, every child is whole when it is added.
    for row in rows.iter().rev() {
        let mut total = totals.remove(&row.session_id).unwrap_or_default();
        let whole = !tree.children.contains_key(row.session_id.as_str());
        total.add(&Total::of(row));
        let present = |id: &&String| tree.by_id.contains_key(id.as_str());
        if let Some(spawner) = row.parent_session_ids.iter().find(present) {
            totals.entry(spawner.clone()).or_default().add(&total);
        }
        if !whole {
            totals.insert(row.session_id.clone(), total);
        }
    }
    totals
}

struct Tree<'a> {
    by_id: HashMap<&'a str, &'a SessionView>,
    children: HashMap<&'a str, Vec<&'a SessionView>>,
    roots: Vec<&'a SessionView>,
}

impl<'a> Tree<'a> {
    fn of(rows: &'a [SessionView]) -> Self {
        let by_id: HashMap<&str, &SessionView> = rows
            .iter()
            .map(|row| (row.session_id.as_str(), row))
            .collect();
        let mut children: HashMap<&str, Vec<&SessionView>> = HashMap::new();
        let mut roots = Vec::new();
        for row in rows {
            let mut placed = false;
            for parent in &row.parent_session_ids {
                if by_id.contains_key(parent.as_str()) {
                    children.entry(parent).or_default().push(row);
                    placed = true;
                }
            }
            if !placed {
                roots.push(row);
            }
        }
        Self {
            by_id,
            children,
            roots,
        }
    }

    /// A node, and what it and everything under it has used and cost.
    fn node(&self, row: &SessionView) -> (Value, Total) {
        let mut node = session(row);
        let mut total = Total::of(row);
        let children: Vec<Value> = self
            .children
            .get(row.session_id.as_str())
            .into_iter()
            .flatten()
            .map(|child| {
                // The spawner has the child itself, a further parent only a pointer to it.
                if self.is_under(child, row) {
                    let (child, used) = self.node(child);
                    total.add(&used);
                    child
                } else {
                    json!({ "session_id": child.session_id, "ref": true })
                }
            })
            .collect();
        total.put(&mut node);
        node["children"] = Value::Array(children);
        (node, total)
    }

    /// Whether a child stands under this parent: the first of its parents that is there.
    fn is_under(&self, child: &SessionView, parent: &SessionView) -> bool {
        let present = |id: &&String| self.by_id.contains_key(id.as_str());
        child.parent_session_ids.iter().find(present) == Some(&parent.session_id)
    }
}

/// A sum of money of which some may be unknown.
#[derive(Clone, Copy, Default)]
pub(crate) struct Money {
    usd: Option<f64>,
    at_least: bool,
}

impl Money {
    pub(crate) fn of(session: &SessionView) -> Self {
        Self {
            usd: session.cost_usd,
            at_least: session.cost_at_least,
        }
    }

    fn add(&mut self, more: Self) {
        if let Some(usd) = more.usd {
            // In whole billionths, so that a sum has no tail of its own.
            let sum = (self.usd.unwrap_or(0.0) + usd) * 1e9;
            self.usd = Some(sum.round() / 1e9);
        }
        self.at_least |= more.at_least;
    }

    /// As members `NAME_usd` and, where it is so, `NAME_at_least`.
    pub(crate) fn put(self, value: &mut Value, name: &str) {
        value[format!("{name}_usd")] = json!(self.usd);
        if self.at_least && self.usd.is_some() {
            value[format!("{name}_at_least")] = json!(true);
        }
    }

    /// For people: `$0.0123`, `at least $0.0123`; nothing when nothing is known.
    pub(crate) fn shown(self) -> Option<String> {
        let usd = self.usd?;
        let digits = if usd >= 1.0 { 2 } else { 4 };
        let least = if self.at_least { "at least " } else { "" };
        Some(format!("{least}${usd:.digits$}"))
    }
}

/// What a session and everything under it has used and cost.
#[derive(Clone, Copy, Default)]
pub(crate) struct Total {
    pub(crate) usage: UsageView,
    pub(crate) money: Money,
}

impl Total {
    fn of(session: &SessionView) -> Self {
        Self {
            usage: session.usage,
            money: Money::of(session),
        }
    }

    /// Of all sessions of a tree.
    pub(crate) fn of_tree(rows: &[SessionView]) -> Self {
        let mut total = Self::default();
        for row in rows {
            total.add(&Self::of(row));
        }
        total
    }

    fn add(&mut self, more: &Self) {
        add(&mut self.usage, &more.usage);
        self.money.add(more.money);
    }

    /// As members `tree_usage` and `tree_cost_usd`.
    pub(crate) fn put(self, value: &mut Value) {
        value["tree_usage"] = usage(&self.usage);
        self.money.put(value, "tree_cost");
    }

    /// For people: tokens, the share that came from a cache, and money.
    pub(crate) fn shown(&self) -> Option<String> {
        let UsageView {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            ..
        } = self.usage;
        let mut parts = Vec::new();
        if let (Some(input), Some(output)) = (input_tokens, output_tokens) {
            let cached = cache_read_tokens
                .filter(|read| *read > 0 && input > 0)
                .map_or(String::new(), |read| {
                    format!(" ({} % from the cache)", read.min(input) * 100 / input)
                });
            parts.push(format!("{input} tokens in{cached}, {output} out"));
        }
        parts.extend(self.money.shown());
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// A known figure plus an unknown one stays the known one.
fn add(total: &mut UsageView, more: &UsageView) {
    let sum = |total: &mut Option<u64>, more: Option<u64>| {
        if let Some(more) = more {
            *total = Some(total.unwrap_or(0) + more);
        }
    };
    sum(&mut total.input_tokens, more.input_tokens);
    sum(&mut total.output_tokens, more.output_tokens);
    sum(&mut total.cache_read_tokens, more.cache_read_tokens);
    sum(&mut total.cache_write_tokens, more.cache_write_tokens);
    sum(&mut total.reasoning_tokens, more.reasoning_tokens);
}

pub(crate) fn kind_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::User => "user",
        EventKind::Assistant => "assistant",
        EventKind::ToolCall => "tool_call",
        EventKind::ToolResult => "tool_result",
        EventKind::Diagnostic => "diagnostic",
    }
}

pub(crate) fn kind_of_name(name: &str) -> Option<EventKind> {
    [
        EventKind::User,
        EventKind::Assistant,
        EventKind::ToolCall,
        EventKind::ToolResult,
        EventKind::Diagnostic,
    ]
    .into_iter()
    .find(|kind| kind_name(*kind) == name)
}

pub(crate) fn item(item: &HistoryItem) -> Value {
    let HistoryItem {
        position,
        at,
        kind,
        text,
        cut,
        turn,
        call_id,
        name,
        is_error,
        incomplete,
        spawned_session_id,
        origin,
        pictures,
    } = item;
    let origin = origin.as_ref().map(self::origin);
    let pictures: Vec<Value> = pictures.iter().map(picture).collect();
    json!({
        "position": position,
        "timestamp": at,
        "event_type": kind_name(*kind),
        "text": text,
        "cut": cut,
        "turn": turn,
        "call_id": call_id,
        "name": name,
        "is_error": is_error,
        "incomplete": incomplete,
        "spawned_session_id": spawned_session_id,
        "origin": origin,
        "pictures": pictures,
    })
}

fn picture(picture: &PictureView) -> Value {
    let PictureView { media_type, bytes } = picture;
    json!({ "media_type": media_type, "bytes": bytes })
}

pub(crate) fn queue(queue: &QueueView) -> Value {
    let items: Vec<Value> = queue
        .items
        .iter()
        .map(
            |item| json!({ "item_id": item.item_id, "revision": item.revision, "text": item.text }),
        )
        .collect();
    let immediacy = match queue.immediacy {
        attache_client::protocol::Immediacy::Immediate => "immediate",
        attache_client::protocol::Immediacy::Queue => "queue",
        attache_client::protocol::Immediacy::Held => "held",
    };
    json!({
        "queue_id": queue.queue_id,
        "name": queue.name,
        "immediacy": immediacy,
        "revision": queue.revision,
        "waiting": queue.waiting,
        "items": items,
    })
}

pub(crate) fn agent(agent: &AgentView) -> Value {
    let AgentView {
        name,
        description,
        model,
        tools,
        parameters,
        source,
        error,
    } = agent;
    json!({
        "name": name,
        "description": description,
        "model": model,
        "tools": tools,
        "parameters": parameters,
        "source": source,
        "error": error,
    })
}

/// Who wrote an item of input.
fn origin(origin: &InputOrigin) -> Value {
    match origin {
        InputOrigin::Viewer {} => json!({ "kind": "viewer" }),
        InputOrigin::Session { session_id } => {
            json!({ "kind": "session", "session_id": session_id })
        }
        InputOrigin::Notice {
            session_id,
            notice_id,
            result_preview,
            result_is_earlier,
        } => json!({
            "kind": "notice", "session_id": session_id, "notice_id": notice_id,
            "result_preview": result_preview, "result_is_earlier": result_is_earlier,
        }),
    }
}

/// Where an item of input has got to.
pub(crate) fn receipt(receipt: &ReceiptView) -> Value {
    let ReceiptView {
        item_id,
        origin: from,
        preview,
        state,
        reason,
        turn,
        position,
    } = receipt;
    json!({
        "item_id": item_id, "origin": origin(from), "preview": preview, "state": state,
        "reason": reason, "turn": turn, "position": position,
    })
}
