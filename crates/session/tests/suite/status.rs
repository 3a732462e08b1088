//! Status, outcome and settled, as contracts word them: computed over every combination of facts.

use std::collections::HashMap;
use std::sync::Arc;

use attache_session::{
    EndReason, Outcome, RowView, SessionId, Settled, Status, Summary, TurnId, Unread, is_settled,
    status,
};

use crate::desk::{Desk, eid, sid};

/// A settled, live row.
fn row() -> RowView {
    let summary = Summary::of(&Desk::new().state).expect("a session that was born");
    RowView {
        summary: Arc::new(summary),
        live: true,
        unread: Unread::default(),
    }
}

fn with(change: impl FnOnce(&mut Summary)) -> RowView {
    let mut row = row();
    change(Arc::make_mut(&mut row.summary));
    row
}

#[test]
fn status_and_outcome_over_all_combinations() {
    let mut combinations = 0;
    let ends: Vec<Option<EndReason>> = std::iter::once(None)
        .chain(EndReason::ALL.iter().copied().map(Some))
        .collect();
    for bits in 0..256_u32 {
        let bit = |place: u32| bits & (1 << place) != 0;
        let (epoch, known, turn, deliverable) = (bit(0), bit(1), bit(2), bit(3));
        let (inputs, notices, other, watching) = (bit(4), bit(5), bit(6), bit(7));
        for end in &ends {
            combinations += 1;
            let mut row = with(|summary| {
                summary.epoch = epoch.then(|| eid(1));
                summary.turn = turn.then_some(TurnId(3));
                summary.deliverable = u32::from(deliverable);
                summary.queued = u32::from(deliverable) + 1;
                summary.end_reason = *end;
                summary.watching = if watching { vec![sid(2)] } else { vec![] };
            });
            row.live = known;
            row.unread = Unread {
                inputs: u32::from(inputs),
                notices: u32::from(notices),
                other: u32::from(other),
            };
            let live = epoch && known;
            let reason = if turn && !live {
                Some(EndReason::HostRestart)
            } else {
                *end
            };
            assert_eq!(row.end_reason(), reason);
            assert_eq!(row.outcome(), reason.map(EndReason::outcome));
            let work = turn || deliverable || inputs || notices;
            let error = matches!(
                end.map(EndReason::outcome),
                Some(Outcome::Failed | Outcome::TimedOut | Outcome::OutOfBudget)
            );
            let expected = match (live, work, error) {
                (false, _, _) => Status::Stopped,
                (true, true, _) => Status::Running,
                (true, false, true) => Status::Error,
                (true, false, false) => Status::Idle,
            };
            assert_eq!(status(&row), expected, "{row:?}");
            // A target that nobody knows holds nobody up.
            let own = is_settled(sid(1), &mut |id| (id == sid(1)).then(|| row.clone()));
            let settled = !live || !work;
            assert_eq!(own == Settled::Yes, settled, "{row:?}");
        }
    }
    assert_eq!(combinations, 256 * 15);
}

fn judge(rows: &[(u128, RowView)]) -> Settled {
    let rows: HashMap<SessionId, RowView> = rows
        .iter()
        .map(|(id, row)| (sid(*id), row.clone()))
        .collect();
    is_settled(sid(1), &mut |id| rows.get(&id).cloned())
}

fn watching(targets: &[u128]) -> RowView {
    with(|summary| summary.watching = targets.iter().map(|id| sid(*id)).collect())
}

#[test]
fn a_session_has_not_settled_while_one_that_it_watches_has_not() {
    let busy = with(|summary| summary.turn = Some(TurnId(1)));
    let stopped = with(|summary| summary.epoch = None);
    let mut cut = busy.clone();
    cut.live = false;
    let mut asked = row();
    asked.unread.other = 1;
    let mut given = row();
    given.unread.inputs = 1;
    let mut stopped_asked = stopped.clone();
    stopped_asked.unread.other = 1;
    let table: &[(&str, RowView, Option<u128>)] = &[
        ("idle", row(), None),
        ("running", busy.clone(), Some(2)),
        ("stopped", stopped, None),
        ("cut by a crash, not written down yet", cut, Some(2)),
        ("the request to be told lies unread", asked, Some(2)),
        ("the same, and it is stopped", stopped_asked, Some(2)),
        ("input lies unread", given, Some(2)),
    ];
    for (name, target, on) in table {
        let verdict = judge(&[(1, watching(&[2])), (2, target.clone())]);
        let expected = on.map_or(Settled::Yes, |on| Settled::WaitsFor(sid(on)));
        assert_eq!(verdict, expected, "{name}");
        // The same through a chain: nothing of it counts for the one in between alone.
        let chain = [
            (1, watching(&[3])),
            (3, watching(&[2])),
            (2, target.clone()),
        ];
        assert_eq!(judge(&chain), expected, "{name}");
    }
    // Nor does what it would never be told of.
    assert_eq!(judge(&[(1, row()), (2, busy)]), Settled::Yes);
    // A log that says that two watch each other is no reason to look for ever.
    assert_eq!(
        judge(&[(1, watching(&[2])), (2, watching(&[1]))]),
        Settled::Yes
    );
}
