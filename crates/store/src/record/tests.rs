//! Whatever is written reads back the same, and what is odd reads as far as it makes sense.

use std::sync::Arc;

use attache_session::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use uuid::Uuid;

use self::bounds::{bounds, budget, said_last};
use self::reports::result;
use self::settings::settings;
use super::*;
use crate::read::Partial;

mod bounds;
mod modals;
mod pictures;
mod reports;
mod settings;
mod summaries;

use summaries::summaries;

fn word() -> impl Strategy<Value = Arc<str>> {
    "(\\PC|[\\n\\\\\"\u{0}]){0,12}".prop_map(Arc::from)
}

fn id() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

fn session() -> impl Strategy<Value = SessionId> {
    id().prop_map(SessionId)
}

fn watch() -> impl Strategy<Value = WatchId> {
    id().prop_map(WatchId)
}

fn turn() -> impl Strategy<Value = TurnId> {
    any::<u32>().prop_map(TurnId)
}

fn queue() -> impl Strategy<Value = QueueId> {
    prop_oneof![
        Just(QueueId::Immediate),
        Just(QueueId::Default),
        any::<u32>().prop_map(QueueId::Custom),
    ]
}

fn one_of<T: Copy + std::fmt::Debug>(all: &'static [T]) -> impl Strategy<Value = T> {
    (0..all.len()).prop_map(move |index| all[index])
}

fn item() -> impl Strategy<Value = Arc<QueuedItem>> {
    let origin = prop_oneof![
        Just(Origin::Viewer),
        session().prop_map(Origin::Session),
        (session(), watch(), said_last()).prop_map(|(about, watch, told)| Origin::Notice {
            about,
            watch,
            told
        }),
    ];
    (id(), any::<u32>(), word(), origin).prop_map(|(id, revision, text, origin)| {
        Arc::new(QueuedItem {
            id: ItemId(id),
            revision,
            text,
            origin,
        })
    })
}

fn usage() -> impl Strategy<Value = Usage> {
    let number = || option::of(any::<u64>());
    (number(), number(), number(), number(), number()).prop_map(
        |(input, output, cache_read, cache_write, reasoning)| Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
        },
    )
}

fn step() -> impl Strategy<Value = StepText> {
    let opaque = option::of(word().prop_map(Json::from_checked));
    let cost = option::of(
        (any::<u64>(), word()).prop_map(|(usd_nanos, prices)| Cost { usd_nanos, prices }),
    );
    (word(), word(), opaque, usage(), cost, word(), any::<bool>()).prop_map(
        |(text, reasoning, opaque, usage, cost, model, incomplete)| StepText {
            text,
            reasoning,
            opaque,
            usage,
            cost,
            model,
            incomplete,
        },
    )
}

fn created() -> impl Strategy<Value = Event> {
    let names = (word(), word(), word(), word(), word(), word());
    let trust = option::of((id(), any::<u64>()));
    (
        names,
        session(),
        vec(session(), 0..3),
        id(),
        trust,
        any::<(bool, bool, bool)>(),
        budget(),
    )
        .prop_map(
            |(names, root, parents, owning_profile, trust, flags, budget)| {
                let (name, agent, definition, model, working_directory, bindings) = names;
                Event::Created(Arc::new(Created {
                    name,
                    agent,
                    definition: Json::from_checked(definition),
                    model,
                    working_directory,
                    root,
                    parents,
                    takes_input: flags.0,
                    runs_turns: flags.2,
                    owning_profile,
                    executor_bindings: Json::from_checked(bindings),
                    trust,
                    continue_in_background: flags.1,
                    budget,
                }))
            },
        )
}

fn call() -> impl Strategy<Value = NewCall> {
    (word(), word(), word(), any::<bool>()).prop_map(|(id, name, arguments, changes_state)| {
        NewCall {
            id,
            name,
            arguments,
            changes_state,
        }
    })
}

/// One strategy for each kind of event, by its stored name.
fn kinds() -> Vec<(&'static str, BoxedStrategy<Event>)> {
    let item_id = || id().prop_map(ItemId);
    let message = || option::of(word());
    let immediacy = || one_of(Immediacy::ALL);
    std::vec![
        ("created", created().boxed()),
        (
            "started",
            id().prop_map(|epoch| Event::Started {
                epoch: Epoch(epoch)
            })
            .boxed()
        ),
        ("stopped", settings::stops().boxed()),
        (
            "queued",
            (queue(), item())
                .prop_map(|(queue, item)| Event::Queued { queue, item })
                .boxed()
        ),
        (
            "edited",
            (item_id(), any::<u32>(), word())
                .prop_map(|(item, revision, text)| Event::Edited {
                    item,
                    revision,
                    text
                })
                .boxed()
        ),
        (
            "withdrawn",
            item_id().prop_map(|item| Event::Withdrawn { item }).boxed()
        ),
        (
            "moved",
            (item_id(), queue(), option::of(item_id()))
                .prop_map(|(item, queue, before)| Event::Moved {
                    item,
                    queue,
                    before
                })
                .boxed()
        ),
        (
            "queue-set",
            (queue(), word(), immediacy(), option::of(immediacy()))
                .prop_map(|(queue, name, immediacy, before_hold)| Event::QueueSet {
                    queue,
                    name,
                    immediacy,
                    before_hold
                })
                .boxed()
        ),
        (
            "queue-deleted",
            queue()
                .prop_map(|queue| Event::QueueDeleted { queue })
                .boxed()
        ),
        (
            "turn-started",
            turn().prop_map(|turn| Event::TurnStarted { turn }).boxed()
        ),
        (
            "consumed",
            (turn(), queue(), item())
                .prop_map(|(turn, queue, item)| Event::Consumed { turn, queue, item })
                .boxed()
        ),
        (
            "acknowledged",
            (queue(), item())
                .prop_map(|(queue, item)| Event::Acknowledged { queue, item })
                .boxed()
        ),
        (
            "said",
            (turn(), step())
                .prop_map(|(turn, step)| Event::Said { turn, step })
                .boxed()
        ),
        (
            "call-started",
            (turn(), call())
                .prop_map(|(turn, call)| Event::CallStarted { turn, call })
                .boxed()
        ),
        (
            "call-ended",
            (turn(), result())
                .prop_map(|(turn, result)| Event::CallEnded { turn, result })
                .boxed()
        ),
        (
            "turn-ended",
            (turn(), one_of(EndReason::ALL), message())
                .prop_map(|(turn, reason, result)| Event::TurnEnded {
                    turn,
                    reason,
                    result
                })
                .boxed()
        ),
        (
            "compacted",
            (
                turn(),
                any::<u32>(),
                step(),
                word(),
                option::of(any::<u64>())
            )
                .prop_map(|(turn, steps, step, restated, before)| Event::Compacted {
                    cut: Cut { turn, steps },
                    step,
                    restated,
                    before,
                })
                .boxed()
        ),
        (
            "bounds-set",
            bounds()
                .prop_map(|bounds| Event::BoundsSet {
                    bounds: Arc::new(bounds)
                })
                .boxed()
        ),
        (
            "settings-set",
            settings()
                .prop_map(|settings| Event::SettingsSet {
                    settings: Arc::new(settings)
                })
                .boxed()
        ),
        ("modal-set", modals::modals().boxed()),
        (
            "noted",
            (word(), word())
                .prop_map(|(code, text)| Event::Noted { code, text })
                .boxed()
        ),
        (
            "watch-set",
            (watch(), session())
                .prop_map(|(watch, target)| Event::WatchSet { watch, target })
                .boxed()
        ),
        (
            "watch-ended",
            watch()
                .prop_map(|watch| Event::WatchEnded { watch })
                .boxed()
        ),
        (
            "watcher-added",
            (watch(), session(), message())
                .prop_map(|(watch, session, message)| Event::WatcherAdded {
                    watch,
                    session,
                    message
                })
                .boxed()
        ),
        (
            "watcher-removed",
            watch()
                .prop_map(|watch| Event::WatcherRemoved { watch })
                .boxed()
        ),
        (
            "child-held",
            (session(), message())
                .prop_map(|(child, call)| Event::ChildHeld { child, call })
                .boxed()
        ),
        (
            "child-released",
            session()
                .prop_map(|child| Event::ChildReleased { child })
                .boxed()
        ),
        (
            "parent-holds",
            session()
                .prop_map(|parent| Event::ParentHolds { parent })
                .boxed()
        ),
        (
            "parent-released",
            session()
                .prop_map(|parent| Event::ParentReleased { parent })
                .boxed()
        ),
        (
            "sent",
            (session(), item_id())
                .prop_map(|(to, item)| Event::Sent { to, item })
                .boxed()
        ),
        (
            "of-later",
            any::<u32>()
                .prop_map(|number| Event::Unknown {
                    kind: "of-later".into(),
                    body: Json::from_checked(format!(
                        "{{\"kind\":\"of-later\", \"v\":9,\"odd\":{number}}}"
                    )),
                })
                .boxed()
        ),
    ]
}

fn body() -> impl Strategy<Value = MailBody> {
    let message = || option::of(word());
    prop_oneof![
        (id(), word(), any::<bool>()).prop_map(|(item, text, immediate)| MailBody::Input {
            item: ItemId(item),
            text,
            immediate
        }),
        (watch(), message()).prop_map(|(watch, message)| MailBody::Watch { watch, message }),
        watch().prop_map(|watch| MailBody::Unwatch { watch }),
        (
            watch(),
            message(),
            option::of(one_of(Outcome::ALL)),
            option::of(one_of(EndReason::ALL)),
            any::<bool>(),
            said_last()
        )
            .prop_map(|(watch, message, outcome, end_reason, stopped, told)| {
                MailBody::Notice(Notice {
                    watch,
                    message,
                    outcome,
                    end_reason,
                    stopped,
                    told,
                })
            }),
        (watch(), word()).prop_map(|(watch, text)| MailBody::Report { watch, text }),
        Just(MailBody::Hold),
        one_of(StopReason::ALL).prop_map(|reason| MailBody::Release { reason }),
    ]
}

#[test]
fn every_event_reads_back_the_same() {
    let mut runner = proptest::test_runner::TestRunner::default();
    for (name, events) in kinds() {
        let stamped = (events, any::<i64>(), option::of(any::<i64>()));
        runner
            .run(&stamped, |(event, at, observed)| {
                let known = !matches!(event, Event::Unknown { .. });
                let stamped = Stamped {
                    at: Timestamp(at),
                    observed: observed.filter(|_| known).map(Timestamp),
                    event,
                };
                prop_assert_eq!(stamped.event.kind(), name);
                let body = encode_event(&stamped).unwrap();
                let text = crate::kind::searchable(&stamped.event);
                let read = decode_event(stamped.at, &body, text.as_deref());
                prop_assert_eq!(read.unwrap(), stamped);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn every_kind_is_read_back() {
    // The names are on disk: here they are written out, so that none changes unseen.
    let read: Vec<&str> = kinds().into_iter().map(|(name, _)| name).collect();
    assert_eq!(read, [Event::KINDS, &["of-later"]].concat());
}

proptest! {
    #[test]
    fn mail_reads_back_the_same(body in body()) {
        prop_assert_eq!(decode_mail(&encode_mail(&body)), Some(body));
    }

    #[test]
    fn a_summary_reads_back_the_same(summary in summaries()) {
        let fixed = Fixed::of(&summary);
        prop_assert!(fixed.is_of(&summary));
        let stored = encode_fixed(&fixed);
        prop_assert_eq!(Fixed::read(&stored), Some(fixed));
        let read = decode_summary(&stored, &encode_summary(&summary), summary.epoch);
        prop_assert_eq!(read, Ok(summary));
    }

    #[test]
    fn streamed_text_reads_back_the_same(turn in turn(), step in step()) {
        let partial = Partial { turn, step };
        prop_assert_eq!(decode_partial(&encode_partial(&partial)), Ok(partial));
    }
}

fn read(body: &str) -> Result<Event, Unusable> {
    decode_event(Timestamp(1), body, Some("text")).map(|stamped| stamped.event)
}

#[test]
fn g60_an_older_or_odd_record_still_reads() {
    let step = |usage| Event::Said {
        turn: TurnId(0),
        step: StepText {
            text: "text".into(),
            usage,
            ..StepText::default()
        },
    };
    // Fields that are missing, of another version, and beyond what is known.
    let body = r#"{"kind":"said","v":1,"min_reader":1,"f":{"step":{}}}"#;
    assert_eq!(read(body), Ok(step(Usage::default())));
    let body = r#"{"kind":"said","more":[1],"f":{"step":{"new":{}},"x":null}}"#;
    assert_eq!(read(body), Ok(step(Usage::default())));
    let body = r#"{"kind":"said","v":1,"min_reader":-1,"f":{"turn":-4,"step":{"usage":{"input":-7,"output":2.0}}}}"#;
    let usage = Usage {
        input: Some(0),
        output: Some(2),
        ..Usage::default()
    };
    assert_eq!(read(body), Ok(step(usage)));
}

#[test]
fn g60_what_is_not_understood_is_kept() {
    for (kind, body) in [
        ("later", r#"{"kind":"later","v":2,"f":[]}"#),
        ("stopped", r#"{"kind":"stopped","f":{"reason":"of-later"}}"#),
        ("said", r#"{"kind":"said"}"#),
        (
            "queued",
            r#"{"kind":"queued","f":{"queue":"custom-x","item":3}}"#,
        ),
    ] {
        let event = Event::Unknown {
            kind: kind.into(),
            body: Json::from_checked(body),
        };
        assert_eq!(read(body), Ok(event.clone()));
        let stamped = Stamped {
            at: Timestamp(1),
            observed: None,
            event,
        };
        assert_eq!(encode_event(&stamped).unwrap(), body);
    }
    for broken in ["", "{", "[]", "{\"v\":1}"] {
        assert!(matches!(read(broken), Err(Unusable::Broken(_))), "{broken}");
    }
}

#[test]
fn a_record_that_needs_a_newer_reader_says_which() {
    let body = r#"{"kind":"said","v":7,"min_reader":7,"f":{}}"#;
    assert_eq!(read(body), Err(Unusable::TooNew(7)));
    assert_eq!(needs(body), 7);
}

#[test]
fn an_unknown_event_that_says_otherwise_is_not_written() {
    for body in ["{\"kind\":\"other\"}", "no json"] {
        let stamped = Stamped {
            at: Timestamp(1),
            observed: None,
            event: Event::Unknown {
                kind: "later".into(),
                body: Json::from_checked(body),
            },
        };
        assert!(encode_event(&stamped).is_err());
    }
}
