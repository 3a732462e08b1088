//! Watches and notices: each registration is answered once, or given up.

use attache_session::{
    Answer, Command, EndReason, Expect, MailBody, NewMail, Notice, Origin, Outcome, QueueId,
    StopReason,
};

use crate::desk::{Desk, kinds, sid, texts, wid};

fn watch(number: u128, target: u128, settled: Option<Notice>) -> Command {
    Command::Watch {
        watch: wid(number),
        target: sid(target),
        message: None,
        settled,
    }
}

fn asks(number: u128) -> MailBody {
    MailBody::Watch {
        watch: wid(number),
        message: None,
    }
}

fn notice(number: u128) -> Notice {
    Notice {
        told: None,
        watch: wid(number),
        message: None,
        outcome: Some(Outcome::Succeeded),
        end_reason: Some(EndReason::Completed),
        stopped: false,
    }
}

fn notices(mail: &[NewMail]) -> Vec<&Notice> {
    let found = mail.iter().filter_map(|mail| match &mail.body {
        MailBody::Notice(notice) => Some(notice),
        _ => None,
    });
    found.collect()
}

#[test]
fn a_target_answers_at_once_or_when_it_settles() {
    // Idle, running, stopped.
    let mut idle = Desk::child_of(&[9]);
    let done = idle.takes(&[(9, asks(1))]);
    assert_eq!(kinds(&done.events), "watcher-added watcher-removed");
    let told = notices(&done.mail);
    assert_eq!(
        (told.len(), told[0].outcome, told[0].stopped),
        (1, None, false)
    );
    assert_eq!(done.expects, [Expect::NoOtherMail]);

    let mut running = Desk::child_of(&[9]);
    running.says(QueueId::Default, "work");
    let done = running.takes(&[(9, asks(1))]);
    assert_eq!(kinds(&done.events), "watcher-added");
    assert!(done.mail.is_empty());
    let done = running.ends(EndReason::ProviderError);
    assert_eq!(kinds(&done.events), "turn-ended watcher-removed");
    let told = notices(&done.mail);
    assert_eq!((told.len(), told[0].outcome), (1, Some(Outcome::Failed)));
    assert_eq!(done.expects, [Expect::NoOtherMail]);
    running.says(QueueId::Default, "more");
    assert!(
        running.ends(EndReason::Completed).mail.is_empty(),
        "told once"
    );

    let mut stopped = Desk::child_of(&[9]);
    stopped.stops(StopReason::Terminated);
    let done = stopped.takes(&[(9, asks(1))]);
    let told = notices(&done.mail);
    assert_eq!((told.len(), told[0].stopped), (1, true));
    assert!(done.expects.is_empty());
}

#[test]
fn a_target_that_goes_on_with_more_input_has_not_settled() {
    let mut desk = Desk::child_of(&[9]);
    desk.says(QueueId::Default, "one");
    desk.takes(&[(9, asks(1))]);
    desk.says(QueueId::Default, "two");
    let done = desk.ends(EndReason::Completed);
    assert_eq!(kinds(&done.events), "turn-ended turn-started consumed");
    assert!(done.mail.is_empty());
    assert_eq!(notices(&desk.ends(EndReason::Completed).mail).len(), 1);
}

#[test]
fn all_watchers_are_told_each_its_own_text() {
    let mut desk = Desk::child_of(&[9, 8]);
    desk.says(QueueId::Default, "work");
    let named = MailBody::Watch {
        watch: wid(2),
        message: Some("look at it".into()),
    };
    desk.takes(&[(9, asks(1)), (8, named), (9, asks(3))]);
    let done = desk.ends(EndReason::Completed);
    let told: Vec<_> = done.mail.iter().map(|mail| mail.to).collect();
    assert_eq!(told, [sid(9), sid(8), sid(9)]);
    let messages: Vec<_> = notices(&done.mail)
        .iter()
        .map(|notice| notice.message.as_deref())
        .collect();
    assert_eq!(messages, [None, Some("look at it"), None]);
}

#[test]
fn the_watcher_is_told_by_input_that_says_where_it_comes_from() {
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "work");
    let done = desk.does(watch(1, 2, None));
    assert_eq!(
        (kinds(&done.events).as_str(), done.answer),
        ("watch-set", Answer::Done)
    );
    assert_eq!(done.mail[0].body, asks(1));
    desk.ends(EndReason::Completed);
    assert!(!desk.state.is_settled(), "it waits");
    let done = desk.takes(&[(2, MailBody::Notice(notice(1)))]);
    assert_eq!(
        kinds(&done.events),
        "watch-ended queued turn-started consumed"
    );
    let text = &texts(&done.events)[0];
    for part in [
        sid(2).to_string().as_str(),
        "status: idle",
        "outcome: succeeded",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let attache_session::Event::Consumed { item, .. } = &done.events[3].event else {
        panic!("{:?}", done.events)
    };
    let origin = Origin::Notice {
        told: None,
        about: sid(2),
        watch: wid(1),
    };
    assert_eq!(item.origin, origin);
    // A second answer to the same registration tells nothing.
    let done = desk.takes(&[(2, MailBody::Notice(notice(1)))]);
    assert_eq!((done.events.len(), done.taken.len()), (0, 1));
}

#[test]
fn the_line_of_a_notice_says_what_came_of_it() {
    let table = [
        (
            Some(EndReason::Completed),
            false,
            "status: idle, outcome: succeeded",
        ),
        (
            Some(EndReason::ProviderError),
            false,
            "status: error, outcome: failed",
        ),
        (
            Some(EndReason::Budget),
            false,
            "status: error, outcome: out-of-budget",
        ),
        (
            Some(EndReason::Interrupted),
            false,
            "status: idle, outcome: interrupted",
        ),
        (
            Some(EndReason::Cancelled),
            true,
            "status: stopped, outcome: cancelled",
        ),
        (None, false, "status: idle, outcome: none"),
        (None, true, "status: stopped, outcome: none"),
    ];
    for (end_reason, stopped, expected) in table {
        let mut desk = Desk::new();
        let told = Notice {
            outcome: end_reason.map(EndReason::outcome),
            end_reason,
            stopped,
            ..notice(1)
        };
        let done = desk.does(watch(1, 2, Some(told)));
        assert_eq!(done.answer, Answer::FiredAtOnce);
        let text = &texts(&done.events)[0];
        assert!(text.contains(expected), "{text}");
    }
    let mut desk = Desk::new();
    let own = Notice {
        message: Some("child 2 is through".into()),
        ..notice(1)
    };
    let done = desk.does(watch(1, 2, Some(own)));
    assert_eq!(texts(&done.events), ["child 2 is through"]);
}

#[test]
fn a_registration_on_a_target_that_has_settled_fires_at_once() {
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "work");
    let done = desk.does(watch(1, 2, Some(notice(1))));
    assert_eq!(
        (kinds(&done.events).as_str(), done.answer),
        ("queued", Answer::FiredAtOnce)
    );
    assert!(done.mail.is_empty() && desk.state.watches.is_empty());
}

#[test]
fn a_session_that_watches_itself_is_told_at_the_end_of_its_run() {
    let mut desk = Desk::new();
    let done = desk.does(watch(1, 1, None));
    assert_eq!(done.answer, Answer::FiredAtOnce, "nothing runs");
    desk.ends(EndReason::Completed);

    desk.says(QueueId::Default, "work");
    // What its port believes of itself does not count.
    let done = desk.does(watch(2, 1, Some(notice(2))));
    assert_eq!(kinds(&done.events), "watch-set watcher-added");
    assert!(done.mail.is_empty());
    let done = desk.ends(EndReason::Refusal);
    assert_eq!(
        kinds(&done.events),
        "turn-ended watcher-removed watch-ended queued turn-started consumed"
    );
    assert!(done.mail.is_empty());
    assert!(texts(&done.events)[0].contains("outcome: failed"));
    assert_eq!(kinds(&desk.ends(EndReason::Completed).events), "turn-ended");
}

#[test]
fn a_watch_on_itself_does_not_keep_it_from_settling() {
    let mut desk = Desk::child_of(&[9]);
    desk.says(QueueId::Default, "work");
    desk.does(watch(1, 1, None));
    let summary = attache_session::Summary::of(&desk.state).unwrap();
    assert!(summary.watching.is_empty());
    desk.takes(&[(9, asks(2))]);
    let done = desk.ends(EndReason::Completed);
    assert!(done.mail.is_empty(), "its own notice is work");
    assert_eq!(notices(&desk.ends(EndReason::Completed).mail).len(), 1);
}

#[test]
fn through_three_levels_by_watches_alone_each_is_told_once() {
    // 1 watches 2, 2 watches 3: 3 settles first, then 2 is told and settles, then 1.
    let mut middle = Desk::child_of(&[9]);
    middle.says(QueueId::Default, "work");
    middle.does(watch(1, 3, None));
    middle.takes(&[(9, asks(2))]);
    let done = middle.ends(EndReason::Completed);
    assert!(done.mail.is_empty(), "the middle waits and has not settled");
    let done = middle.takes(&[(3, MailBody::Notice(notice(1)))]);
    assert!(done.mail.is_empty(), "the notice sets it to work");
    let done = middle.ends(EndReason::Completed);
    assert_eq!(notices(&done.mail).len(), 1);
    assert_eq!(notices(&done.mail)[0].watch, wid(2));
    assert!(middle.state.watchers.is_empty() && middle.state.watches.is_empty());
}

#[test]
fn a_watcher_that_gives_up_is_not_told() {
    let mut desk = Desk::child_of(&[9]);
    desk.says(QueueId::Default, "work");
    desk.takes(&[(9, asks(1)), (9, MailBody::Unwatch { watch: wid(1) })]);
    // Given up, known or not: nothing is written for what is not there.
    let done = desk.takes(&[(9, MailBody::Unwatch { watch: wid(1) })]);
    assert_eq!((done.events.len(), done.taken.len()), (0, 1));
    assert!(desk.ends(EndReason::Completed).mail.is_empty());
}

#[test]
fn a_stopped_session_leaves_notices_unread_and_takes_the_rest() {
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "work");
    desk.does(watch(1, 2, None));
    desk.stops(StopReason::HostRestart);
    let mail = desk.letters(&[
        (2, MailBody::Notice(notice(1))),
        (9, asks(7)),
        (2, MailBody::Notice(notice(8))),
    ]);
    let ids: Vec<_> = mail.iter().map(|mail| mail.id).collect();
    let take = crate::desk::take(mail.clone(), false);
    let done = desk.does(take.clone());
    assert_eq!(
        done.taken,
        [ids[1], ids[2]],
        "the answer to nothing goes, the notice stays"
    );
    assert_eq!(notices(&done.mail).len(), 1);
    assert!(
        done.expects.is_empty(),
        "it is told although a notice lies unread"
    );
    desk.starts(2);
    let again = crate::desk::take(mail[..1].to_vec(), false);
    let done = desk.does(again);
    assert_eq!(
        kinds(&done.events),
        "watch-ended queued turn-started consumed"
    );
}

#[test]
fn a_session_that_ends_for_good_gives_its_watches_up() {
    for reason in StopReason::ALL {
        let mut desk = Desk::new();
        desk.does(watch(1, 2, None));
        let done = desk.stops(*reason);
        let for_good = !matches!(reason, StopReason::HostShutdown | StopReason::HostRestart);
        let unwatch = NewMail {
            to: sid(2),
            body: MailBody::Unwatch { watch: wid(1) },
        };
        assert_eq!(done.mail.contains(&unwatch), for_good);
        let done = desk.takes(&[(2, MailBody::Notice(notice(1)))]);
        assert_eq!(done.taken.len(), usize::from(for_good), "{reason}");
        assert!(done.events.is_empty());
    }
}
