//! Tables of limits: reading and showing, charging along a chain, refusals.

use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::cost::Cost;
use crate::id::{Epoch, TurnId};
use crate::outcome::StopReason;
use crate::time::Timestamp;
use crate::turn::{NewCall, StepText};
use crate::usage::Usage;

fn session(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

/// Sessions 1, 2, … with these limits, the root first.
fn chain(budgets: &[&str]) -> Vec<Payer> {
    let payer = |(index, text): (usize, &&str)| Payer {
        session: session(index as u128 + 1),
        bounds: Arc::new(Bounds {
            budget: Budget::NONE.with(&BudgetChange::parse(text).unwrap()),
            ..Bounds::default()
        }),
    };
    budgets.iter().enumerate().map(payer).collect()
}

#[test]
fn budgets_are_read_and_shown() {
    for (text, want) in [
        ("", ""),
        ("tokens=1000", "tokens=1000"),
        (" usd = 1.50 , wall=90,", "usd=1.5,wall=90"),
        ("agents=none,depth=0", "depth=0"),
        ("usd=0.000001", "usd=0.000001"),
        ("tool-calls=7,concurrent=2", "concurrent=2,tool-calls=7"),
    ] {
        let change = BudgetChange::parse(text).unwrap();
        assert_eq!(Budget::NONE.with(&change).to_string(), want, "{text}");
        assert_eq!(BudgetChange::parse(&change.to_string()), Ok(change));
    }
    let lifted = BudgetChange::parse("concurrent=none,agents=none").unwrap();
    let root = Budget::of_a_root();
    assert_eq!(root.to_string(), "concurrent=8,agents=200,depth=5");
    assert_eq!(root.with(&lifted).to_string(), "depth=5");
}

#[test]
fn what_is_no_budget_is_named() {
    for (text, words) in [
        ("token=5", "no limit \"token\": the limits are concurrent,"),
        (
            "tokens",
            "tokens takes a number or `none`, for example tokens=10",
        ),
        ("tokens=-1", "tokens takes"),
        ("concurrent=0", "concurrent takes"),
        ("tokens=1.5", "tokens takes"),
        ("tokens=99999999999999999999", "tokens takes"),
        ("usd=lots", "usd=1.50 (dollars)"),
        ("usd=NaN", "usd takes"),
        ("usd=-0.5", "usd takes"),
        ("wall=1h", "wall=600 (seconds)"),
        ("depth=1,depth=2", "depth is there twice"),
        ("=", "no limit \"\""),
    ] {
        let error = BudgetChange::parse(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

fn stamped(event: Event) -> Stamped {
    Stamped {
        at: Timestamp(1),
        observed: None,
        event,
    }
}

fn said(input: u64, output: u64, usd_nanos: Option<u64>) -> Stamped {
    let step = StepText {
        usage: Usage {
            input: Some(input),
            output: Some(output),
            // Parts of the two above.
            cache_read: Some(input),
            reasoning: Some(output),
            ..Usage::default()
        },
        cost: usd_nanos.map(|usd_nanos| Cost {
            usd_nanos,
            prices: "v".into(),
        }),
        ..StepText::default()
    };
    stamped(Event::Said {
        turn: TurnId(1),
        step,
    })
}

#[test]
fn events_count_what_they_took() {
    let call = NewCall {
        id: "c".into(),
        name: "t".into(),
        arguments: Arc::from("{}"),
        changes_state: false,
    };
    let events = [
        said(10, 5, Some(3)),
        said(1, 1, None),
        stamped(Event::CallStarted {
            turn: TurnId(1),
            call,
        }),
        stamped(Event::Stopped {
            reason: StopReason::Terminated,
            waited_for: Vec::new(),
        }),
    ];
    let bill = Bill {
        agents: -1,
        tokens: 17,
        usd_nanos: 3,
        tool_calls: 1,
    };
    assert_eq!(Bill::of(&events), bill);
    let started = stamped(Event::Started {
        epoch: Epoch(Uuid::nil()),
    });
    assert_eq!(Bill::of(&[started]).agents, 1);
}

fn shown(dues: &[Due]) -> String {
    let one = |due: &Due| {
        let most = due.most.map_or(String::new(), |most| format!("<={most}"));
        let number = due.session.0.as_u128();
        format!("{number}:{}{:+}{most}", due.limit, due.amount)
    };
    dues.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn charges_go_to_each_limit_of_the_chain_from_the_root_down() {
    let bill = |agents, tokens| Bill {
        agents,
        tokens,
        usd_nanos: 9,
        tool_calls: 2,
    };
    for (budgets, bill, births, want) in [
        (&["", "", ""][..], bill(0, 5), 1, ""),
        (
            &["agents=3", "", "agents=2"],
            bill(0, 5),
            1,
            "1:agents+1<=3 3:agents+1<=2",
        ),
        (&["agents=3", "agents=3"], bill(-1, 0), 0, "1:agents-1"),
        (
            &["agents=3", ""],
            bill(-1, 0),
            2,
            "1:agents-1 1:agents+2<=3",
        ),
        (
            &["tokens=9", "tokens=4,tool-calls=8"],
            bill(0, 5),
            0,
            "1:tokens+5 2:tokens+5 2:tool-calls+2",
        ),
        (
            &["usd=1", "depth=3,wall=5,concurrent=1"],
            bill(0, 0),
            0,
            "1:usd+9",
        ),
        (&["agents=1"], bill(1, 0), 0, ""),
    ] {
        assert_eq!(
            shown(&dues(&chain(budgets), &bill, births)),
            want,
            "{budgets:?}"
        );
    }
}

#[test]
fn depth_and_a_pause_refuse_a_child() {
    for (budgets, paused, words) in [
        (&[""][..], None, None),
        (&["depth=1"], None, None),
        (
            &["depth=1", ""],
            None,
            Some("limit depth=1 of session 00000000-0000-0000-0000-000000000001"),
        ),
        (&["depth=0"], None, Some("depth=0")),
        (
            &["", "depth=1", ""],
            None,
            Some("session 00000000-0000-0000-0000-000000000002"),
        ),
        (&["depth=5", "", ""], None, None),
        (
            &["depth=5", ""],
            Some(0),
            Some("attache resume 00000000-0000-0000-0000-000000000001"),
        ),
        (
            &["depth=5", ""],
            Some(1),
            Some("paused in the tree of session 00000000-0000-0000-0000-000000000002"),
        ),
    ] {
        let mut chain = chain(budgets);
        if let Some(index) = paused {
            Arc::make_mut(&mut chain[index].bounds).paused = true;
        }
        let refused = may_spawn(&chain).err().map(|refusal| refusal.to_string());
        match (&refused, words) {
            (None, None) => {}
            (Some(refused), Some(words)) => assert!(refused.contains(words), "{refused}"),
            other => panic!("{budgets:?} {paused:?}: {other:?}"),
        }
    }
}

#[test]
fn a_limit_that_is_used_up_is_found_from_the_root_down() {
    let used = |id: SessionId, limit: Limit| match (id.0.as_u128(), limit) {
        (1, Limit::Tokens) => 90,
        (2, Limit::Usd) => 2_000_000_000,
        _ => 1_000,
    };
    for (budgets, want) in [
        (&["tokens=100", ""][..], None),
        (&["tokens=90", "usd=1"], Some("tokens=90")),
        (
            &["tokens=91", "usd=2"],
            Some("usd=2 of session 00000000-0000-0000-0000-000000000002 is used up (2 used)"),
        ),
        // These end no run.
        (&["agents=1,depth=1,concurrent=1"], None),
        (&["wall=1"], Some("wall=1")),
    ] {
        let found = spent(&chain(budgets), used).map(|refusal| refusal.to_string());
        match (&found, want) {
            (None, None) => {}
            (Some(found), Some(want)) => assert!(found.contains(want), "{found}"),
            other => panic!("{budgets:?}: {other:?}"),
        }
    }
}

#[test]
fn a_child_gets_a_part_of_what_is_left() {
    let used = |_: SessionId, limit: Limit| match limit {
        Limit::Tokens => 60,
        Limit::Agents => 3,
        _ => 0,
    };
    for (budgets, asked, want) in [
        (&["tokens=100"][..], "tokens=40", Ok("tokens=40")),
        (
            &["tokens=100"],
            "tokens=41",
            Err("a child cannot get tokens=41: 40 is left"),
        ),
        (&["tokens=100"], "tokens=none", Ok("")),
        (&["", ""], "tokens=41,usd=5", Ok("tokens=41,usd=5")),
        (&["depth=3", ""], "depth=1", Ok("depth=1")),
        (&["depth=3", ""], "depth=2", Err("1 is left")),
        (&["agents=10"], "agents=6", Ok("agents=6")),
        (&["agents=10"], "agents=7", Err("6 is left")),
        (&["concurrent=2"], "concurrent=3", Err("2 is left")),
        (&["tokens=10"], "tokens=1", Err("0 is left")),
        (
            &["", "tokens=70"],
            "tokens=20",
            Err("10 is left under the limit of session 00000000-0000-0000-0000-000000000002"),
        ),
    ] {
        let asked = BudgetChange::parse(asked).unwrap();
        let granted = grant(&chain(budgets), &asked, used);
        match (granted, want) {
            (Ok(budget), Ok(want)) => assert_eq!(budget.to_string(), want),
            (Err(refusal), Err(words)) => {
                assert!(refusal.to_string().contains(words), "{refusal}");
            }
            other => panic!("{budgets:?} {asked}: {other:?}"),
        }
    }
}

#[test]
fn four_fifths_are_nearly_all() {
    for (used, most, want) in [
        (79, 100, false),
        (80, 100, true),
        (100, 100, true),
        (0, 0, true),
        (u64::MAX, u64::MAX, true),
    ] {
        assert_eq!(is_nearly_spent(used, most), want, "{used} of {most}");
    }
}
