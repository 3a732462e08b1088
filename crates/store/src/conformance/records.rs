//! Cases: values that come back as they went in, odd ones included.

use std::sync::Arc;

use attache_session::{
    Cost, Cut, Epoch, Event, Holder, Immediacy, ItemId, Json, Origin, Position, QueueId, Settings,
    StepText, StopReason, Timestamp, TurnId, Usage, WatchId,
};

use super::values::{Author, answered, called, consumed, pictured, said, session, uuid};
use super::{Case, Subject};

pub(super) const CASES: &[Case] = &[
    ("an_event_comes_back_as_it_went_in", round_trip),
    ("an_unknown_kind_is_kept", unknown),
    ("an_observed_time_is_kept", observed),
];

fn odd() -> Vec<Event> {
    vec![
        consumed(1, "", Origin::Session(session(4))),
        called("", "\n", "not json at all \u{0} \"\\"),
        called("x", "a\nb", ""),
        answered("x", &"é\u{1f64f}".repeat(40_000)),
        pictured("a\nb"),
        said(&"z".repeat(70_000)),
        Event::Said {
            turn: TurnId(u32::MAX),
            step: StepText {
                text: "".into(),
                reasoning: "r".repeat(70_000).into(),
                opaque: Some(Json::from_checked(" [ {\"a\":1} ] ")),
                usage: Usage {
                    input: Some(u64::MAX),
                    output: None,
                    cache_read: Some(0),
                    cache_write: None,
                    reasoning: Some(1),
                },
                cost: Some(Cost {
                    usd_nanos: u64::MAX,
                    prices: "table 1".into(),
                }),
                model: "a/b".into(),
                incomplete: true,
            },
        },
        Event::Compacted {
            cut: Cut {
                turn: TurnId(u32::MAX),
                steps: 3,
            },
            step: StepText {
                text: "what was said\n".into(),
                model: "a/b".into(),
                ..StepText::default()
            },
            restated: "the task".into(),
            before: Some(u64::MAX),
        },
        Event::Compacted {
            cut: Cut::default(),
            step: StepText::default(),
            restated: "".into(),
            before: None,
        },
        Event::QueueSet {
            queue: QueueId::Custom(7),
            name: "q".into(),
            immediacy: Immediacy::Held,
            before_hold: Some(Immediacy::Queue),
        },
        Event::Moved {
            item: ItemId(uuid(1)),
            queue: QueueId::Immediate,
            before: None,
        },
        Event::WatcherAdded {
            watch: WatchId(uuid(2)),
            session: session(3),
            message: Some("".into()),
        },
        Event::Stopped {
            reason: StopReason::HostRestart,
            waited_for: Vec::new(),
        },
        Event::Stopped {
            reason: StopReason::LastViewerLeft,
            waited_for: Holder::ALL.to_vec(),
        },
        Event::SettingsSet {
            settings: Arc::new(Settings {
                continue_in_background: true,
                name: Some("".into()),
                model: None,
                switched_off: vec!["a".into(), "".into()],
            }),
        },
        Event::Started {
            epoch: Epoch(uuid(4)),
        },
    ]
}

fn round_trip(subject: &mut dyn Subject) {
    let mut author = Author::root(subject.store(), 1);
    let append = author.append(odd());
    let events = append.events.clone();
    author.commit(subject.store(), append).expect("odd events");
    subject.restart();
    let log = subject.store().events(session(1), Position(2), 99);
    let log: Vec<_> = log
        .expect("a log")
        .into_iter()
        .map(|item| item.event)
        .collect();
    assert_eq!(log, events);
}

fn unknown(subject: &mut dyn Subject) {
    let mut author = Author::root(subject.store(), 1);
    let kind: Arc<str> = "of-a-later-version".into();
    let body = Json::from_checked("{\"kind\":\"of-a-later-version\",\"v\":3,\"x\":[1, 2]}");
    let event = Event::Unknown { kind, body };
    author.write(subject.store(), vec![event.clone(), said("after")]);
    subject.restart();
    let log = subject
        .store()
        .events(session(1), Position(2), 9)
        .expect("a log");
    assert_eq!(log[0].event.event, event);
    assert_eq!(log[1].event.event, said("after"));
}

fn observed(subject: &mut dyn Subject) {
    let mut author = Author::root(subject.store(), 1);
    author.now = 90_000_000;
    author.write(subject.store(), vec![said("a")]);
    author.now = 5_000_000;
    author.write(subject.store(), vec![said("b")]);
    subject.restart();
    let log = subject
        .store()
        .events(session(1), Position(2), 9)
        .expect("a log");
    assert_eq!(log[0].event.observed, None);
    assert_eq!(log[1].event.observed, Some(Timestamp(5_000_000)));
    assert_eq!(log[1].event.at, Timestamp(90_000_001));
}
