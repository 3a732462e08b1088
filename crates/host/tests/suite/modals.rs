//! Questions to a person, from the tool that asks to the viewers that see them: G-26, G-27 and G-28, and the kinds.

use std::time::Duration;

use attache_protocol::{
    Answer, Command, FromHost, Mirror, ModalAnswer, ModalEnd, ModalKind, ModalView, QueueRef, Seen,
    SessionView, Status,
};
use attache_testkit::pass;

use crate::kit::{Line, enqueue, host, life};

/// A viewer that keeps what it is told.
struct Viewer {
    line: Line,
    mirror: Mirror,
}

impl Viewer {
    async fn of(host: &attache_host::Host, id: &str) -> Self {
        let mut line = Line::to(host).await;
        let attached = line.ask(Command::attach(id)).await;
        assert!(matches!(attached, Ok(Answer::Attached { .. })));
        let mirror = Mirror::default();
        let mut viewer = Self { line, mirror };
        viewer.rest().await;
        viewer
    }

    /// What is new until nothing comes for a second.
    async fn rest(&mut self) -> Vec<Seen> {
        let frames = self.line.rest().await.into_iter();
        frames.flat_map(|frame| self.mirror.apply(frame)).collect()
    }

    fn open(&self) -> &[ModalView] {
        &self.mirror.detail.as_ref().unwrap().modals
    }

    /// The only question that is open.
    fn asked(&self) -> ModalView {
        match self.open() {
            [modal] => modal.clone(),
            other => panic!("{other:#?}"),
        }
    }

    async fn says(&mut self, id: &str, text: &str) {
        let input = enqueue(id, QueueRef::Default {}, text);
        self.line.ask(input).await.unwrap();
    }
}

fn yes(text: &str) -> ModalAnswer {
    ModalAnswer {
        accepted: true,
        text: Some(text.to_owned()),
        content: None,
    }
}

fn no() -> ModalAnswer {
    ModalAnswer {
        accepted: false,
        text: None,
        content: None,
    }
}

fn respond(modal: &ModalView, answer: ModalAnswer) -> Command {
    Command::RespondModal {
        session_id: modal.session_id.clone(),
        modal_id: modal.modal_id.clone(),
        answer,
    }
}

fn ends(seen: &[Seen]) -> Vec<&ModalEnd> {
    let ends = seen.iter().filter_map(|seen| match seen {
        Seen::Settled { end, .. } => Some(end),
        _ => None,
    });
    ends.collect()
}

async fn row(line: &mut Line, id: &str) -> SessionView {
    let session_id = id.to_owned();
    match line.ask(Command::GetSession { session_id }).await {
        Ok(Answer::Session { session }) => *session,
        other => panic!("{other:?}"),
    }
}

/// What was said last in a session.
async fn last(line: &mut Line, id: &str) -> String {
    row(line, id).await.result_preview.unwrap_or_default()
}

const DONE: Result<Answer, String> = Ok(Answer::Done { changed: true });

#[test]
fn a_question_is_seen_by_every_viewer_and_the_first_answer_goes_on_with_the_run() {
    life(async {
        let host = host().await;
        let id = Line::to(&host).await.create(1).await;
        let (mut one, mut two) = (Viewer::of(&host, &id).await, Viewer::of(&host, &id).await);
        one.says(&id, "ask me").await;
        one.rest().await;
        two.rest().await;
        let modal = one.asked();
        assert_eq!(two.asked(), modal);
        assert_eq!(
            (modal.kind, &*modal.text),
            (ModalKind::Question, "Which one?")
        );
        assert_eq!(
            (&modal.choices[..], modal.free),
            (&["this".to_owned(), "that".to_owned()][..], true)
        );
        assert_eq!(modal.arguments_digest.len(), 64);
        assert_eq!(row(&mut one.line, &id).await.asks, 1);
        // G-28: the second of two answers 5 ms later.
        assert_eq!(one.line.ask(respond(&modal, yes("this"))).await, DONE);
        pass(Duration::from_millis(5)).await;
        let late = two.line.ask(respond(&modal, no())).await;
        assert_eq!(late, Err("already-settled".to_owned()));
        for viewer in [&mut one, &mut two] {
            let seen = viewer.rest().await;
            let [ModalEnd::Answered { answer, by }] = &ends(&seen)[..] else {
                panic!("{seen:#?}");
            };
            assert_eq!((answer, by.as_str()), (&yes("this"), "test"));
            assert!(viewer.open().is_empty());
        }
        let told = last(&mut one.line, &id).await;
        assert_eq!(told, r#"heard {"answer":"this","answered":true}"#);
        // A repeat of the answer gets the first answer.
        one.says(&id, "ask me again").await;
        one.rest().await;
        let modal = one.asked();
        for _ in 0..2 {
            let answered = one.line.ask_as("same", respond(&modal, no())).await;
            assert_eq!(answered, DONE);
        }
        one.rest().await;
        assert!(last(&mut one.line, &id).await.contains("declined"));
    });
}

#[test]
fn g28_what_expires_was_not_denied_and_what_is_dead_is_not_shown() {
    life(async {
        let host = host().await;
        let id = Line::to(&host).await.create(1).await;
        let mut viewer = Viewer::of(&host, &id).await;
        viewer.says(&id, "ask me").await;
        viewer.rest().await;
        let modal = viewer.asked();
        pass(Duration::from_secs(modal.seconds.into())).await;
        let seen = viewer.rest().await;
        assert_eq!(ends(&seen), [&ModalEnd::Expired {}]);
        let told = last(&mut viewer.line, &id).await;
        assert_eq!(
            told,
            r#"heard {"answered":false,"reason":"no answer in time"}"#
        );
        // Interrupted, and answered afterwards.
        viewer.says(&id, "ask me").await;
        viewer.rest().await;
        let modal = viewer.asked();
        let interrupt = Command::Interrupt {
            session_id: id.clone(),
            tree: false,
        };
        assert_eq!(viewer.line.ask(interrupt).await, DONE);
        let seen = viewer.rest().await;
        assert_eq!(ends(&seen), [&ModalEnd::Withdrawn {}]);
        let dead = viewer.line.ask(respond(&modal, yes("this"))).await;
        assert_eq!(dead, Err("already-settled".to_owned()));
        assert!(Viewer::of(&host, &id).await.open().is_empty());
        let now = row(&mut viewer.line, &id).await;
        assert_eq!((now.status, now.asks), (Status::Idle, 0));
        assert_eq!(now.outcome.as_deref(), Some("interrupted"));
    });
}

#[test]
fn g27_a_question_deep_in_the_tree_is_seen_at_the_root_and_answered_there() {
    life(async {
        let host = host().await;
        let id = Line::to(&host).await.create(1).await;
        let mut viewer = Viewer::of(&host, &id).await;
        viewer.says(&id, "deep down").await;
        viewer.rest().await;
        let modal = viewer.asked();
        let path = modal.path.iter().map(|step| step.name.as_str());
        assert_eq!(path.collect::<Vec<_>>(), ["attache", "middle", "asker"]);
        assert_eq!(modal.path[0].session_id, id);
        assert_eq!(modal.path[2].session_id, modal.session_id);
        // A viewer that comes later finds it too, at every level.
        let middle = modal.path[1].session_id.clone();
        for above in [&id, &middle, &modal.session_id] {
            assert_eq!(Viewer::of(&host, above).await.asked(), modal);
        }
        assert_eq!(viewer.line.ask(respond(&modal, yes("that"))).await, DONE);
        viewer.rest().await;
        assert!(viewer.open().is_empty());
        let told = last(&mut viewer.line, &modal.session_id).await;
        assert_eq!(told, r#"heard {"answer":"that","answered":true}"#);
    });
}

#[test]
fn g27_with_nobody_there_it_is_parked_and_an_interrupt_of_the_tree_clears_it() {
    life(async {
        let host = host().await;
        let mut line = Line::to(&host).await;
        let id = line.create(1).await;
        line.ask(enqueue(&id, QueueRef::Default {}, "deep down"))
            .await
            .unwrap();
        pass(Duration::from_secs(60)).await;
        let open = host.engine().modals(id.parse().unwrap());
        let asker = open[0].asker().to_string();
        let parked = row(&mut line, &asker).await;
        assert_eq!((parked.status, parked.asks), (Status::Running, 1));
        let interrupt = Command::Interrupt {
            session_id: id.clone(),
            tree: true,
        };
        assert_eq!(line.ask(interrupt).await, DONE);
        pass(Duration::from_secs(1)).await;
        assert!(host.engine().modals(id.parse().unwrap()).is_empty());
        let ended = row(&mut line, &asker).await;
        assert_eq!((ended.status, ended.asks), (Status::Idle, 0));
    });
}

#[test]
fn g26_a_wait_ends_early_when_the_child_asks_a_person_and_goes_on_until_it_is_answered() {
    life(async {
        let host = host().await;
        let id = Line::to(&host).await.create(1).await;
        let mut viewer = Viewer::of(&host, &id).await;
        viewer.says(&id, "wait for it").await;
        pass(Duration::from_secs(30)).await;
        viewer.rest().await;
        let said =
            |viewer: &Viewer, text: &str| viewer.mirror.items.iter().any(|it| it.text == text);
        assert!(
            said(&viewer, "first needs-attention"),
            "{:#?}",
            viewer.mirror.items
        );
        assert_eq!(
            viewer.mirror.session.as_ref().unwrap().status,
            Status::Running
        );
        let modal = viewer.asked();
        assert_eq!(viewer.line.ask(respond(&modal, yes("this"))).await, DONE);
        viewer.rest().await;
        assert!(said(&viewer, "then settled"));
    });
}

#[test]
fn a_form_takes_values_that_fit_its_schema() {
    life(async {
        let host = host().await;
        let id = Line::to(&host).await.create(1).await;
        let mut viewer = Viewer::of(&host, &id).await;
        viewer.says(&id, "fill in").await;
        viewer.rest().await;
        let modal = viewer.asked();
        assert_eq!(modal.kind, ModalKind::Form);
        assert_eq!(modal.schema.as_ref().unwrap()["required"][0], "count");
        let filled = |text: &str| ModalAnswer {
            accepted: true,
            text: None,
            content: Some(text.parse().unwrap()),
        };
        for wrong in [r#"{"count": 0}"#, "{}", r#"{"count": "one"}"#, "7"] {
            let refused = viewer.line.ask(respond(&modal, filled(wrong))).await;
            assert_eq!(refused, Err("invalid-arguments".to_owned()), "{wrong}");
        }
        let refused = viewer.line.ask(respond(&modal, yes("three"))).await;
        assert_eq!(refused, Err("invalid-arguments".to_owned()));
        let right = viewer.line.ask(respond(&modal, filled(r#"{"count": 3}"#)));
        assert_eq!(right.await, DONE);
        viewer.rest().await;
        let told = last(&mut viewer.line, &id).await;
        assert_eq!(told, r#"heard {"answered":true,"content":{"count":3}}"#);
    });
}

#[test]
fn a_definition_may_deny_questions_or_put_them_to_the_parent() {
    life(async {
        let host = host().await;
        let id = Line::to(&host).await.create(1).await;
        let mut viewer = Viewer::of(&host, &id).await;
        viewer.says(&id, "strict").await;
        viewer.rest().await;
        assert!(viewer.open().is_empty(), "no person is asked");
        let text = |needle: &str| {
            viewer
                .mirror
                .items
                .iter()
                .any(|it| it.text.contains(needle))
        };
        assert!(text(
            "Answer it with agent_session_send. It asks: \"Which one?\""
        ));
        assert!(text("It offers the answers [\"this\", \"that\"]"));
        let children = viewer.mirror.detail.as_ref().unwrap().children.clone();
        let mut told = Vec::new();
        for child in children {
            told.push(last(&mut viewer.line, &child.session_id).await);
        }
        assert!(
            told[0].contains("not-permitted") && told[0].contains("denies questions"),
            "{told:?}"
        );
        assert!(told[1].contains("put to your parent agent"), "{told:?}");
    });
}

#[test]
fn each_kind_of_question_comes_through_with_what_belongs_to_it() {
    // The kind, an answer, and what the tool hears.
    let table = [
        ("permission", yes("go ahead"), r#""accepted":true"#),
        ("permission", no(), r#""accepted":false"#),
        ("plan", yes("slowly"), r#""text":"slowly""#),
        ("sign-in", yes("done"), r#""by":"test""#),
    ];
    life(async {
        let host = host().await;
        let id = Line::to(&host).await.create_with(1, "asks-kinds").await;
        let mut viewer = Viewer::of(&host, &id).await;
        for (kind, answer, hears) in table {
            viewer.says(&id, &format!("kind {kind}")).await;
            viewer.rest().await;
            let modal = viewer.asked();
            assert_eq!(serde_name(modal.kind), kind);
            assert_eq!(modal.body.as_deref(), Some("the body"));
            if kind == "plan" {
                let other = viewer.line.ask(respond(&modal, yes("otherwise"))).await;
                assert_eq!(other, Err("invalid-arguments".to_owned()));
            }
            assert_eq!(viewer.line.ask(respond(&modal, answer)).await, DONE);
            viewer.rest().await;
            let told = last(&mut viewer.line, &id).await;
            assert!(told.contains(hears), "{kind}: {told}");
        }
    });
}

fn serde_name(kind: ModalKind) -> String {
    let frame = attache_protocol::encode(&kind);
    String::from_utf8(frame)
        .unwrap()
        .trim_matches('"')
        .to_owned()
}

#[test]
fn several_questions_of_one_session_wait_behind_each_other() {
    life(async {
        let host = host().await;
        let id = Line::to(&host).await.create_with(1, "asks-kinds").await;
        let mut viewer = Viewer::of(&host, &id).await;
        viewer.says(&id, "two at once").await;
        viewer.rest().await;
        let texts = |viewer: &Viewer| {
            let open = viewer.open().iter();
            open.map(|modal| modal.text.clone()).collect::<Vec<_>>()
        };
        assert_eq!(texts(&viewer), ["first", "second"]);
        let second = viewer.open()[1].clone();
        assert_eq!(viewer.line.ask(respond(&second, no())).await, DONE);
        viewer.rest().await;
        assert_eq!(texts(&viewer), ["first"], "none is replaced");
        let first = viewer.open()[0].clone();
        assert_eq!(viewer.line.ask(respond(&first, no())).await, DONE);
        viewer.rest().await;
        assert!(viewer.open().is_empty());
        let heard = viewer.line.ask(Command::HostStatus {}).await;
        assert!(matches!(heard, Ok(Answer::Host { .. })));
    });
}

#[test]
fn an_open_question_holds_a_session_that_nobody_looks_at() {
    life(async {
        let host = host().await;
        let mut line = Line::to(&host).await;
        let id = line.create_for_me(1).await;
        let mut viewer = Viewer::of(&host, &id).await;
        viewer.says(&id, "ask me").await;
        viewer.rest().await;
        let modal = viewer.asked();
        let session_id = id.clone();
        viewer
            .line
            .ask(Command::Detach { session_id })
            .await
            .unwrap();
        drop(line);
        pass(Duration::from_secs(60)).await;
        let mut other = Line::to(&host).await;
        assert_eq!(row(&mut other, &id).await.status, Status::Running);
        assert_eq!(other.ask(respond(&modal, yes("this"))).await, DONE);
        pass(Duration::from_secs(1)).await;
        assert_eq!(row(&mut other, &id).await.status, Status::Stopped);
        let heard: Vec<FromHost> = other.rest().await;
        assert!(heard.is_empty());
    });
}
