//! Every command in every phase of a turn, live and stopped: what it does or why it is refused,
//! held against the table in `turns.txt`.

use std::fmt::Write as _;

use attache_session::{
    BudgetChange, Command, Cut, Decision, EndReason, Immediacy, Limit, MailBody, ModalAnswer,
    QueueId, Rejected, Setting, StopReason,
};

use crate::desk::{
    Desk, answer, body, call, child, effect, eid, enqueue, iid, kinds, result, said, sid, wid,
};
use crate::modals::question;

/// The phases of a session's turn.
const PHASES: [&str; 4] = ["no turn", "running", "calls open", "some results in"];

/// A session in a phase; with a waiting item, a custom queue, a child that it holds.
pub(crate) fn at(phase: &str, live: bool) -> Desk {
    let mut desk = Desk::child_of(&[9]);
    desk.does(Command::CreateQueue {
        name: None,
        immediacy: Immediacy::Held,
    });
    desk.does(enqueue(Some(iid(1)), QueueId::Custom(0), "waits"));
    desk.does(Command::CreateQueue {
        name: None,
        immediacy: Immediacy::Queue,
    });
    desk.does(Command::Spawn {
        call: Some("made".into()),
        child: Box::new(child(2, sid(1), None)),
    });
    desk.says(QueueId::Default, "work");
    match phase {
        "no turn" => drop(desk.ends(EndReason::Completed)),
        "calls open" => drop(desk.steps(&["a", "b"])),
        "some results in" => {
            desk.steps(&["a", "b"]);
            desk.results(&["a"]);
        }
        _ => {}
    }
    if !live {
        desk.stops(StopReason::HostShutdown);
    }
    desk
}

/// The same with registrations of its own: on its child, and during a turn on itself.
fn at_watching(phase: &str, live: bool) -> Desk {
    let mut desk = at(phase, true);
    let own = (phase != "no turn").then_some((8, sid(1)));
    for (number, target) in [(7, sid(2))].into_iter().chain(own) {
        desk.does(Command::Watch {
            watch: wid(number),
            target,
            message: None,
            settled: None,
        });
    }
    if !live {
        desk.stops(StopReason::HostShutdown);
    }
    desk
}

/// The place of a command in the list of all commands. A new command does not build without an
/// arm here, and does not pass without a row in the table.
fn place(command: &Command) -> usize {
    match command {
        Command::Enqueue { .. } => 0,
        Command::Edit { .. } => 1,
        Command::Withdraw { .. } => 2,
        Command::Move { .. } => 3,
        Command::CreateQueue { .. } => 4,
        Command::ConfigureQueue { .. } => 5,
        Command::DeleteQueue { .. } => 6,
        Command::Start { .. } => 7,
        Command::RecordStep { .. } => 8,
        Command::RecordResults { .. } => 9,
        Command::EndTurn { .. } => 10,
        Command::Cancel { .. } => 11,
        Command::Stop { .. } => 12,
        Command::Recover { .. } => 13,
        Command::Spawn { .. } => 14,
        Command::Acquire { .. } => 15,
        Command::Release { .. } => 16,
        Command::Send { .. } => 17,
        Command::Watch { .. } => 18,
        Command::Take { .. } => 19,
        Command::EndWith { .. } => 20,
        Command::Compact { .. } => 21,
        Command::Acknowledge { .. } => 22,
        Command::Note { .. } => 23,
        Command::SetBounds { .. } => 24,
        Command::NearlySpent { .. } => 25,
        Command::Undeliverable { .. } => 26,
        Command::TellParents { .. } => 27,
        Command::Set { .. } => 28,
        Command::StopUnviewed { .. } => 29,
        Command::RaiseModal { .. } => 30,
        Command::AnswerModal { .. } => 31,
        Command::ExpireModal { .. } => 32,
    }
}

const COMMANDS: usize = 33;

/// At least one of each command, as it would be asked in the session's last turn.
fn commands(desk: &mut Desk) -> Vec<(&'static str, Command)> {
    let turn = desk.turn();
    let stale = attache_session::TurnId(turn.0 + 1);
    let step = |turn, calls: &[&str]| Command::RecordStep {
        turn,
        step: said("on it"),
        calls: calls.iter().map(|id| call(id)).collect(),
    };
    let results = |turn, calls: &[&str]| Command::RecordResults {
        turn,
        results: calls.iter().map(|id| result(id)).collect(),
    };
    let end_with = |parents: &[u128]| Command::EndWith {
        parents: parents.iter().map(|number| sid(*number)).collect(),
        partial: None,
    };
    let end = |turn| Command::EndTurn {
        turn,
        reason: EndReason::Completed,
        step: Some(said("done")),
        error: None,
    };
    let compact = |turn, at, steps| Command::Compact {
        turn,
        cut: Cut { turn: at, steps },
        step: said("what was said"),
        restated: "the task".into(),
        before: Some(9),
    };
    let note = |turn| Command::Note {
        turn,
        code: "request-adapted".into(),
        text: "a tool was simplified".into(),
    };
    let watch = |target| Command::Watch {
        watch: wid(1),
        target: sid(target),
        message: None,
        settled: None,
    };
    let mut take = |body: MailBody| {
        let mail = desk.letters(&[(9, body)]);
        crate::desk::take(mail, false)
    };
    let input = take(MailBody::Input {
        item: iid(5),
        text: "go".into(),
        immediate: true,
    });
    let asked = take(MailBody::Watch {
        watch: wid(7),
        message: None,
    });
    let hold = take(MailBody::Hold);
    let release = take(MailBody::Release {
        reason: StopReason::Disposed,
    });
    vec![
        ("enqueue default", enqueue(None, QueueId::Default, "go")),
        ("enqueue immediate", enqueue(None, QueueId::Immediate, "go")),
        ("enqueue held", enqueue(None, QueueId::Custom(0), "go")),
        (
            "edit",
            Command::Edit {
                item: iid(1),
                text: "other".into(),
                expected: 0,
            },
        ),
        (
            "withdraw",
            Command::Withdraw {
                item: iid(1),
                expected: 0,
            },
        ),
        (
            "acknowledge",
            Command::Acknowledge {
                items: vec![iid(1)],
            },
        ),
        (
            "move",
            Command::Move {
                item: iid(1),
                queue: QueueId::Default,
                before: None,
                expected: 0,
            },
        ),
        (
            "create queue",
            Command::CreateQueue {
                name: None,
                immediacy: Immediacy::Queue,
            },
        ),
        (
            "release queue",
            Command::ConfigureQueue {
                queue: QueueId::Custom(0),
                immediacy: None,
                expected: None,
            },
        ),
        (
            "delete queue",
            Command::DeleteQueue {
                queue: QueueId::Custom(1),
                expected: 1,
            },
        ),
        ("start", Command::Start { epoch: eid(7) }),
        ("step with calls", step(turn, &["c"])),
        ("step of another turn", step(stale, &[])),
        ("some results", results(turn, &["b"])),
        ("all results", results(turn, &["a", "b"])),
        ("a result twice", results(turn, &["b", "b"])),
        ("results of another turn", results(stale, &[])),
        (
            "set a limit",
            Command::SetBounds {
                change: BudgetChange::parse("tokens=9").expect("a budget"),
                paused: None,
            },
        ),
        (
            "let a tree go on that is not paused",
            Command::SetBounds {
                change: BudgetChange::default(),
                paused: Some(false),
            },
        ),
        (
            "a limit that does not stand here is nearly used up",
            Command::NearlySpent {
                limit: Limit::Tokens,
                used: 8,
                most: 9,
            },
        ),
        (
            "word that input was not read",
            Command::Undeliverable {
                item: iid(1),
                to: sid(2),
                text: "x".into(),
            },
        ),
        (
            "no progress",
            Command::TellParents {
                code: "stalled".into(),
                turn,
                text: "nothing comes".into(),
            },
        ),
        ("note", note(turn)),
        ("note of another turn", note(stale)),
        (
            "compact at the turn's beginning",
            compact(Some(turn), turn, 0),
        ),
        (
            "compact behind the first step",
            compact(Some(turn), turn, 1),
        ),
        ("compact behind what was said", compact(Some(turn), turn, 2)),
        ("compact another turn", compact(Some(stale), turn, 0)),
        ("compact from outside", compact(None, turn, 0)),
        (
            "compact nothing",
            compact(None, attache_session::TurnId(0), 0),
        ),
        ("end turn", end(turn)),
        ("end another turn", end(stale)),
        (
            "cancel",
            Command::Cancel {
                reason: EndReason::Interrupted,
                watches: false,
            },
        ),
        (
            "cancel with watches",
            Command::Cancel {
                reason: EndReason::Interrupted,
                watches: true,
            },
        ),
        (
            "stop",
            Command::Stop {
                reason: StopReason::Terminated,
                partial: None,
            },
        ),
        (
            "ask a person",
            Command::RaiseModal {
                modal: std::sync::Arc::new(question(1, turn, "b")),
            },
        ),
        (
            "answer what nobody asks",
            Command::AnswerModal {
                modal: question(1, turn, "b").id,
                answer: ModalAnswer::default(),
                by: "a viewer".into(),
            },
        ),
        (
            "give up what nobody asks",
            Command::ExpireModal {
                modal: question(1, turn, "b").id,
            },
        ),
        (
            "rename",
            Command::Set {
                setting: Setting::Name("another name".into()),
            },
        ),
        (
            "keep it not going in the background, as it is",
            Command::Set {
                setting: Setting::ContinueInBackground(false),
            },
        ),
        (
            "stop a child that nobody looks at",
            Command::StopUnviewed {
                held_by: Vec::new(),
                waited_for: Vec::new(),
                partial: None,
            },
        ),
        ("end with a stranger", end_with(&[8])),
        ("end with the parent", end_with(&[8, 9])),
        ("recover", Command::Recover { partial: None }),
        (
            "spawn",
            Command::Spawn {
                call: None,
                child: Box::new(child(3, sid(1), None)),
            },
        ),
        (
            "spawn again",
            Command::Spawn {
                call: Some("made".into()),
                child: Box::new(child(3, sid(1), None)),
            },
        ),
        ("acquire", Command::Acquire { child: sid(4) }),
        ("release", Command::Release { child: sid(2) }),
        (
            "send",
            Command::Send {
                to: sid(2),
                epoch: eid(102),
                item: iid(6),
                text: "go".into(),
                immediate: false,
            },
        ),
        ("watch", watch(2)),
        ("watch itself", watch(1)),
        ("take input", input),
        ("take watch", asked),
        ("take hold", hold),
        ("take release", release),
    ]
}

fn outcome(decided: &Result<Decision, Rejected>) -> String {
    let done = match decided {
        Err(refused) => {
            let name = format!("{refused:?}");
            let name = name.split([' ', '{']).next().unwrap_or_default().to_owned();
            return format!("refused {name}");
        }
        Ok(done) => done,
    };
    let mut text = answer(&done.answer).to_owned();
    if !done.events.is_empty() {
        let _fits = write!(text, ": {}", kinds(&done.events));
    }
    let mail: Vec<&str> = done.mail.iter().map(|mail| body(&mail.body)).collect();
    let effects: Vec<&str> = done.effects.iter().map(effect).collect();
    for (name, list) in [("mail", mail), ("effects", effects)] {
        if !list.is_empty() {
            let _fits = write!(text, "; {name} {}", list.join(" "));
        }
    }
    text
}

#[test]
fn every_command_in_every_phase() {
    let mut table = String::new();
    let mut seen = [false; COMMANDS];
    let names: Vec<&str> = commands(&mut at("no turn", true))
        .iter()
        .map(|(name, _)| *name)
        .collect();
    for (row, name) in names.iter().enumerate() {
        let _fits = writeln!(table, "{name}");
        let at = if name.ends_with("with watches") {
            at_watching
        } else {
            at
        };
        for live in [true, false] {
            for phase in PHASES {
                let mut desk = at(phase, live);
                let (_, command) = commands(&mut desk).swap_remove(row);
                seen[place(&command)] = true;
                let decided = desk.attempt(&command);
                let life = if live { "live" } else { "stopped" };
                let _fits = writeln!(table, "  {life}, {phase}: {}", outcome(&decided));
            }
        }
    }
    assert_eq!(seen, [true; COMMANDS], "each command has a row");
    let expected = include_str!("turns.txt");
    for (line, (is, should)) in table.lines().zip(expected.lines()).enumerate() {
        assert_eq!(is, should, "line {} of turns.txt; all:\n{table}", line + 1);
    }
    assert_eq!(table.lines().count(), expected.lines().count(), "{table}");
}
