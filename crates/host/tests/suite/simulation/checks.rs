//! What must hold when a world is quiet: each viewer sees what its owner has, each command took effect once or not at all, and
//! nobody was shown what is not so.

use std::collections::{BTreeMap, BTreeSet};

use attache_protocol::{
    Answer, Command, EventKind, FromHost, HistoryItem, HistoryQuery, Immediacy, PAGE_LIMIT,
    QueueView, SessionDetail, Snapshot,
};
use attache_session::{Event, QueueId, State, StopReason};

use super::book::{Book, Came, Given, takes_effect_once};
use super::viewer::Viewer;
use crate::kit::Line;

/// A session as its owner has it.
pub(crate) struct Truth {
    snapshot: Snapshot,
    history: Vec<HistoryItem>,
}

/// Looks at a session over a sound line.
pub(crate) async fn truth(line: &mut Line, session: &str) -> Truth {
    line.ask(Command::attach(session)).await.unwrap();
    let snapshot = match line.rest().await.into_iter().next() {
        Some(FromHost::Snapshot(snapshot)) => *snapshot,
        other => panic!("{other:?}"),
    };
    let detach = Command::Detach {
        session_id: session.to_owned(),
    };
    line.ask(detach).await.unwrap();
    let mut history: Vec<HistoryItem> = Vec::new();
    let mut after = None;
    loop {
        let query = HistoryQuery {
            after,
            kinds: Vec::new(),
            search: None,
            limit: PAGE_LIMIT,
            newest: false,
        };
        let command = Command::PageHistory {
            session_id: session.to_owned(),
            query,
        };
        match line.ask(command).await.unwrap() {
            Answer::History { page } => {
                history.extend(page.items);
                after = page.next_cursor;
            }
            other => panic!("{other:?}"),
        }
        if after.is_none() {
            break;
        }
    }
    Truth { snapshot, history }
}

/// What a fresh snapshot says is what the owner has.
pub(crate) fn snapshot_is_true(truth: &Truth, state: &State, wrong: &mut Vec<String>) {
    let queue = |view: &QueueView| {
        let items = view.items.iter();
        let items = items.map(|it| (it.item_id.clone(), it.revision, it.text.clone()));
        let items: Vec<_> = items.collect();
        let id = view.queue_id.clone();
        (id, view.revision, view.waiting, view.immediacy, items)
    };
    let told: Vec<_> = truth.snapshot.queues.iter().map(queue).collect();
    let own = state.queues.iter().map(|own| {
        let items = own.items.iter().take(16);
        let text = |text: &str| attache_session::preview(text, 1_024).0.to_owned();
        let items = items.map(|it| (it.id.to_string(), it.revision, text(&it.text)));
        let id = match own.id {
            attache_session::QueueId::Immediate => "immediate".to_owned(),
            attache_session::QueueId::Default => "default".to_owned(),
            attache_session::QueueId::Custom(number) => format!("custom-{number}"),
        };
        let immediacy = match own.immediacy {
            attache_session::Immediacy::Immediate => Immediacy::Immediate,
            attache_session::Immediacy::Queue => Immediacy::Queue,
            attache_session::Immediacy::Held => Immediacy::Held,
        };
        let waiting = u32::try_from(own.items.len()).unwrap();
        (id, own.revision, waiting, immediacy, items.collect())
    });
    let own: Vec<_> = own.collect();
    if told != own {
        let how = difference(&told, &own);
        wrong.push(format!("a snapshot says of the queues: {how}"));
    }
    let page = &truth.snapshot.history;
    if !truth.history.ends_with(page) || page.is_empty() != truth.history.is_empty() {
        wrong.push("a snapshot's page is not the newest part of the history".to_owned());
    }
}

/// Lines in which two values differ, as they are written for people.
fn difference<T: std::fmt::Debug>(seen: &T, is: &T) -> String {
    let [seen, is] = [seen, is].map(|value| format!("{value:#?}"));
    let pairs = seen.lines().zip(is.lines());
    let others = pairs.filter(|(seen, is)| seen != is).take(12);
    let others: Vec<String> = others
        .map(|(seen, is)| format!("{} is {}", seen.trim(), is.trim()))
        .collect();
    let counts = (seen.lines().count(), is.lines().count());
    format!("{counts:?} lines, {}", others.join("; "))
}

fn positions(items: &[HistoryItem]) -> Vec<(u64, &str)> {
    let items = items.iter();
    items
        .map(|it| (it.position, attache_session::preview(&it.text, 20).0))
        .collect()
}

/// What a viewer mirrors is what its owner has.
pub(crate) fn mirror_is_true(viewer: &Viewer, truth: &Truth, wrong: &mut Vec<String>) {
    let mirror = viewer.mirror();
    let now = &truth.snapshot;
    if mirror.session.as_ref() != now.sessions.first() {
        let how = difference(&mirror.session.as_ref(), &now.sessions.first());
        wrong.push(format!("a viewer sees the row: {how}"));
    }
    if mirror.queues != now.queues {
        let how = difference(&mirror.queues, &now.queues);
        wrong.push(format!("a viewer sees the queues: {how}"));
    }
    let rest = |detail: &Option<Box<SessionDetail>>| {
        let mut detail = detail.clone();
        if let Some(detail) = &mut detail {
            // Who looks at the truth is one of them meanwhile.
            detail.viewers.clear();
        }
        detail
    };
    if rest(&mirror.detail) != rest(&now.detail) {
        let how = difference(&rest(&mirror.detail), &rest(&now.detail));
        wrong.push(format!("a viewer sees of the rest: {how}"));
    }
    let is_whole = mirror.items.len() == truth.history.len();
    if !truth.history.ends_with(&mirror.items) || viewer.is_whole && !is_whole {
        let how = difference(&positions(&mirror.items), &positions(&truth.history));
        wrong.push(format!("a viewer sees the history: {how}"));
    }
    let running = mirror.running.as_ref();
    if running.is_some_and(|it| !it.text.is_empty() || !it.calls.is_empty()) {
        wrong.push(format!("a viewer sees {running:?} in a session at rest"));
    }
    for (turn, text) in &viewer.shown.before {
        let items = truth.history.iter();
        let mut said = items.filter(|it| it.kind == EventKind::Assistant && it.turn == Some(*turn));
        if !said.any(|it| it.cut || it.text.starts_with(text.as_str())) {
            wrong.push(format!("{text:?} of turn {turn} was shown and never said"));
        }
    }
}

/// How often what a command would do is in its session's log.
fn effects(log: &[Event], command: &Command) -> Option<usize> {
    let count = |is: &dyn Fn(&Event) -> bool| Some(log.iter().filter(|it| is(it)).count());
    match command {
        Command::Enqueue { text, .. } => {
            count(&|it| matches!(it, Event::Queued { item, .. } if *item.text == **text))
        }
        Command::EditItem { text: new, .. } => {
            count(&|it| matches!(it, Event::Edited { text, .. } if **text == **new))
        }
        Command::RemoveItem { item_id, .. } => {
            count(&|it| matches!(it, Event::Withdrawn { item } if item.to_string() == *item_id))
        }
        Command::CreateQueue {
            name: Some(new), ..
        } => count(&|it| matches!(it, Event::QueueSet { name, .. } if **name == **new)).map(
            // Whoever configures it sets it too.
            |times| times.min(1),
        ),
        _ => None,
    }
}

/// An answer without what is said of the session beside it.
fn settled(came: &Came) -> Came {
    match came {
        Ok(Answer::Accepted { item_id, .. }) => Ok(Answer::Accepted {
            item_id: item_id.clone(),
            status: attache_protocol::Status::Idle,
        }),
        other => other.clone(),
    }
}

/// Each command took effect once, or not at all where it was refused.
pub(crate) fn commands_took_effect_once(book: &mut Book) {
    let given = std::mem::take(&mut book.given);
    let mut logs: BTreeMap<String, Vec<Event>> = BTreeMap::new();
    for (id, it) in &given {
        let Some(session) = it.command.changes() else {
            continue;
        };
        let log = logs
            .entry(session.to_owned())
            .or_insert_with(|| book.log(session.parse().unwrap()));
        let effects = effects(log, &it.command);
        if let Err(why) = took_effect_once(it, effects) {
            book.wrong(format!("{id} {why}: {:?}, said {:?}", it.command, it.said));
        }
        if it.read_only {
            book.count("a refusal of who only looks");
        } else if matches!(it.heard, Some(Ok(_))) && takes_effect_once(&it.command) {
            let written = format!("{:?}", it.command);
            let kind = written.split(' ').next().unwrap_or_default();
            book.count(&format!("{kind} taken"));
        }
        let is_late = matches!(it.heard, Some(Err(_))) && it.said.iter().any(Result::is_ok);
        if is_late {
            book.count("a repeat that was taken after its refusal was heard");
        }
    }
    for (session, log) in &logs {
        let own = given.values();
        let own = own.filter(|it| it.command.changes() == Some(session.as_str()));
        let own: Vec<&Given> = own.collect();
        for (what, is_it, happened) in changes(log) {
            let all = own.iter().filter(|it| is_it(&it.command) && !it.read_only);
            let sure = all.clone().filter(|it| is_taken(it)).count();
            let unsaid = all.clone().filter(|it| it.said.is_empty()).count();
            // Whether there was an epoch is told as it was when the end was asked for: beside a start or another end it may
            // have been otherwise by then.
            let between = match what {
                "terminated" => 0..=all.count(),
                _ => sure..=sure + unsaid,
            };
            if !between.contains(&happened) {
                book.wrong(format!(
                    "{session} was {what} {happened} times; {sure} were taken and {unsaid} have no answer"
                ));
            }
        }
        let mut places: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for event in log {
            match event {
                Event::Queued { item, .. } => {
                    places.entry(item.id.to_string()).or_default().0 += 1;
                }
                Event::Consumed { item, .. } => {
                    places.entry(item.id.to_string()).or_default().1 += 1;
                }
                Event::Withdrawn { item } => {
                    places.entry(item.to_string()).or_default().1 += 1;
                }
                _ => {}
            }
        }
        if places.values().any(|(put, taken)| *put != 1 || *taken > 1) {
            book.wrong(format!("an item of {session} is not put once: {places:?}"));
        }
    }
}

type Kind = fn(&Command) -> bool;

/// How often what changes against a revision happened to a session, and by which commands it does.
fn changes(log: &[Event]) -> [(&'static str, Kind, usize); 6] {
    let count = |is: fn(&Event) -> bool| log.iter().filter(|it| is(it)).count();
    let mut queues = BTreeSet::new();
    let mut configured = 0;
    for event in log {
        if let Event::QueueSet { queue, .. } = event {
            let is_new = !matches!(queue, QueueId::Immediate | QueueId::Default)
                && queues.insert(format!("{queue:?}"));
            configured += usize::from(!is_new);
        }
    }
    [
        (
            "edited",
            |it| matches!(it, Command::EditItem { .. }),
            count(|it| matches!(it, Event::Edited { .. })),
        ),
        (
            "relieved of an item",
            |it| matches!(it, Command::RemoveItem { .. }),
            count(|it| matches!(it, Event::Withdrawn { .. })),
        ),
        (
            "put in another order",
            |it| matches!(it, Command::MoveItem { .. }),
            count(|it| matches!(it, Event::Moved { .. })),
        ),
        (
            "relieved of a queue",
            |it| matches!(it, Command::DeleteQueue { .. }),
            count(|it| matches!(it, Event::QueueDeleted { .. })),
        ),
        (
            "terminated",
            |it| matches!(it, Command::Terminate { .. }),
            count(
                |it| matches!(it, Event::Stopped { reason, .. } if *reason == StopReason::Terminated),
            ),
        ),
        (
            "configured",
            |it| matches!(it, Command::ConfigureQueue { .. }),
            configured,
        ),
    ]
}

fn took(came: &Came) -> bool {
    match came {
        Ok(Answer::Done { changed }) => *changed,
        Ok(_) => true,
        Err(_) => false,
    }
}

/// Whether anybody was told that it changed something.
fn is_taken(given: &Given) -> bool {
    given.heard.iter().chain(&given.said).any(took)
}

fn took_effect_once(given: &Given, effects: Option<usize>) -> Result<(), String> {
    let Given {
        command,
        read_only,
        heard,
        said,
    } = given;
    if *read_only {
        let is_refused = |came: &Came| *came == Err("not-permitted".to_owned());
        // An item may be taken back by somebody else.
        let is_own = !matches!(command, Command::RemoveItem { .. });
        let took_effect = is_own && effects.is_some_and(|times| times > 0);
        if took_effect || !said.iter().all(is_refused) {
            return Err("of a viewer that only looks was not refused".to_owned());
        }
        return Ok(());
    }
    if !takes_effect_once(command) {
        return Ok(());
    }
    // All that came after it was taken says the same.
    let taken = said.iter().skip_while(|came| came.is_err());
    let mut taken = taken.map(settled);
    let first = taken.next();
    if let Some(first) = &first
        && taken.any(|came| came != *first)
    {
        return Err("was answered differently".to_owned());
    }
    let heard_as_taken = heard.as_ref().is_some_and(took);
    let is_taken = heard_as_taken || first.as_ref().is_some_and(took);
    match effects {
        Some(times) if times > 1 => Err(format!("took effect {times} times")),
        Some(0) if is_taken => Err("was acknowledged and did nothing".to_owned()),
        Some(1) if !is_taken && matches!(command, Command::RemoveItem { .. }) => Ok(()),
        Some(1) if !is_taken && !said.is_empty() => Err("was refused and took effect".to_owned()),
        // What only the viewer heard, the host never said.
        _ if heard_as_taken && !said.iter().any(took) => {
            Err("was acknowledged by nobody".to_owned())
        }
        _ => Ok(()),
    }
}
