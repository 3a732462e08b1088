//! What the end of a turn leaves behind: results of calls, the run's own result, and what waits.

use attache_session::{Command, EndReason, Origin, QueueId, SideEffects, Starts};

use crate::desk::{Desk, call, said, sid, wid};
use crate::turns::at;

#[test]
fn every_end_of_a_turn_leaves_each_call_one_result() {
    for reason in EndReason::ALL {
        let mut desk = at("some results in", true);
        let done = desk.ends(*reason);
        let cut: Vec<_> = done
            .events
            .iter()
            .filter_map(|stamped| match &stamped.event {
                attache_session::Event::CallEnded { result, .. } => Some(result),
                _ => None,
            })
            .collect();
        assert_eq!(cut.len(), 1, "{reason}");
        assert_eq!(&*cut[0].call, "b");
        assert_eq!(cut[0].origin, attache_session::ResultOrigin::Cut);
        assert!(cut[0].is_error && cut[0].content.contains(reason.as_str()));
        assert!(cut[0].content.contains("may have taken effect"));
        assert_eq!(desk.state.end_reason, Some(*reason));
    }
}

#[test]
fn a_cut_call_that_changes_nothing_says_so() {
    let mut desk = at("running", true);
    let turn = desk.turn();
    let mut look = call("look");
    look.changes_state = false;
    desk.does(Command::RecordStep {
        turn,
        step: said(""),
        calls: vec![look],
    });
    let done = desk.ends(EndReason::Deadline);
    let text = format!("{:?}", done.events);
    assert!(text.contains("it changes nothing"), "{text}");
}

#[test]
fn the_result_of_a_run_is_its_last_text() {
    let mut desk = at("calls open", true);
    desk.results(&["a", "b"]);
    let turn = desk.turn();
    desk.does(Command::EndTurn {
        turn,
        reason: EndReason::NoOutput,
        step: Some(said("  ")),
        error: Some("it broke".into()),
    });
    assert_eq!(desk.state.result.as_deref(), Some("on it"));
    let note = desk
        .log
        .iter()
        .rev()
        .find_map(|stamped| match &stamped.event {
            attache_session::Event::Noted { code, text } => Some((code.clone(), text.clone())),
            _ => None,
        });
    let (code, text) = note.expect("an error is noted");
    assert_eq!((&*code, &*text), ("no-output", "it broke"));
    desk.says(QueueId::Default, "again");
    desk.ends(EndReason::NoOutput);
    assert_eq!(
        desk.state.result, None,
        "of the last run, not of an earlier one"
    );
}

#[test]
fn a_result_says_whether_the_last_step_said_it() {
    for (last, earlier) in [("  ", true), ("done", false)] {
        let mut desk = at("calls open", true);
        desk.results(&["a", "b"]);
        let turn = desk.turn();
        desk.does(Command::EndTurn {
            turn,
            reason: EndReason::Completed,
            step: Some(said(last)),
            error: None,
        });
        assert_eq!(desk.state.result_earlier, earlier, "{last:?}");
        desk.says(QueueId::Default, "again");
        desk.ends(EndReason::NoOutput);
        assert!(!desk.state.result_earlier, "there is none");
    }
}

#[test]
fn a_run_that_was_cut_says_what_it_may_have_done() {
    use SideEffects::{Maybe, None as Nothing};
    // Of the two open calls `a` changes something.
    for (open, reason, want) in [
        (true, EndReason::Interrupted, Some(Maybe)),
        (true, EndReason::HostRestart, Some(Maybe)),
        (true, EndReason::Cancelled, Some(Maybe)),
        (true, EndReason::ProviderError, Some(Maybe)),
        (false, EndReason::Interrupted, Some(Nothing)),
        (false, EndReason::HostRestart, Some(Nothing)),
        (false, EndReason::Deadline, Some(Nothing)),
        (false, EndReason::Cancelled, None),
        (false, EndReason::Completed, None),
    ] {
        let mut desk = at("calls open", true);
        if !open {
            desk.results(&["a", "b"]);
        }
        let turn = desk.turn();
        desk.does(Command::EndTurn {
            turn,
            reason,
            step: None,
            error: None,
        });
        assert_eq!(desk.state.side_effects, want, "{open} {reason}");
        desk.says(QueueId::Default, "again");
        desk.ends(EndReason::Completed);
        assert_eq!(desk.state.side_effects, None, "of the last run only");
    }
}

#[test]
fn what_may_start_no_turn_waits_in_its_queue() {
    for (starts, with_notice, consumed) in [
        (Starts::All, true, 2),
        (Starts::All, false, 1),
        (Starts::Notices, true, 1),
        (Starts::Notices, false, 0),
        (Starts::None, true, 0),
        (Starts::None, false, 0),
    ] {
        let mut desk = Desk::new();
        desk.says(QueueId::Default, "work");
        desk.says(QueueId::Default, "more");
        if with_notice {
            let (about, watch) = (sid(2), wid(7));
            desk.does(Command::Enqueue {
                item: None,
                queue: QueueId::Immediate,
                text: "it has settled".into(),
                origin: Origin::Notice {
                    about,
                    watch,
                    told: None,
                },
            });
        }
        let end = Command::EndTurn {
            turn: desk.turn(),
            reason: EndReason::Interrupted,
            step: None,
            error: None,
        };
        let ended = desk.within(starts, &end).expect("it ends");
        let mut state = desk.state.clone();
        ended.events.iter().for_each(|it| state.apply(it));
        let waiting = 1 + usize::from(with_notice) - consumed;
        let case = format!("{starts:?}, a notice: {with_notice}");
        assert_eq!(state.deliverable(), waiting, "{case}");
        assert_eq!(state.turn.is_some(), consumed > 0, "{case}");
    }
}
