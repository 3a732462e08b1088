//! Tool calls as text, for models that have no native ones: the tools are described in the instructions, calls are read
//! from marked lines of the answer, and results go back as user messages. Around any other model, so that nobody else
//! knows of it.
//!
//! A call is two lines, `tool_call_name: NAME` and `tool_call_arguments: {…}`; a line that is nothing but a tool's name,
//! with an object on the next one, is taken for a call too. Text before the first call is the answer's text; what stands
//! between and behind calls is left out.

mod parse;

use std::fmt::Write as _;
use std::sync::Arc;

use self::parse::{Call, Splitter};
use crate::delta::{Delta, Deltas, StopReason};
use crate::facts::ModelFacts;
use crate::message::{Message, Part};
use crate::model::{BoxFuture, Model, ModelStream, StreamStep};
use crate::request::{Request, ToolSet};
use crate::terms::Terms;

/// A model without native tool calls, used as one with them.
pub(crate) struct TextCalls(pub(crate) Arc<dyn Model>);

impl Model for TextCalls {
    fn start(&self, request: Request) -> Box<dyn ModelStream> {
        let names = if request.tools_allowed {
            let specs = request.tools.specs().iter();
            specs.map(|spec| Arc::clone(&spec.name)).collect()
        } else {
            Vec::new()
        };
        Box::new(TextCallStream {
            inner: self.0.start(translated(request)),
            splitter: Splitter::new(names),
            came: Deltas::new(),
            stop: None,
        })
    }

    fn provider(&self) -> &str {
        self.0.provider()
    }

    fn id(&self) -> &str {
        self.0.id()
    }

    fn terms(&self) -> Terms {
        self.0.terms()
    }

    fn facts(&self) -> ModelFacts {
        self.0.facts()
    }
}

/// The request without native calls.
fn translated(request: Request) -> Request {
    if request.tools.is_empty() {
        return request;
    }
    let mut system = request.system.as_deref().unwrap_or_default().to_owned();
    system.push_str(if system.is_empty() { "" } else { "\n\n" });
    system.push_str(
        "You can call tools. A call is two lines of your answer and nothing else on them:\n\
         tool_call_name: NAME\n\
         tool_call_arguments: {\"parameter\": \"value\"}\n\
         Several calls may follow each other. End your answer behind them: the results come as the next message. When you \
         need no tool, just answer.\n\nThe tools:\n",
    );
    for spec in request.tools.specs() {
        // Writing to a text cannot fail.
        let _ = writeln!(
            system,
            "- {}: {} Arguments: {}",
            spec.name, spec.description, spec.input_schema
        );
    }
    if !request.tools_allowed {
        system.push_str("\nNow answer without calling any tool.\n");
    }
    Request {
        system: Some(system.into()),
        messages: request.messages.into_iter().map(told).collect(),
        tools: Arc::new(ToolSet::default()),
        tools_allowed: true,
        ..request
    }
}

/// A message with its calls and results as text.
fn told(message: Message) -> Message {
    match message {
        Message::User(parts) => Message::User(parts),
        Message::Assistant(parts) => Message::Assistant(
            parts
                .into_iter()
                .map(|part| match part {
                    Part::Call(call) => Part::text(format!(
                        "\ntool_call_name: {}\ntool_call_arguments: {}\n",
                        call.name,
                        call.input().map_or_else(
                            |_fault| "{}".to_owned(),
                            |arguments| arguments.as_str().to_owned()
                        )
                    )),
                    other => other,
                })
                .collect(),
        ),
        Message::Tool(results) => {
            let mut parts = Vec::new();
            for result in results {
                let failed = if result.is_error { " (failed)" } else { "" };
                parts.push(Part::text(format!(
                    "[Tool result for {}]{failed}: {}\n",
                    result.name, result.content
                )));
                parts.extend(result.images.into_iter().map(|image| Part::Image {
                    media_type: image.media_type,
                    base64: image.base64,
                }));
            }
            Message::User(parts)
        }
    }
}

struct TextCallStream {
    inner: Box<dyn ModelStream>,
    splitter: Splitter,
    came: Deltas,
    /// How the model said it stopped, until it is known whether it called.
    stop: Option<StopReason>,
}

impl ModelStream for TextCallStream {
    fn next<'a>(&'a mut self, out: &'a mut Deltas) -> BoxFuture<'a, StreamStep> {
        Box::pin(async move {
            let step = self.inner.next(&mut self.came).await;
            let mut came = std::mem::take(&mut self.came);
            for delta in came.drain() {
                match delta {
                    Delta::Text(text) => say(self.splitter.push(&text), out),
                    Delta::Stop(stop) => self.stop = Some(stop),
                    other => out.push(other),
                }
            }
            self.came = came;
            if !matches!(step, StreamStep::Bytes) {
                self.finish(out);
            }
            step
        })
    }
}

impl TextCallStream {
    fn finish(&mut self, out: &mut Deltas) {
        let (text, calls) = self.splitter.finish();
        say(text, out);
        let called = !calls.is_empty();
        for (index, Call { name, arguments }) in calls.into_iter().enumerate() {
            out.push(Delta::CallStarted {
                index,
                id: format!("call_{index}"),
                name,
            });
            out.push(Delta::CallArguments {
                index,
                fragment: arguments,
            });
        }
        if let Some(stop) = self.stop.take() {
            out.push(Delta::Stop(match stop {
                StopReason::EndTurn if called => StopReason::ToolCalls,
                other => other,
            }));
        }
    }
}

fn say(text: String, out: &mut Deltas) {
    if !text.is_empty() {
        out.push(Delta::Text(text));
    }
}

#[cfg(test)]
mod tests;
