//! How runs end that end oddly: empty answers, claims, announcements, repeated calls, calls that cannot be made, and
//! conversations that do not fit. G-08, G-09, G-14, G-15, G-16.

use attache_agent::{History, Input, Output, SUMMARISE, Turn, TurnConfig};
use attache_model::{Delta, ErrorKind, Message, ModelError, Part, Request, StopReason, Usage};
use attache_session::{Cut, EndReason, Event, TurnId};

use crate::reports::ended;
use crate::turn::{all, asked, call, end, options, recorded, step, text};

fn config(change: impl FnOnce(&mut TurnConfig)) -> TurnConfig {
    let mut config = options(50);
    config.reminders = true;
    change(&mut config);
    config
}

fn begun(config: TurnConfig) -> Turn {
    let mut turn = Turn::new(config, crate::turn::history());
    let out = turn.handle(Input::Begin);
    asked(&out);
    turn
}

/// What the newest request says last, as a user.
fn remark(request: &Request) -> String {
    match request.messages.last() {
        Some(Message::User(parts)) => match parts.first() {
            Some(Part::Text(text)) => text.to_string(),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// Says something without a call; the answer is what follows once it is on record.
fn says(turn: &mut Turn, words: &str) -> Vec<Output> {
    let mut inputs = Vec::new();
    if !words.is_empty() {
        inputs.push(text(words));
    }
    inputs.push(Input::ModelEnded);
    let out = all(turn, inputs);
    if out.iter().any(|it| matches!(it, Output::RecordStep { .. })) {
        turn.handle(Input::StepRecorded)
    } else {
        out
    }
}

/// Makes a call and gives it a result; the answer is what follows.
fn round(turn: &mut Turn, name: &str, arguments: &str, result: &str) -> Vec<Output> {
    let mut inputs = call(0, "c", name, arguments);
    inputs.push(Input::ModelEnded);
    let out = all(turn, inputs);
    if out.iter().any(|it| matches!(it, Output::End { .. })) {
        return out;
    }
    let id = step(&out).1[0].id.to_string();
    let mut out = turn.handle(Input::StepRecorded);
    // A call that cannot be made has its result already.
    if !out.iter().any(|it| matches!(it, Output::RecordResults(_))) {
        out = turn.handle(ended(&id, result));
    }
    assert!(out.iter().any(|it| matches!(it, Output::RecordResults(_))));
    turn.handle(recorded())
}

#[test]
fn g16_an_empty_last_answer_is_reminded_of_once() {
    for with_text in [false, true] {
        let mut turn = begun(config(|_| {}));
        let mut inputs = call(0, "a", "look_up", "{}");
        if with_text {
            inputs.insert(0, text("Report: all is well."));
        }
        inputs.extend([Input::ModelEnded, Input::StepRecorded, ended("a", "A")]);
        all(&mut turn, inputs);
        asked(&turn.handle(recorded()));
        let out = says(&mut turn, "");
        assert!(remark(asked(&out)).contains("was empty"));
        let out = says(&mut turn, "");
        let (reason, ..) = end(&out);
        // What was said with a call before is the run's result.
        let want = if with_text {
            EndReason::Completed
        } else {
            EndReason::NoOutput
        };
        assert_eq!(reason, want);
    }
}

#[test]
fn claims_and_announcements_are_reminded_of_once_and_only_where_no_tool_ran() {
    for (words, wanted) in [
        ("I've saved the file.", "nothing was done"),
        ("Let me look at it:", "announced"),
    ] {
        let mut turn = begun(config(|_| {}));
        let out = says(&mut turn, words);
        let request = asked(&out);
        assert!(remark(request).contains(wanted), "{}", remark(request));
        // What was said stays in the history, with the reminder behind it.
        assert!(matches!(
            &request.messages[request.messages.len() - 2],
            Message::Assistant(parts) if parts == &[Part::text(words)]
        ));
        let out = says(&mut turn, words);
        assert_eq!(end(&out).0, EndReason::Completed, "once");

        let mut turn = begun(config(|_| {}));
        asked(&round(&mut turn, "look_up", "{}", "found"));
        assert_eq!(end(&says(&mut turn, words)).0, EndReason::Completed);

        let mut turn = begun(config(|config| config.reminders = false));
        assert_eq!(end(&says(&mut turn, words)).0, EndReason::Completed);

        let mut turn = begun(config(|config| {
            config.tools = attache_agent::Toolbelt::default()
        }));
        assert_eq!(end(&says(&mut turn, words)).0, EndReason::Completed);
    }
}

#[test]
fn the_same_call_with_the_same_result_is_told_once_and_then_ends_the_run() {
    let mut turn = begun(config(|_| {}));
    let out = round(&mut turn, "look_up", r#"{"a":1,"b":2}"#, "same");
    assert_eq!(remark(asked(&out)), "", "once is nothing");
    // The order of members does not matter.
    let out = round(&mut turn, "look_up", r#"{ "b": 2, "a": 1 }"#, "same");
    assert!(remark(asked(&out)).contains("again with the same arguments"));
    let out = round(&mut turn, "look_up", r#"{"a":1,"b":2}"#, "same");
    let (reason, _, error) = end(&out);
    assert_eq!(reason, EndReason::RepeatedCall);
    assert!(error.unwrap().contains("look_up"));
}

#[test]
fn a_call_whose_result_changes_or_that_others_follow_is_no_repetition() {
    let mut turn = begun(config(|_| {}));
    for number in 0..6 {
        let out = round(&mut turn, "look_up", "{}", &format!("result {number}"));
        assert_eq!(remark(asked(&out)), "", "{number}");
    }
    for number in 0..6 {
        let name = ["look_up", "look_down"][number % 2];
        let out = round(&mut turn, name, r#"{"x":1}"#, "same");
        assert_eq!(remark(asked(&out)), "", "{number}");
    }
}

#[test]
fn g08_g09_calls_that_cannot_be_made_are_told_so_and_bounded() {
    for (name, arguments, wanted) in [
        ("look_upp", "{}", "there is no tool"),
        ("", "{}", "there is no tool"),
        ("foo bar/../x", "{}", "there is no tool"),
        ("look_up", r#"{"mode": fastt"}"#, "not valid JSON"),
        ("look_up", "[1,2]", "array"),
    ] {
        let mut turn = begun(config(|_| {}));
        let out = round(&mut turn, name, arguments, "");
        let Some(Message::Tool(results)) = asked(&out).messages.last() else {
            panic!("{name}: a result was expected")
        };
        assert!(
            results[0].is_error && results[0].content.contains(wanted),
            "{}",
            results[0].content
        );
        let out = round(&mut turn, name, arguments, "");
        assert!(
            remark(asked(&out)).contains("the result is the same"),
            "{name}"
        );
        let out = round(&mut turn, name, arguments, "");
        assert_eq!(end(&out).0, EndReason::RepeatedCall, "{name}");
    }
}

#[test]
fn each_stop_of_the_provider_has_its_end_and_its_calls_never_run() {
    for (stop, reason) in [
        (StopReason::Length, EndReason::Length),
        (StopReason::Refusal, EndReason::Refusal),
        (StopReason::ContentFilter, EndReason::ContentFilter),
    ] {
        let mut turn = begun(config(|_| {}));
        let mut inputs = vec![text("so far")];
        inputs.extend(call(0, "a", "write", "{\"x\":"));
        inputs.extend([Input::Delta(Delta::Stop(stop)), Input::ModelEnded]);
        let out = all(&mut turn, inputs);
        let (ended, step, error) = end(&out);
        assert_eq!(ended, reason);
        assert_eq!(&*step.unwrap().text, "so far");
        assert!(error.is_some());
        assert_eq!(out.len(), 1, "nothing runs");
    }
}

fn overflow() -> Input {
    Input::ModelFailed(ModelError::new(
        ErrorKind::ContextOverflow,
        "maximum context length is 131072 tokens",
    ))
}

fn summarise(out: &[Output]) -> &Request {
    match out {
        [Output::Summarise(request)] => request,
        other => panic!("a summary was expected, not {other:?}"),
    }
}

/// Answers the question for a summary and has it recorded; the answer is what follows.
fn summed_up(turn: &mut Turn, restated: &str) -> Vec<Output> {
    let out = all(turn, [text("It went well."), Input::ModelEnded]);
    let [Output::RecordCompaction { step, request, .. }] = &*out else {
        panic!("a cut was expected, not {out:?}")
    };
    assert_eq!(&*step.text, "It went well.");
    let restated = format!("{request}\n{restated}");
    turn.handle(Input::CompactionRecorded {
        restated: restated.into(),
    })
}

fn first_text(request: &Request) -> String {
    match &request.messages[0] {
        Message::User(parts) => match &parts[0] {
            Part::Text(text) => text.to_string(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn g14_a_request_that_does_not_fit_is_cut_and_asked_again_in_the_middle_of_a_turn() {
    let mut turn = begun(config(|_| {}));
    asked(&round(&mut turn, "look_up", "{}", &"x".repeat(90_000)));
    let out = turn.handle(overflow());
    let request = summarise(&out);
    assert!(!request.tools_allowed);
    assert_eq!(remark(request), SUMMARISE);
    let out = summed_up(&mut turn, "[Your sub-agents]\n- one");
    let request = asked(&out);
    // The summary, the request that is worked on, and what the driver added.
    let told = first_text(request);
    for wanted in [
        "It went well.",
        "being worked on",
        "go",
        "[Your sub-agents]",
    ] {
        assert!(told.contains(wanted), "{told}");
    }
    assert!(request.text_len() < 20_000);
    let out = says(&mut turn, "done");
    assert_eq!(end(&out).0, EndReason::Completed);
}

#[test]
fn g14_a_limit_that_is_known_too_large_does_not_make_the_question_too_long() {
    for limit in [None, Some(1_000_000)] {
        let mut turn = begun(config(|it| it.context_limit = limit));
        let too_long = asked(&round(&mut turn, "look_up", "{}", &"x y ".repeat(22_500))).text_len();
        let no = ModelError::new(ErrorKind::ContextOverflow, "too long");
        let out = turn.handle(Input::ModelFailed(no));
        let question = summarise(&out).text_len();
        assert!(question < too_long, "{question} of {too_long} bytes");
    }
}

#[test]
fn g14_with_no_room_gained_it_stops_after_two_tries_with_a_plain_reason() {
    // The provider says overflow whatever it is asked.
    let mut turn = begun(config(|_| {}));
    asked(&round(&mut turn, "look_up", "{}", "small"));
    let mut out = turn.handle(overflow());
    let mut summaries = 0;
    let mut requests = 1;
    while !out.iter().any(|it| matches!(it, Output::End { .. })) {
        match &*out {
            [Output::Summarise(_)] => {
                summaries += 1;
                // The first summary works, the second does not fit either.
                out = if summaries == 1 {
                    summed_up(&mut turn, "")
                } else {
                    turn.handle(overflow())
                };
            }
            [Output::Ask(_)] => {
                requests += 1;
                out = turn.handle(overflow());
            }
            other => panic!("{other:?}"),
        }
        assert!(
            summaries <= 2 && requests <= 3,
            "no loop that drives itself"
        );
    }
    let (reason, _, error) = end(&out);
    assert_eq!(reason, EndReason::ProviderError);
    let error = error.unwrap();
    assert!(
        error.contains("does not fit into the model's context"),
        "{error}"
    );
    assert!(
        error.contains("131072"),
        "what the provider said stays: {error}"
    );
}

#[test]
fn room_is_made_before_the_limit_where_it_is_known() {
    let mut turn = begun(config(|config| config.context_limit = Some(10_000)));
    // 30,000 bytes of the 40,000 that are about 10,000 tokens.
    let counted = |tokens| {
        Input::Delta(Delta::Usage(Usage {
            input: Some(tokens),
            output: Some(1),
            ..Usage::default()
        }))
    };
    let mut inputs = call(0, "a", "look_up", "{}");
    inputs.extend([counted(700), Input::ModelEnded, Input::StepRecorded]);
    inputs.push(ended("a", &"x".repeat(10_000)));
    all(&mut turn, inputs);
    asked(&turn.handle(recorded()));
    let mut inputs = call(0, "b", "look_up", "{\"more\":1}");
    inputs.extend([counted(2_600), Input::ModelEnded, Input::StepRecorded]);
    inputs.push(ended("b", &"y".repeat(24_000)));
    all(&mut turn, inputs);
    let out = turn.handle(recorded());
    let summary = summarise(&out);
    assert!(summary.text_len() < 34_000, "the question itself fits");
    let out = summed_up(&mut turn, "");
    assert!(asked(&out).text_len() < 10_000);
    assert_eq!(end(&says(&mut turn, "done")).0, EndReason::Completed);
}

#[test]
fn a_summary_that_fails_ends_the_run_and_an_empty_one_is_tried_again() {
    let mut turn = begun(config(|_| {}));
    asked(&round(&mut turn, "look_up", "{}", "a"));
    summarise(&turn.handle(overflow()));
    let out = turn.handle(Input::ModelEnded);
    summarise(&out);
    let refused = ModelError::new(ErrorKind::Auth, "the key is wrong");
    let out = turn.handle(Input::ModelFailed(refused));
    let (reason, _, error) = end(&out);
    assert_eq!(reason, EndReason::ProviderError);
    assert!(error.unwrap().contains("the key is wrong"));

    let mut turn = begun(config(|_| {}));
    asked(&round(&mut turn, "look_up", "{}", "a"));
    summarise(&turn.handle(overflow()));
    let out = turn.handle(Input::Cancel(EndReason::Interrupted));
    let (reason, step, _) = end(&out);
    assert_eq!(
        (reason, step),
        (EndReason::Interrupted, None),
        "half a summary is no answer"
    );
}

#[test]
fn g15_a_cut_never_falls_inside_a_batch_and_what_is_kept_stays_whole() {
    let mut history = History::new();
    let turn = |number| TurnId(number);
    for number in 1..=4 {
        for event in crate::turn::exchange(turn(number), number == 3) {
            history.push(&event);
        }
    }
    let marked = history.marked();
    let sizes: usize = marked.iter().map(|(_, message)| message.text_len()).sum();
    for keep in 0..=sizes {
        let Some(plan) = attache_agent::compaction_plan(&history, Cut::default(), keep, 100_000)
        else {
            continue;
        };
        let mut cut = history.clone();
        cut.push(&Event::Compacted {
            cut: plan.cut,
            step: attache_session::StepText {
                text: "summary".into(),
                ..attache_session::StepText::default()
            },
            restated: "".into(),
            before: None,
        });
        let messages = cut.messages();
        well_formed(&messages);
        well_formed(&plan.messages);
        let kept: usize = messages[1..].iter().map(Message::text_len).sum();
        assert!(kept <= keep, "{kept} of {keep}");
        assert_eq!(
            messages.len() - 1 + (marked.len() - messages.len() + 1),
            marked.len()
        );
    }
}

/// Each call has its result in the message right behind it, and no result stands alone.
fn well_formed(messages: &[Message]) {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message {
            Message::Tool(results) => {
                let ids: Vec<String> = results.iter().map(|it| it.call_id.to_string()).collect();
                assert_eq!(ids, open);
                open.clear();
            }
            Message::User(_) | Message::Assistant(_) => {
                assert!(open.is_empty(), "{open:?} have no result");
                if let Message::Assistant(parts) = message {
                    open = parts
                        .iter()
                        .filter_map(|part| match part {
                            Part::Call(call) => Some(call.id.to_string()),
                            _ => None,
                        })
                        .collect();
                }
            }
        }
    }
    assert!(open.is_empty());
}

#[test]
fn a_tool_that_checks_its_arguments_is_not_called_with_others() {
    let mut turn = begun(config(|_| {}));
    let out = round(&mut turn, "strict", r#"{"wrong":1}"#, "never");
    let Some(Message::Tool(results)) = asked(&out).messages.last() else {
        panic!("a result was expected")
    };
    assert!(
        results[0].content.contains("say what to mend"),
        "{}",
        results[0].content
    );
}
