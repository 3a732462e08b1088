//! Which children of a long list are shown line by line, and how the others are counted: what runs, what waits for what,
//! what asks and what failed can be seen at a glance, however many there are.

use attache_client::protocol::{SessionView, Status};

/// A list of so many is shown as it is.
const ONE_BY_ONE: usize = 12;

/// Of those that are alike, so many are shown.
const ALIKE: usize = 2;

/// Of those that need somebody to look at them, so many are shown.
const LOOKED_AT: usize = 20;

/// A list of children, folded.
pub(crate) struct Fold<'a> {
    /// Those that are shown, in their order.
    pub(crate) shown: Vec<&'a SessionView>,
    /// What the others do, and how many do it; the most first.
    pub(crate) rest: Vec<(String, usize)>,
}

impl Fold<'_> {
    /// The line that stands for the others; none when all are shown.
    pub(crate) fn line(&self) -> Option<String> {
        let count: usize = self.rest.iter().map(|(_, count)| count).sum();
        let parts = self
            .rest
            .iter()
            .map(|(what, count)| format!("{count} {what}"));
        (count > 0).then(|| format!("… {count} more: {}", parts.collect::<Vec<_>>().join(", ")))
    }
}

/// Folds a list. `keeps` says of a child that something below it has to be seen.
pub(crate) fn fold<'a>(
    children: &[&'a SessionView],
    keeps: impl Fn(&SessionView) -> bool,
) -> Fold<'a> {
    if children.len() <= ONE_BY_ONE {
        return Fold {
            shown: children.to_vec(),
            rest: Vec::new(),
        };
    }
    let mut shown = Vec::new();
    let mut kinds: Vec<(String, usize, usize)> = Vec::new();
    let mut looked_at = 0;
    for child in children {
        let is_seen = needs_a_look(child) || keeps(child);
        if is_seen && looked_at < LOOKED_AT {
            looked_at += 1;
            shown.push(*child);
            continue;
        }
        let what = does(child);
        let place = kinds.iter().position(|(known, ..)| *known == what);
        let place = place.unwrap_or_else(|| {
            kinds.push((what, 0, 0));
            kinds.len() - 1
        });
        let (_, alike, more) = &mut kinds[place];
        if *alike < ALIKE {
            *alike += 1;
            shown.push(*child);
        } else {
            *more += 1;
        }
    }
    let rest = kinds.into_iter().map(|(what, _, more)| (what, more));
    let mut rest: Vec<(String, usize)> = rest.filter(|(_, more)| *more > 0).collect();
    rest.sort_by_key(|(_, more)| std::cmp::Reverse(*more));
    Fold { shown, rest }
}

/// Whether somebody should see it: it failed, asks a person, something waits for it unread, or its tree is paused.
pub(crate) fn needs_a_look(row: &SessionView) -> bool {
    let went_wrong = matches!(
        row.outcome.as_deref(),
        Some("failed" | "timed-out" | "out-of-budget")
    );
    row.status == Status::Error || went_wrong || row.unread > 0 || row.paused || row.asks > 0
}

/// What it does, in words that others have too.
fn does(row: &SessionView) -> String {
    match (row.status, &row.note, &row.action) {
        (Status::Running, Some(note), _) if note.starts_with("waits for a place") => {
            "wait for a place".to_owned()
        }
        (Status::Running, Some(_), _) => "wait for their provider".to_owned(),
        (Status::Running, None, _) if !row.waiting_for.is_empty() => {
            "wait for sub-agents".to_owned()
        }
        (Status::Running, None, Some(tool)) => format!("run {tool}"),
        (Status::Running, None, None) => "think".to_owned(),
        (status, ..) => match &row.outcome {
            Some(outcome) => format!("{} ({outcome})", status.as_str()),
            None => status.as_str().to_owned(),
        },
    }
}
