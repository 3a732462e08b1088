//! Questions to a person: which can be put, which answer fits, who is first, and how they go.

use std::sync::Arc;

use attache_session::{
    Answer, Command, EndReason, Event, Json, MODAL_CHOICES, MODAL_TEXT, Modal, ModalAnswer,
    ModalId, ModalKind, ModalState, OPEN_MODALS, QueueId, Rejected, StopReason, Summary, TurnId,
};
use uuid::Uuid;

use crate::desk::{Desk, kinds};

pub(crate) fn question(number: u128, turn: TurnId, call: &str) -> Modal {
    Modal {
        id: ModalId(Uuid::from_u128(number)),
        turn,
        call: call.into(),
        tool: "ask_user".into(),
        digest: "d".into(),
        kind: ModalKind::Question,
        text: "Which one?".into(),
        body: None,
        choices: vec!["this".into(), "that".into()],
        free: false,
        schema: None,
        seconds: 60,
    }
}

fn raise(modal: Modal) -> Command {
    Command::RaiseModal {
        modal: Arc::new(modal),
    }
}

fn says(number: u128, text: &str) -> Command {
    let answer = ModalAnswer {
        accepted: true,
        text: Some(text.into()),
        content: None,
    };
    Command::AnswerModal {
        modal: ModalId(Uuid::from_u128(number)),
        answer,
        by: "a viewer".into(),
    }
}

/// A session that has asked two questions by two calls.
fn asking() -> Desk {
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "work");
    desk.steps(&["a", "b"]);
    let turn = desk.turn();
    desk.does(raise(question(1, turn, "a")));
    desk.does(raise(question(2, turn, "b")));
    desk
}

fn open(desk: &Desk) -> Vec<u128> {
    let modals = desk.state.modals.iter();
    modals.map(|modal| modal.id.0.as_u128()).collect()
}

/// How the questions ended that these events tell of.
fn ends(decision: &attache_session::Decision) -> Vec<&'static str> {
    let states = decision.events.iter().filter_map(|it| match &it.event {
        Event::ModalSet { state, .. } => Some(state.as_str()),
        _ => None,
    });
    states.collect()
}

#[test]
fn questions_wait_behind_each_other_and_the_first_answer_counts() {
    let mut desk = asking();
    assert_eq!(open(&desk), [1, 2]);
    assert_eq!(Summary::of(&desk.state).unwrap().asks, 2);
    let turn = desk.turn();
    let again = desk.does(raise(question(1, turn, "a")));
    assert_eq!((again.answer, open(&desk)), (Answer::Unchanged, vec![1, 2]));
    let refused = desk.refuses(says(1, "neither"));
    assert!(matches!(refused, Rejected::NoAnswer { .. }), "{refused:?}");
    assert_eq!(ends(&desk.does(says(1, "this"))), ["answered"]);
    assert_eq!(open(&desk), [2]);
    assert_eq!(desk.refuses(says(1, "that")), Rejected::AlreadySettled);
    let modal = ModalId(Uuid::from_u128(2));
    assert_eq!(
        ends(&desk.does(Command::ExpireModal { modal })),
        ["expired"]
    );
    let late = desk.does(Command::ExpireModal { modal });
    assert_eq!(late.answer, Answer::Unchanged);
    assert_eq!(desk.refuses(says(2, "this")), Rejected::AlreadySettled);
    assert_eq!(desk.refuses(says(3, "this")), Rejected::AlreadySettled);
}

#[test]
fn no_question_outlives_its_call_its_turn_or_its_epoch() {
    let mut desk = asking();
    assert_eq!(ends(&desk.results(&["a"])), ["withdrawn"]);
    assert_eq!(open(&desk), [2]);
    let done = desk.ends(EndReason::Interrupted);
    assert!(kinds(&done.events).starts_with("modal-set call-ended"));
    assert!(open(&desk).is_empty());
    assert_eq!(desk.refuses(says(2, "this")), Rejected::AlreadySettled);
    for reason in StopReason::ALL {
        let mut desk = asking();
        assert_eq!(
            ends(&desk.stops(*reason)),
            ["withdrawn", "withdrawn"],
            "{reason}"
        );
        assert!(open(&desk).is_empty(), "{reason}");
    }
}

#[test]
fn only_an_open_call_of_the_current_turn_asks() {
    let mut desk = asking();
    let turn = desk.turn();
    let later = TurnId(turn.0 + 1);
    let stale = desk.refuses(raise(question(3, later, "a")));
    assert_eq!(stale, Rejected::StaleTurn { turn: later });
    desk.results(&["a"]);
    for call in ["a", "none"] {
        let refused = desk.refuses(raise(question(3, turn, call)));
        assert_eq!(refused, Rejected::UnknownCall { call: call.into() });
    }
    for number in 3..=OPEN_MODALS as u128 + 1 {
        desk.does(raise(question(number, turn, "b")));
    }
    let refused = desk.refuses(raise(question(1_000, turn, "b")));
    assert_eq!(refused, Rejected::TooManyQuestions { most: OPEN_MODALS });
}

#[test]
fn what_is_no_question_is_refused_with_the_reason() {
    let long: Arc<str> = "x".repeat(MODAL_TEXT + 1).into();
    type Change = fn(&mut Modal, &Arc<str>);
    let table: [(&str, Change); 10] = [
        ("need a text", |it, _| it.text = " ".into()),
        ("need a text", |it, _| it.choices.push("".into())),
        ("NUL", |it, _| it.body = Some("a\0".into())),
        ("64 KiB", |it, long| it.text = Arc::clone(long)),
        ("1 KiB", |it, _| it.choices.push("x".repeat(1_025).into())),
        ("16 KiB together", |it, _| {
            it.choices = vec!["x".repeat(1_000).into(); 17];
        }),
        ("100 choices", |it, _| {
            it.choices = vec!["c".into(); MODAL_CHOICES + 1]
        }),
        ("has a schema", |it, _| it.kind = ModalKind::Form),
        ("has a schema", |it, _| {
            it.schema = Some(Json::from_checked("{}"))
        }),
        ("takes any answer", |it, _| it.choices.clear()),
    ];
    for (why, change) in table {
        let mut modal = question(1, TurnId(1), "a");
        assert_eq!(modal.check(), Ok(()));
        change(&mut modal, &long);
        assert!(modal.check().is_err_and(|text| text.contains(why)), "{why}");
    }
}

#[test]
fn each_kind_takes_the_answers_that_fit_it() {
    use ModalKind::{Form, Permission, Plan, Question, SignIn};
    let yes = |text: Option<&str>, content: Option<&str>| ModalAnswer {
        accepted: true,
        text: text.map(Arc::from),
        content: content.map(Json::from_checked),
    };
    let no = |text: Option<&str>| ModalAnswer {
        accepted: false,
        text: text.map(Arc::from),
        content: None,
    };
    // The kind, whether another answer than the choices is one, the answer, whether it fits.
    let table = [
        (Permission, false, yes(None, None), true),
        (Permission, false, no(Some("too risky")), true),
        (Permission, false, yes(None, Some("{}")), false),
        (Question, false, yes(Some("this"), None), true),
        (Question, false, yes(Some("other"), None), false),
        (Question, true, yes(Some("other"), None), true),
        (Question, true, yes(Some(" "), None), false),
        (Question, true, yes(None, None), false),
        (Question, true, no(None), true),
        (Form, false, yes(None, Some("{}")), true),
        (Form, false, yes(Some("x"), None), false),
        (Form, false, no(None), true),
        (Plan, false, yes(Some("that"), None), true),
        (Plan, false, yes(Some("mine"), None), false),
        (Plan, true, yes(Some("mine"), None), true),
        (SignIn, false, yes(None, None), true),
        (SignIn, false, no(None), true),
    ];
    for (kind, free, answer, fits) in table {
        let mut modal = question(1, TurnId(1), "a");
        (modal.kind, modal.free) = (kind, free);
        assert_eq!(
            modal.fits(&answer).is_ok(),
            fits,
            "{kind} {free} {answer:?}"
        );
    }
    let mut modal = question(1, TurnId(1), "a");
    modal.free = true;
    for text in ["a\0b", &"x".repeat(MODAL_TEXT + 1)] {
        assert!(modal.fits(&yes(Some(text), None)).is_err());
    }
    assert_eq!(ModalKind::ALL.len(), 5);
    assert_eq!(ModalState::Withdrawn.as_str(), "withdrawn");
}
