//! The ledger of a run as a function of its history: which calls it shows, what each came to, and what is said when
//! nothing is known.

use attache_session::{
    CallOutcome, CallReport, CallResult, Digest, EndReason, Event, Ledger, LedgerFold, NestedCall,
    NewCall, ResultOrigin, Stamped, StopReason, Timestamp, TurnId,
};

use crate::desk::result;

/// No digest, but one that shows what it is of.
fn digest(bytes: &[u8]) -> Digest {
    let mut digest = [0; 32];
    let kept = bytes.len().min(32);
    digest[..kept].copy_from_slice(&bytes[..kept]);
    Digest(digest)
}

/// The ledger of events that stand a thousandth of a second apart.
fn ledger(events: &[Event], in_flight: bool) -> Option<Ledger> {
    let mut fold = LedgerFold::new(digest, |name: &str| name.starts_with("list"));
    for (at, event) in events.iter().enumerate() {
        fold.push(&Stamped {
            at: Timestamp(1_000 * at as i64),
            observed: None,
            event: event.clone(),
        });
    }
    fold.finish(in_flight)
}

fn begins(turn: u32) -> Event {
    Event::TurnStarted { turn: TurnId(turn) }
}

fn ends() -> Event {
    Event::TurnEnded {
        turn: TurnId(1),
        reason: EndReason::Completed,
        result: None,
    }
}

fn calls(id: &str, name: &str, arguments: &str, changes_state: bool) -> Event {
    Event::CallStarted {
        turn: TurnId(1),
        call: NewCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            changes_state,
        },
    }
}

fn answers(result: CallResult) -> Event {
    Event::CallEnded {
        turn: TurnId(1),
        result,
    }
}

fn fails(id: &str) -> Event {
    answers(CallResult {
        is_error: true,
        ..result(id)
    })
}

fn cut(id: &str) -> Event {
    answers(CallResult {
        is_error: true,
        origin: ResultOrigin::Cut,
        ..result(id)
    })
}

fn nested(name: &str, failed: bool, changes_state: bool) -> NestedCall {
    NestedCall {
        name: name.into(),
        arguments: "{}".into(),
        failed,
        changes_state,
    }
}

/// A run of one call with this report.
fn told(report: CallReport) -> Ledger {
    let ended = answers(CallResult {
        report: report.bounded().map(Into::into),
        ..result("a")
    });
    let events = [begins(1), calls("a", "batch", "{}", false), ended, ends()];
    ledger(&events, false).expect("there was a run")
}

#[test]
fn no_ledger_and_an_empty_one_stay_apart() {
    let unknown = || Event::Unknown {
        kind: "call-begun".into(),
        body: attache_session::Json::empty_object(),
    };
    let looked = || calls("a", "look", "{}", false);
    for (events, total) in [
        (vec![], None),
        // No run, whatever else stands there.
        (vec![unknown(), looked(), answers(result("a"))], None),
        (vec![begins(1), ends()], Some(0)),
        (vec![begins(1)], Some(0)),
        // What is not understood may have been a call.
        (vec![begins(1), unknown(), ends()], None),
        (vec![begins(1), unknown(), looked(), ends()], Some(1)),
        (
            vec![begins(1), unknown(), ends(), begins(2), ends()],
            Some(0),
        ),
        // The last run counts.
        (vec![begins(1), looked(), ends(), begins(2)], Some(0)),
        (
            vec![begins(1), ends(), begins(2), looked(), ends()],
            Some(1),
        ),
    ] {
        for in_flight in [false, true] {
            let found = ledger(&events, in_flight);
            assert_eq!(found.map(|ledger| ledger.total), total, "{events:?}");
        }
    }
}

#[test]
fn a_call_is_told_with_digests_of_its_exact_bytes_and_what_it_came_to() {
    let arguments = "{ \"path\":\n\t\"a.txt\" }";
    let measured = answers(CallResult {
        took_micros: Some(7),
        ..result("a")
    });
    let events = [
        begins(1),
        calls("a", "write", arguments, true),
        measured,
        ends(),
    ];
    let ledger = ledger(&events, false).unwrap();
    let entry = &ledger.calls[0];
    assert_eq!(
        (&*entry.name, &*entry.arguments),
        ("write", r#"{ "path": "a.txt" }"#)
    );
    assert_eq!(entry.arguments_digest, digest(arguments.as_bytes()));
    assert_eq!(entry.result_digest, Some(digest(b"ok")));
    assert_eq!(
        (entry.outcome, entry.changes_state),
        (CallOutcome::Ok, true)
    );
    assert_eq!(entry.duration_micros, Some(7));
    assert_eq!(
        (&entry.detail, &*entry.nested, entry.nested_total),
        (&None, &[][..], 0)
    );
    assert_eq!(
        Digest([0xA7; 32]).to_string(),
        "a7".repeat(32),
        "a digest shows in hex"
    );
}

#[test]
fn what_a_call_came_to_follows_from_its_result_and_from_the_end_of_the_run() {
    use CallOutcome::{Cut, Failed, Ok, Running};
    let call = || calls("a", "look", "{}", false);
    let stopped = Event::Stopped {
        reason: StopReason::Terminated,
        waited_for: Vec::new(),
    };
    // Whether a turn is in flight, and how long the call took by the stamps.
    for (rest, in_flight, outcome, took) in [
        (vec![answers(result("a")), ends()], false, Ok, Some(1_000)),
        (vec![answers(result("a"))], true, Ok, Some(1_000)),
        (vec![fails("a"), ends()], false, Failed, Some(1_000)),
        // How long a call ran that was cut is not known: the record of it may be of another day.
        (vec![cut("a"), ends()], false, Cut, None),
        (vec![], true, Running, None),
        (vec![answers(result("b"))], true, Running, None),
        // A crash, before anybody has put it on record.
        (vec![], false, Cut, None),
        (vec![ends()], true, Cut, None),
        (vec![stopped.clone()], true, Cut, None),
    ] {
        let events: Vec<Event> = [begins(1), call()].into_iter().chain(rest).collect();
        let ledger = ledger(&events, in_flight).unwrap();
        let entry = &ledger.calls[0];
        assert_eq!(
            (entry.outcome, entry.duration_micros),
            (outcome, took),
            "{events:?}"
        );
        let known = matches!(outcome, Ok | Failed);
        assert_eq!(entry.result_digest.is_some(), known);
    }
}

#[test]
fn stamps_that_were_moved_give_no_odd_durations() {
    for (began, ended, took) in [
        ((5, None), (9, None), Some(4)),
        ((5_000_000, Some(3)), (5_000_001, Some(8)), Some(5)),
        // The clock was set back meanwhile.
        ((5_000_000, None), (5_000_001, Some(1)), None),
    ] {
        let mut fold = LedgerFold::new(digest, |_: &str| false);
        let call = calls("a", "look", "{}", false);
        for ((at, observed), event) in [
            ((0, None), begins(1)),
            (began, call),
            (ended, answers(result("a"))),
        ] {
            fold.push(&Stamped {
                at: Timestamp(at),
                observed: observed.map(Timestamp),
                event,
            });
        }
        let ledger = fold.finish(true).unwrap();
        assert_eq!(ledger.calls[0].duration_micros, took);
    }
}

#[test]
fn arguments_are_cut_between_characters_at_a_hundred() {
    for (given, shown) in [
        (String::new(), String::new()),
        (" \n{}\t ".to_owned(), "{}".to_owned()),
        ("a\u{1b}[2J \u{0}b".to_owned(), "a [2J b".to_owned()),
        ("é".repeat(100), "é".repeat(100)),
        ("é".repeat(100) + "  \n", "é".repeat(100)),
        ("é".repeat(101), "é".repeat(99) + "…"),
        ("🙏".repeat(5_000), "🙏".repeat(99) + "…"),
        ("a".repeat(99) + "  b", "a".repeat(99) + "…"),
        ("a".repeat(98) + "  b", "a".repeat(98) + " b"),
        ("a".repeat(98) + "  bc", "a".repeat(98) + " …"),
    ] {
        let events = [begins(1), calls("a", "look", &given, false)];
        let ledger = ledger(&events, true).unwrap();
        let entry = &ledger.calls[0];
        assert_eq!(*entry.arguments, *shown);
        assert!(entry.arguments.chars().count() <= 100);
        assert_eq!(entry.arguments_digest, digest(given.as_bytes()));
    }
}

#[test]
fn a_report_tells_what_the_model_is_not_told() {
    let nothing = CallReport::default();
    assert_eq!(nothing.clone().bounded(), None);
    let blank = CallReport {
        detail: Some(" \n".into()),
        ..nothing.clone()
    };
    assert_eq!(blank.bounded(), None);

    let proxy = told(CallReport {
        target: Some("upload_file".into()),
        ..nothing.clone()
    });
    assert_eq!(&*proxy.calls[0].name, "batch -> upload_file");

    // The model reads no error, and the call failed all the same.
    let batch = told(CallReport {
        detail: Some("6 of 7\nfailed".into()),
        failed: true,
        nested: vec![nested("fetch", true, false), nested("store", false, true)],
        ..nothing.clone()
    });
    let entry = &batch.calls[0];
    assert_eq!(entry.outcome, CallOutcome::Failed);
    assert_eq!(entry.detail.as_deref(), Some("6 of 7 failed"));
    assert!(entry.changes_state, "a call that it made does");
    let outcomes: Vec<CallOutcome> = entry.nested.iter().map(NestedCall::outcome).collect();
    assert_eq!(outcomes, [CallOutcome::Failed, CallOutcome::Ok]);
    assert_eq!(entry.nested_total, 2);

    // Calls of its own that failed do not make it fail.
    let partly = told(CallReport {
        nested: vec![nested("fetch", true, false)],
        ..nothing
    });
    assert_eq!(partly.calls[0].outcome, CallOutcome::Ok);
    assert!(!partly.calls[0].changes_state);
}

#[test]
fn a_report_is_cut_to_its_bounds() {
    let long = CallReport {
        target: Some("n".repeat(1_000).into()),
        detail: Some("é".repeat(1_000).into()),
        failed: false,
        nested: (0..20)
            .map(|number| {
                let name = format!("call {number}{}", "n".repeat(100));
                NestedCall {
                    arguments: "🙏".repeat(1_000).into(),
                    ..nested(&name, number == 2, number == 1)
                }
            })
            .collect(),
        nested_total: 0,
    };
    let bounded = long.clone().bounded().unwrap();
    let count = |text: &str| text.chars().count();
    assert_eq!(bounded.target.as_deref().map(count), Some(64));
    assert_eq!(bounded.detail.as_deref().map(count), Some(200));
    assert_eq!((bounded.nested.len(), bounded.nested_total), (15, 20));
    // The one that failed and the one that changes are kept, and of the others the newest.
    let numbers: Vec<&str> = bounded
        .nested
        .iter()
        .map(|call| call.name[5..].trim_end_matches(['n', '…']))
        .collect();
    assert_eq!(
        numbers,
        [
            "1", "2", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19"
        ]
    );
    for call in &bounded.nested {
        assert_eq!((count(&call.name), count(&call.arguments)), (64, 100));
    }
    assert_eq!(bounded.clone().bounded(), Some(bounded));

    // A tool that names a few of many says how many there were.
    let few = CallReport {
        nested: vec![nested("fetch", false, false)],
        nested_total: 900,
        ..CallReport::default()
    };
    assert_eq!(few.bounded().map(|report| report.nested_total), Some(900));
}

#[test]
fn forty_calls_are_shown_those_that_failed_or_changed_first_and_all_are_counted() {
    // Kinds by letter: `f` failed, `x` cut, `c` changing, `o` other, `b` bookkeeping, `B` bookkeeping that failed.
    let run = |kinds: &str| {
        let mut events = vec![begins(1)];
        for (number, kind) in kinds.chars().enumerate() {
            let id = format!("{kind}{number}");
            let name = match kind {
                'b' | 'B' => format!("list {id}"),
                _ => id.clone(),
            };
            events.push(calls(&id, &name, "{}", kind == 'c'));
            events.push(match kind {
                'f' | 'B' => fails(&id),
                'x' => cut(&id),
                _ => answers(result(&id)),
            });
        }
        events.push(ends());
        let ledger = ledger(&events, false).unwrap();
        let names = ledger.calls.iter().map(|entry| {
            let name = entry.name.trim_start_matches("list ");
            name.to_owned()
        });
        (names.collect::<Vec<String>>(), ledger.total)
    };
    let numbered = |parts: &[(char, std::ops::Range<usize>)]| {
        let one = |(kind, numbers): &(char, std::ops::Range<usize>)| {
            let kind = *kind;
            numbers.clone().map(move |number| format!("{kind}{number}"))
        };
        parts.iter().flat_map(one).collect::<Vec<String>>()
    };
    for (kinds, kept) in [
        ("b".repeat(40), vec![('b', 0..40)]),
        ("o".repeat(41), vec![('o', 1..41)]),
        // Every kind fits but the last.
        (
            "f".repeat(10) + &"c".repeat(10) + &"o".repeat(10) + &"b".repeat(20),
            vec![('f', 0..10), ('c', 10..20), ('o', 20..30), ('b', 40..50)],
        ),
        (
            "b".repeat(30) + &"o".repeat(30) + "x" + &"c".repeat(20),
            vec![('o', 41..60), ('x', 60..61), ('c', 61..81)],
        ),
        // What failed displaces what changed, and newer what is older.
        (
            "c".repeat(30) + &"f".repeat(25) + &"x".repeat(20),
            vec![('f', 35..55), ('x', 55..75)],
        ),
        ("c".repeat(50) + "B", vec![('c', 11..50), ('B', 50..51)]),
    ] {
        let count = kinds.len();
        let (names, total) = run(&kinds);
        assert_eq!(names, numbered(&kept));
        assert_eq!(total, count as u64);
    }
}
