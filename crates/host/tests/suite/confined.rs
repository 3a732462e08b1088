//! What a token confines its bearer to: by scope, and to the sessions below one. What lies outside is answered like what is
//! not there.

use std::collections::BTreeMap;

use attache_host::Host;
use attache_protocol::{
    Answer, Command, FromHost, HistoryQuery, Patch, QueueRef, Reach, Runtime, SessionView,
    TokenScope,
};

use crate::kit::{Line, enqueue, host, life};
use crate::web_kit::{socket, token};

/// A tree: a root, two children of it, one of whom also has the other as a child, and another root.
struct Family {
    host: Host,
    owner: Line,
    root: String,
    first: String,
    second: String,
    stranger: String,
}

async fn rows(line: &mut Line, root: Option<&str>) -> Vec<SessionView> {
    let list = Command::ListSessions {
        root_session_id: root.map(str::to_owned),
        after_session_id: None,
    };
    match line.ask(list).await.unwrap() {
        Answer::Sessions { sessions, .. } => sessions,
        other => panic!("{other:?}"),
    }
}

async fn ids(line: &mut Line, root: Option<&str>) -> Vec<String> {
    let rows = rows(line, root).await;
    rows.into_iter().map(|row| row.session_id).collect()
}

/// Has a session do something, and waits until it is quiet.
async fn work(owner: &mut Line, session: &str, text: &str) {
    owner
        .ask(enqueue(session, QueueRef::Default {}, text))
        .await
        .unwrap();
    let wait = Command::Wait {
        session_id: session.to_owned(),
        reach: Reach::Tree,
        timeout_seconds: None,
    };
    owner.ask(wait).await.unwrap();
}

/// The newest child that a session makes.
async fn child(owner: &mut Line, parent: &str) -> String {
    work(owner, parent, "bear").await;
    ids(owner, Some(parent)).await.pop().unwrap()
}

impl Family {
    async fn new() -> Self {
        let host = host().await;
        let mut owner = Line::to(&host).await;
        let root = owner.create(1).await;
        let stranger = owner.create(2).await;
        let first = child(&mut owner, &root).await;
        let second = child(&mut owner, &root).await;
        work(&mut owner, &second, &format!("adopt {first}")).await;
        let below = rows(&mut owner, Some(&second)).await;
        assert_eq!(
            below.len(),
            2,
            "a further parent has it below too: {below:#?}"
        );
        Self {
            host,
            owner,
            root,
            first,
            second,
            stranger,
        }
    }

    /// A connection that is confined to a session.
    async fn confined(&self, scope: TokenScope, session: &str) -> Line {
        let secret = token(&self.host, scope, Some(session)).await;
        socket(&self.host, &secret).await
    }
}

fn watch(root: Option<&str>) -> Command {
    Command::WatchTree {
        root_session_id: root.map(str::to_owned),
    }
}

fn told(frames: &[FromHost]) -> Vec<String> {
    let mut told = Vec::new();
    for frame in frames {
        match frame {
            FromHost::Snapshot(snapshot) => {
                told.extend(snapshot.sessions.iter().map(|row| row.session_id.clone()));
            }
            FromHost::Delta(delta) => {
                if let Patch::TreeRow { session } = &delta.patch {
                    assert_eq!(session.session_id, delta.session_id);
                }
                told.push(delta.session_id.clone());
            }
            _ => {}
        }
    }
    told
}

#[test]
fn a_confined_token_sees_what_is_below_its_session_and_nothing_else() {
    life(async {
        let mut family = Family::new().await;
        let (root, first, second) = (
            family.root.clone(),
            family.first.clone(),
            family.second.clone(),
        );
        let mut line = family.confined(TokenScope::Write, &second).await;
        assert_eq!(ids(&mut line, None).await, [&*second]);
        assert_eq!(
            ids(&mut line, Some(&second)).await,
            [&*second],
            "though it adopted another"
        );
        line.ask(watch(None)).await.unwrap();
        assert_eq!(told(&line.rest().await), [&*second]);

        // What is born later below it is seen; what happens elsewhere is not.
        let grandchild = child(&mut family.owner, &second).await;
        work(&mut family.owner, &first, "hello").await;
        let outside = child(&mut family.owner, &family.stranger.clone()).await;
        let mut seen = told(&line.rest().await);
        seen.sort();
        seen.dedup();
        let mut both = [second.clone(), grandchild.clone()];
        both.sort();
        assert_eq!(seen, both);
        assert_eq!(ids(&mut line, None).await.len(), 2);
        assert!(line.ask(Command::attach(grandchild.clone())).await.is_ok());
        assert!(
            line.ask(enqueue(&grandchild, QueueRef::Default {}, "hello"))
                .await
                .is_ok()
        );

        // By the end of an id: those outside are not there, and hide nobody inside.
        for (session, found) in [
            (&second, true),
            (&grandchild, true),
            (&root, false),
            (&first, false),
            (&outside, false),
            (&family.stranger, false),
        ] {
            for text in [session.clone(), session[session.len() - 8..].to_owned()] {
                let resolved = line.ask(Command::Resolve { text: text.clone() }).await;
                assert_eq!(resolved.is_ok(), found, "{text}: {resolved:?}");
            }
        }
        // Sessions that are gone are told of where they were seen.
        family
            .owner
            .ask(Command::Terminate {
                session_id: grandchild.clone(),
            })
            .await
            .unwrap();
        family
            .owner
            .ask(Command::Terminate {
                session_id: outside.clone(),
            })
            .await
            .unwrap();
        line.rest().await;
        family
            .owner
            .ask(Command::Delete {
                session_id: outside.clone(),
            })
            .await
            .unwrap();
        let heard = format!("{:?}", line.rest().await);
        assert!(!heard.contains(&outside), "{heard}");
        // A new root is not below it.
        let refused = line
            .ask(Command::CreateSession(Box::new(line_session())))
            .await;
        assert_eq!(refused, Err("not-permitted".to_owned()));
    });
}

#[test]
fn what_is_born_is_seen_also_when_the_youngest_was_deleted() {
    life(async {
        let mut family = Family::new().await;
        let (root, second) = (family.root.clone(), family.second.clone());
        let mut line = family.confined(TokenScope::Read, &second).await;
        let get = |id: &str| Command::GetSession {
            session_id: id.to_owned(),
        };
        let youngest = child(&mut family.owner, &root).await;
        let refused = line.ask(get(&youngest)).await;
        assert_eq!(refused, Err("unknown-session".to_owned()));
        for command in [
            Command::Terminate {
                session_id: youngest.clone(),
            },
            Command::Delete {
                session_id: youngest.clone(),
            },
        ] {
            family.owner.ask(command).await.unwrap();
        }
        let grandchild = child(&mut family.owner, &second).await;
        assert!(line.ask(get(&grandchild)).await.is_ok());
        // With the session at the top all is gone that could be seen.
        for id in [&grandchild, &second] {
            for command in [
                Command::Terminate {
                    session_id: id.clone(),
                },
                Command::Delete {
                    session_id: id.clone(),
                },
            ] {
                family.owner.ask(command).await.unwrap();
            }
            let refused = line.ask(get(id)).await;
            assert_eq!(refused, Err("unknown-session".to_owned()));
        }
        let list = Command::ListSessions {
            root_session_id: None,
            after_session_id: None,
        };
        assert_eq!(line.ask(list).await, Err("unknown-session".to_owned()));
    });
}

fn line_session() -> attache_protocol::NewSession {
    attache_protocol::NewSession {
        session_id: "01931f2e-0000-7000-8000-00000000ffff".to_owned(),
        agent: None,
        model: Some("scripted/slow".to_owned()),
        parameters: BTreeMap::new(),
        working_directory: "/".to_owned(),
        name: None,
        first_message: None,
        environment: BTreeMap::new(),
        detached: true,
        budget: None,
    }
}

#[test]
fn a_scope_may_do_what_it_is_for_and_says_which_one_is_missing() {
    life(async {
        let host = host().await;
        let mut owner = Line::to(&host).await;
        let id = owner.create(1).await;
        let reads = [
            Command::attach(id.clone()),
            watch(None),
            Command::HostStatus {},
        ];
        let writes = [
            enqueue(&id, QueueRef::Default {}, "hello"),
            Command::Terminate {
                session_id: id.clone(),
            },
            // What it names is not looked at before it is known who asks.
            Command::Terminate {
                session_id: "nothing".to_owned(),
            },
            Command::CreateSession(Box::new(line_session())),
        ];
        let admins = [Command::ListTokens {}];
        for (scope, may) in [
            (TokenScope::Read, [true, false, false]),
            (TokenScope::Write, [true, true, false]),
            (TokenScope::Admin, [true, true, true]),
        ] {
            let secret = token(&host, scope, None).await;
            let mut line = socket(&host, &secret).await;
            for (commands, may) in [&reads[..], &writes, &admins].into_iter().zip(may) {
                for command in commands {
                    let answer = line.ask(command.clone()).await;
                    let refused = answer == Err("not-permitted".to_owned());
                    assert_eq!(!refused, may, "{scope:?} {command:?}: {answer:?}");
                }
            }
            // A session is not created for the next round.
            let delete = Command::Delete {
                session_id: line_session().session_id,
            };
            let terminate = Command::Terminate {
                session_id: line_session().session_id,
            };
            drop((owner.ask(terminate).await, owner.ask(delete).await));
        }
    });
}

/// Every command that names a session.
fn about(id: &str) -> Vec<Command> {
    let session_id = || id.to_owned();
    let text = || "x".to_owned();
    vec![
        enqueue(id, QueueRef::Default {}, "hello"),
        Command::EditItem {
            session_id: session_id(),
            item_id: text(),
            text: text(),
            expected_revision: 1,
        },
        Command::RemoveItem {
            session_id: session_id(),
            item_id: text(),
            expected_revision: 1,
        },
        Command::MoveItem {
            session_id: session_id(),
            item_id: text(),
            queue_id: text(),
            before_item_id: None,
            expected_revision: 1,
        },
        Command::CreateQueue {
            session_id: session_id(),
            name: None,
            immediacy: attache_protocol::Immediacy::Held,
        },
        Command::ConfigureQueue {
            session_id: session_id(),
            queue_id: text(),
            immediacy: None,
            expected_revision: 1,
        },
        Command::DeleteQueue {
            session_id: session_id(),
            queue_id: text(),
            expected_revision: 1,
        },
        Command::StartSession {
            session_id: session_id(),
            environment: BTreeMap::new(),
        },
        Command::Interrupt {
            session_id: session_id(),
            tree: true,
        },
        Command::Compact {
            session_id: session_id(),
            environment: BTreeMap::new(),
        },
        Command::GetBudget {
            session_id: session_id(),
        },
        Command::GetReceipts {
            session_id: session_id(),
        },
        Command::SetBudget {
            session_id: session_id(),
            budget: "tokens=1".to_owned(),
            paused: Some(true),
        },
        Command::Terminate {
            session_id: session_id(),
        },
        Command::Delete {
            session_id: session_id(),
        },
        Command::Resolve { text: session_id() },
        Command::ListSessions {
            root_session_id: Some(session_id()),
            after_session_id: None,
        },
        Command::ListSessions {
            root_session_id: None,
            after_session_id: Some(session_id()),
        },
        Command::GetSession {
            session_id: session_id(),
        },
        Command::GetLedger {
            session_id: session_id(),
        },
        Command::PageHistory {
            session_id: session_id(),
            query: HistoryQuery {
                after: None,
                kinds: Vec::new(),
                search: None,
                limit: 1,
                newest: true,
            },
        },
        Command::ReadText {
            session_id: session_id(),
            position: 1,
            offset: 0,
        },
        Command::Wait {
            session_id: session_id(),
            reach: Reach::Tree,
            timeout_seconds: None,
        },
        Command::attach(id),
        Command::Detach {
            session_id: session_id(),
        },
        Command::StartOrAttach {
            session_id: session_id(),
            resume: None,
            environment: BTreeMap::new(),
        },
        Command::SetRetention {
            session_id: session_id(),
            continue_in_background: false,
        },
        Command::SetToolEnabled {
            session_id: session_id(),
            tool: text(),
            enabled: false,
        },
        watch(Some(id)),
    ]
}

/// What is told of an id, with the id itself and the name of the very error taken out.
async fn told_of(line: &mut Line, id: &str, command: Command) -> String {
    let answer = line.ask_bytes("same", command).await;
    let (before, rest) = answer
        .split_once("\"correlation-id\":\"")
        .unwrap_or_else(|| {
            panic!("{id:.40} is told of: {answer}");
        });
    let (_, after) = rest.split_once('"').unwrap();
    let told = format!("{before}{after}");
    if id.is_empty() {
        told
    } else {
        told.replace(id, "ID")
    }
}

#[test]
fn g39_an_id_that_is_not_ones_own_is_told_like_one_that_does_not_exist() {
    life(async {
        let mut family = Family::new().await;
        let before = rows(&mut family.owner, None).await;
        let mut line = family
            .confined(TokenScope::Write, &family.second.clone())
            .await;
        let nobody = "01931f2e-0000-7000-8000-0123456789ab";
        let long = "f".repeat(10_000);
        let mut texts = 0;
        for (number, command) in about(nobody).into_iter().enumerate() {
            let unknown = told_of(&mut line, nobody, command).await;
            assert!(
                unknown.contains("\"code\":\"unknown-session\""),
                "{unknown}"
            );
            // Above, beside, adopted, and elsewhere.
            for forbidden in [&family.root, &family.first, &family.stranger] {
                let command = about(forbidden).swap_remove(number);
                let shown = format!("{command:?}");
                let forbidden = told_of(&mut line, forbidden, command).await;
                assert_eq!(forbidden, unknown, "{shown}");
            }
            for probe in [
                "../../etc/passwd",
                "/tmp/victim",
                "a/b",
                "",
                "..",
                "%2e%2e",
                "\0",
                &long,
                // The beginning of an own one, and of another's.
                &family.second[..8],
                &family.stranger[..8],
            ] {
                let command = about(probe).swap_remove(number);
                let told = told_of(&mut line, probe, command).await;
                let code = "\"code\":\"unknown-session\"";
                assert!(told.contains(code), "{probe:.40}: {told}");
                texts += 1;
            }
        }
        assert_eq!(texts, 29 * 10);
        assert_eq!(
            rows(&mut family.owner, None).await,
            before,
            "nothing has changed"
        );
    });
}

#[test]
fn whether_a_session_runs_is_told_of_those_below_only() {
    life(async {
        let family = Family::new().await;
        let mut line = family.confined(TokenScope::Read, &family.second).await;
        let nobody = "01931f2e-0000-7000-8000-0123456789ab";
        for (id, runtime) in [
            (&*family.second, Runtime::Running),
            (&family.root, Runtime::Unavailable),
            (&family.first, Runtime::Unavailable),
            (nobody, Runtime::Unavailable),
            ("nothing", Runtime::Unavailable),
        ] {
            let query = Command::QueryStatus {
                session_id: id.to_owned(),
            };
            assert_eq!(
                line.ask(query).await,
                Ok(Answer::Runtime { runtime }),
                "{id}"
            );
        }
    });
}

#[test]
fn coming_back_is_authorised_like_coming() {
    life(async {
        let family = Family::new().await;
        // Somebody who sees all is attached to a session, and tells a confined one the secret name of that.
        let mut owner = Line::to(&family.host).await;
        let attached = owner
            .ask(Command::attach(family.root.clone()))
            .await
            .unwrap();
        let Answer::Attached { attachment, .. } = attached else {
            panic!("{attached:?}");
        };
        drop(owner);
        let mut line = family.confined(TokenScope::Write, &family.second).await;
        let back = Command::Attach {
            session_id: family.root.clone(),
            resume: Some(attache_protocol::Resume {
                attachment,
                place: None,
            }),
            read_only: false,
        };
        assert_eq!(line.ask(back).await, Err("unknown-session".to_owned()));
        assert!(told(&line.rest().await).is_empty());
    });
}
