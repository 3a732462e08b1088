//! Collects the deltas of one reply into a finished assistant message. It judges nothing: whether a reply without a
//! stop is usable is the caller's business.

use std::collections::HashSet;
use std::sync::Arc;

use crate::delta::{Delta, StopReason};
use crate::json::Json;
use crate::message::{Part, ToolCall};
use crate::usage::Usage;

/// Collects deltas.
#[derive(Default, Debug)]
pub struct Assembler {
    open: Vec<Building>,
    usage: Usage,
    stop: Option<StopReason>,
    text_bytes: usize,
}

#[derive(Debug)]
enum Building {
    Text(String),
    Reasoning {
        text: String,
        opaque: Option<Json>,
    },
    Call {
        index: usize,
        id: String,
        name: String,
        arguments: String,
    },
}

/// A collected reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Reasoning, text and calls in the order in which they began. No part is empty. The ids of the calls are unique
    /// within the reply.
    pub parts: Vec<Part>,
    /// Token counts; unknown ones are `None`.
    pub usage: Usage,
    /// `None` when the provider never gave a reason, or the stream broke.
    pub stop: Option<StopReason>,
}

impl Completion {
    /// The calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The whole text of the answer, without reasoning.
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(&**text),
                _ => None,
            })
            .collect()
    }
}

impl Assembler {
    /// An empty reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next delta. Notices and failures leave the reply as it is.
    pub fn push(&mut self, delta: &Delta) {
        match delta {
            Delta::Text(more) => {
                self.text_bytes += more.len();
                match self.open.last_mut() {
                    Some(Building::Text(text)) => text.push_str(more),
                    _ => self.open.push(Building::Text(more.clone())),
                }
            }
            Delta::Reasoning(more) => match self.open.last_mut() {
                Some(Building::Reasoning { text, opaque: None }) => text.push_str(more),
                _ => self.open.push(Building::Reasoning {
                    text: more.clone(),
                    opaque: None,
                }),
            },
            Delta::ReasoningOpaque(data) => match self.open.last_mut() {
                Some(Building::Reasoning {
                    opaque: opaque @ None,
                    ..
                }) => *opaque = Some(data.clone()),
                _ => self.open.push(Building::Reasoning {
                    text: String::new(),
                    opaque: Some(data.clone()),
                }),
            },
            Delta::CallStarted { index, id, name } => self.open.push(Building::Call {
                index: *index,
                id: id.clone(),
                name: name.clone(),
                arguments: String::new(),
            }),
            Delta::CallArguments { index, fragment } => {
                let call = self
                    .open
                    .iter_mut()
                    .rev()
                    .find_map(|building| match building {
                        Building::Call {
                            index: at,
                            arguments,
                            ..
                        } if at == index => Some(arguments),
                        _ => None,
                    });
                if let Some(arguments) = call {
                    arguments.push_str(fragment);
                }
            }
            Delta::Usage(usage) => self.usage.merge(usage),
            Delta::Stop(stop) => self.stop = Some(stop.clone()),
            Delta::Failed(_) | Delta::Notice(_) => {}
        }
    }

    /// The text of the answer up to now. Costs a copy of it; see [`Assembler::text_bytes`].
    pub fn text_so_far(&self) -> String {
        let mut out = String::with_capacity(self.text_bytes);
        for building in &self.open {
            if let Building::Text(text) = building {
                out.push_str(text);
            }
        }
        out
    }

    /// Length in bytes of the text of the answer up to now.
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Token counts up to now.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Why the model stopped, once it has said so.
    pub fn stop(&self) -> Option<&StopReason> {
        self.stop.as_ref()
    }

    /// The reply. Ids that repeat within it are renamed (`a`, `a_2`, …).
    pub fn finish(self) -> Completion {
        self.finish_avoiding(|_| false)
    }

    /// As [`Assembler::finish`]; ids for which `taken` holds (those of earlier messages) are renamed as well.
    pub fn finish_avoiding(self, taken: impl Fn(&str) -> bool) -> Completion {
        let mut given: HashSet<Arc<str>> = HashSet::new();
        let parts = self
            .open
            .into_iter()
            .filter_map(|building| match building {
                Building::Text(text) => (!text.is_empty()).then(|| Part::Text(text.into())),
                Building::Reasoning { text, opaque } => (!text.is_empty() || opaque.is_some())
                    .then(|| Part::Reasoning {
                        text: text.into(),
                        opaque,
                    }),
                Building::Call {
                    id,
                    name,
                    arguments,
                    ..
                } => {
                    let id = unique(id, |id| given.contains(id) || taken(id));
                    given.insert(Arc::clone(&id));
                    Some(Part::Call(ToolCall {
                        id,
                        name: name.into(),
                        arguments: arguments.into(),
                    }))
                }
            })
            .collect();
        Completion {
            parts,
            usage: self.usage,
            stop: self.stop,
        }
    }
}

/// `id`, or the first of `id_2`, `id_3`, … that is free.
fn unique(id: String, taken: impl Fn(&str) -> bool) -> Arc<str> {
    if !id.is_empty() && !taken(&id) {
        return id.into();
    }
    let stem = if id.is_empty() { "call" } else { &id };
    let mut number = 2usize;
    loop {
        let candidate = format!("{stem}_{number}");
        if !taken(&candidate) {
            return candidate.into();
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(index: usize, id: &str) -> [Delta; 2] {
        [
            Delta::CallStarted {
                index,
                id: id.into(),
                name: "get".into(),
            },
            Delta::CallArguments {
                index,
                fragment: format!("{{\"q\":{index}}}"),
            },
        ]
    }

    #[test]
    fn parts_keep_the_order_in_which_they_began() {
        let mut assembler = Assembler::new();
        for delta in [
            Delta::Reasoning("th".into()),
            Delta::Reasoning("ink".into()),
            Delta::ReasoningOpaque(Json::parse("{\"s\":1}").unwrap()),
            Delta::ReasoningOpaque(Json::parse("{\"s\":2}").unwrap()),
            Delta::Text("an".into()),
            Delta::Text("swer".into()),
            Delta::Usage(Usage {
                input: Some(3),
                ..Usage::default()
            }),
            Delta::Stop(StopReason::EndTurn),
        ] {
            assembler.push(&delta);
        }
        assert_eq!(assembler.text_so_far(), "answer");
        assert_eq!(assembler.text_bytes(), 6);
        let done = assembler.finish();
        assert_eq!(
            done.parts,
            [
                Part::Reasoning {
                    text: "think".into(),
                    opaque: Some(Json::parse("{\"s\":1}").unwrap())
                },
                Part::Reasoning {
                    text: "".into(),
                    opaque: Some(Json::parse("{\"s\":2}").unwrap())
                },
                Part::text("answer"),
            ]
        );
        assert_eq!(done.stop, Some(StopReason::EndTurn));
        assert_eq!(done.usage.input, Some(3));
    }

    #[test]
    fn interleaved_arguments_go_to_their_own_call_and_ids_become_unique() {
        let mut assembler = Assembler::new();
        let [start_a, args_a] = call(0, "t:3");
        let [start_b, args_b] = call(1, "t:3");
        let [start_c, args_c] = call(2, "");
        for delta in [start_a, start_b, start_c, args_b, args_a, args_c] {
            assembler.push(&delta);
        }
        let done = assembler.finish_avoiding(|id| id == "t:3_2");
        let calls: Vec<_> = done
            .calls()
            .map(|call| (&*call.id, &*call.arguments))
            .collect();
        assert_eq!(
            calls,
            [
                ("t:3", r#"{"q":0}"#),
                ("t:3_3", r#"{"q":1}"#),
                ("call_2", r#"{"q":2}"#)
            ]
        );
    }
}
