//! Bugs that are planted into the decisions of a small world. The search has to find each of them: else
//! a rule with that bug would pass.

use attache_session::{Decision, Event, Expect, MailBody, Origin, Stamped, StopReason};

use super::search::search;
use super::world::{Bend, World};
use super::{CRASHES, EVERYTHING, PARENTS};

/// Drops what a decision says of events.
fn without(decision: &mut Decision, what: fn(&Event) -> bool) {
    decision.events.retain(|stamped| !what(&stamped.event));
}

/// Drops what a decision says to others.
fn unsaid(decision: &mut Decision, what: fn(&MailBody) -> bool) {
    decision.mail.retain(|mail| !what(&mail.body));
}

fn stops(decision: &Decision, why: &[StopReason]) -> bool {
    let mut events = decision.events.iter();
    events.any(|it| matches!(&it.event, Event::Stopped { reason, .. } if why.contains(reason)))
}

const BUGS: &[(&str, Bend)] = &[
    ("a watcher that was told stays", |_, decision| {
        without(decision, |it| matches!(it, Event::WatcherRemoved { .. }));
    }),
    ("an answer is lost", |_, decision| {
        unsaid(decision, MailBody::is_notice);
    }),
    ("an answer goes out twice", |_, decision| {
        let notices = decision.mail.iter().filter(|mail| mail.body.is_notice());
        let again: Vec<_> = notices.cloned().collect();
        decision.mail.extend(again);
    }),
    ("mail is taken and stays", |_, decision| {
        decision.taken.clear();
    }),
    ("mail is taken and does nothing", |_, decision| {
        if !decision.taken.is_empty() {
            without(decision, |it| matches!(it, Event::Queued { .. }));
        }
    }),
    (
        "the box is not looked at before the end is told",
        |_, decision| {
            decision.expects.retain(|it| *it != Expect::NoOtherMail);
        },
    ),
    ("a notice is taken and not queued", |_, decision| {
        without(
            decision,
            |it| matches!(it, Event::Queued { item, .. } if matches!(item.origin, Origin::Notice { .. })),
        );
    }),
    ("a watch is taken and not kept", |_, decision| {
        without(decision, |it| matches!(it, Event::WatcherAdded { .. }));
    }),
    ("a stop keeps its watches", |_, decision| {
        if stops(decision, &[StopReason::Terminated]) {
            without(decision, |it| matches!(it, Event::WatchEnded { .. }));
            unsaid(decision, |it| matches!(it, MailBody::Unwatch { .. }));
        }
    }),
    (
        "a watch that is given up is not taken back",
        |_, decision| {
            unsaid(decision, |it| matches!(it, MailBody::Unwatch { .. }));
        },
    ),
    ("a watch is dropped at recovery", |state, decision| {
        if stops(decision, &[StopReason::HostRestart])
            && let (Some(watch), Some(last)) = (state.watches.first(), decision.events.last())
        {
            decision.events.push(Stamped {
                at: last.at.next(),
                observed: None,
                event: Event::WatchEnded { watch: watch.id },
            });
        }
    }),
    ("children of one that has ended live on", |_, decision| {
        unsaid(decision, |it| matches!(it, MailBody::Release { .. }));
    }),
    ("a hold is not told", |_, decision| {
        unsaid(decision, |it| *it == MailBody::Hold);
    }),
    ("input is sent and does not arrive", |_, decision| {
        unsaid(decision, MailBody::is_input);
    }),
    ("input is consumed and stays", |_, decision| {
        without(decision, |it| matches!(it, Event::Consumed { .. }));
    }),
    ("deliverable input starts no turn", |_, decision| {
        without(decision, |it| {
            matches!(it, Event::TurnStarted { .. } | Event::Consumed { .. })
        });
    }),
];

#[test]
fn every_planted_bug_is_found() {
    let missed: Vec<&str> = BUGS
        .iter()
        .filter(|(_, bend)| {
            let world = World::new(PARENTS, 3, CRASHES).bent(*bend);
            search(world, EVERYTHING).is_ok()
        })
        .map(|(name, _)| *name)
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}
