//! What a person who looks elsewhere should be told of a session: one notification for each kind, raised once and cleared by what
//! ends it. A session's row goes in, and what is new comes out; how a person is told is the viewer's business.

use std::collections::BTreeSet;

use crate::session::{SessionView, Status};

/// What there is to tell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NotificationKind {
    /// The session's run has ended. Cleared when a person turns to the session, or when it runs again.
    Idle,
    /// A person is asked, in the session or below it. Cleared when no question is open any more.
    ModalPending,
    /// A run of a sub-agent failed. Cleared when a person turns to the session.
    ChildFailed,
    /// A notice lies unread for the session. Cleared when none does.
    NoticeUnread,
    /// The run ended because the budget of its tree is used up. Cleared when a person turns to the session, or when it runs
    /// again.
    Budget,
}

impl NotificationKind {
    /// In words for a person, behind the session's name.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Idle => "has ended its run",
            Self::ModalPending => "asks you",
            Self::ChildFailed => "has a sub-agent that failed",
            Self::NoticeUnread => "has an unread notice",
            Self::Budget => "has used up its budget",
        }
    }
}

/// The notifications of one session, keyed by their kind.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Notifications {
    open: BTreeSet<NotificationKind>,
    /// What it did when it was looked at last.
    status: Option<Status>,
    /// Sub-agents that had failed by then.
    failed: BTreeSet<String>,
}

impl Notifications {
    /// Those that are open: unread, as long as there is one.
    pub fn open(&self) -> impl Iterator<Item = NotificationKind> {
        self.open.iter().copied()
    }

    /// The session stands like this now: its row, how many questions are open in it and below it, and the rows below it as
    /// far as they are known. What is new comes back; what was known already is told once.
    pub fn look(
        &mut self,
        row: &SessionView,
        asked: usize,
        below: &[SessionView],
    ) -> Vec<NotificationKind> {
        use NotificationKind::{Budget, ChildFailed, Idle, ModalPending, NoticeUnread};
        let before = self.open.clone();
        let is_first = self.status.is_none();
        let ran = self.status.replace(row.status) == Some(Status::Running);
        if row.status == Status::Running {
            self.open.remove(&Idle);
            self.open.remove(&Budget);
        } else if ran {
            let spent = row.outcome.as_deref() == Some("out-of-budget");
            self.open.insert(if spent { Budget } else { Idle });
        }
        self.set(ModalPending, asked > 0);
        self.set(NoticeUnread, row.unread > 0);
        let failed = below.iter().filter(|child| {
            child.session_id != row.session_id && child.outcome.as_deref() == Some("failed")
        });
        let failed: BTreeSet<String> = failed.map(|child| child.session_id.clone()).collect();
        if failed.difference(&self.failed).next().is_some() && !is_first {
            self.open.insert(ChildFailed);
        }
        self.failed = failed;
        self.open.difference(&before).copied().collect()
    }

    fn set(&mut self, kind: NotificationKind, is_open: bool) {
        if is_open {
            self.open.insert(kind);
        } else {
            self.open.remove(&kind);
        }
    }

    /// A person turns to the session: what is told by that is cleared. Questions and notices stay until they are dealt with.
    pub fn turned_to(&mut self) {
        self.open.retain(|kind| {
            matches!(
                kind,
                NotificationKind::ModalPending | NotificationKind::NoticeUnread
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NotificationKind::{Budget, ChildFailed, Idle, ModalPending, NoticeUnread};

    fn row(id: &str, status: &str, outcome: Option<&str>, unread: u32) -> SessionView {
        serde_json::from_value(serde_json::json!({
            "session-id": id, "name": "n", "status": status, "outcome": outcome, "end-reason": null,
            "agent": "a", "model": "m", "working-directory": "/", "parent-session-ids": [],
            "root-session-id": "r", "created-at": "t", "last-activity-at": "t",
            "usage": {}, "cost-usd": null, "cost-at-least": false, "context-tokens": null,
            "result-preview": null, "result-is-earlier": false, "side-effects": null,
            "action": null, "note": null, "queued": 0, "unread": unread, "waiting-for": [],
            "generation": 1, "paused": false, "continue-in-background": false, "asks": 0,
        }))
        .unwrap()
    }

    #[test]
    fn each_kind_is_raised_once_and_cleared_by_what_ends_it() {
        let mut all = Notifications::default();
        let running = row("r", "running", None, 0);
        let idle = row("r", "idle", Some("succeeded"), 0);
        let spent = row("r", "error", Some("out-of-budget"), 0);
        let unread = row("r", "running", None, 2);
        let child = [row("c", "error", Some("failed"), 0)];
        // The row, open questions, rows below; what is new, and what is open.
        type Step<'a> = (
            &'a SessionView,
            usize,
            &'a [SessionView],
            Vec<NotificationKind>,
            Vec<NotificationKind>,
        );
        let steps: [Step<'_>; 9] = [
            (&idle, 0, &[], vec![], vec![]),
            (&running, 0, &[], vec![], vec![]),
            (&running, 1, &[], vec![ModalPending], vec![ModalPending]),
            (&running, 2, &[], vec![], vec![ModalPending]),
            (&unread, 0, &[], vec![NoticeUnread], vec![NoticeUnread]),
            (&running, 0, &child, vec![ChildFailed], vec![ChildFailed]),
            (&idle, 0, &child, vec![Idle], vec![Idle, ChildFailed]),
            (&running, 0, &child, vec![], vec![ChildFailed]),
            (&spent, 0, &child, vec![Budget], vec![ChildFailed, Budget]),
        ];
        for (number, (row, asked, below, new, open)) in steps.into_iter().enumerate() {
            assert_eq!(all.look(row, asked, below), new, "step {number}");
            assert_eq!(all.open().collect::<Vec<_>>(), open, "step {number}");
        }
        all.turned_to();
        assert_eq!(all.open().count(), 0);
    }

    #[test]
    fn turning_to_a_session_answers_no_question_and_reads_no_notice() {
        let mut all = Notifications::default();
        all.look(&row("r", "running", None, 1), 1, &[]);
        all.look(&row("r", "idle", Some("succeeded"), 1), 1, &[]);
        assert_eq!(all.open().count(), 3);
        all.turned_to();
        assert_eq!(all.open().collect::<Vec<_>>(), [ModalPending, NoticeUnread]);
    }

    #[test]
    fn what_had_failed_before_anybody_looked_is_no_news() {
        let mut all = Notifications::default();
        let old = [row("c", "idle", Some("failed"), 0)];
        assert_eq!(all.look(&row("r", "idle", None, 0), 0, &old), []);
        let more = [old[0].clone(), row("d", "idle", Some("failed"), 0)];
        assert_eq!(
            all.look(&row("r", "idle", None, 0), 0, &more),
            [ChildFailed]
        );
    }
}
