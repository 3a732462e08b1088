//! The turn as a pure machine: what happened goes in, what is to be done comes out.
//!
//! It asks the model, records the step, starts the calls, records their results, and asks again,
//! until the model has nothing more to call, a limit is reached, something fails or it is
//! cancelled. When the conversation outgrows the model's context it makes room first. It starts
//! nothing by itself and knows no time.

mod calls;
mod pictures;
mod reminders;
mod repeats;
mod room;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use attache_model::{
    Assembler, Completion, Delta, ErrorKind, Message, ModelError, Options, Part, Request,
    StopReason, ToolCall,
};
use attache_session::{
    CallId, CallResult, Cut, EndReason, Event, NewCall, QueueId, QueuedItem, StepText, TurnId,
    Usage,
};
use serde_json::Value;

use crate::history::{ADAPTED, History, MENDED, reasoning_json};
use crate::tool::ToolOutcome;
use crate::toolset::Toolbelt;

use pictures::Pictures;
use repeats::Repeats;
use room::Room;

/// What the last round of a run that reached its limit is asked.
pub const SUMMARY_REQUEST: &str = "You have reached the limit of rounds for this run, and no more \
    tools can be called. Summarise what was done, what was found, and what is left to do.";

/// What a turn runs with.
#[derive(Clone)]
pub struct TurnConfig {
    /// The turn.
    pub turn: TurnId,
    /// The model's id at its provider.
    pub model_id: Arc<str>,
    /// The model as `PROVIDER/MODEL`.
    pub model: Arc<str>,
    /// Instructions.
    pub system: Arc<str>,
    /// The tools.
    pub tools: Toolbelt,
    /// Options of each request.
    pub options: Arc<Options>,
    /// Rounds at most; the last one is without tools. At least 1.
    pub iteration_limit: u32,
    /// Whether answers that are none (nothing, an announcement, a claim) are answered with a reminder.
    pub reminders: bool,
    /// Tokens that the model's context holds; none when that is not known.
    pub context_limit: Option<u64>,
    /// The share of it at which room is made.
    pub compact_at: f64,
}

/// What happened.
#[derive(Clone, PartialEq, Debug)]
pub enum Input {
    /// The turn may begin.
    Begin,
    /// The model's stream gave this.
    Delta(Delta),
    /// The model's stream ended in good order.
    ModelEnded,
    /// The model's stream failed.
    ModelFailed(ModelError),
    /// The step that was last given out is on record.
    StepRecorded,
    /// A call ended.
    ToolEnded {
        /// The call.
        call: CallId,
        /// What it came to.
        outcome: ToolOutcome,
        /// How long it ran.
        took: Duration,
    },
    /// The cut that was last given out is on record; this is told again beside the summary.
    CompactionRecorded {
        /// The request that is being worked on, and what the driver added.
        restated: Arc<str>,
    },
    /// Results are on record, and this input joined the turn behind them.
    ResultsRecorded {
        /// The input.
        steered: Vec<Arc<QueuedItem>>,
    },
    /// The turn is to end now.
    Cancel(EndReason),
}

/// A call that is to be started.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolStart {
    /// The call.
    pub call: CallId,
    /// The tool; it exists.
    pub name: Arc<str>,
    /// Its arguments: a JSON object.
    pub arguments: Value,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Output {
    /// Ask the model. An earlier request is over.
    Ask(Box<Request>),
    /// Ask the model for a summary; what it says is nobody's answer.
    Summarise(Box<Request>),
    /// Record what was said and the calls that follow.
    RecordStep {
        /// What was said.
        step: StepText,
        /// The calls.
        calls: Vec<NewCall>,
    },
    /// Record that the conversation is cut. The driver adds what else is to be told again.
    RecordCompaction {
        /// Where.
        cut: Cut,
        /// The summary.
        step: StepText,
        /// The request that is being worked on, if it was cut off.
        request: String,
        /// Tokens of the prompt before.
        before: Option<u64>,
    },
    /// Start a call.
    Start(ToolStart),
    /// Record results.
    RecordResults(Vec<CallResult>),
    /// Record a note for people. Nothing waits for it.
    Note {
        /// A stable code.
        code: &'static str,
        /// A safe text.
        text: Arc<str>,
    },
    /// End the turn: drop the request, cancel the calls, record the end. Nothing follows.
    End {
        /// How.
        reason: EndReason,
        /// What was said last and is not on record.
        step: Option<StepText>,
        /// What went wrong, for people.
        error: Option<Arc<str>>,
    },
}

enum Phase {
    Waiting,
    Asking(Assembler),
    Summarising {
        answer: Assembler,
        cut: Cut,
        request: String,
    },
    RecordingCut {
        cut: Cut,
        summary: Arc<str>,
    },
    RecordingStep {
        later: Vec<ToolStart>,
        then: Then,
    },
    Calling,
    Ended,
}

/// One turn.
pub struct Turn {
    config: TurnConfig,
    history: History,
    phase: Phase,
    round: u32,
    /// Calls without a recorded result, in order; the value is a result that is not yet given out.
    open: BTreeMap<usize, (CallId, Option<CallResult>)>,
    /// Results that are given out and not yet on record.
    recording: bool,
    spoke: bool,
    repeats: Repeats,
    /// Calls have been made in this run.
    called: bool,
    /// Reminded of an empty answer, and of an announcement or a claim.
    reminded: (bool, bool),
    /// What the next request says at its end; it is no part of the history.
    remark: Option<String>,
    room: Room,
    pictures: Pictures,
}

/// What follows a step that is on record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Its calls.
    Calls,
    /// Another request: the model was reminded.
    Ask,
}

impl Turn {
    /// A turn over the history up to and with its own input.
    #[must_use]
    pub fn new(config: TurnConfig, history: History) -> Self {
        let room = Room::new(&config, &history);
        Self {
            config,
            history,
            phase: Phase::Waiting,
            round: 0,
            open: BTreeMap::new(),
            recording: false,
            spoke: false,
            repeats: Repeats::default(),
            called: false,
            reminded: (false, false),
            remark: None,
            room,
            pictures: Pictures::default(),
        }
    }

    /// Takes in what happened; the answer is to be carried out in order.
    pub fn handle(&mut self, input: Input) -> Vec<Output> {
        match (input, &mut self.phase) {
            (_, Phase::Ended) => Vec::new(),
            (Input::Cancel(reason), _) => self.cancel(reason),
            (Input::Begin, Phase::Waiting) => self.begin(),
            (Input::Delta(Delta::Failed(error)), Phase::Asking(_))
            | (Input::ModelFailed(error), Phase::Asking(_)) => self.model_failed(&error),
            (Input::Delta(Delta::Failed(error)), Phase::Summarising { .. })
            | (Input::ModelFailed(error), Phase::Summarising { .. }) => self.summary_failed(&error),
            (Input::Delta(Delta::Notice(text)), Phase::Asking(_) | Phase::Summarising { .. }) => {
                self.tell(ADAPTED, text).into_iter().collect()
            }
            (Input::Delta(delta), Phase::Asking(answer) | Phase::Summarising { answer, .. }) => {
                answer.push(&delta);
                Vec::new()
            }
            (Input::ModelEnded, Phase::Asking(_)) => self.model_ended(),
            (Input::ModelEnded, Phase::Summarising { .. }) => self.summarised(),
            (Input::CompactionRecorded { restated }, Phase::RecordingCut { .. }) => {
                self.cut_recorded(&restated)
            }
            (
                Input::StepRecorded,
                Phase::RecordingStep {
                    then: Then::Ask, ..
                },
            ) => self.ask(),
            (Input::StepRecorded, Phase::RecordingStep { later, .. }) => {
                let later = std::mem::take(later);
                self.phase = Phase::Calling;
                let mut out: Vec<Output> = later.into_iter().map(Output::Start).collect();
                out.extend(self.give_results());
                out
            }
            (
                Input::ToolEnded {
                    call,
                    outcome,
                    took,
                },
                Phase::RecordingStep { .. } | Phase::Calling,
            ) => self.tool_ended(&call, outcome, took),
            (Input::ResultsRecorded { steered }, Phase::Calling) => self.results_recorded(steered),
            // Late word of something that is over.
            (_, _) => Vec::new(),
        }
    }

    fn begin(&mut self) -> Vec<Output> {
        let mut out = Vec::new();
        for stray in self.history.strays().to_vec() {
            let text = format!(
                "a stored result of call {stray:?} has no call before it; no model is sent it"
            );
            out.extend(self.tell(MENDED, text));
        }
        out.extend(self.ask());
        out
    }

    /// Tells people once in a session what is different in its requests.
    fn tell(&mut self, code: &'static str, text: String) -> Option<Output> {
        if self.history.has_told(&text) {
            return None;
        }
        let text: Arc<str> = text.into();
        self.history.push(&Event::Noted {
            code: code.into(),
            text: Arc::clone(&text),
        });
        Some(Output::Note { code, text })
    }

    fn is_last_round(&self) -> bool {
        self.round >= self.config.iteration_limit
    }

    fn ask(&mut self) -> Vec<Output> {
        let mut messages = self.history.messages();
        if let Some(out) = self.make_room_in_time(&messages) {
            return out;
        }
        self.round += 1;
        let last = self.is_last_round() && self.round > 1;
        let remarks = [self.remark.take(), self.repeats.remark()];
        for remark in remarks.into_iter().flatten().filter(|_| !last) {
            messages.push(Message::User(vec![Part::text(remark)]));
        }
        if last {
            messages.push(Message::User(vec![Part::text(SUMMARY_REQUEST)]));
        }
        self.phase = Phase::Asking(Assembler::new());
        let request = self.request(messages, !last);
        self.room.asked(request.text_len());
        vec![Output::Ask(Box::new(request))]
    }

    fn request(&mut self, messages: Vec<Message>, tools_allowed: bool) -> Request {
        self.pictures.goes_out(Request {
            model: Arc::clone(&self.config.model_id),
            system: Some(Arc::clone(&self.config.system)),
            messages,
            tools: Arc::clone(self.config.tools.offered()),
            tools_allowed,
            options: Arc::clone(&self.config.options),
        })
    }

    fn model_ended(&mut self) -> Vec<Output> {
        let Phase::Asking(answer) = std::mem::replace(&mut self.phase, Phase::Calling) else {
            return Vec::new();
        };
        let completion = answer.finish();
        self.room.answered(completion.usage.input);
        let step = self.step_of(&completion, false);
        let silent = step.text.trim().is_empty();
        self.spoke |= !silent;
        let last = self.is_last_round();
        let calls: Vec<&ToolCall> = completion.calls().collect();
        // A stop for length, refusal or filter leaves calls that may be cut: they never run.
        let reason = match &completion.stop {
            Some(StopReason::Length) => Some(EndReason::Length),
            Some(StopReason::Refusal) => Some(EndReason::Refusal),
            Some(StopReason::ContentFilter) => Some(EndReason::ContentFilter),
            _ if last && self.round > 1 => Some(EndReason::IterationLimit),
            _ if !calls.is_empty() => None,
            _ if let Some(remark) = self.reminder(&step.text) => {
                return self.remind(step, remark);
            }
            _ if self.spoke => Some(EndReason::Completed),
            _ => Some(EndReason::NoOutput),
        };
        let repeated = calls.iter().find(|call| {
            let counts = self.counts(&call.name);
            counts
                && self
                    .repeats
                    .is_too_often(self.round, &call.name, &call.arguments)
        });
        if let (None, Some(call)) = (reason, repeated) {
            let (name, _) = attache_session::preview(&call.name, 64);
            let error = format!(
                "the model has made the same call of {name:?} three times in a row, with the same result"
            );
            self.phase = Phase::Ended;
            return vec![Output::End {
                reason: EndReason::RepeatedCall,
                step: Some(step),
                error: Some(error.into()),
            }];
        }
        match reason {
            Some(reason) => {
                self.phase = Phase::Ended;
                vec![Output::End {
                    reason,
                    step: Some(step),
                    error: told_of(reason, silent),
                }]
            }
            None => self.record_calls(step, &calls),
        }
    }

    /// What the model is to be reminded of instead of letting the run end with this text.
    fn reminder(&mut self, text: &str) -> Option<&'static str> {
        let offered = !self.config.tools.offered().is_empty();
        if !self.config.reminders {
            return None;
        }
        if text.trim().is_empty() {
            return (!std::mem::replace(&mut self.reminded.0, true)).then_some(reminders::EMPTY);
        }
        if self.called || self.reminded.1 || !offered {
            return None;
        }
        let remark = reminders::reminder(text)?;
        self.reminded.1 = true;
        Some(remark)
    }

    fn remind(&mut self, step: StepText, remark: &str) -> Vec<Output> {
        self.remark = Some(remark.to_owned());
        self.history.push(&Event::Said {
            turn: self.config.turn,
            step: step.clone(),
        });
        self.phase = Phase::RecordingStep {
            later: Vec::new(),
            then: Then::Ask,
        };
        vec![Output::RecordStep {
            step,
            calls: Vec::new(),
        }]
    }

    fn results_recorded(&mut self, steered: Vec<Arc<QueuedItem>>) -> Vec<Output> {
        self.recording = false;
        let turn = self.config.turn;
        for item in steered {
            self.history.push(&Event::Consumed {
                turn,
                queue: QueueId::Immediate,
                item,
            });
        }
        if self.open.is_empty() {
            self.ask()
        } else {
            self.give_results()
        }
    }

    fn model_failed(&mut self, error: &ModelError) -> Vec<Output> {
        let Phase::Asking(answer) = std::mem::replace(&mut self.phase, Phase::Ended) else {
            return Vec::new();
        };
        let step = self.step_of(&answer.finish(), true);
        if step.is_silent()
            && let Some(request) = self.pictures.refused(error)
        {
            self.phase = Phase::Asking(Assembler::new());
            return self.again_without_pictures(request, error, Output::Ask);
        }
        if error.kind == ErrorKind::ContextOverflow && step.is_silent() {
            // The request that did not fit was no round.
            self.round -= 1;
            return self.make_room(&error.message);
        }
        vec![Output::End {
            reason: EndReason::ProviderError,
            step: (!step.is_silent()).then_some(step),
            error: Some(error.message.as_str().into()),
        }]
    }

    fn cancel(&mut self, reason: EndReason) -> Vec<Output> {
        let step = match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Asking(answer) => Some(self.step_of(&answer.finish(), true)),
            // Half a summary is nobody's answer.
            _ => None,
        };
        let mut out = Vec::new();
        let ready: Vec<CallResult> = self
            .open
            .values_mut()
            .filter_map(|(_, result)| result.take())
            .collect();
        if !ready.is_empty() {
            out.push(Output::RecordResults(ready));
        }
        let step = step.filter(|step| !step.is_silent());
        out.push(Output::End {
            reason,
            step,
            error: None,
        });
        out
    }

    fn step_of(&self, completion: &Completion, incomplete: bool) -> StepText {
        let mut reasoning = String::new();
        for part in &completion.parts {
            if let Part::Reasoning { text, .. } = part {
                reasoning.push_str(text);
            }
        }
        let attache_model::Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning: thought,
        } = completion.usage;
        StepText {
            text: completion.text().into(),
            reasoning: reasoning.into(),
            // What was cut has no signature that a provider would accept.
            opaque: if incomplete {
                None
            } else {
                reasoning_json(&completion.parts)
            },
            usage: Usage {
                input,
                output,
                cache_read,
                cache_write,
                reasoning: thought,
            },
            // Prices are the driver's.
            cost: None,
            model: Arc::clone(&self.config.model),
            incomplete,
        }
    }
}

/// What people are told of an end that is not what they expect.
fn told_of(reason: EndReason, silent: bool) -> Option<Arc<str>> {
    let text = match reason {
        EndReason::Completed if silent => {
            "the last answer was empty; the result is the last text of the run before it"
        }
        EndReason::Length => "the answer was cut at the provider's length limit",
        EndReason::Refusal => "the model refused to answer",
        EndReason::ContentFilter => "the provider's content filter cut the answer",
        _ => return None,
    };
    Some(text.into())
}
