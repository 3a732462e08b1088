//! Pictures of results: into the record, into the request, out of it where a provider refuses them, and through cuts.

use std::time::Duration;

use attache_agent::{History, Input, Output, ToolOutcome, Turn, TurnConfig, compaction_plan};
use attache_model::{ErrorKind, Image, Message, ModelError, Request};
use attache_session::{
    CallResult, Cut, EndReason, Event, NewCall, Picture, ResultOrigin, StepText, TurnId,
};

use crate::turn::{all, asked, call, end, history, options, recorded, step, text};

fn picture(fill: u8) -> Picture {
    Picture::of_bytes("image/png", &[fill; 30])
}

fn begun(config: TurnConfig) -> Turn {
    let mut turn = Turn::new(config, history());
    asked(&turn.handle(Input::Begin));
    turn
}

/// Makes a call whose result has pictures; what is recorded, and what follows.
fn looks(turn: &mut Turn, id: &str, images: Vec<Picture>) -> (CallResult, Vec<Output>) {
    let mut inputs = call(0, id, "look_up", "{}");
    inputs.push(Input::ModelEnded);
    let out = all(turn, inputs);
    let id = step(&out).1[0].id.clone();
    turn.handle(Input::StepRecorded);
    let mut outcome = ToolOutcome::json(&serde_json::json!({ "seen": &*id }));
    outcome.images = images;
    let out = turn.handle(Input::ToolEnded {
        call: id,
        outcome,
        took: Duration::ZERO,
    });
    let [Output::RecordResults(results)] = &*out else {
        panic!("results were expected, not {out:?}")
    };
    (results[0].clone(), turn.handle(recorded()))
}

/// The pictures of each result, and whether one is named in its content.
fn shown(request: &Request) -> Vec<(usize, bool)> {
    let results = request.messages.iter().flat_map(|message| match message {
        Message::Tool(results) => results.as_slice(),
        _ => &[],
    });
    results
        .map(|result| {
            let named = result.content.contains("A picture is left out here");
            (result.images.len(), named)
        })
        .collect()
}

fn refusal(status: u16, message: &str) -> ModelError {
    ModelError::new(ErrorKind::Refused, message).with_status(status)
}

const NO: &str = "this model does not support image input";

#[test]
fn a_picture_goes_into_the_record_and_the_next_request() {
    let mut turn = begun(options(50));
    let (result, out) = looks(&mut turn, "a", vec![picture(1), picture(2)]);
    assert_eq!(result.images, [picture(1), picture(2)]);
    assert_eq!(&*result.content, r#"{"seen":"a"}"#);
    let request = asked(&out);
    let Some(Message::Tool(results)) = request.messages.last() else {
        panic!("results were expected, not {request:?}")
    };
    let image = |fill| Image {
        media_type: "image/png".into(),
        base64: picture(fill).base64,
    };
    assert_eq!(results[0].images, [image(1), image(2)]);
    // What is out of bounds is in neither, and named in both.
    let svg = Picture::of_bytes("image/svg+xml", b"<svg/>");
    let (result, out) = looks(&mut turn, "b", vec![svg.clone(), picture(3)]);
    assert_eq!(result.images, [picture(3)]);
    assert!(
        result.content.contains("image/svg+xml, 6 bytes"),
        "{}",
        result.content
    );
    assert!(!result.content.contains(&*svg.base64));
    assert_eq!(shown(asked(&out)), [(2, false), (1, true)]);
}

#[test]
fn a_refusal_of_pictures_is_answered_once_without_them() {
    for (error, again) in [
        (refusal(400, NO), true),
        (
            refusal(404, "No endpoints found that SUPPORT IMAGE input"),
            true,
        ),
        (refusal(415, "vision is off"), true),
        (refusal(422, "no Multimodal model"), true),
        (refusal(400, "temperature is too high"), false),
        (refusal(403, NO), false),
        (ModelError::new(ErrorKind::Refused, NO), false),
        (ModelError::new(ErrorKind::Auth, NO).with_status(400), false),
    ] {
        let mut turn = begun(options(50));
        looks(&mut turn, "a", vec![picture(1)]);
        let out = turn.handle(Input::ModelFailed(error.clone()));
        if !again {
            assert_eq!(end(&out).0, EndReason::ProviderError, "{error:?}");
            continue;
        }
        let [Output::Note { code, text: note }, Output::Ask(request)] = &*out else {
            panic!("{error:?}: a note and a request were expected, not {out:?}")
        };
        assert_eq!(*code, "request-adapted");
        assert!(note.contains(&error.message), "{note}");
        assert_eq!(shown(request), [(0, true)]);
        // It is not tried again in this turn, with new pictures neither.
        let (result, out) = looks(&mut turn, "b", vec![picture(2)]);
        assert_eq!(
            result.images,
            [picture(2)],
            "the record has it all the same"
        );
        assert_eq!(shown(asked(&out)), [(0, true), (0, true)]);
        // And a provider that still refuses ends the run.
        let out = turn.handle(Input::ModelFailed(error));
        assert_eq!(end(&out).0, EndReason::ProviderError);
    }
}

#[test]
fn a_request_without_pictures_is_refused_as_ever_and_so_is_one_that_has_spoken() {
    let mut turn = begun(options(50));
    let out = turn.handle(Input::ModelFailed(refusal(400, NO)));
    assert_eq!(end(&out).0, EndReason::ProviderError);

    let mut turn = begun(options(50));
    looks(&mut turn, "a", vec![picture(1)]);
    turn.handle(text("I see"));
    let out = turn.handle(Input::ModelFailed(refusal(400, NO)));
    assert_eq!(end(&out).0, EndReason::ProviderError);
}

#[test]
fn what_a_request_was_reminded_of_is_there_when_it_is_asked_again() {
    let mut turn = begun(options(2));
    let (_, out) = looks(&mut turn, "a", vec![picture(1)]);
    // The last round: no tools, and the question for a summary.
    let before = asked(&out).clone();
    let out = turn.handle(Input::ModelFailed(refusal(400, NO)));
    let Some(Output::Ask(request)) = out.last() else {
        panic!("a request was expected, not {out:?}")
    };
    assert_eq!(request.messages.last(), before.messages.last());
    assert!(!request.tools_allowed && !before.tools_allowed);
    let out = all(&mut turn, [text("a dot"), Input::ModelEnded]);
    assert_eq!(end(&out).0, EndReason::IterationLimit);
}

#[test]
fn the_same_words_with_another_picture_are_no_repetition() {
    let mut turn = begun(options(50));
    for fill in 0..5 {
        let id = format!("c{fill}");
        let mut inputs = call(0, &id, "look_up", "{}");
        inputs.push(Input::ModelEnded);
        all(&mut turn, inputs);
        turn.handle(Input::StepRecorded);
        let outcome = ToolOutcome::json(&serde_json::json!({})).with_image(picture(fill));
        let call = id.into();
        turn.handle(Input::ToolEnded {
            call,
            outcome,
            took: Duration::ZERO,
        });
        asked(&turn.handle(recorded()));
    }
    let same = |turn: &mut Turn, id: &str| {
        let mut inputs = call(0, id, "look_up", "{}");
        inputs.push(Input::ModelEnded);
        let out = all(turn, inputs);
        if matches!(out[..], [Output::End { .. }]) {
            return out;
        }
        turn.handle(Input::StepRecorded);
        let outcome = ToolOutcome::json(&serde_json::json!({})).with_image(picture(9));
        let call = id.into();
        turn.handle(Input::ToolEnded {
            call,
            outcome,
            took: Duration::ZERO,
        });
        turn.handle(recorded())
    };
    asked(&same(&mut turn, "d0"));
    asked(&same(&mut turn, "d1"));
    assert_eq!(end(&same(&mut turn, "d2")).0, EndReason::RepeatedCall);
}

/// A history of turns with a call each, whose result has a picture.
fn stored(turns: u32) -> Vec<Event> {
    let mut events = Vec::new();
    for number in 1..=turns {
        let turn = TurnId(number);
        let id = format!("t{number}");
        let mut input = crate::history::user("look");
        if let Event::Consumed { turn: of, .. } = &mut input {
            *of = turn;
        }
        events.extend([
            Event::TurnStarted { turn },
            input,
            Event::Said {
                turn,
                step: StepText::default(),
            },
            Event::CallStarted {
                turn,
                call: NewCall {
                    id: id.as_str().into(),
                    name: "look_up".into(),
                    arguments: "{}".into(),
                    changes_state: false,
                },
            },
            Event::CallEnded {
                turn,
                result: CallResult {
                    call: id.as_str().into(),
                    content: "seen".into(),
                    is_error: false,
                    spawned: None,
                    origin: ResultOrigin::Tool,
                    images: vec![picture(1)],
                    took_micros: None,
                    report: None,
                },
            },
            Event::TurnEnded {
                turn,
                reason: EndReason::Completed,
                result: None,
            },
        ]);
    }
    events
}

fn folded(turns: u32) -> History {
    let mut history = History::new();
    stored(turns).iter().for_each(|event| history.push(event));
    history
}

#[test]
fn stored_pictures_are_in_the_next_request_and_only_the_newest_of_many() {
    let count = |history: &History| {
        let pictures = history.messages().into_iter().map(|message| match message {
            Message::Tool(results) => results[0].images.len(),
            _ => 0,
        });
        pictures.filter(|count| *count > 0).count()
    };
    assert_eq!(count(&folded(3)), 3);
    assert_eq!(count(&folded(30)), 20);
    let Message::Tool(oldest) = &folded(30).messages()[2] else {
        panic!("the first result was expected")
    };
    assert!(
        oldest[0].content.contains("image/png, 30 bytes"),
        "{}",
        oldest[0].content
    );
}

#[test]
fn a_cut_counts_pictures_and_takes_them_with_it() {
    let history = folded(8);
    let size: usize = history.messages().iter().map(Message::text_len).sum();
    assert!(size > 8 * 6_000);
    for (keep, room, kept, asked) in [
        // Room enough: the question shows them, as the conversation before did.
        (13_000, 100_000, 2, 6),
        // Too little: they are named.
        (13_000, 10_000, 2, 0),
        (0, 400, 0, 0),
    ] {
        let plan = compaction_plan(&history, Cut::default(), keep, room).unwrap();
        let shown = |messages: &[Message]| messages.iter().filter(|it| it.has_pictures()).count();
        assert_eq!(shown(&plan.messages), asked, "{keep} {room}");
        let size: usize = plan.messages.iter().map(Message::text_len).sum();
        assert!(size <= room + 600, "{size} of {room}");
        let mut cut = history.clone();
        cut.push(&Event::Compacted {
            cut: plan.cut,
            step: StepText {
                text: "summary".into(),
                ..StepText::default()
            },
            restated: "".into(),
            before: None,
        });
        assert_eq!(shown(&cut.messages()), kept, "{keep} {room}");
    }
    let named = compaction_plan(&history, Cut::default(), 13_000, 10_000).unwrap();
    assert!(format!("{:?}", named.messages).contains("A picture is left out here"));
}

#[test]
fn a_summary_whose_pictures_are_refused_is_asked_for_without_them() {
    let mut turn = Turn::new(options(50), folded(8));
    turn.handle(Input::Begin);
    let overflow = || Input::ModelFailed(ModelError::new(ErrorKind::ContextOverflow, "too long"));
    let out = turn.handle(overflow());
    let [Output::Summarise(request)] = &*out else {
        panic!("a summary was expected, not {out:?}")
    };
    assert!(request.has_pictures());
    let out = turn.handle(Input::ModelFailed(refusal(400, NO)));
    let [Output::Note { .. }, Output::Summarise(request)] = &*out else {
        panic!("a note and a summary were expected, not {out:?}")
    };
    assert!(!request.has_pictures());
    let out = all(&mut turn, [text("It went well."), Input::ModelEnded]);
    assert!(
        matches!(&*out, [Output::RecordCompaction { .. }]),
        "{out:?}"
    );
    let out = turn.handle(Input::CompactionRecorded {
        restated: "".into(),
    });
    assert!(!asked(&out).has_pictures());

    // A body that is too large for the server is asked for once more without them.
    let mut turn = Turn::new(options(50), folded(8));
    turn.handle(Input::Begin);
    turn.handle(overflow());
    let out = turn.handle(overflow());
    let [Output::Summarise(request)] = &*out else {
        panic!("a summary was expected, not {out:?}")
    };
    assert!(!request.has_pictures());
}
