//! Small values that everything else is made of: sums, positions, ids, codes, previews.

use attache_session::{
    Command, ErrorCode, Event, Immediacy, Json, MailBody, Notice, Parent, Position, QueueId,
    RESULT_PREVIEW_CHARS, RowView, StepText, StopReason, Summary, Timestamp, TurnId, Unread, Usage,
    preview,
};

use crate::desk::{Desk, enqueue, iid, said, sid, wid};

#[test]
fn tokens_add_up_and_unknown_stays_unknown() {
    let some = |input, output| Usage {
        input,
        output,
        ..Usage::default()
    };
    let mut sum = Usage::default();
    sum.add(&some(Some(3), None));
    sum.add(&some(Some(4), Some(1)));
    sum.add(&some(None, None));
    assert_eq!(sum, some(Some(7), Some(1)));
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "work");
    for input in [5, 8] {
        let turn = desk.turn();
        let step = StepText {
            usage: some(Some(input), Some(1)),
            ..said("x")
        };
        let calls = Vec::new();
        desk.does(Command::RecordStep { turn, step, calls });
        assert_eq!(desk.state.context_tokens, Some(input));
    }
    assert_eq!(desk.state.usage, some(Some(13), Some(2)));
    assert_eq!(desk.state.turn.as_ref().map(|turn| turn.steps), Some(2));
}

#[test]
fn a_step_is_silent_only_when_nothing_was_said() {
    let silent = StepText::default();
    assert!(silent.is_silent());
    let reasoning = StepText {
        reasoning: "hm".into(),
        ..silent.clone()
    };
    let opaque = StepText {
        opaque: Some(Json::from_checked("[1]")),
        ..silent
    };
    assert!(
        ![said("x"), reasoning, opaque]
            .iter()
            .any(StepText::is_silent)
    );
}

#[test]
fn positions_turns_and_queue_revisions_count_on() {
    assert_eq!(Position(3).plus(4), Position(7));
    let mut desk = Desk::new();
    assert_eq!(desk.state.position, Position(2));
    for turn in 1..4 {
        desk.says(QueueId::Default, "work");
        assert_eq!(desk.turn(), TurnId(turn));
        desk.ends(attache_session::EndReason::Completed);
    }
    desk.says(QueueId::Default, "work");
    let item = desk.says(QueueId::Default, "one");
    let revision = desk
        .state
        .queue(QueueId::Default)
        .map(|queue| queue.revision);
    desk.does(Command::Edit {
        item,
        text: "two".into(),
        expected: 0,
    });
    let after = desk
        .state
        .queue(QueueId::Default)
        .map(|queue| queue.revision);
    assert_eq!(after, revision.map(|revision| revision + 1));
}

#[test]
fn several_custom_queues_are_told_apart() {
    let mut desk = Desk::new();
    for _ in 0..2 {
        desk.does(Command::CreateQueue {
            name: None,
            immediacy: Immediacy::Held,
        });
    }
    desk.does(enqueue(Some(iid(1)), QueueId::Custom(1), "x"));
    assert!(desk.waiting(QueueId::Custom(0)).is_empty());
    assert_eq!(desk.waiting(QueueId::Custom(1)), ["x"]);
}

#[test]
fn the_release_of_a_stranger_makes_no_parent() {
    let mut desk = Desk::child_of(&[2]);
    let reason = StopReason::Disposed;
    desk.takes(&[(7, MailBody::Release { reason })]);
    let parent = Parent {
        id: sid(2),
        holds: true,
    };
    assert_eq!(desk.state.parents, [parent]);
    assert!(desk.state.is_live());
}

#[test]
fn mail_is_input_or_a_notice_or_tells_of_an_end() {
    let notice = MailBody::Notice(Notice {
        told: None,
        watch: wid(1),
        message: None,
        outcome: None,
        end_reason: None,
        stopped: false,
    });
    let input = MailBody::Input {
        item: iid(1),
        text: "x".into(),
        immediate: false,
    };
    let reason = StopReason::Disposed;
    let watch = MailBody::Watch {
        watch: wid(1),
        message: None,
    };
    for (body, is_input, is_notice, is_farewell) in [
        (input, true, false, false),
        (notice, false, true, true),
        (
            MailBody::Report {
                watch: wid(1),
                text: "stalled".into(),
            },
            false,
            true,
            true,
        ),
        (MailBody::Hold, false, false, false),
        (watch, false, false, false),
        (MailBody::Unwatch { watch: wid(1) }, false, false, true),
        (MailBody::Release { reason }, false, false, true),
    ] {
        let found = (body.is_input(), body.is_notice(), body.is_farewell());
        assert_eq!(found, (is_input, is_notice, is_farewell));
    }
}

#[test]
fn a_row_shows_the_turn_of_this_life_only() {
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "work");
    let summary = Summary::of(&desk.state).expect("it was born");
    let mut row = RowView {
        summary: summary.into(),
        live: true,
        unread: Unread::default(),
    };
    assert_eq!(row.turn(), Some(TurnId(1)));
    row.live = false;
    assert_eq!(row.turn(), None);
}

#[test]
fn what_waits_for_a_session_lies_in_its_queues_and_unread() {
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "work");
    for text in ["next", "and next", "and the last"] {
        desk.says(QueueId::Default, text);
    }
    let row = RowView {
        summary: Summary::of(&desk.state).expect("it was born").into(),
        live: true,
        unread: Unread {
            inputs: 20,
            notices: 100,
            other: 1_000,
        },
    };
    assert_eq!(row.waiting(), 123);
}

#[test]
fn a_stamp_that_moved_by_a_second_needs_no_second_time() {
    let mut desk = Desk::new();
    desk.now = desk.state.last_at.0 + 1 - 1_000_000 - 1_000;
    let done = desk.does(enqueue(None, QueueId::Default, "x"));
    assert_eq!(done.events[0].observed, None, "exactly a second");
    assert!(
        done.events[1].observed.is_some(),
        "and one microsecond more"
    );
}

#[test]
fn a_child_is_born_at_the_time_of_the_wall_clock() {
    let mut desk = Desk::new();
    desk.now = 5_000_000;
    let child = Box::new(crate::desk::child(2, sid(1), None));
    let done = desk.does(Command::Spawn { call: None, child });
    assert_eq!(done.births[0].events[0].at, Timestamp(5_001_000));
    assert!(matches!(done.births[0].events[0].event, Event::Created(_)));
}

#[test]
fn codes_say_whether_to_try_again_and_what_to_do() {
    let again = [
        ErrorCode::StoreLocked,
        ErrorCode::StorageFull,
        ErrorCode::ProviderUnreachable,
        ErrorCode::ProviderOverloaded,
    ];
    for code in ErrorCode::ALL {
        assert_eq!(code.retryable(), again.contains(code), "{code}");
    }
    let hint = ErrorCode::WaitCycle.hint().expect("there is one");
    assert!(hint.contains("ancestor"), "{hint}");
}

#[test]
fn json_is_kept_as_it_is_and_shown_so() {
    let json = Json::from_checked(r#"{"a": 1}"#);
    assert_eq!(json.as_str(), r#"{"a": 1}"#);
    assert_eq!(format!("{json:?}"), r#"{"a": 1}"#);
}

#[test]
fn a_result_is_cut_to_a_preview() {
    let long = "x".repeat(RESULT_PREVIEW_CHARS + 1);
    assert_eq!(
        preview(&long, RESULT_PREVIEW_CHARS).0.len(),
        RESULT_PREVIEW_CHARS
    );
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "work");
    let turn = desk.turn();
    desk.does(Command::EndTurn {
        turn,
        reason: attache_session::EndReason::Completed,
        step: Some(said(&long)),
        error: None,
    });
    let result = desk.state.result.as_ref().map(|text| text.len());
    assert_eq!(result, Some(RESULT_PREVIEW_CHARS));
}
