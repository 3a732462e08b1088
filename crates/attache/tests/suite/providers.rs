//! `attache run` against model servers: streaming, tools, and every usual way to fail.

use serde_json::json;

use crate::house::{House, ended};
use crate::stub::{
    Reply, Stub, after_tools, anthropic_call, anthropic_text, chat_calls, chat_text,
};

#[test]
fn an_openai_compatible_server_streams_and_its_tools_run() {
    let stub = Stub::new(|request| {
        if after_tools(request) {
            chat_text(&["The file ", "says: ", "hello."])
        } else {
            chat_calls(&[("read_file", json!({ "path": "note.txt" }))])
        }
    });
    let house = stub.house();
    house.file("note.txt", "hello from the file\n");
    let ended = house
        .run(&[
            "run",
            "--model",
            "openai/gpt-test",
            "What does note.txt say?",
        ])
        .well();
    assert_eq!(ended.out, "The file says: hello.\n");
    let requests = stub.requests();
    assert_eq!(requests.len(), 2);
    let messages = requests[1]["messages"].as_array().unwrap();
    let result = &messages.last().unwrap()["content"];
    assert!(
        result.as_str().unwrap().contains("hello from the file"),
        "{result}"
    );
    assert_eq!(requests[0]["model"], "gpt-test");

    let ended = house
        .run(&["run", "--json", "--model", "openai/gpt-test", "again"])
        .well();
    let lines = ended.lines();
    let deltas: String = lines
        .iter()
        .filter(|line| line["type"] == "delta")
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert_eq!(deltas, "The file says: hello.");
    let last = lines.last().unwrap();
    assert_eq!(last["type"], "result");
    assert_eq!(last["text"], "The file says: hello.");
    assert_eq!(
        (&last["outcome"], &last["end_reason"]),
        (&json!("succeeded"), &json!("completed"))
    );
    assert_eq!(last["usage"]["input_tokens"], 60);
    assert_eq!(last["usage"]["cache_read_tokens"], 20);
    assert_eq!(last["usage"]["reasoning_tokens"], json!(null));
    assert_eq!(last["cost_usd"], json!(null));
}

#[test]
fn an_anthropic_server_streams_and_its_tools_run() {
    let stub = Stub::new(|request| {
        let messages = request["messages"].as_array().unwrap();
        let last = &messages.last().unwrap()["content"];
        if last.to_string().contains("tool_result") {
            anthropic_text("Two entries.")
        } else {
            anthropic_call("list_directory", &json!({}))
        }
    });
    let house = House::new()
        .with("ANTHROPIC_API_KEY", "sk-test")
        .with("ANTHROPIC_BASE_URL", &stub.url(""));
    house.file("a.txt", "a");
    let ended = house
        .run(&["run", "--model", "anthropic/claude-test", "List it."])
        .well();
    assert_eq!(ended.out, "Two entries.\n");
    let second = &stub.requests()[1]["messages"];
    assert!(second.to_string().contains("a.txt"), "{second}");
}

#[test]
fn a_run_in_this_process_needs_no_daemon() {
    let stub = Stub::new(|_| chat_text(&["alone"]));
    let house = stub.house();
    let ended = house
        .run(&["run", "--in-process", "--model", "openai/m", "hi"])
        .well();
    assert_eq!(ended.out, "alone\n");
    assert_eq!(house.daemon(), None);
    // What it did is stored, and a daemon that starts later shows it.
    assert_eq!(house.ls()[0]["outcome"], "succeeded");
    let refused = house.run(&["run", "--in-process", "--model", "openai/m", "hi"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.err.contains("in use by process"), "{refused:?}");
}

#[test]
fn each_failure_says_what_to_do() {
    let table: Vec<(&str, Reply, &[&str])> = vec![
        (
            "a wrong key",
            Reply::Status(401, json!({ "error": { "message": "bad key" } }).to_string()),
            &["OPENAI_API_KEY"],
        ),
        (
            "a wrong model",
            Reply::Status(
                404,
                json!({ "error": { "message": "The model `m` does not exist", "code": "model_not_found" } })
                    .to_string(),
            ),
            &["model", "m"],
        ),
        (
            "a page instead of a model",
            Reply::Status(200, "<html>welcome</html>".to_owned()),
            &["OPENAI_BASE_URL"],
        ),
    ];
    for (what, reply, wanted) in table {
        let stub = Stub::new(move |_| reply.clone());
        let house = stub.house();
        let ended = house.run(&["run", "--model", "openai/m", "hi"]);
        assert_eq!(ended.code, 1, "{what}: {ended:?}");
        for word in wanted {
            assert!(
                ended.err.contains(word),
                "{what}: {word} is not in {ended:?}"
            );
        }
        assert!(!ended.err.contains("sk-test"), "{what}: {ended:?}");
        // The session is alive: the next message gets a request.
        let id = house.ls()[0]["session_id"].as_str().unwrap().to_owned();
        house.run(&["send", &id, "again"]).well();
        house.run(&["wait", &id]).well();
        assert!(stub.requests().len() >= 2, "{what}");
    }
}

#[test]
fn a_refused_connection_and_a_missing_key_say_what_to_do() {
    let house = House::new()
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let ended = house.run(&["run", "--model", "openai/m", "hi"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended.err.contains("127.0.0.1:9") && ended.err.contains("OPENAI_BASE_URL"),
        "{ended:?}"
    );
    let ended = House::new().run(&["run", "--model", "anthropic/m", "hi"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.err.contains("ANTHROPIC_API_KEY"), "{ended:?}");
    let ended = House::new().run(&["run", "--model", "gopher/m", "hi"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended.err.contains("gopher") && ended.err.contains("openai"),
        "{ended:?}"
    );
}

#[test]
fn providers_are_configured_while_the_daemon_runs() {
    let stub = Stub::new(|_| chat_text(&["here"]));
    let house = House::new().with("MY_KEY", "");
    let run = ["run", "--model", "mine/m", "go"];
    let unknown = house.run(&run);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert!(unknown.err.contains("[providers.mine]"), "{unknown:?}");
    std::fs::create_dir_all(house.config()).unwrap();
    let url = stub.url("/v1");
    let write = |text: &str| std::fs::write(house.config().join("config.toml"), text).unwrap();
    write("[providers.mine]\nbase_url = \"http://127.0.0.1:9\"\n");
    let half = house.run(&run);
    assert_eq!(half.code, 2, "{half:?}");
    assert!(
        half.err.contains("providers.mine.dialect is missing"),
        "{half:?}"
    );
    write(&format!(
        "[providers.mine]\ndialect = \"openai-chat\"\nbase_url = \"{url}\"\napi_key_env = \"MY_KEY\"\n"
    ));
    let no_key = house.run(&run);
    assert_eq!(no_key.code, 1, "{no_key:?}");
    assert!(no_key.err.contains("set MY_KEY"), "{no_key:?}");
    assert!(
        stub.requests().is_empty(),
        "nothing was sent without the key"
    );
    let house = house.with("MY_KEY", "secret");
    assert_eq!(house.run(&run).well().out, "here\n");
    // A preset keeps what is not said of it.
    let text = format!("[providers.openai]\nbase_url = \"{url}\"\n");
    std::fs::write(house.config().join("config.toml"), text).unwrap();
    let preset = house.run(&["run", "--model", "openai/m", "go"]).well();
    assert_eq!(preset.out, "here\n");
    let shown = house.run(&["doctor"]).well().out;
    assert!(
        shown.contains("providers.openai.dialect = openai-chat"),
        "{shown}"
    );
}

#[test]
fn a_run_that_says_nothing_or_reaches_its_limit_says_so() {
    let empty = Stub::new(|_| chat_text(&[]));
    let ended = empty
        .house()
        .run(&["run", "--model", "openai/m", "go"])
        .well();
    assert_eq!(ended.out, "");
    assert!(
        ended.err.contains("without an answer (no-output)"),
        "{ended:?}"
    );
    let restless = Stub::new(|request| {
        // The last round is without tools.
        if request["tool_choice"] != "none" {
            chat_calls(&[("list_directory", json!({ "path": "." }))])
        } else {
            chat_text(&["looked twice"])
        }
    });
    let house = restless
        .house()
        .with("ATTACHE_SESSION__ITERATION_LIMIT", "3");
    let ended = house.run(&["run", "--model", "openai/m", "go"]).well();
    assert_eq!(ended.out, "looked twice\n");
    assert!(ended.err.contains("(iteration-limit)"), "{ended:?}");
}

#[test]
fn a_session_that_was_resumed_without_its_key_gets_it_from_the_next_client_that_has_it() {
    let stub = Stub::new(|_| chat_text(&["answered"]));
    for by_start in [false, true] {
        let house = House::new();
        let with_key = |arguments: &[&str]| {
            let mut command = house.command(arguments);
            command.env("OPENAI_API_KEY", "sk-test");
            command.env("OPENAI_BASE_URL", stub.url("/v1"));
            ended(command.output().unwrap())
        };
        let run = ["run", "--detach", "--json", "--model", "openai/m", "go"];
        let started = with_key(&run).well().json();
        let id = started["session_id"].as_str().unwrap();
        let ended_as = |outcome: &str| {
            house.run(&["wait", id]).well();
            assert_eq!(house.ls()[0]["outcome"], outcome);
        };
        ended_as("succeeded");
        house.run(&["restart"]).well();
        // Without the key it says what is missing,
        house.run(&["send", id, "again"]).well();
        ended_as("failed");
        let events = house.run(&["events", id, "--json"]).well();
        assert!(events.out.contains("OPENAI_API_KEY"), "{events:?}");
        // and with it, it works: once it has been given, also for those who do not have it.
        if by_start {
            let told = with_key(&["start", id]).well();
            assert!(told.out.contains("was not stopped; it now has"), "{told:?}");
            let again = with_key(&["start", id]).well();
            assert!(again.out.ends_with("was not stopped\n"), "{again:?}");
        } else {
            with_key(&["send", id, "now"]).well();
            ended_as("succeeded");
        }
        house.run(&["send", id, "and without"]).well();
        ended_as("succeeded");
    }
}
