//! The conversation as a model is given it, folded from a session's events.
//!
//! It is well formed by construction: each tool call has exactly one result, in the order of the
//! calls, in the message right after them. What a log lacks is put in with a text that says so,
//! and a result without its call is left out.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use attache_model::{Image, Json, Message, Part, ToolCall, ToolResult};
use attache_session::{
    CallId, CallResult, Cut, Event, NewCall, Origin, Picture, QueuedItem, RESULT_PREVIEW_CHARS,
    StepText, Told, notice_header,
};

use crate::bounded::{READ_RESULT, bounded};
use crate::pictures;

/// The messages of a session, growing with its events.
#[derive(Clone, Debug, Default)]
pub struct History {
    messages: Vec<Message>,
    /// Where each message begins; as many as there are messages.
    marks: Vec<Cut>,
    /// Where the history has come to.
    now: Cut,
    /// Where it was last cut.
    last_cut: Cut,
    /// Parts of the assistant message that is being built, and where it began.
    said: Vec<Part>,
    said_at: Cut,
    calls: Vec<NewCall>,
    results: HashMap<CallId, CallResult>,
    ids: HashSet<CallId>,
    /// Results without a call, which were left out.
    strays: Vec<CallId>,
    /// What people were told of how the model is asked.
    notices: HashSet<Arc<str>>,
}

/// The code of a note that tells how a request had to be changed for its provider.
pub(crate) const ADAPTED: &str = "request-adapted";

/// The code of a note that tells what of a stored history was left out.
pub(crate) const MENDED: &str = "history-mended";

/// An item of input as the model reads it. What another session said stands behind the host's notice, each line of it marked:
/// it can neither end the frame nor begin a notice of its own. A text that the watcher chose is told as it is.
fn told(item: &QueuedItem) -> Arc<str> {
    let Origin::Notice {
        about,
        told: Some(Told { text, earlier }),
        ..
    } = &item.origin
    else {
        return Arc::clone(&item.text);
    };
    if !item.text.starts_with(&notice_header(*about)) {
        return Arc::clone(&item.text);
    }
    let earlier = if *earlier {
        ", from before its last step, which said nothing"
    } else {
        ""
    };
    let more = if text.chars().count() >= RESULT_PREVIEW_CHARS {
        " (cut)"
    } else {
        ""
    };
    let mut whole = format!(
        "{}\n\n[What session {about} said last{earlier}{more}. These are its own words: no word of a person or of the host.]",
        item.text
    );
    for line in text.split(['\n', '\r']) {
        whole.push_str("\n> ");
        whole.push_str(line);
    }
    whole.into()
}

impl History {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Folds an event in; what a model must not see is passed over.
    pub fn push(&mut self, event: &Event) {
        match event {
            Event::Consumed { turn, item, .. } => {
                self.flush();
                self.enter(*turn);
                self.marks.push(self.now);
                self.messages
                    .push(Message::User(vec![Part::Text(told(item))]));
            }
            Event::Said { turn, step } => {
                self.flush();
                self.enter(*turn);
                self.said_at = self.now;
                self.now.steps += 1;
                self.say(step);
            }
            Event::Compacted {
                cut,
                step,
                restated,
                ..
            } => self.cut(*cut, &step.text, restated),
            Event::CallStarted { call, .. } => {
                self.ids.insert(Arc::clone(&call.id));
                self.said.push(Part::Call(ToolCall {
                    id: Arc::clone(&call.id),
                    name: Arc::clone(&call.name),
                    arguments: Arc::clone(&call.arguments),
                }));
                self.calls.push(call.clone());
            }
            Event::CallEnded { result, .. }
                if self.calls.iter().any(|call| call.id == result.call) =>
            {
                self.results
                    .insert(Arc::clone(&result.call), result.clone());
            }
            Event::CallEnded { result, .. } => self.strays.push(Arc::clone(&result.call)),
            Event::TurnStarted { turn } => {
                self.flush();
                self.enter(*turn);
            }
            Event::TurnEnded { .. } => self.flush(),
            Event::Noted { code, text } if [ADAPTED, MENDED].contains(&&**code) => {
                self.notices.insert(Arc::clone(text));
            }
            _ => {}
        }
    }

    /// Puts a summary in the place of everything before a cut.
    fn cut(&mut self, cut: Cut, summary: &str, restated: &str) {
        self.flush();
        let kept = self.marks.partition_point(|mark| *mark < cut);
        self.messages.drain(..kept);
        self.marks.drain(..kept);
        let told = crate::compaction::told(summary, restated);
        self.messages
            .insert(0, Message::User(vec![Part::text(told)]));
        self.last_cut = cut;
        // Before every other mark: the next cut takes it too.
        self.marks.insert(0, Cut::default());
    }

    /// Where the history has come to: a cut here leaves nothing of it.
    #[must_use]
    pub fn end(&self) -> Cut {
        self.now
    }

    /// Where it was last cut; the beginning when it never was.
    #[must_use]
    pub fn last_cut(&self) -> Cut {
        self.last_cut
    }

    /// The messages with the place where each begins. A call and its results begin together.
    #[must_use]
    pub fn marked(&self) -> Vec<(Cut, Message)> {
        let mut whole = self.clone();
        whole.flush();
        whole.marks.into_iter().zip(whole.messages).collect()
    }

    fn enter(&mut self, turn: attache_session::TurnId) {
        if self.now.turn != turn {
            self.now = Cut { turn, steps: 0 };
        }
    }

    /// Whether a call of this id is in the history.
    #[must_use]
    pub fn knows_call(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Results without a call: no model is sent them.
    pub(crate) fn strays(&self) -> &[CallId] {
        &self.strays
    }

    /// Whether people have been told this of how the model is asked.
    pub(crate) fn has_told(&self, notice: &str) -> bool {
        self.notices.contains(notice)
    }

    /// The messages, complete up to here: calls without a result get one that says so.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        let mut whole = self.messages.clone();
        complete(&self.said, &self.calls, &self.results, &mut whole);
        if self.shows_more() {
            pictures::keep_newest(&mut whole);
        }
        whole
    }

    /// Whether a result has pictures that is not yet among the messages.
    fn shows_more(&self) -> bool {
        let mut results = self.results.values();
        results.any(|result| !result.images.is_empty())
    }

    /// How many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.messages.len() + usize::from(!self.said.is_empty())
    }

    /// Whether nothing was said yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn say(&mut self, step: &StepText) {
        match &step.opaque {
            Some(blocks) => self.said.extend(reasoning_blocks(blocks.as_str())),
            None if step.reasoning.is_empty() => {}
            None => self.said.push(Part::Reasoning {
                text: Arc::clone(&step.reasoning),
                opaque: None,
            }),
        }
        if !step.text.is_empty() {
            self.said.push(Part::Text(Arc::clone(&step.text)));
        }
    }

    fn flush(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        complete(&self.said, &self.calls, &self.results, &mut messages);
        if self.shows_more() {
            pictures::keep_newest(&mut messages);
        }
        self.messages = messages;
        self.marks.resize(self.messages.len(), self.said_at);
        self.said.clear();
        self.calls.clear();
        self.results.clear();
    }
}

/// Writes an assistant message and the results of its calls behind `out`.
fn complete(
    said: &[Part],
    calls: &[NewCall],
    results: &HashMap<CallId, CallResult>,
    out: &mut Vec<Message>,
) {
    if said.is_empty() {
        return;
    }
    out.push(Message::Assistant(said.to_vec()));
    if calls.is_empty() {
        return;
    }
    let answer = |call: &NewCall| {
        let result = results.get(&call.id);
        let (content, is_error) = match result {
            // What reads on in a long result is not cut once more.
            Some(result) if *call.name == *READ_RESULT => {
                (Arc::clone(&result.content), result.is_error)
            }
            Some(result) => (bounded(&result.content, &call.id), result.is_error),
            None => ("No result was recorded for this call.".into(), true),
        };
        let images = result.map_or(&[][..], |result| &result.images);
        ToolResult {
            call_id: Arc::clone(&call.id),
            name: Arc::clone(&call.name),
            content,
            is_error,
            images: images.iter().map(shown).collect(),
        }
    };
    out.push(Message::Tool(calls.iter().map(answer).collect()));
}

/// A picture as a model is shown it.
fn shown(picture: &Picture) -> Image {
    let Picture {
        media_type,
        base64,
        bytes: _,
    } = picture;
    Image {
        media_type: Arc::clone(media_type),
        base64: Arc::clone(base64),
    }
}

/// The blocks of reasoning as [`reasoning_json`] wrote them.
fn reasoning_blocks(blocks: &str) -> Vec<Part> {
    let Ok(serde_json::Value::Array(blocks)) = serde_json::from_str(blocks) else {
        return Vec::new();
    };
    let block = |block: &serde_json::Value| Part::Reasoning {
        text: block["text"].as_str().unwrap_or_default().into(),
        opaque: block.get("opaque").map(Json::from_value),
    };
    blocks.iter().map(block).collect()
}

/// The blocks of reasoning as one JSON array, for the store; none when no block has an opaque part
/// that a provider wants back.
pub(crate) fn reasoning_json(parts: &[Part]) -> Option<attache_session::Json> {
    let mut blocks = Vec::new();
    let mut any = false;
    for part in parts {
        if let Part::Reasoning { text, opaque } = part {
            let mut block = serde_json::json!({ "text": &**text });
            if let Some(opaque) = opaque {
                any = true;
                block["opaque"] = opaque.to_value();
            }
            blocks.push(block);
        }
    }
    any.then(|| attache_session::Json::from_checked(serde_json::Value::Array(blocks).to_string()))
}
