//! The turn's machine, step by step: what it asks for after each thing that happens.

use std::sync::Arc;

use attache_agent::{
    CallContext, History, Input, Output, SUMMARY_REQUEST, Tool, ToolFuture, ToolOutcome, Toolbelt,
    Turn, TurnConfig,
};
use attache_model::{
    Delta, ErrorKind, Json, Message, ModelError, Options, Part, Request, StopReason, ToolSpec,
    Usage,
};
use attache_session::{
    CallResult, EndReason, Event, ItemId, NewCall, Origin, QueuedItem, ResultOrigin, StepText,
    TurnId,
};
use serde_json::Value;
use uuid::Uuid;

use crate::history::user;
use crate::reports::ended;

struct Named(ToolSpec, bool);

impl Tool for Named {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn changes_state(&self) -> bool {
        self.1
    }

    fn check(&self, arguments: &Value) -> Result<(), String> {
        if *self.0.name == *"strict" && arguments.get("wrong").is_some() {
            return Err("`wrong` is no parameter: say what to mend".to_owned());
        }
        Ok(())
    }

    fn call<'a>(&'a self, _context: CallContext, _arguments: Value) -> ToolFuture<'a> {
        Box::pin(async { ToolOutcome::json(&Value::Null) })
    }
}

fn tool(name: &str, changes: bool) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: name.into(),
        description: "".into(),
        input_schema: Json::empty_object(),
    };
    Arc::new(Named(spec, changes))
}

pub(crate) fn options(limit: u32) -> TurnConfig {
    TurnConfig {
        turn: TurnId(3),
        model_id: "m".into(),
        model: "p/m".into(),
        system: "be good".into(),
        tools: Toolbelt::new(vec![
            tool("look_up", false),
            tool("look_down", false),
            tool("write", true),
            tool("strict", true),
        ]),
        options: Arc::new(Options::default()),
        iteration_limit: limit,
        reminders: false,
        context_limit: None,
        compact_at: 0.8,
    }
}

pub(crate) fn history() -> History {
    let mut history = History::new();
    let mut input = user("go");
    if let Event::Consumed { turn, .. } = &mut input {
        *turn = TurnId(3);
    }
    history.push(&input);
    history
}

pub(crate) fn turn(limit: u32) -> Turn {
    Turn::new(options(limit), history())
}

/// The events of a turn with a batch of two calls and an answer; with a second batch where `long`.
pub(crate) fn exchange(turn: TurnId, long: bool) -> Vec<Event> {
    let said = |text: &str| Event::Said {
        turn,
        step: StepText {
            text: text.into(),
            ..StepText::default()
        },
    };
    let mut events = vec![Event::TurnStarted { turn }, user("do it")];
    if let Event::Consumed { turn: of, .. } = &mut events[1] {
        *of = turn;
    }
    for batch in 0..=u32::from(long) {
        events.push(said("I look."));
        let id = |call: u32| format!("t{}b{batch}c{call}", turn.0);
        for call in 0..2 {
            events.push(Event::CallStarted {
                turn,
                call: NewCall {
                    id: id(call).into(),
                    name: "look_up".into(),
                    arguments: "{}".into(),
                    changes_state: false,
                },
            });
        }
        for call in 0..2 {
            events.push(Event::CallEnded {
                turn,
                result: CallResult {
                    call: id(call).into(),
                    content: "r".repeat(50).into(),
                    is_error: false,
                    spawned: None,
                    origin: ResultOrigin::Tool,
                    images: Vec::new(),
                    took_micros: None,
                    report: None,
                },
            });
        }
    }
    events.extend([
        said("That is it."),
        Event::TurnEnded {
            turn,
            reason: EndReason::Completed,
            result: None,
        },
    ]);
    events
}

pub(crate) fn text(text: &str) -> Input {
    Input::Delta(Delta::Text(text.to_owned()))
}

pub(crate) fn call(index: usize, id: &str, name: &str, arguments: &str) -> Vec<Input> {
    vec![
        Input::Delta(Delta::CallStarted {
            index,
            id: id.to_owned(),
            name: name.to_owned(),
        }),
        Input::Delta(Delta::CallArguments {
            index,
            fragment: arguments.to_owned(),
        }),
    ]
}

fn stop(reason: StopReason) -> Input {
    Input::Delta(Delta::Stop(reason))
}

pub(crate) fn recorded() -> Input {
    Input::ResultsRecorded {
        steered: Vec::new(),
    }
}

pub(crate) fn all(turn: &mut Turn, inputs: impl IntoIterator<Item = Input>) -> Vec<Output> {
    inputs
        .into_iter()
        .flat_map(|input| turn.handle(input))
        .collect()
}

pub(crate) fn asked(outputs: &[Output]) -> &Request {
    match outputs {
        [Output::Ask(request)] => request,
        other => panic!("one request was expected, not {other:?}"),
    }
}

pub(crate) fn step(outputs: &[Output]) -> (&StepText, &[NewCall]) {
    match &outputs[0] {
        Output::RecordStep { step, calls } => (step, calls),
        other => panic!("a step was expected, not {other:?}"),
    }
}

fn started(outputs: &[Output]) -> Vec<&str> {
    outputs
        .iter()
        .filter_map(|output| match output {
            Output::Start(start) => Some(&*start.call),
            _ => None,
        })
        .collect()
}

fn results(outputs: &[Output]) -> &[CallResult] {
    match outputs.first() {
        Some(Output::RecordResults(results)) => results,
        other => panic!("results were expected, not {other:?}"),
    }
}

pub(crate) fn end(outputs: &[Output]) -> (EndReason, Option<&StepText>, Option<&str>) {
    match outputs.last() {
        Some(Output::End {
            reason,
            step,
            error,
        }) => (*reason, step.as_ref(), error.as_deref()),
        other => panic!("an end was expected, not {other:?}"),
    }
}

#[test]
fn an_answer_without_calls_ends_the_turn() {
    let mut turn = turn(50);
    let first = turn.handle(Input::Begin);
    let request = asked(&first);
    assert_eq!(
        (&*request.model, request.system.as_deref()),
        ("m", Some("be good"))
    );
    assert!(request.tools_allowed);
    let usage = Usage {
        input: Some(5),
        output: Some(2),
        ..Usage::default()
    };
    let out = all(
        &mut turn,
        [
            text("All "),
            text("done."),
            Input::Delta(Delta::Usage(usage)),
            stop(StopReason::EndTurn),
            Input::ModelEnded,
        ],
    );
    let (reason, step, error) = end(&out);
    let step = step.unwrap();
    assert_eq!(
        (reason, &*step.text, error),
        (EndReason::Completed, "All done.", None)
    );
    assert_eq!((step.usage.input, step.usage.reasoning), (Some(5), None));
    assert!(
        turn.handle(text("late")).is_empty(),
        "nothing follows the end"
    );
}

#[test]
fn calls_run_side_by_side_and_their_results_are_recorded_as_they_come() {
    let mut turn = turn(50);
    turn.handle(Input::Begin);
    let mut inputs = call(0, "a", "look_up", "{\"x\":1}");
    inputs.extend(call(1, "b", "look_down", ""));
    inputs.extend([stop(StopReason::ToolCalls), Input::ModelEnded]);
    let out = all(&mut turn, inputs);
    let (_, calls) = step(&out);
    assert_eq!(
        calls.iter().map(|call| &*call.id).collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert_eq!(
        started(&out),
        ["a", "b"],
        "harmless calls start while the step is in commit"
    );

    assert!(
        turn.handle(ended("b", "B")).is_empty(),
        "no result before its call is on record"
    );
    let out = turn.handle(Input::StepRecorded);
    assert_eq!(results(&out)[0].call, "b".into());
    assert!(
        turn.handle(ended("a", "A")).is_empty(),
        "one record at a time"
    );
    let out = turn.handle(recorded());
    assert_eq!(results(&out)[0].call, "a".into());
    let out = turn.handle(recorded());
    let Some(Message::Tool(answers)) = asked(&out).messages.last() else {
        panic!("no results")
    };
    let shown: Vec<(&str, &str)> = answers.iter().map(|r| (&*r.call_id, &*r.content)).collect();
    assert_eq!(shown, [("a", "A"), ("b", "B")]);
}

#[test]
fn a_call_that_changes_state_waits_until_it_is_on_record() {
    let mut turn = turn(50);
    turn.handle(Input::Begin);
    let mut inputs = call(0, "w", "write", "{}");
    inputs.push(Input::ModelEnded);
    let out = all(&mut turn, inputs);
    assert!(started(&out).is_empty());
    assert!(step(&out).1[0].changes_state);
    assert_eq!(started(&turn.handle(Input::StepRecorded)), ["w"]);
}

#[test]
fn what_cannot_be_called_is_answered_and_its_siblings_run() {
    let mut turn = turn(50);
    turn.handle(Input::Begin);
    let long = "x".repeat(300);
    let mut inputs = call(0, "a", "look_sideways", "{}");
    inputs.extend(call(1, "b", "", "{}"));
    inputs.extend(call(2, "c", &long, "{}"));
    inputs.extend(call(3, "d", "look_up", "{\"mode\": fastt\"}"));
    inputs.extend(call(4, "e", "look_up", "[1,2]"));
    inputs.extend(call(5, "f", "look_up", "null"));
    inputs.push(Input::ModelEnded);
    let out = all(&mut turn, inputs);
    assert_eq!(started(&out), ["f"]);
    let out = turn.handle(Input::StepRecorded);
    let answered: Vec<(&str, Value)> = results(&out)
        .iter()
        .map(|result| {
            (
                &*result.call,
                serde_json::from_str(&result.content).unwrap(),
            )
        })
        .collect();
    assert_eq!(
        answered.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        ["a", "b", "c", "d", "e"]
    );
    let error = |n: usize| &answered[n].1["error"];
    assert!(results(&out).iter().all(|result| result.is_error));
    assert_eq!(error(0)["code"], "invalid-arguments");
    assert!(
        error(0)["hint"].as_str().unwrap().contains("look_down"),
        "{}",
        error(0)
    );
    assert!(
        error(2)["message"].as_str().unwrap().len() < 120,
        "{}",
        error(2)
    );
    assert!(
        error(3)["message"]
            .as_str()
            .unwrap()
            .contains("not valid JSON"),
        "{}",
        error(3)
    );
    assert!(
        error(4)["message"].as_str().unwrap().contains("array"),
        "{}",
        error(4)
    );
}

#[test]
fn ids_are_unique_in_the_whole_history() {
    let mut turn = turn(50);
    turn.handle(Input::Begin);
    let mut seen = Vec::new();
    for number in 0..3 {
        let arguments = format!("{{\"n\":{number}}}");
        let mut inputs = call(0, "same", "look_up", &arguments);
        inputs.push(Input::ModelEnded);
        let out = all(&mut turn, inputs);
        let id = step(&out).1[0].id.to_string();
        assert!(id.starts_with("same"), "{id}");
        assert!(!seen.contains(&id), "{id} again");
        turn.handle(Input::StepRecorded);
        turn.handle(ended(&id, "x"));
        turn.handle(recorded());
        seen.push(id);
    }
}

#[test]
fn the_last_round_is_without_tools_and_asks_for_a_summary() {
    let mut turn = turn(2);
    assert!(asked(&turn.handle(Input::Begin)).tools_allowed);
    let mut inputs = call(0, "a", "look_up", "{}");
    inputs.extend([Input::ModelEnded, Input::StepRecorded, ended("a", "A")]);
    all(&mut turn, inputs);
    let out = turn.handle(recorded());
    let request = asked(&out);
    assert!(!request.tools_allowed);
    let Some(Message::User(parts)) = request.messages.last() else {
        panic!("no summary request")
    };
    assert_eq!(parts, &[Part::text(SUMMARY_REQUEST)]);
    let out = all(
        &mut turn,
        [text("That is what was done."), Input::ModelEnded],
    );
    let (reason, step, _) = end(&out);
    assert_eq!(
        (reason, &*step.unwrap().text),
        (EndReason::IterationLimit, "That is what was done.")
    );
}

#[test]
fn steering_joins_behind_the_results() {
    let mut turn = turn(50);
    turn.handle(Input::Begin);
    let mut inputs = call(0, "a", "look_up", "{}");
    inputs.extend([Input::ModelEnded, Input::StepRecorded, ended("a", "A")]);
    all(&mut turn, inputs);
    let steer = |n: u128, text: &str| {
        let id = ItemId(Uuid::from_u128(n));
        Arc::new(QueuedItem {
            id,
            revision: 0,
            text: text.into(),
            origin: Origin::Viewer,
        })
    };
    let steered = vec![steer(1, "first"), steer(2, "second")];
    let out = turn.handle(Input::ResultsRecorded { steered });
    let tail: Vec<Message> = asked(&out)
        .messages
        .iter()
        .rev()
        .take(2)
        .rev()
        .cloned()
        .collect();
    assert_eq!(
        tail,
        [
            Message::User(vec![Part::text("first")]),
            Message::User(vec![Part::text("second")])
        ]
    );
}

#[test]
fn an_interrupt_keeps_what_was_streamed_and_what_was_found() {
    let mut streaming = turn(50);
    streaming.handle(Input::Begin);
    let out = all(
        &mut streaming,
        [text("Half an ans"), Input::Cancel(EndReason::Interrupted)],
    );
    let (reason, step, _) = end(&out);
    let step = step.unwrap();
    assert_eq!(
        (reason, &*step.text, step.incomplete),
        (EndReason::Interrupted, "Half an ans", true)
    );

    let mut calling = turn(50);
    calling.handle(Input::Begin);
    let mut inputs = call(0, "a", "look_up", "{}");
    inputs.extend(call(1, "b", "look_down", "{}"));
    inputs.extend([
        Input::ModelEnded,
        ended("a", "A"),
        Input::Cancel(EndReason::Cancelled),
    ]);
    let out = all(&mut calling, inputs);
    let kept = out.iter().find_map(|output| match output {
        Output::RecordResults(results) => Some(results),
        _ => None,
    });
    assert_eq!(kept.unwrap()[0].call, "a".into());
    assert_eq!(end(&out).0, EndReason::Cancelled);
}

#[test]
fn each_way_to_stop_has_its_end_reason() {
    let table = [
        (vec![text("x")], StopReason::EndTurn, EndReason::Completed),
        (vec![], StopReason::EndTurn, EndReason::NoOutput),
        (vec![text("x")], StopReason::Length, EndReason::Length),
        (vec![text("x")], StopReason::Refusal, EndReason::Refusal),
        (
            vec![text("x")],
            StopReason::ContentFilter,
            EndReason::ContentFilter,
        ),
        (
            vec![text("x")],
            StopReason::Other("pause".to_owned()),
            EndReason::Completed,
        ),
        (
            call(0, "a", "look_up", "{\"cut"),
            StopReason::Length,
            EndReason::Length,
        ),
    ];
    for (inputs, reason, wanted) in table {
        let mut turn = turn(50);
        turn.handle(Input::Begin);
        all(&mut turn, inputs);
        turn.handle(stop(reason));
        let out = turn.handle(Input::ModelEnded);
        assert_eq!(end(&out).0, wanted);
        assert!(started(&out).is_empty());
    }
}

#[test]
fn a_provider_that_fails_ends_the_turn_with_its_words() {
    let mut turn = turn(50);
    turn.handle(Input::Begin);
    let mut inputs = vec![text("so far")];
    inputs.extend(call(0, "a", "write", "{\"path\":\"/tmp/x\",\"con"));
    inputs.push(Input::ModelFailed(ModelError::new(
        ErrorKind::Truncated,
        "the stream ended early",
    )));
    let out = all(&mut turn, inputs);
    assert!(started(&out).is_empty(), "half a call never runs");
    let (reason, step, error) = end(&out);
    assert_eq!(
        (reason, error),
        (EndReason::ProviderError, Some("the stream ended early"))
    );
    assert!(step.unwrap().incomplete);
}
