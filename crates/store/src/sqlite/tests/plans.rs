//! Random plans: whatever is asked of them, the store in a file and the store in memory give the
//! same answers and hold the same afterwards.

use attache_session::{
    Event, Expect, Generation, Json, MailBody, MailId, NewMail, Notice, Position, StopReason,
    TurnId, WatchId,
};
use proptest::prelude::*;

use crate::append::{Append, Charge, CommandRecord};
use crate::conformance::{Author, said, session, uuid, wait};
use crate::memory::MemoryStore;
use crate::read::{Kind, PageQuery, RowFilter, Store};
use crate::sqlite::{Options, SqliteStore};

/// Sessions of a plan.
const SESSIONS: u128 = 4;

#[derive(Clone, Debug)]
enum Step {
    Birth {
        who: u128,
        parent: Option<u128>,
    },
    Say {
        who: u128,
        events: usize,
    },
    Stale {
        who: u128,
        position: u64,
        generation: u64,
    },
    Late {
        who: u128,
    },
    Mail {
        who: u128,
        to: u128,
        notice: bool,
    },
    Take {
        who: u128,
        mail: u64,
        alone: bool,
    },
    Link {
        who: u128,
        child: u128,
    },
    Charge {
        who: u128,
        to: u128,
        amount: i64,
        limit: Option<i64>,
    },
    Command {
        who: u128,
        id: u128,
        digest: u8,
    },
    Stop {
        who: u128,
    },
    Seen {
        who: u128,
        other: u128,
    },
    Claim {
        who: u128,
        from: u64,
    },
    Delete {
        who: u128,
    },
    Sweep {
        before: i64,
    },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0..SESSIONS;
    prop_oneof![
        4 => (who(), prop::option::of(who())).prop_map(|(who, parent)| Step::Birth { who, parent }),
        4 => (who(), 0..4_usize).prop_map(|(who, events)| Step::Say { who, events }),
        1 => (who(), 0..6_u64, 0..3_u64).prop_map(|(who, position, generation)| Step::Stale {
            who,
            position,
            generation
        }),
        1 => who().prop_map(|who| Step::Late { who }),
        3 => (who(), who(), any::<bool>()).prop_map(|(who, to, notice)| Step::Mail { who, to, notice }),
        3 => (who(), 1..6_u64, any::<bool>()).prop_map(|(who, mail, alone)| Step::Take { who, mail, alone }),
        2 => (who(), who()).prop_map(|(who, child)| Step::Link { who, child }),
        2 => (who(), who(), -2..4_i64, prop::option::of(0..4_i64)).prop_map(
            |(who, to, amount, limit)| Step::Charge { who, to, amount, limit }
        ),
        2 => (who(), 0..2_u128, 0..2_u8).prop_map(|(who, id, digest)| Step::Command { who, id, digest }),
        1 => who().prop_map(|who| Step::Stop { who }),
        1 => (who(), who()).prop_map(|(who, other)| Step::Seen { who, other }),
        1 => (who(), 1..3_u64).prop_map(|(who, from)| Step::Claim { who, from }),
        1 => who().prop_map(|who| Step::Delete { who }),
        1 => (1_000_000..1_000_020_i64).prop_map(|before| Step::Sweep { before }),
        1 => Just(Step::Restart),
    ]
}

/// The author of a session as its log says.
fn author(store: &MemoryStore, number: u128) -> Author {
    use crate::read::{Log, Rows};
    let mut author = Author::new(number);
    if let Some(row) = store.row(session(number)).unwrap() {
        author.generation = row.generation;
    }
    for item in store
        .events(session(number), Position(0), usize::MAX)
        .unwrap()
    {
        author.state.apply(&item.event);
    }
    author
}

/// The append of a step; none when the step is none, or the session is not born and cannot say.
fn append(store: &MemoryStore, step: &Step) -> Option<Append> {
    let own = |who: u128| {
        let author = author(store, who);
        author.state.created.is_some().then_some(author)
    };
    Some(match step.clone() {
        Step::Birth { who, parent } => {
            let mut child = Author::new(who);
            match parent.and_then(own) {
                None => {
                    let events = child.birth(None);
                    child.append(events)
                }
                Some(mut parent) => {
                    let events = child.birth(Some(&parent));
                    let born = child.born(events);
                    let mut append = parent.append(vec![said("bears")]);
                    append.births.push(born);
                    append.links.push(session(who));
                    append
                }
            }
        }
        Step::Say { who, events } => {
            let kinds = [
                said("Words"),
                Event::TurnStarted { turn: TurnId(1) },
                Event::Noted {
                    code: "c".into(),
                    text: "more WORDS".into(),
                },
            ];
            own(who)?.append(kinds[..events.min(3)].to_vec())
        }
        Step::Stale {
            who,
            position,
            generation,
        } => {
            let mut append = own(who)?.append(vec![said("stale")]);
            append.expected = Position(position);
            append.generation = Generation(generation);
            append
        }
        Step::Late { who } => {
            let mut author = own(who)?;
            let last = author.state.last_at;
            let mut append = author.append(vec![said("late")]);
            append.events[0].at = last;
            append
        }
        Step::Mail { who, to, notice } => {
            let body = if notice {
                MailBody::Notice(Notice {
                    watch: WatchId(uuid(1)),
                    message: None,
                    outcome: None,
                    end_reason: None,
                    stopped: false,
                    told: None,
                })
            } else {
                MailBody::Hold
            };
            let mut append = own(who)?.append(vec![]);
            append.mail.push(NewMail {
                to: session(to),
                body,
            });
            append
        }
        Step::Take { who, mail, alone } => {
            let mut append = own(who)?.append(vec![]);
            append.taken.push(MailId(mail));
            append.expects.extend(alone.then_some(Expect::NoOtherMail));
            append
        }
        Step::Link { who, child } => {
            let mut append = own(who)?.append(vec![]);
            append.links.push(session(child));
            append
        }
        Step::Charge {
            who,
            to,
            amount,
            limit,
        } => {
            let mut append = own(who)?.append(vec![]);
            append.charges.push(Charge {
                session: session(to),
                key: "k".to_owned(),
                amount,
                limit,
            });
            append
        }
        Step::Command { who, id, digest } => {
            let mut append = own(who)?.append(vec![said("command")]);
            append.command = Some(CommandRecord {
                id: uuid(id),
                digest: [digest; 32],
                answer: Json::empty_object(),
            });
            append
        }
        Step::Stop { who } => own(who)?.append(vec![Event::Stopped {
            reason: StopReason::Disposed,
            waited_for: Vec::new(),
        }]),
        Step::Seen { who, other } => {
            let mut append = own(who)?.append(vec![]);
            append.expects.push(Expect::Epoch {
                session: session(other),
                epoch: Author::new(other).epoch(),
            });
            append
        }
        Step::Claim { .. } | Step::Delete { .. } | Step::Sweep { .. } | Step::Restart => {
            return None;
        }
    })
}

/// All that can be read of a store, as text.
fn all(store: &dyn Store) -> Vec<String> {
    let mut seen = Vec::new();
    for filter in [RowFilter::All, RowFilter::Roots] {
        seen.push(format!("{:?}", store.rows(filter, None, 99)));
    }
    for number in 0..SESSIONS {
        let id = session(number);
        seen.push(format!(
            "{:?}",
            store.rows(RowFilter::Children(id), None, 99)
        ));
        seen.push(format!("{:?}", store.rows(RowFilter::Tree(id), None, 99)));
        seen.push(format!("{:?}", store.events(id, Position(0), 99)));
        seen.push(format!("{:?}", store.mail(id, 99)));
        seen.push(format!("{:?}", store.quota(id, "k")));
        seen.push(format!(
            "{:?} {:?}",
            store.command(id, uuid(0)),
            store.command(id, uuid(1))
        ));
        for other in 0..SESSIONS {
            seen.push(format!("{:?}", store.descends(id, session(other))));
        }
        for (kinds, search) in [
            (vec![], None),
            (vec![Kind::Other], None),
            (
                vec![Kind::Diagnostic, Kind::Assistant],
                Some("words".to_owned()),
            ),
        ] {
            for newest in [false, true] {
                let query = PageQuery {
                    after: Some(attache_session::Timestamp(1_000_002)),
                    up_to: Some(Position(9)),
                    kinds: kinds.clone(),
                    search: search.clone(),
                    limit: 2,
                    newest,
                };
                seen.push(format!("{:?}", store.page(id, &query)));
            }
        }
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn both_stores_do_the_same(steps in prop::collection::vec(step(), 20..100)) {
        use crate::append::Writes;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("attache.db");
        let open = || SqliteStore::open(&path, Options::default()).unwrap();
        let mut memory = MemoryStore::new();
        let mut sqlite = open();
        for step in &steps {
            match step {
                Step::Restart => {
                    drop(sqlite);
                    sqlite = open();
                    memory = memory.crash();
                }
                Step::Claim { who, from } => {
                    let (who, from) = (session(*who), Generation(*from));
                    prop_assert_eq!(wait(memory.claim(who, from)), wait(sqlite.claim(who, from)));
                }
                Step::Delete { who } => {
                    let who = session(*who);
                    prop_assert_eq!(wait(memory.delete(who)), wait(sqlite.delete(who)));
                }
                Step::Sweep { before } => {
                    let (one, two) = (memory.sweep_commands(*before), sqlite.sweep_commands(*before));
                    prop_assert_eq!(wait(one), wait(two));
                }
                _ => {
                    if let Some(append) = append(&memory, step) {
                        let one = wait(memory.commit(append.clone()));
                        let two = wait(sqlite.commit(append));
                        prop_assert_eq!(one, two, "{:?}", step);
                    }
                }
            }
        }
        prop_assert_eq!(all(&memory), all(&sqlite));
    }
}
