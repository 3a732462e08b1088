//! Making room in a model's context: when, where the conversation is cut, what the model is asked for a summary, and
//! how the summary is told. Pure; who asks and who records is elsewhere.

use std::sync::Arc;

use attache_model::{Message, Part, ToolResult};
use attache_session::{Cut, preview};

use crate::history::History;

/// What the model is asked at the end of the part that is to be summarised.
pub const SUMMARISE: &str = "This conversation has become too long and is about to be cut. Write \
    a summary that lets you go on without it: the task and its constraints in the words they were \
    given, what was decided and why, what was done and found (names, paths, ids, figures, exact \
    errors), what failed, and what is left to do next. Leave out what nobody will need. Answer \
    with the summary alone, and call no tool.";

/// Share of the context's limit that is kept as it is behind a cut.
const KEPT_SHARE: f64 = 0.25;

/// Most characters of the request that is being worked on that are told again.
const REQUEST_CHARS: usize = 8_000;

/// What a token takes of text, until the provider has told how many there were.
const BYTES_A_TOKEN: f64 = 4.0;

/// How many tokens text has, learned from what the provider counts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measure {
    bytes_a_token: f64,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            bytes_a_token: BYTES_A_TOKEN,
        }
    }
}

impl Measure {
    /// Learns from a prompt of so many bytes that the provider counted.
    pub fn learn(&mut self, bytes: usize, tokens: u64) {
        // Short prompts are mostly what the provider adds itself.
        if bytes >= 4_000 && tokens > 0 {
            self.bytes_a_token = (bytes as f64 / tokens as f64).clamp(1.0, 8.0);
        }
    }

    /// About how many tokens so many bytes are.
    #[must_use]
    pub fn tokens(&self, bytes: usize) -> u64 {
        (bytes as f64 / self.bytes_a_token).ceil() as u64
    }

    /// About how many bytes so many tokens are.
    #[must_use]
    pub fn bytes(&self, tokens: u64) -> usize {
        (tokens as f64 * self.bytes_a_token) as usize
    }
}

/// A cut, and what has to be said for it.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Where.
    pub cut: Cut,
    /// What the model is asked: the conversation up to the cut, shortened to fit, and the question.
    pub messages: Vec<Message>,
    /// What is told again beside the summary: the request that is being worked on, if it is cut off.
    pub request: String,
    /// Bytes of what is cut off.
    pub freed: usize,
}

/// Where a history is cut so that at most `keep` bytes of it stay, and what is asked; none when nothing can be cut.
/// `room` is how many bytes the question may have.
#[must_use]
pub fn plan(history: &History, last: Cut, keep: usize, room: usize) -> Option<Plan> {
    let marked = history.marked();
    // A cut that takes nothing away, or only the summary of the last one, is none.
    let told = marked
        .first()
        .is_some_and(|(_, message)| is_summary(message));
    let least = 1 + usize::from(told);
    let mut kept = 0;
    let mut cut = history.end();
    for (at, (mark, message)) in marked.iter().enumerate().rev() {
        kept += message.text_len();
        if kept > keep {
            break;
        }
        // Only where a mark begins: what shares one with the message before stays together with it.
        let begins = at == 0 || marked[at - 1].0 != *mark;
        if begins && *mark > last && at >= least {
            cut = *mark;
        }
    }
    let place = marked.partition_point(|(mark, _)| *mark < cut);
    if cut <= last || place < least {
        return None;
    }
    let freed = marked[..place].iter().map(|(_, it)| it.text_len()).sum();
    let request = cut_off_request(&marked[..place], &marked[place..], history.end());
    let before = marked.into_iter().take(place).map(|(_, message)| message);
    let mut messages = shortened(before.collect(), room.saturating_sub(SUMMARISE.len()));
    messages.push(Message::User(vec![Part::text(SUMMARISE)]));
    Some(Plan {
        cut,
        messages,
        request,
        freed,
    })
}

/// How many bytes stay behind a cut, and how many the question may have. `limit` is the model's context in bytes, `now`
/// what the conversation takes; `tries` counts what was tried before without success.
#[must_use]
pub fn budget(limit: Option<usize>, now: usize, tries: u32) -> (usize, usize) {
    // Without a known limit, what did not fit is the only measure.
    let fits = limit.unwrap_or(now).min(now) >> tries.min(8);
    let keep = (fits as f64 * KEPT_SHARE) as usize;
    let room = match limit {
        Some(limit) => (limit as f64 * 0.8) as usize >> tries.min(8),
        None => (fits as f64 * 0.8) as usize,
    };
    (if tries == 0 { keep } else { 0 }, room)
}

/// How a summary is told to the model.
pub(crate) fn told(summary: &str, restated: &str) -> String {
    let mut text = format!("{TOLD}\n\n{}", summary.trim());
    if !restated.trim().is_empty() {
        text.push_str("\n\n");
        text.push_str(restated.trim());
    }
    text
}

/// How the message begins that stands for what was cut off.
const TOLD: &str =
    "[The conversation before this point was cut to make room. This is its summary.]";

fn is_summary(message: &Message) -> bool {
    matches!(message, Message::User(parts) if matches!(parts.first(), Some(Part::Text(text)) if text.starts_with(TOLD)))
}

/// The user messages of the current turn, if they are all before the cut.
fn cut_off_request(before: &[(Cut, Message)], after: &[(Cut, Message)], end: Cut) -> String {
    let of_turn = |(mark, message): &&(Cut, Message)| {
        mark.turn == end.turn && matches!(message, Message::User(_))
    };
    if after.iter().any(|one| of_turn(&one)) {
        return String::new();
    }
    let mut text = String::new();
    for (_, message) in before.iter().filter(of_turn) {
        if let Message::User(parts) = message {
            for part in parts {
                if let Part::Text(more) = part {
                    text.push_str(more);
                    text.push('\n');
                }
            }
        }
    }
    let (shown, cut) = preview(text.trim(), REQUEST_CHARS);
    if shown.is_empty() {
        return String::new();
    }
    let more = if cut { " …" } else { "" };
    format!("[The request that is being worked on]\n{shown}{more}")
}

/// The messages in at most about so many bytes: long texts lose their middle first, then the oldest messages go.
fn shortened(mut messages: Vec<Message>, room: usize) -> Vec<Message> {
    let size = |messages: &[Message]| messages.iter().map(Message::text_len).sum::<usize>();
    let mut longest = 16_000;
    while size(&messages) > room && longest >= 500 {
        messages = messages
            .into_iter()
            .map(|it| clipped(it, longest))
            .collect();
        longest /= 2;
    }
    let mut first = 0;
    let mut left = size(&messages);
    while left > room && first < messages.len() {
        left -= messages[first].text_len();
        first += 1;
        // A result goes with its call.
        while let Some(Message::Tool(_)) = messages.get(first) {
            left -= messages[first].text_len();
            first += 1;
        }
    }
    if first > 0 {
        messages.drain(..first);
        let note = "[Earlier messages are left out here.]";
        messages.insert(0, Message::User(vec![Part::text(note)]));
    }
    messages
}

/// What stands in the place of a picture.
const CLIPPED: &str = "There is no room for it here.";

fn clipped(message: Message, longest: usize) -> Message {
    let part = |part: Part| match part {
        Part::Text(text) => Part::Text(middle_out(&text, longest)),
        // Neither is worth its room in a summary.
        Part::Reasoning { .. } => Part::Text("".into()),
        other => other,
    };
    let parts = |parts: Vec<Part>| {
        let parts = parts.into_iter().map(part);
        parts
            .filter(|part| !matches!(part, Part::Text(text) if text.is_empty()))
            .collect()
    };
    let mut message = match message {
        Message::User(of) => Message::User(parts(of)),
        Message::Assistant(of) => Message::Assistant(parts(of)),
        Message::Tool(results) => Message::Tool(
            results
                .into_iter()
                .map(|result| ToolResult {
                    content: middle_out(&result.content, longest),
                    ..result
                })
                .collect(),
        ),
    };
    message.leave_pictures_out(CLIPPED);
    message
}

fn middle_out(text: &Arc<str>, longest: usize) -> Arc<str> {
    if text.len() <= longest {
        return Arc::clone(text);
    }
    let (head, _) = preview(text, longest / 2);
    let tail: String = {
        let mut last: Vec<char> = text.chars().rev().take(longest / 8).collect();
        last.reverse();
        last.into_iter().collect()
    };
    format!("{head}\n[…]\n{tail}").into()
}
