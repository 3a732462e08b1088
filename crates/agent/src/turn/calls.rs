//! The calls of a turn: which start when, what stands in the place of one that cannot be made, and how their results
//! come together in the order of the calls.

use std::sync::Arc;
use std::time::Duration;

use attache_model::ToolCall;
use attache_session::{
    CallId, CallReport, CallResult, ErrorCode, Event, NewCall, ResultOrigin, StepText,
};

use super::{Output, Phase, Then, ToolStart, Turn};
use crate::pictures;
use crate::tool::{ToolError, ToolOutcome};

impl Turn {
    /// Whether calls of a tool are counted when they repeat.
    pub(super) fn counts(&self, name: &str) -> bool {
        self.config
            .tools
            .get(name)
            .is_none_or(|tool| !tool.may_repeat())
    }

    pub(super) fn record_calls(&mut self, step: StepText, calls: &[&ToolCall]) -> Vec<Output> {
        let turn = self.config.turn;
        self.called = true;
        self.history.push(&Event::Said {
            turn,
            step: step.clone(),
        });
        let mut recorded = Vec::with_capacity(calls.len());
        let mut now = Vec::new();
        let mut later = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            let id = self.unique_id(&call.id, index);
            let tool = self.config.tools.get(&call.name);
            let changes_state = tool.is_some_and(|tool| tool.changes_state());
            let new = NewCall {
                id: Arc::clone(&id),
                name: Arc::clone(&call.name),
                arguments: Arc::clone(&call.arguments),
                changes_state,
            };
            self.history.push(&Event::CallStarted {
                turn,
                call: new.clone(),
            });
            recorded.push(new);
            if self.counts(&call.name) {
                self.repeats
                    .begins(self.round, &id, &call.name, &call.arguments);
            }
            self.open.insert(index, (Arc::clone(&id), None));
            let start = match (tool, call.input()) {
                (None, _) => Err(self.unknown_tool(&call.name)),
                (_, Err(fault)) => Err(ToolError::invalid(fault.to_string())),
                (Some(tool), Ok(arguments)) => {
                    let arguments = arguments.to_value();
                    match tool.check(&arguments) {
                        Err(fault) => Err(ToolError::invalid(fault)),
                        Ok(()) => Ok(ToolStart {
                            call: Arc::clone(&id),
                            name: Arc::clone(&call.name),
                            arguments,
                        }),
                    }
                }
            };
            match start {
                // What stands behind a changing call starts behind it: it may look at the change.
                Ok(start) if changes_state || !later.is_empty() => later.push(start),
                Ok(start) => now.push(Output::Start(start)),
                Err(error) => self.put_result(&id, error.into(), Duration::ZERO),
            }
        }
        self.phase = Phase::RecordingStep {
            later,
            then: Then::Calls,
        };
        let mut out = vec![Output::RecordStep {
            step,
            calls: recorded,
        }];
        out.extend(now);
        out
    }

    pub(super) fn tool_ended(
        &mut self,
        call: &CallId,
        outcome: ToolOutcome,
        took: Duration,
    ) -> Vec<Output> {
        self.put_result(call, outcome, took);
        if matches!(self.phase, Phase::Calling) {
            self.give_results()
        } else {
            Vec::new()
        }
    }

    pub(super) fn put_result(&mut self, id: &CallId, outcome: ToolOutcome, took: Duration) {
        let ToolOutcome {
            content,
            is_error,
            spawned,
            images,
            report,
        } = pictures::within_bounds(outcome);
        let content: Arc<str> = content.into();
        self.repeats.ends(id, &content, &images);
        for (open, result) in self.open.values_mut() {
            if open == id && result.is_none() {
                *result = Some(CallResult {
                    call: Arc::clone(id),
                    content,
                    is_error,
                    spawned,
                    origin: ResultOrigin::Tool,
                    images,
                    took_micros: u64::try_from(took.as_micros()).ok(),
                    report: report.and_then(CallReport::bounded).map(Arc::new),
                });
                return;
            }
        }
    }

    /// Gives out the results that are there, in the order of the calls, unless others are under
    /// way to the record: those that come in meanwhile go together.
    pub(super) fn give_results(&mut self) -> Vec<Output> {
        if self.recording {
            return Vec::new();
        }
        let mut ready = Vec::new();
        self.open.retain(|_, (_, result)| match result.take() {
            Some(result) => {
                ready.push(result);
                false
            }
            None => true,
        });
        if ready.is_empty() {
            return Vec::new();
        }
        let turn = self.config.turn;
        for result in &ready {
            self.history.push(&Event::CallEnded {
                turn,
                result: result.clone(),
            });
        }
        self.recording = true;
        vec![Output::RecordResults(ready)]
    }

    /// Providers repeat ids over turns, and some within one; in a history each is unique.
    pub(super) fn unique_id(&self, id: &Arc<str>, index: usize) -> CallId {
        if !id.is_empty() && !self.history.knows_call(id) {
            return Arc::clone(id);
        }
        let base = if id.is_empty() { "call" } else { id };
        let turn = self.config.turn.0;
        let mut unique = format!("{base}_t{turn}r{}n{index}", self.round);
        while self.history.knows_call(&unique) {
            unique.push('x');
        }
        unique.into()
    }

    pub(super) fn unknown_tool(&self, name: &str) -> ToolError {
        let (shown, _) = attache_session::preview(name, 64);
        let close = self.config.tools.close_to(name);
        let hint = if close.is_empty() {
            "Use one of the tools that were offered.".to_owned()
        } else {
            format!("Did you mean {}?", close.join(", "))
        };
        ToolError::new(
            ErrorCode::InvalidArguments,
            format!("there is no tool named {shown:?}"),
        )
        .with_hint(hint)
    }
}
