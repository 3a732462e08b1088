//! The scripted model as its users see it: whole conversations played against scripts, and the faults of scripts.

use std::time::Duration;

use crate::support::{completion, request, result, run, tools, user};
use attache_model::{
    Completion, Delta, Deltas, ErrorKind, Message, Model, ModelError, Part, Providers, Scripted,
    StopReason, StreamStep, ToolCall, Usage,
};
use serde_json::{Value, json};

fn script(text: &str) -> Scripted {
    Scripted::from_text("test", text).unwrap_or_else(|fault| panic!("{fault}"))
}

async fn reply(model: &Scripted, messages: Vec<Message>) -> Completion {
    let (deltas, end) = run(model, request(messages)).await;
    end.unwrap();
    completion(&deltas)
}

async fn failure(model: &Scripted, messages: Vec<Message>) -> ModelError {
    run(model, request(messages)).await.1.unwrap_err()
}

/// Plays a conversation until a reply without calls; `tool` answers the calls.
async fn converse(
    model: &Scripted,
    prompt: &str,
    tool: impl Fn(&ToolCall, Value) -> Value,
) -> (Vec<(String, Value)>, String) {
    let mut messages = vec![user(prompt)];
    let mut calls = Vec::new();
    loop {
        let reply = reply(model, messages.clone()).await;
        if reply.calls().next().is_none() {
            assert_eq!(reply.stop, Some(StopReason::EndTurn));
            return (calls, reply.text());
        }
        assert_eq!(reply.stop, Some(StopReason::ToolCalls));
        let mut results = Vec::new();
        for call in reply.calls() {
            let input = call.input().unwrap().to_value();
            results.push(match tool(call, input.clone()) {
                Value::String(text) => result(call, &text),
                other => result(call, &other.to_string()),
            });
            calls.push((call.name.to_string(), input));
        }
        messages.extend([Message::Assistant(reply.parts), Message::Tool(results)]);
        assert!(messages.len() < 20);
    }
}

/// The example of the language's page, so that the page stays true.
fn documented() -> &'static str {
    let page = include_str!("../../../../docs/scripted.md");
    let (_, example) = page.split_once("```yaml\n# A parent").unwrap();
    example
        .split_once('\n')
        .unwrap()
        .1
        .split_once("```")
        .unwrap()
        .0
}

#[tokio::test]
async fn a_parent_and_its_children_are_played() {
    let model = script(documented());
    let (calls, text) = converse(
        &model,
        "What is in this project?",
        |call, input| match &*call.name {
            "list_directory" => json!({"entries": [
                {"path": "src", "kind": "directory"},
                {"path": "src/a.rs", "kind": "file"},
                {"path": "src/b.rs", "kind": "file"},
                {"path": "c.md", "kind": "file"},
                {"path": "d.md", "kind": "file"},
            ]}),
            "agent_session_create" => {
                let message = input["initial_message"].as_str().unwrap();
                json!({"session_id": format!("id of {}", message.split(' ').nth(1).unwrap())})
            }
            "agent_session_wait" => {
                json!({"result_preview": format!("done {}", input["session_id"].as_str().unwrap())})
            }
            other => panic!("{other}"),
        },
    )
    .await;
    let wait = |id: &str| {
        let input = json!({"session_id": id, "wait_for_idle": true, "timeout_seconds": 300});
        ("agent_session_wait".to_owned(), input)
    };
    let create = |path: &str| {
        let input = json!({"initial_message": format!("Read {path} and say what it is.")});
        ("agent_session_create".to_owned(), input)
    };
    assert_eq!(
        calls,
        [
            (
                "list_directory".to_owned(),
                json!({"path": ".", "depth": 2})
            ),
            create("src/a.rs"),
            create("src/b.rs"),
            create("c.md"),
            wait("id of src/a.rs"),
            wait("id of src/b.rs"),
            wait("id of c.md"),
        ]
    );
    assert_eq!(
        text,
        "What I found:\n- done id of src/a.rs\n- done id of src/b.rs\n- done id of c.md"
    );

    let (calls, text) = converse(&model, "Read src/a.rs and say what it is.", |_, _| {
        json!("\n//! The first file.\nfn main() {}\n")
    })
    .await;
    assert_eq!(
        calls,
        [("read_file".to_owned(), json!({"path": "src/a.rs"}))]
    );
    assert_eq!(text, "src/a.rs: 3 lines, begins with //! The first file.");
}

#[tokio::test]
async fn text_comes_in_pieces_and_call_ids_never_repeat() {
    let model = script(
        "rules: [{reply: [{text: 'abcdefg', piece: 3}, {chunks: [x, '']}, {call: t}, {call: t, arguments: {a: 1}}]}]",
    );
    let (deltas, end) = run(&model, request(vec![user("hi")])).await;
    end.unwrap();
    let texts: Vec<_> = deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["abc", "def", "g", "x", ""]);
    let first = completion(&deltas);
    let ids: Vec<_> = first.calls().map(|call| &*call.id).collect();
    assert_eq!(ids, ["call_1", "call_2"]);
    assert_eq!(
        first.usage,
        Usage {
            input: Some(1),
            output: Some(5),
            ..Usage::default()
        }
    );
    let results = first.calls().map(|call| result(call, "ok")).collect();
    let again = reply(
        &model,
        vec![
            user("hi"),
            Message::Assistant(first.parts.clone()),
            Message::Tool(results),
        ],
    )
    .await;
    assert_eq!(
        again.calls().next().map(|call| call.id.to_string()),
        Some("call_3".to_owned())
    );
}

#[tokio::test]
async fn conditions_choose_the_first_rule_that_fits() {
    let model = script(
        r"
counters:
  reads: {tool: read}
  greetings: {user: '(?i)^hello'}
rules:
  - when: {tools_allowed: false}
    reply: [{text: last round}]
  - when: {offered: [special], not_offered: other}
    reply: [{text: special offered}]
  - when: {system: 'name is (?<who>\w+)', not_system: quiet}
    reply: [{text: '${who} on ${model}'}]
  - when: {user: again, any_user: 'secret (\w+)'}
    capture: {word: {from: any_user, regex: 'secret (\w+)'}}
    reply: [{text: 'it was ${word}'}]
  - when: {results: [{tool: read, is_error: true}]}
    reply: [{text: it failed}]
  - when: {results: [{matches: needle, not_matches: rusty, count: {min: 2}}]}
    reply: [{text: needles}]
  - when: {counters: {greetings: {min: 2}, reads: 0}}
    reply: [{text: 'hello no ${greetings}'}]
  - when: {not_user: nothing}
    reply: [{text: 'else, step ${step}'}]
",
    );
    let text = async |request| {
        let (deltas, end) = run(&model, request).await;
        end.unwrap();
        completion(&deltas).text()
    };
    let called = |results: &[(&str, bool)]| {
        let calls: Vec<_> = (0..results.len())
            .map(|n| ToolCall {
                id: format!("c{n}").into(),
                name: "read".into(),
                arguments: "{}".into(),
            })
            .collect();
        let results = calls
            .iter()
            .zip(results)
            .map(|(call, (content, is_error))| {
                let mut result = result(call, content);
                result.is_error = *is_error;
                result
            });
        let results = results.collect();
        request(vec![
            user("x"),
            Message::Assistant(calls.into_iter().map(Part::Call).collect()),
            Message::Tool(results),
        ])
    };

    let mut last = request(vec![user("x")]);
    last.tools_allowed = false;
    assert_eq!(text(last).await, "last round");
    let mut special = request(vec![user("x")]);
    special.tools = tools(&["a", "special"]);
    assert_eq!(text(special).await, "special offered");
    let mut named = request(vec![user("x")]);
    named.system = Some("Your name is Ada.".into());
    assert_eq!(text(named.clone()).await, "Ada on m");
    named.system = Some("Your name is Ada. Be quiet.".into());
    assert_eq!(text(named).await, "else, step 0");
    assert_eq!(
        text(request(vec![user("secret plum"), user("say it again")])).await,
        "it was plum"
    );
    assert_eq!(text(called(&[("no", true)])).await, "it failed");
    assert_eq!(
        text(called(&[
            ("needle", false),
            ("a needle", false),
            ("hay", false)
        ]))
        .await,
        "needles"
    );
    assert_eq!(
        text(called(&[("needle", false), ("rusty needle", false)])).await,
        "else, step 1"
    );
    assert_eq!(
        text(request(vec![user("Hello"), user("hello")])).await,
        "hello no 2"
    );
}

#[tokio::test]
async fn a_capture_that_finds_nothing_passes_the_rule_over_unless_optional() {
    let model = script(
        r#"
rules:
  - capture: {all: {from: user, regex: '#(\d+)', all: true, max: 2}}
    reply: [{text: '${all | join "+"}'}]
  - capture: {word: {from: user, regex: 'w:(\w+)', optional: true}}
    reply: [{text: '${word | default "none"}'}]
"#,
    );
    for (prompt, want) in [("#1 #22 #3", "1+22"), ("w:x", "x"), ("", "none")] {
        assert_eq!(reply(&model, vec![user(prompt)]).await.text(), want);
    }
}

#[tokio::test]
async fn kept_counters_let_a_retry_go_well() {
    let model = script(
        r"
counters: {tries: {kept: true}}
rules:
  - when: {counters: {tries: {max: 1}}}
    add: {tries: 1}
    reply: [{error: overloaded, status: 429, retry_after_ms: 1500, message: 'try ${tries}'}]
  - reply: [{text: 'after ${tries}'}]
",
    );
    let error = failure(&model, vec![user("x")]).await;
    assert_eq!(
        (error.kind, error.status, error.retryable),
        (ErrorKind::Overloaded, Some(429), true)
    );
    assert_eq!(
        (error.retry_after, &*error.message),
        (Some(Duration::from_millis(1500)), "try 0")
    );
    assert_eq!(
        failure(&model.clone(), vec![user("x")]).await.message,
        "try 1"
    );
    assert_eq!(reply(&model, vec![user("x")]).await.text(), "after 2");
}

#[tokio::test(start_paused = true)]
async fn delays_follow_the_clock_and_survive_a_dropped_wait() {
    let model =
        script("rules: [{reply: [{delay_ms: 500}, {text: abcd, piece: 2, every_ms: 100}]}]");
    let mut stream = model.start(request(vec![user("x")]));
    let mut out = Deltas::new();
    // The first piece comes after 600 ms, the second after 700, however often the wait is given up.
    for (millis, comes) in [
        (300, false),
        (298, false),
        (4, true),
        (96, false),
        (6, true),
    ] {
        let wait = tokio::time::timeout(Duration::from_millis(millis), stream.next(&mut out)).await;
        assert_eq!(wait.is_ok(), comes, "{millis}");
    }
    assert_eq!(
        out.as_slice(),
        [Delta::Text("ab".into()), Delta::Text("cd".into())]
    );
}

#[tokio::test(start_paused = true)]
async fn broken_streams_break_where_the_script_says() {
    let model = script(
        r"
rules:
  - when: {user: cut}
    reply: [{text: Half}, {cut: true}]
  - when: {user: args}
    reply: [{call: write, arguments: {path: /tmp/x}, cut_after: 9}]
  - when: {user: raw}
    reply: [{call: write, raw_arguments: '{bad'}, {stop: length}, {usage: {input: 7, reasoning: 1}}]
  - when: {user: silent}
    reply: [{ping: true}, {text: a}, {silence: true}]
  - when: {user: unknown usage}
    reply: [{text: a}, {no_usage: true}]
",
    );
    let (deltas, end) = run(&model, request(vec![user("cut")])).await;
    assert_eq!(deltas, [Delta::Text("Half".into())]);
    assert_eq!(end.unwrap_err().kind, ErrorKind::Truncated);

    let (deltas, end) = run(&model, request(vec![user("args")])).await;
    assert_eq!(end.unwrap_err().kind, ErrorKind::Truncated);
    let broken = completion(&deltas);
    assert_eq!(
        broken.calls().next().map(|call| call.arguments.to_string()),
        Some(r#"{"path":""#.to_owned())
    );

    let raw = reply(&model, vec![user("raw")]).await;
    assert!(raw.calls().next().unwrap().input().is_err());
    assert_eq!(raw.stop, Some(StopReason::Length));
    assert_eq!(
        raw.usage,
        Usage {
            input: Some(7),
            reasoning: Some(1),
            ..Usage::default()
        }
    );

    let mut stream = model.start(request(vec![user("silent")]));
    let mut out = Deltas::new();
    assert_eq!(stream.next(&mut out).await, StreamStep::Bytes);
    assert!(out.is_empty());
    assert_eq!(stream.next(&mut out).await, StreamStep::Bytes);
    let silence = tokio::time::timeout(Duration::from_secs(86_400), stream.next(&mut out)).await;
    assert!(silence.is_err());

    assert!(
        reply(&model, vec![user("unknown usage")])
            .await
            .usage
            .is_unknown()
    );
}

#[tokio::test]
async fn an_unmatched_request_says_what_to_add() {
    let model = script("rules: [{when: {user: yes}, reply: []}]");
    let error = failure(&model, vec![user("no way, never ever")]).await;
    assert_eq!(
        (error.kind, error.retryable),
        (ErrorKind::ScriptUnmatched, false)
    );
    for word in [
        "\"test\"",
        "no way",
        "step 0",
        "no tool results",
        "Add a rule",
    ] {
        assert!(error.message.contains(word), "{}", error.message);
    }
    let model = script(
        "rules: [{capture: {l: {from: user, regex: '.', all: true}}, reply: [{text: '${l[5]}'}]}]",
    );
    let error = failure(&model, vec![user("ab")]).await;
    assert!(
        error.message.contains("rule 1") && error.message.contains("the list has 2"),
        "{}",
        error.message
    );
}

#[test]
fn faults_in_a_script_name_their_line() {
    for (text, line, want) in [
        (
            "rules:\n  - when: {usr: x}\n    reply: []\n",
            Some(2),
            "usr",
        ),
        ("rules:\n  - reply:\n      - txt: a\n", Some(3), "txt"),
        (
            "rules:\n  - reply:\n      - text: a\n      - text: '${nobody}'\n",
            Some(4),
            "nobody",
        ),
        (
            "rules:\n  - reply:\n      - {text: a, cut: true}\n",
            Some(3),
            "need a line of the reply each",
        ),
        (
            "rules:\n  - reply:\n      - {text: a, status: 3}\n",
            Some(3),
            "does not go with text",
        ),
        (
            "rules:\n  - reply:\n      - {error: tired}\n",
            Some(3),
            "overloaded",
        ),
        (
            "rules:\n  - reply:\n      - {call: x, for_each: y}\n",
            Some(3),
            "\"y\" is not known",
        ),
        (
            "rules:\n  - name: odd\n    when: {user: '('}\n    reply: []\n",
            Some(2),
            "odd",
        ),
        (
            "rules:\n  - reply: []\n    capture:\n      step: {from: user}\n",
            Some(4),
            "already",
        ),
        (
            "rules:\n  - reply: []\n    capture:\n      a: {regex: x}\n",
            Some(4),
            "from and tool",
        ),
        (
            "rules:\n  - when: {counters: {n: 1}}\n    reply: []\n",
            Some(2),
            "no counter",
        ),
        ("counters:\n  n: {}\nrules: []\n", Some(2), "exactly one"),
        ("rules: []\n", None, "no rules"),
        ("rules: [\n", None, ""),
        (
            "{\"rules\": [{\"reply\": [], \"extra\": 1}]}",
            Some(1),
            "extra",
        ),
    ] {
        let fault = Scripted::from_text("s", text).unwrap_err();
        assert!(fault.to_string().contains(want), "{text}: {fault}");
        if line.is_some() {
            assert_eq!(fault.line, line, "{text}: {fault}");
        }
    }
}

#[tokio::test]
async fn json_scripts_and_named_scripts_resolve() {
    let providers = Providers::new(|_| None, Vec::new())
        .with_script(
            "demo",
            r#"{"rules": [{"when": {"step": {"min": 0}}, "reply": [{"text": "from JSON"}]}]}"#,
        )
        .with_script("broken", "rules: 7");
    let model = providers.resolve("scripted/demo").unwrap();
    assert_eq!((model.provider(), model.id()), ("scripted", "demo"));
    let (deltas, _) = run(&*model, request(vec![user("x")])).await;
    assert_eq!(completion(&deltas).text(), "from JSON");
    assert!(
        providers
            .resolve("scripted/broken")
            .err()
            .unwrap()
            .to_string()
            .contains("broken")
    );
    let missing = providers
        .resolve("scripted/no/such.yaml")
        .err()
        .unwrap()
        .to_string();
    assert!(missing.contains("no/such.yaml"), "{missing}");
}

#[test]
fn every_example_of_the_page_is_a_script() {
    let page = include_str!("../../../../docs/scripted.md");
    let examples: Vec<_> = page.split("```yaml\n").skip(1).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        script(example.split_once("```").unwrap().0);
    }
}
