//! Trees of sessions for people: lines for a listing, a painted area while work runs, and single
//! lines where nothing can be painted.

use std::collections::HashMap;

use attache_client::protocol::{SessionView, Status};

use crate::clock;
use crate::output::Output;
use crate::safe::in_line;
use crate::shape::Money;
use crate::tree_fold::{Fold, fold, needs_a_look};

/// Lines that a painted tree has at most; what is quiet folds first.
const PAINTED: usize = 20;

/// The last 8 characters of an id: the beginning is time, and shared.
pub(crate) fn short(id: &str) -> &str {
    id.get(id.len().saturating_sub(8)..).unwrap_or(id)
}

/// The status, in a fixed width.
pub(crate) fn status(session: &SessionView, colours: bool) -> String {
    let name = session.status.as_str();
    if !colours {
        return format!("{name:<7}");
    }
    let colour = match session.status {
        Status::Running => 33,
        Status::Idle => 32,
        Status::Stopped => 90,
        Status::Error => 31,
    };
    format!("\u{1b}[{colour}m{name:<7}\u{1b}[0m")
}

/// Trees as lines: each session under its spawner, further parents by reference. Long lists of children are folded unless
/// `all` are wanted.
pub(crate) fn lines(rows: &[SessionView], colours: bool, all: bool) -> Vec<String> {
    let mut children: HashMap<&str, Vec<&SessionView>> = HashMap::new();
    let known: HashMap<&str, &SessionView> = rows
        .iter()
        .map(|row| (row.session_id.as_str(), row))
        .collect();
    let mut roots = Vec::new();
    for row in rows {
        let mut placed = false;
        for parent in &row.parent_session_ids {
            if known.contains_key(parent.as_str()) {
                children.entry(parent).or_default().push(row);
                placed = true;
            }
        }
        if !placed {
            roots.push(row);
        }
    }
    let mut trees = Trees {
        children,
        colours,
        all,
        out: Vec::new(),
    };
    for root in roots {
        trees.out.push(line(root, "", colours));
        trees.below(root, "");
    }
    trees.out
}

/// Trees that are being written.
struct Trees<'a> {
    children: HashMap<&'a str, Vec<&'a SessionView>>,
    colours: bool,
    all: bool,
    out: Vec<String>,
}

impl Trees<'_> {
    fn below(&mut self, row: &SessionView, indent: &str) {
        let Some(list) = self.children.get(row.session_id.as_str()).cloned() else {
            return;
        };
        let folded = if self.all {
            Fold {
                shown: list,
                rest: Vec::new(),
            }
        } else {
            fold(&list, |child| self.keeps(child))
        };
        let rest = folded.line();
        for (index, child) in folded.shown.iter().enumerate() {
            let last = index + 1 == folded.shown.len() && rest.is_none();
            let (branch, next) = if last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            if child.parent_session_ids.first() == Some(&row.session_id) {
                let lead = format!("{indent}{branch}");
                self.out.push(line(child, &lead, self.colours));
                self.below(child, &format!("{indent}{next}"));
            } else {
                let id = short(&child.session_id);
                self.out.push(format!("{indent}{branch}→ {id}"));
            }
        }
        if let Some(rest) = rest {
            self.out.push(format!("{indent}└─ {rest}"));
        }
    }

    /// Whether something below a session has to be seen.
    fn keeps(&self, row: &SessionView) -> bool {
        let below = self.children.get(row.session_id.as_str());
        below.into_iter().flatten().any(|child| {
            // A further parent's reference leads to what is told elsewhere.
            child.parent_session_ids.first() == Some(&row.session_id)
                && (child.status == Status::Running || needs_a_look(child) || self.keeps(child))
        })
    }
}

fn line(row: &SessionView, lead: &str, colours: bool) -> String {
    let mut text = format!(
        "{lead}{} {}  {}",
        short(&row.session_id),
        status(row, colours),
        in_line(&row.name)
    );
    if let Some(outcome) = row
        .outcome
        .as_deref()
        .filter(|_| row.status != Status::Running)
    {
        text.push_str(&format!("  {outcome}"));
    }
    if let Some(action) = row.note.as_ref().or(row.action.as_ref()) {
        text.push_str(&format!("  {}", in_line(action)));
    }
    if !row.waiting_for.is_empty() {
        let waits: Vec<&str> = row.waiting_for.iter().take(3).map(|id| short(id)).collect();
        let more = row.waiting_for.len().saturating_sub(waits.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        text.push_str(&format!("  waits for {}{more}", waits.join(", ")));
    }
    if row.asks > 0 {
        text.push_str("  asks a person");
    }
    if row.unread > 0 {
        text.push_str(&format!("  {} unread", row.unread));
    }
    match (row.usage.input_tokens, row.usage.output_tokens) {
        (None, None) => {}
        (input, output) => text.push_str(&format!(
            "  {}/{} tokens",
            input.map_or("?".to_owned(), |n| n.to_string()),
            output.map_or("?".to_owned(), |n| n.to_string())
        )),
    }
    if let Some(money) = Money::of(row).shown() {
        text.push_str(&format!("  {money}"));
    }
    if row.status == Status::Running {
        text.push_str(&format!("  {} s", clock::seconds_since(&row.created_at)));
    }
    text
}

/// Paints a tree over itself below what was printed.
pub(crate) struct Painter<'a> {
    output: &'a Output,
    painted: usize,
}

impl<'a> Painter<'a> {
    pub(crate) fn new(output: &'a Output) -> Self {
        Self { output, painted: 0 }
    }

    /// Paints the tree as it is now.
    pub(crate) fn paint(&mut self, rows: &[SessionView]) {
        if !self.output.is_live() {
            return;
        }
        let mut shown = lines(rows, true, false);
        if shown.len() > PAINTED {
            let folded = folded(rows);
            shown = lines(&folded, true, false);
            let hidden = rows.len() - folded.len();
            shown.truncate(PAINTED - 1);
            shown.push(format!("… {hidden} more sessions"));
        }
        let mut text = self.erase();
        let width = width();
        for line in &shown {
            // A line that wraps could not be painted over.
            text.push_str(&cropped(line, width));
            text.push_str("\u{1b}[K\n");
        }
        self.painted = shown.len();
        self.output.progress(&text);
    }

    /// Takes the painted tree away.
    pub(crate) fn clear(&mut self) {
        if self.painted > 0 {
            let text = self.erase();
            self.painted = 0;
            self.output.progress(&text);
        }
    }

    /// Leaves the painted tree where it is.
    pub(crate) fn leave(&mut self) {
        self.painted = 0;
    }

    fn erase(&self) -> String {
        if self.painted == 0 {
            String::new()
        } else {
            format!("\u{1b}[{}A\u{1b}[J", self.painted)
        }
    }
}

/// Columns of the terminal; a usual number where it does not tell.
fn width() -> usize {
    rustix::termios::tcgetwinsize(std::io::stderr())
        .map(|size| usize::from(size.ws_col))
        .ok()
        .filter(|columns| *columns > 0)
        .unwrap_or(80)
}

/// A line cut to a width; colours take no place in it.
fn cropped(line: &str, width: usize) -> String {
    let mut out = String::with_capacity(line.len());
    let mut shown = 0;
    let mut in_colour = false;
    for character in line.chars() {
        match character {
            '\u{1b}' => in_colour = true,
            _ if in_colour => in_colour = character != 'm',
            _ if shown + 1 >= width => continue,
            _ => shown += 1,
        }
        out.push(character);
    }
    out
}

/// What a long tree is folded to: what runs, what failed, and the way up from there.
fn folded(rows: &[SessionView]) -> Vec<SessionView> {
    let by_id: HashMap<&str, &SessionView> = rows
        .iter()
        .map(|row| (row.session_id.as_str(), row))
        .collect();
    let mut keep = std::collections::HashSet::new();
    for row in rows {
        if matches!(row.status, Status::Running | Status::Error)
            || row.parent_session_ids.is_empty()
        {
            let mut at = Some(row);
            while let Some(row) = at {
                if !keep.insert(row.session_id.clone()) {
                    break;
                }
                at = row
                    .parent_session_ids
                    .first()
                    .and_then(|id| by_id.get(id.as_str()).copied());
            }
        }
        if keep.len() >= PAINTED {
            break;
        }
    }
    rows.iter()
        .filter(|row| keep.contains(&row.session_id))
        .cloned()
        .collect()
}

/// Single lines for what sessions do, where nothing can be painted.
#[derive(Default)]
pub(crate) struct Steps(HashMap<String, String>);

impl Steps {
    /// Lines for the rows whose doing has changed.
    pub(crate) fn news(&mut self, rows: &[SessionView]) -> Vec<String> {
        let mut news = Vec::new();
        for row in rows {
            let depth = usize::from(!row.parent_session_ids.is_empty());
            let doing = match (
                row.note.as_ref().or(row.action.as_ref()),
                row.status,
                &row.outcome,
            ) {
                (Some(action), _, _) => in_line(action).into_owned(),
                (None, Status::Running, _) => "thinking".to_owned(),
                (None, status, Some(outcome)) => format!("{} ({outcome})", status.as_str()),
                (None, status, None) => status.as_str().to_owned(),
            };
            let before = self.0.insert(row.session_id.clone(), doing.clone());
            if before.as_deref() != Some(doing.as_str()) {
                let indent = "  ".repeat(depth);
                news.push(format!(
                    "{indent}{} {}: {doing}",
                    short(&row.session_id),
                    in_line(&row.name)
                ));
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_what_is_seen_of_it() {
        assert_eq!(cropped("abcdef", 4), "abc");
        assert_eq!(
            cropped("\u{1b}[33mab\u{1b}[0mcdef", 4),
            "\u{1b}[33mab\u{1b}[0mc"
        );
        assert_eq!(cropped("äöü", 80), "äöü");
    }

    /// A row as it comes from a host.
    fn row(id: &str, parents: &[&str], status: &str, rest: &serde_json::Value) -> SessionView {
        let mut row = serde_json::json!({
            "session-id": format!("01931f2e-0000-7000-8000-0000{id}"),
            "name": format!("name of {id}"), "status": status, "outcome": null,
            "end-reason": null, "agent": "a", "model": "echo/echo", "working-directory": "/w",
            "parent-session-ids": parents.iter().map(|id| format!("01931f2e-0000-7000-8000-0000{id}"))
                .collect::<Vec<_>>(),
            "root-session-id": "01931f2e-0000-7000-8000-0000aaaaaaaa",
            "created-at": "2026-11-30T00:00:00.000Z", "last-activity-at": "2026-11-30T00:00:00.000Z",
            "usage": {}, "cost-usd": null, "cost-at-least": false, "context-tokens": null, "result-preview": null,
            "action": null, "note": null, "queued": 0, "unread": 0, "waiting-for": [], "generation": 1, "result-is-earlier": false, "side-effects": null, "paused": false,
            "continue-in-background": true, "asks": 0,
        });
        for (name, value) in rest.as_object().unwrap() {
            row[name] = value.clone();
        }
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn steps_tell_each_change_once() {
        let none = serde_json::json!({});
        let acts = serde_json::json!({ "action": "read_file" });
        let done = serde_json::json!({ "outcome": "succeeded" });
        let root = row("aaaaaaaa", &[], "running", &none);
        let child = |status, rest| row("bbbbbbbb", &["aaaaaaaa"], status, rest);
        let mut steps = Steps::default();
        for (rows, told) in [
            (
                vec![root.clone()],
                &["aaaaaaaa name of aaaaaaaa: thinking"][..],
            ),
            (
                vec![root.clone(), child("running", &none)],
                &["  bbbbbbbb name of bbbbbbbb: thinking"],
            ),
            (
                vec![root.clone(), child("running", &acts)],
                &["  bbbbbbbb name of bbbbbbbb: read_file"],
            ),
            (vec![root.clone(), child("running", &acts)], &[]),
            (
                vec![root.clone(), child("idle", &done)],
                &["  bbbbbbbb name of bbbbbbbb: idle (succeeded)"],
            ),
            (
                vec![root.clone(), child("stopped", &none)],
                &["  bbbbbbbb name of bbbbbbbb: stopped"],
            ),
        ] {
            assert_eq!(steps.news(&rows), told);
        }
    }

    #[test]
    fn a_tree_stands_under_its_spawners_and_refers_to_further_parents() {
        let none = serde_json::json!({});
        let rows = [
            row(
                "aaaaaaaa",
                &[],
                "idle",
                &serde_json::json!({ "outcome": "failed" }),
            ),
            row(
                "bbbbbbbb",
                &["aaaaaaaa"],
                "idle",
                &serde_json::json!({ "unread": 2 }),
            ),
            row(
                "cccccccc",
                &["bbbbbbbb", "dddddddd"],
                "stopped",
                &serde_json::json!({ "usage": { "input-tokens": 7, "output-tokens": null } }),
            ),
            row("dddddddd", &["aaaaaaaa"], "idle", &none),
            row(
                "eeeeeeee",
                &["ffffffff"],
                "idle",
                &serde_json::json!({ "waiting-for":
                ["01931f2e-0000-7000-8000-0000aaaaaaaa"] }),
            ),
        ];
        assert_eq!(
            lines(&rows, false, false),
            [
                "aaaaaaaa idle     name of aaaaaaaa  failed",
                "├─ bbbbbbbb idle     name of bbbbbbbb  2 unread",
                "│  └─ cccccccc stopped  name of cccccccc  7/? tokens",
                "└─ dddddddd idle     name of dddddddd",
                "   └─ → cccccccc",
                "eeeeeeee idle     name of eeeeeeee  waits for aaaaaaaa",
            ]
        );
    }

    #[test]
    fn two_hundred_agents_are_told_in_a_few_lines() {
        let none = serde_json::json!({});
        let mut rows = vec![row(
            "aaaaaaaa",
            &[],
            "running",
            &serde_json::json!({ "action": "agent_session_wait" }),
        )];
        for number in 0..200 {
            let rest = match number {
                17 => ("error", serde_json::json!({ "outcome": "failed" })),
                50 => (
                    "idle",
                    serde_json::json!({ "outcome": "succeeded", "unread": 1 }),
                ),
                0..60 => ("idle", serde_json::json!({ "outcome": "succeeded" })),
                60..68 => ("running", serde_json::json!({ "action": "grep" })),
                68..70 => ("running", none.clone()),
                _ => (
                    "running",
                    serde_json::json!({ "note": "waits for a place: 8 turns run (limit concurrent of session x)" }),
                ),
            };
            rows.push(row(
                &format!("b{number:07}"),
                &["aaaaaaaa"],
                rest.0,
                &rest.1,
            ));
        }
        // One that is done has a child at work: it is seen, with that.
        rows.push(row("cccccccc", &["b0000030"], "running", &none));
        let shown = lines(&rows, false, false);
        assert!(shown.len() < 20, "{shown:#?}");
        let text = shown.join("\n");
        for id in [
            "b0000017", "b0000050", "b0000030", "cccccccc", "b0000060", "b0000068",
        ] {
            assert!(text.contains(id), "{id}: {text}");
        }
        assert_eq!(
            shown.last().map(String::as_str),
            Some("└─ … 189 more: 128 wait for a place, 55 idle (succeeded), 6 run grep")
        );
        assert_eq!(
            lines(&rows, false, true).len(),
            202,
            "all of them when they are wanted"
        );
    }

    #[test]
    fn a_long_tree_keeps_what_runs_and_the_way_up() {
        let none = serde_json::json!({});
        let mut rows = vec![row("aaaaaaaa", &[], "idle", &none)];
        for number in 0..30 {
            rows.push(row(&format!("b{number:07}"), &["aaaaaaaa"], "idle", &none));
        }
        rows.push(row("cccccccc", &["b0000029"], "running", &none));
        let kept: Vec<String> = folded(&rows)
            .iter()
            .map(|row| short(&row.session_id).to_owned())
            .collect();
        assert_eq!(kept, ["aaaaaaaa", "b0000029", "cccccccc"]);
    }

    #[test]
    fn the_end_of_an_id_is_shown() {
        assert_eq!(short("01931f2e-0000-7000-8000-0123456789ab"), "456789ab");
        assert_eq!(short("abc"), "abc");
    }
}
