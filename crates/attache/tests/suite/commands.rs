//! Every command on a session that exists, with its JSON shape and its words for people.

use serde_json::{Value, json};

use crate::house::House;

/// Members of an object, sorted.
pub(crate) fn members(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

const SESSION: [&str; 15] = [
    "agent",
    "context_tokens",
    "cost_usd",
    "created_at",
    "end_reason",
    "last_activity_at",
    "model",
    "name",
    "outcome",
    "parent_session_ids",
    "result_preview",
    "session_id",
    "status",
    "usage",
    "working_directory",
];

pub(crate) fn echo(house: &House, text: &str) -> String {
    let ended = house
        .run(&["run", "--detach", "--json", "--model", "echo/any", text])
        .well();
    let id = ended.json()["session_id"].as_str().unwrap().to_owned();
    house.run(&["wait", &id]).well();
    id
}

#[test]
fn a_session_is_started_read_sent_to_and_ended() {
    let house = House::new();
    let id = echo(&house, "first words");
    let rows = house.ls();
    assert_eq!(rows.len(), 1);
    assert_eq!(members(&rows[0]), SESSION);
    assert_eq!(rows[0]["status"], "idle");
    assert_eq!(rows[0]["result_preview"], "first words");
    assert_eq!(
        rows[0]["working_directory"],
        house.work().canonicalize().unwrap().to_str().unwrap()
    );

    let suffix = &id[id.len() - 8..];
    let receipt = house
        .run(&["send", suffix, "second words", "--json"])
        .well()
        .json();
    assert_eq!(
        members(&receipt),
        ["item_id", "ok", "session_id", "state", "status"]
    );
    assert_eq!(
        (&receipt["state"], &receipt["session_id"]),
        (&json!("accepted"), &json!(id))
    );
    house
        .run(&["wait", suffix, "--self", "--timeout", "20"])
        .well();

    let page = house
        .run(&["events", suffix, "--json", "--limit", "3"])
        .well()
        .json();
    let texts: Vec<&str> = page["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["first words", "first words", "second words"]);
    assert_eq!(page["total_matching"], 4);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = house
        .run(&["events", suffix, "--json", "--after", cursor])
        .well()
        .json();
    assert_eq!(rest["events"][0]["text"], "second words");
    assert_eq!(rest["next_cursor"], Value::Null);
    let only = house
        .run(&[
            "events", suffix, "--json", "--type", "user", "--search", "FIRST",
        ])
        .well();
    assert_eq!(only.json()["total_matching"], 1);

    let shown = house.run(&["show", suffix, "--json"]).well().json();
    assert_eq!(shown["session_id"], json!(id));
    assert_eq!(shown["ownership_generation"], 1);
    assert_eq!(shown["events"].as_array().unwrap().len(), 4);

    let tree = house.run(&["tree", suffix, "--json"]).well().json();
    assert_eq!(tree["session_id"], json!(id));
    assert_eq!(tree["children"], json!([]));
    assert_eq!(tree["tree_usage"], tree["usage"]);
    assert_eq!(tree["tree_cost_usd"], Value::Null);

    let idle = house.run(&["interrupt", suffix, "--json"]).well().json();
    assert_eq!(
        idle,
        json!({ "session_id": id, "ok": true, "changed": false })
    );
    let ended = house.run(&["terminate", suffix, "--json"]).well().json();
    assert_eq!(ended["changed"], true);
    assert_eq!(house.ls()[0]["status"], "stopped");
    let again = house.run(&["start", suffix, "--json"]).well().json();
    assert_eq!(again["changed"], true);
    assert_eq!(house.ls()[0]["status"], "idle");
    house.run(&["terminate", suffix]).well();
    assert_eq!(house.run(&["rm", suffix]).code, 2, "nobody can be asked");
    house.run(&["rm", suffix, "--yes"]).well();
    assert_eq!(house.ls().len(), 0);
    assert_eq!(house.run(&["show", suffix]).code, 3);
}

#[test]
fn a_session_that_runs_is_not_deleted_and_an_idle_one_is() {
    let house = House::new();
    house.file("silent.yaml", "rules:\n  - reply:\n      - silence: true\n");
    let started = house
        .run(&["run", "--detach", "--model", "scripted/silent.yaml", "x"])
        .well();
    let id = started.out.trim();
    let busy = house.run(&["rm", id, "--yes"]);
    assert_eq!(busy.code, 4, "{busy:?}");
    assert!(busy.err.contains("is running"), "{busy:?}");
    house.run(&["interrupt", id]).well();
    house.run(&["wait", id]).well();
    house.run(&["rm", id, "--yes"]).well();
    assert_eq!(house.ls().len(), 0);
}

#[test]
fn a_run_that_has_ended_leaves_its_session_to_others() {
    let house = House::new();
    let script = "rules:\n  - when: {user: slow}\n    reply:\n      - delay_ms: 6000\n      \
                  - text: slowly done\n  - reply:\n      - text: quick\n";
    house.file("pace.yaml", script);
    house
        .run(&["run", "--model", "scripted/pace.yaml", "go"])
        .well();
    let id = house.ls()[0]["session_id"].as_str().unwrap().to_owned();
    house.run(&["send", &id, "slow"]).well();
    house.run(&["wait", &id]).well();
    assert_eq!(house.ls()[0]["result_preview"], "slowly done");
    assert_eq!(house.ls()[0]["outcome"], "succeeded");
}

#[test]
fn settings_are_those_of_the_folder_and_of_the_caller() {
    let house = House::new();
    let script = "rules:\n  - when: {tools_allowed: false}\n    reply:\n      - text: summary\n  \
                  - reply:\n      - call: glob\n        arguments: {pattern: 'x${step}'}\n";
    house.file("loop.yaml", script);
    house.file(".attache/config.toml", "[session]\niteration_limit = 3\n");
    let calls = |house: &House| {
        house
            .run(&["run", "--model", "scripted/loop.yaml", "go"])
            .well();
        let id = house.ls().last().unwrap()["session_id"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(house.ls().last().unwrap()["end_reason"], "iteration-limit");
        let page = house
            .run(&["events", &id, "--json", "--type", "tool_call"])
            .well()
            .json();
        page["total_matching"].as_u64().unwrap()
    };
    assert_eq!(calls(&house), 2);
    let house = house.with("ATTACHE_SESSION__ITERATION_LIMIT", "5");
    assert_eq!(calls(&house), 4);
}

#[test]
fn a_child_works_where_its_definition_says() {
    let house = House::new();
    house.file("inner/only-here.txt", "x");
    house.file(
        ".attache/agents/inner.md",
        "---\nname: inner\ntools: [filesystem]\nworking-directory: inner\n---\nLook.\n",
    );
    let script = "rules:\n  - when: {user: '^child', step: 0}\n    reply:\n      - call: list_directory\n  \
                  - when: {user: '^child'}\n    capture: {all: {tool: list_directory}}\n    reply:\n      \
                  - text: 'child saw ${all}'\n  - when: {step: 0}\n    reply:\n      \
                  - call: agent_session_create\n        arguments: {definition: inner, initial_message: child}\n  \
                  - when: {step: 1}\n    capture: {id: {tool: agent_session_create, pointer: /session_id}}\n    \
                  reply:\n      - call: agent_session_wait\n        \
                  arguments: {session_id: '${id}', wait_for_idle: true}\n  \
                  - capture: {found: {tool: agent_session_wait, pointer: /result_preview}}\n    reply:\n      \
                  - text: '${found}'\n";
    house.file("parent.yaml", script);
    let ended = house
        .run(&["run", "--model", "scripted/parent.yaml", "go"])
        .well();
    assert!(ended.out.contains("only-here.txt"), "{ended:?}");
}

#[test]
fn what_is_large_or_odd_fits_into_frames() {
    let house = House::new();
    let id = echo(&house, "first");
    let odd = "\u{1}".repeat(130_000);
    for _ in 0..3 {
        house.run_with(&["send", &id, "-"], odd.as_bytes()).well();
        house.run(&["wait", &id]).well();
    }
    let page = house
        .run(&["events", &id, "--json", "--limit", "200"])
        .well()
        .json();
    assert_eq!(page["total_matching"], 8);
    for number in 0..40 {
        let text = format!("{number} {}", "q\"".repeat(2_500));
        house
            .run_with(&["send", &id, "-", "--held"], text.as_bytes())
            .well();
    }
    let shown = house.run(&["show", &id, "--json"]).well().json();
    let queues = shown["queues"].as_array().unwrap();
    let held = queues.iter().find(|queue| queue["name"] == "held").unwrap();
    assert_eq!(held["waiting"], 40);
    let refused = house.run_with(&["send", &id, "-"], "q\"".repeat(500_000).as_bytes());
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("at most"), "{refused:?}");
}

#[test]
fn held_input_waits_until_its_queue_is_released() {
    let house = House::new();
    let id = echo(&house, "first");
    let held = house
        .run(&["send", &id, "later", "--held", "--json"])
        .well()
        .json();
    assert_eq!(held["status"], "idle");
    let shown = house.run(&["show", &id, "--json"]).well().json();
    let queues = shown["queues"].as_array().unwrap();
    let queue = queues.iter().find(|queue| queue["name"] == "held").unwrap();
    assert_eq!(
        (&queue["immediacy"], &queue["items"][0]["text"]),
        (&json!("held"), &json!("later"))
    );
    house
        .run(&["send", &id, "named", "--queue", "plans"])
        .well();
    let mixed = house.run(&["send", &id, "x", "--queue", "plans", "--held"]);
    assert_eq!(
        mixed.code, 2,
        "a queue that is worked on holds nothing back: {mixed:?}"
    );
    house.run(&["wait", &id]).well();
    let page = house
        .run(&["events", &id, "--json", "--search", "named"])
        .well()
        .json();
    assert_eq!(page["total_matching"], 2);
}

#[test]
fn a_prompt_is_read_from_standard_input() {
    let house = House::new();
    let ended = house
        .run_with(&["run", "--model", "echo/any", "-"], b"from a pipe\n")
        .well();
    assert_eq!(ended.out.trim_end(), "from a pipe");
}

#[test]
fn a_wait_that_runs_out_has_its_own_exit_code() {
    let house = House::new();
    let script = "rules:\n  - reply:\n      - silence: true\n";
    house.file("silent.yaml", script);
    let started = house
        .run(&[
            "run",
            "--detach",
            "--json",
            "--model",
            "scripted/silent.yaml",
            "x",
        ])
        .well();
    let id = started.json()["session_id"].as_str().unwrap().to_owned();
    let ended = house.run(&["wait", &id, "--timeout", "1"]);
    assert_eq!(ended.code, 5, "{ended:?}");
    assert_eq!(house.ls()[0]["status"], "running");
    house.run(&["interrupt", &id]).well();
    house.run(&["wait", &id]).well();
    let row = &house.ls()[0];
    assert_eq!(
        (&row["status"], &row["outcome"]),
        (&json!("idle"), &json!("interrupted"))
    );
}

#[test]
fn definitions_are_found_named_and_filled() {
    let house = House::new();
    let agent = "---\nname: greeter\ndescription: Greets.\nmodel: scripted/greet.yaml\n\
                 parameters:\n  - name: whom\n    required: true\n---\nGreet ${whom}.\n";
    house.file(".attache/agents/greeter.md", agent);
    house.file(
        ".attache/agents/broken.json",
        "{ \"name\": \"broken\",\n  \"modle\": 1 }",
    );
    let script = "rules:\n  - when: {system: 'Greet (?<whom>\\w+)'}\n    reply:\n      - text: 'Hello, ${whom}!'\n";
    let path = house.file("greet.yaml", script);
    let agents = house.run(&["agents", "--json"]).well().json();
    let names: Vec<&str> = agents
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["broken", "greeter", "attache"]);
    let broken = agents[0]["error"].as_str().unwrap();
    assert!(
        broken.contains("broken.json:2") && broken.contains("modle"),
        "{broken}"
    );

    let model = format!("scripted/{}", path.display());
    let run = |more: &[&str]| {
        let mut arguments = vec!["run", "--agent", "greeter", "--model", &model];
        arguments.extend_from_slice(more);
        house.run(&arguments)
    };
    assert_eq!(
        run(&["--param", "whom=Ada", "go"]).well().out,
        "Hello, Ada!\n"
    );
    let missing = run(&["go"]);
    assert_eq!(missing.code, 2, "{missing:?}");
    assert!(missing.err.contains("whom"), "{missing:?}");
    let unknown = run(&["--param", "whom=A", "--param", "who=B", "go"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    let nobody = house.run(&["run", "--agent", "nobody", "--model", "echo/any", "go"]);
    assert_eq!(nobody.code, 3, "{nobody:?}");
    assert!(nobody.err.contains("greeter"), "{nobody:?}");
}

#[test]
fn a_chat_goes_line_by_line() {
    let house = House::new();
    let ended = house
        .run_with(&["chat", "--model", "echo/any"], b"one\ntwo\n")
        .well();
    assert_eq!(ended.out, "one\ntwo\n");
    let id = house.ls()[0]["session_id"].as_str().unwrap().to_owned();
    let ended = house.run_with(&["chat", &id], b"three\n").well();
    assert_eq!(ended.out, "> one\none\n> two\ntwo\nthree\n");
    house.run_with(&["chat", "--model", "echo/any"], b"").well();
    house.run_with(&["chat", &id], b"").well();
    assert_eq!(
        house.ls().len(),
        1,
        "a chat in which nothing was said leaves nothing"
    );
}

#[test]
fn the_effective_settings_say_where_they_come_from() {
    let house = House::new();
    std::fs::create_dir_all(house.config()).unwrap();
    std::fs::write(house.config().join("config.toml"), "model = \"echo/any\"\n").unwrap();
    let report = house.run(&["doctor", "--json"]).well().json();
    let model = &report["settings"][0];
    assert_eq!(
        (&model["key"], &model["value"]),
        (&json!("model"), &json!("echo/any"))
    );
    assert!(model["source"].as_str().unwrap().ends_with("config.toml"));
    assert_eq!(house.run(&["run", "plain"]).well().out.trim_end(), "plain");
    let house = house.with("ATTACHE_MODEL", "echo/other");
    let report = house.run(&["doctor", "--json"]).well().json();
    assert_eq!(report["settings"][0]["source"], "ATTACHE_MODEL");
}

#[test]
fn completions_are_a_script_of_the_shell() {
    let ended = House::new().run(&["completions", "bash"]).well();
    assert!(ended.out.contains("_attache()"), "{}", &ended.out[..200]);
}

#[test]
fn what_is_printed_as_json_fits_the_committed_schemas() {
    let house = House::new();
    house.file("a.txt", "a\n");
    house.run(&["demo"]).well();
    let id = house.ls()[0]["session_id"].as_str().unwrap().to_owned();
    let check = |name: &str, value: &Value| {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/cli.v1.json");
        let schemas: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let mut schema = schemas["commands"][name].clone();
        assert!(schema.is_object(), "there is no schema for {name}");
        schema["$defs"] = schemas["$defs"].clone();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let faults: Vec<String> = validator
            .iter_errors(value)
            .map(|e| e.to_string())
            .collect();
        assert!(faults.is_empty(), "{name}: {faults:?}\n{value:#}");
    };
    for (name, arguments) in [
        ("ls", vec!["ls"]),
        ("tree", vec!["tree"]),
        ("tree ID", vec!["tree", &id]),
        ("show", vec!["show", &id]),
        ("show", vec!["show", &id, "--ledger"]),
        ("send", vec!["send", &id, "x"]),
        ("wait", vec!["wait", &id]),
        ("events", vec!["events", &id]),
        ("start", vec!["start", &id]),
        ("budget", vec!["budget", &id, "tokens=100000,usd=none"]),
        ("pause", vec!["pause", &id]),
        ("resume", vec!["resume", &id]),
        ("interrupt", vec!["interrupt", &id]),
        ("agents", vec!["agents"]),
        ("doctor", vec!["doctor"]),
        (
            "token create",
            vec!["token", "create", "--name", "phone", "--session", &id],
        ),
        ("token list", vec!["token", "list"]),
        ("token revoke", vec!["token", "revoke", "phone"]),
        ("terminate", vec!["terminate", &id]),
        ("rm", vec!["rm", &id, "--yes"]),
        ("restart", vec!["restart"]),
    ] {
        let mut arguments = arguments.clone();
        arguments.push("--json");
        check(name, &house.run(&arguments).well().json());
    }
    for line in house
        .run(&["run", "--json", "--model", "echo/any", "x"])
        .well()
        .lines()
    {
        check("run", &line);
    }
    let detached = house
        .run(&["run", "--detach", "--json", "--model", "echo/any", "x"])
        .well();
    check("run --detach", &detached.json());
}
