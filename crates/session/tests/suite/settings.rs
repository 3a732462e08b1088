//! What people set for a session, and when its epoch ends because nobody looks on.

use std::sync::Arc;

use attache_session::{
    Answer, Command, EndReason, Event, Holder, MailBody, QueueId, Rejected, SESSION_NAME_CHARS,
    SWITCHED_OFF, Setting, StopReason, Summary,
};

use crate::desk::{Desk, child, kinds, sid, wid};

fn set(setting: Setting) -> Command {
    Command::Set { setting }
}

fn tool(name: &str, offered: bool) -> Command {
    let name = name.into();
    set(Setting::Tool { name, offered })
}

fn unviewed(held_by: &[Holder], waited_for: &[Holder]) -> Command {
    Command::StopUnviewed {
        held_by: held_by.to_vec(),
        waited_for: waited_for.to_vec(),
        partial: None,
    }
}

#[test]
fn each_setting_is_an_event_once() {
    let mut desk = Desk::new();
    for command in [
        set(Setting::Name("tests".into())),
        set(Setting::Model("some/model".into())),
        set(Setting::ContinueInBackground(true)),
        tool("read_file", false),
        tool("grep", false),
        tool("read_file", true),
    ] {
        let done = desk.does(command.clone());
        assert_eq!(
            (kinds(&done.events).as_str(), &done.answer),
            ("settings-set", &Answer::Done)
        );
        let again = desk.does(command);
        assert_eq!((again.events.len(), &again.answer), (0, &Answer::Unchanged));
    }
    let settings = Arc::clone(&desk.state.settings);
    assert!(settings.offers("read_file") && !settings.offers("grep"));
    let row = Summary::of(&desk.state).unwrap();
    assert_eq!((&*row.name, &*row.model), ("tests", "some/model"));
    assert!(row.continue_in_background);
    // They hold over epochs.
    desk.stops(StopReason::HostRestart);
    desk.starts(7);
    assert_eq!(desk.state.settings, settings);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut desk = Desk::new();
    let long: Arc<str> = "n".repeat(SESSION_NAME_CHARS + 1).into();
    for name in ["".into(), " ".into(), "a\0b".into(), long] {
        let refused = desk.refuses(set(Setting::Name(name)));
        assert_eq!(
            refused,
            Rejected::SessionName {
                most: SESSION_NAME_CHARS
            }
        );
    }
    assert_eq!(
        desk.refuses(set(Setting::Model(" ".into()))),
        Rejected::ModelName
    );
    for number in 0..SWITCHED_OFF {
        desk.does(tool(&format!("tool {number}"), false));
    }
    let refused = desk.refuses(tool("one more", false));
    assert_eq!(refused, Rejected::TooManySwitchedOff { most: SWITCHED_OFF });
    desk.does(tool("tool 0", true));
    desk.does(tool("one more", false));
}

#[test]
fn nobody_looking_on_ends_an_epoch_unless_something_holds_it() {
    use Holder::{Children, Modals, Notices, Waits};
    // What there is, and whether the epoch ends.
    type Make = fn() -> Desk;
    let plain: Make = Desk::new;
    let busy: Make = || {
        let mut desk = Desk::new();
        desk.says(QueueId::Default, "work");
        desk
    };
    let waits: Make = || {
        let mut desk = busy_with_child();
        desk.does(Command::Watch {
            watch: wid(1),
            target: sid(2),
            message: None,
            settled: None,
        });
        desk.ends(EndReason::Completed);
        desk
    };
    let waits_for_itself: Make = || {
        let mut desk = busy_with_child();
        desk.does(Command::Watch {
            watch: wid(1),
            target: sid(1),
            message: None,
            settled: None,
        });
        desk
    };
    let goes_on: Make = || {
        let mut desk = Desk::new();
        desk.does(set(Setting::ContinueInBackground(true)));
        desk
    };
    let has_parent: Make = || Desk::child_of(&[9]);
    let stopped: Make = || {
        let mut desk = Desk::new();
        desk.stops(StopReason::Terminated);
        desk
    };
    let table: [(&str, Make, &[Holder], bool); 10] = [
        ("idle", plain, &[], true),
        ("a turn of its own", busy, &[], true),
        ("a registration on itself", waits_for_itself, &[], true),
        ("a registration on another", waits, &[], false),
        ("children at work", busy, &[Children], false),
        ("an open question below", plain, &[Modals], false),
        ("an unread notice", plain, &[Notices], false),
        ("goes on by itself", goes_on, &[], false),
        ("follows a parent", has_parent, &[], false),
        ("stopped", stopped, &[], false),
    ];
    for (what, make, held_by, ends) in table {
        let mut desk = make();
        let done = desk.does(unviewed(held_by, &[Waits]));
        let stopped = done.events.iter().find_map(|it| match &it.event {
            Event::Stopped { reason, waited_for } => Some((*reason, waited_for.clone())),
            _ => None,
        });
        let told = ends.then(|| (StopReason::LastViewerLeft, vec![Waits]));
        assert_eq!(stopped, told, "{what}");
        assert_eq!(done.answer == Answer::Done, ends, "{what}");
        if !ends {
            assert!(done.events.is_empty(), "{what}");
        }
    }
}

fn busy_with_child() -> Desk {
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "work");
    desk.does(Command::Spawn {
        call: None,
        child: Box::new(child(2, sid(1), None)),
    });
    desk
}

#[test]
fn who_ends_unviewed_lets_its_children_go_and_its_run_reads_interrupted() {
    let mut desk = busy_with_child();
    let done = desk.does(unviewed(&[], &[]));
    assert_eq!(
        kinds(&done.events),
        "noted turn-ended stopped child-released"
    );
    let release = MailBody::Release {
        reason: StopReason::LastViewerLeft,
    };
    assert_eq!(done.mail[0].body, release);
    assert_eq!(desk.state.end_reason, Some(EndReason::Interrupted));
    let mut below = Desk::child_of(&[9]);
    below.takes(&[(9, release)]);
    assert_eq!(below.state.stop, Some(StopReason::ParentEnded));
}
