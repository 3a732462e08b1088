//! What holds for every tool of the registry: closed schemas, and arguments that do not fit change
//! nothing. Tools and parameters are read from the registry, so that a new one is in every row.

use std::collections::BTreeSet;

use attache_agent::{Definition, Tool, Toolbelt};
use attache_session::SessionId;
use attache_testkit::{Piece, Puppet, World, text};
use serde_json::{Value, json};

use crate::kit::refused;

/// Every tool of every toolset.
fn belt() -> Toolbelt {
    let sets = attache_tools::built_in();
    let kinds: Vec<String> = sets.kinds().into_iter().map(str::to_owned).collect();
    sets.belt(&kinds).unwrap()
}

/// Every tool with its schema.
fn tools() -> Vec<(String, Value)> {
    belt()
        .offered()
        .specs()
        .iter()
        .map(|spec| {
            let schema = serde_json::from_str(spec.input_schema.as_str()).unwrap();
            (spec.name.to_string(), schema)
        })
        .collect()
}

#[test]
fn tools_that_only_look_after_the_work_say_so() {
    let found = attache_tools::built_in().bookkeeping();
    let found: Vec<&str> = found.iter().map(|name| &**name).collect();
    assert_eq!(
        found,
        [
            "agent_session_get",
            "agent_session_list",
            "get_current_session",
            "read_result"
        ]
    );
}

/// The parameters of a schema that may be of a kind.
fn of_kind<'a>(schema: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a String> {
    let properties = schema["properties"].as_object().unwrap().iter();
    properties.filter_map(move |(name, shape)| may_be(shape, kind).then_some(name))
}

fn may_be(shape: &Value, kind: &str) -> bool {
    let any = shape["anyOf"].as_array().into_iter().flatten();
    std::iter::once(shape)
        .chain(any)
        .any(|shape| shape["type"] == kind)
}

/// Arguments that fit, but for the ones that a test spoils: what is required, with an id and a file
/// that exist.
fn fitting(schema: &Value, target: SessionId) -> Value {
    let mut arguments = json!({});
    for name in schema["required"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        arguments[name] = match name {
            "session_id" => json!(target.to_string()),
            "new_string" => json!("other"),
            _ => json!("text"),
        };
    }
    arguments
}

async fn world() -> (World, SessionId, SessionId, tempfile::TempDir) {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text"), "text\n").unwrap();
    let root = world
        .root_at(folder.path(), Definition::built_in(), None)
        .await;
    let child = world.child(root, None).await;
    (world, root, child, folder)
}

/// All that a refused call could have changed: events of each session, files with their bytes, and
/// the count of live sessions.
type Standing = (Vec<usize>, BTreeSet<(String, Vec<u8>)>, usize);

fn standing(world: &World, sessions: &[SessionId], folder: &tempfile::TempDir) -> Standing {
    let events = sessions.iter().map(|id| world.events(*id).len()).collect();
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.display().to_string(), std::fs::read(&path).unwrap())
    };
    let files = std::fs::read_dir(folder.path())
        .unwrap()
        .map(file)
        .collect();
    (events, files, world.engine.load().0)
}

#[tokio::test]
async fn every_schema_is_closed_and_described() {
    let belt = belt();
    let mut names: Vec<String> = Vec::new();
    for (name, schema) in tools() {
        names.push(name.clone());
        assert_eq!(schema["type"], "object", "{name}");
        assert_eq!(schema["additionalProperties"], false, "{name}");
        for (property, shape) in schema["properties"].as_object().unwrap() {
            let text = shape["description"].as_str();
            assert!(
                text.is_some_and(|text| text.len() > 10),
                "{name}.{property}"
            );
        }
        let reads = [
            "agent_session_list",
            "agent_session_get",
            "agent_session_read_events",
            "agent_session_wait",
            "get_current_session",
            "read_file",
            "list_directory",
            "glob",
            "grep",
            "read_result",
        ];
        let tool: &dyn Tool = &**belt.get(&name).unwrap();
        assert_eq!(
            tool.changes_state(),
            !reads.contains(&name.as_str()),
            "{name}"
        );
        assert!(tool.spec().description.len() > 80, "{name}");
    }
    // The kinds are read and not written here: that all were read is seen on one tool of each.
    for one in ["agent_session_acquire", "get_current_session", "grep"] {
        assert!(names.iter().any(|name| name == one), "{names:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_parameter_is_refused_by_every_tool() {
    let (world, root, child, folder) = world().await;
    let before = standing(&world, &[root, child], &folder);
    for (name, schema) in tools() {
        let mut arguments = fitting(&schema, child);
        arguments["trust_profile"] = json!("all");
        let (code, message) = refused(&world, root, &name, arguments).await;
        assert_eq!(code, "invalid-arguments", "{name}");
        assert_eq!(message, "there is no parameter \"trust_profile\"", "{name}");
        for none in [json!([]), json!("x"), Value::Null] {
            let (code, _) = refused(&world, root, &name, none).await;
            assert_eq!(code, "invalid-arguments", "{name}");
        }
    }
    assert_eq!(standing(&world, &[root, child], &folder), before);
}

#[tokio::test(start_paused = true)]
async fn a_value_of_a_wrong_type_is_refused_by_every_tool() {
    let (world, root, child, folder) = world().await;
    let before = standing(&world, &[root, child], &folder);
    let mut spoiled = 0;
    for (name, schema) in tools() {
        for (property, shape) in schema["properties"].as_object().unwrap() {
            let fits = |kind: &str| may_be(shape, kind);
            for (kind, value) in [
                ("string", json!("30")),
                ("integer", json!(30)),
                ("number", json!(1.5)),
                ("boolean", json!(true)),
                ("array", json!([1])),
                ("object", json!({ "a": 1 })),
            ] {
                // A value of the right type may still be wrong, but that is not asked here.
                if fits(kind) && kind != "array" && kind != "object"
                    || fits(kind) && ["definition", "schema"].contains(&property.as_str())
                {
                    continue;
                }
                let mut arguments = fitting(&schema, child);
                arguments[property] = value.clone();
                let (code, message) = refused(&world, root, &name, arguments).await;
                assert_eq!(
                    code, "invalid-arguments",
                    "{name}.{property} {value}: {message}"
                );
                assert!(message.contains(property.as_str()), "{name}: {message}");
                spoiled += 1;
            }
        }
        for required in schema["required"].as_array().unwrap() {
            let required = required.as_str().unwrap();
            let mut arguments = fitting(&schema, child);
            arguments.as_object_mut().unwrap().remove(required);
            let (code, message) = refused(&world, root, &name, arguments).await;
            assert_eq!(code, "invalid-arguments", "{name}");
            assert!(message.contains(required), "{name}: {message}");
        }
    }
    assert!(spoiled > 150, "{spoiled}");
    assert_eq!(standing(&world, &[root, child], &folder), before);
}

/// Texts that are of the right type and odd. What takes them, and why it may; everything else
/// refuses them.
const EMPTY: &str = "";
const NUL: &str = "a\0b";
const TAKEN: [(&str, &str, &str, &str); 2] = [
    ("edit_file", "new_string", EMPTY, "a text is taken out"),
    ("write_file", "content", EMPTY, "a file may be empty"),
];

#[tokio::test(start_paused = true)]
async fn an_odd_text_is_refused_by_every_tool_or_has_a_reason() {
    let (world, root, child, folder) = world().await;
    let huge = "x".repeat(10 * 1024 * 1024);
    let mut taken = BTreeSet::new();
    let mut refusals = 0;
    for (name, schema) in tools() {
        for property in of_kind(&schema, "string") {
            for odd in [EMPTY, NUL, &huge] {
                let shown = odd.get(..8).unwrap_or(odd);
                let before = standing(&world, &[root, child], &folder);
                let mut arguments = fitting(&schema, child);
                arguments[property] = json!(odd);
                let outcome = world.call(root, &name, arguments).await;
                let answer = attache_testkit::json_of(&outcome);
                assert!(outcome.content.len() < 2_000, "{name}.{property} {shown:?}");
                if !outcome.is_error {
                    taken.insert((name.clone(), property.clone(), odd.to_owned()));
                    world.quiet(root).await;
                    // What is taken out of the file, or put in its place, is put back.
                    std::fs::write(folder.path().join("text"), "text\n").unwrap();
                    continue;
                }
                let code = answer["error"]["code"].as_str().unwrap();
                let fits: &[&str] = match property.as_str() {
                    "session_id" | "after_session_id" => &["unknown-session", "invalid-arguments"],
                    "definition" => &["definition-unknown", "invalid-arguments"],
                    _ => &["invalid-arguments", "text-too-large"],
                };
                assert!(
                    fits.contains(&code),
                    "{name}.{property} {shown:?}: {answer}"
                );
                let after = standing(&world, &[root, child], &folder);
                assert_eq!(after, before, "{name}.{property} {shown:?}");
                refusals += 1;
            }
        }
    }
    let expected = TAKEN
        .map(|(tool, property, odd, _why)| (tool.to_owned(), property.to_owned(), odd.to_owned()));
    assert_eq!(taken, BTreeSet::from(expected));
    assert!(refusals > 50, "{refusals}");
}

#[tokio::test(start_paused = true)]
async fn g39_only_a_full_id_of_ones_own_resolves_in_any_tool() {
    let (world, root, child, folder) = world().await;
    let stranger = world.root(None).await;
    let sessions = [root, child, stranger];
    let before = standing(&world, &sessions, &folder);
    let (begin, long) = (child.to_string()[..8].to_owned(), "a".repeat(10_000));
    let stranger = stranger.to_string();
    let nobody = "01890000-0000-7000-8000-000000000008";
    let odd = [
        "",
        "..",
        "a/b",
        "../../etc/passwd",
        "/tmp/victim",
        "%2e%2e",
        "a\0b",
        &begin,
        &long,
        &stranger,
        nobody,
    ];
    let mut asked = 0;
    for (name, schema) in tools() {
        if schema["properties"].get("session_id").is_none() {
            continue;
        }
        for id in odd {
            let mut arguments = fitting(&schema, child);
            arguments["session_id"] = json!(id);
            let (code, message) = refused(&world, root, &name, arguments).await;
            assert_eq!(code, "unknown-session", "{name} {id:?}");
            assert!(message.starts_with("there is no session "), "{message}");
            asked += 1;
        }
    }
    assert_eq!(asked, 7 * odd.len());
    assert_eq!(standing(&world, &sessions, &folder), before);
}

#[tokio::test]
async fn g51_half_a_surrogate_pair_is_replaced_and_a_whole_one_is_kept() {
    let (world, root, _child, folder) = world().await;
    world.puppet.teach(|request| {
        if Puppet::after_tools(request) {
            return text("went on");
        }
        let arguments = [
            r#"{"path":"f","content":"\ud83d"}"#,
            r#"{"path":"g","content":"\ud83d\ude00"}"#,
        ];
        let call = |arguments: &str| Piece::Call("write_file".to_owned(), arguments.to_owned());
        arguments.map(call).to_vec()
    });
    let send = json!({ "session_id": ".", "text": "go" });
    world.ask(root, "agent_session_send", send).await;
    world.quiet(root).await;
    let last = world.puppet.requests().pop().unwrap();
    assert_eq!(Puppet::results(&last).len(), 2);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("f"), "\u{fffd}");
    assert_eq!(read("g"), "\u{1f600}");
    let shown = world.ask(root, "agent_session_get", json!({})).await;
    assert_eq!(
        (&shown["outcome"], &shown["result_preview"]),
        (&json!("succeeded"), &json!("went on"))
    );
}
