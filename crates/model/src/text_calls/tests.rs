//! Calls as text: what is read from answers, whole and in pieces, and how requests look.

use std::sync::Arc;

use super::parse::{Call, Splitter};
use super::translated;
use crate::json::Json;
use crate::message::{Message, Part, ToolCall, ToolResult};
use crate::request::{Options, Request, ToolSet, ToolSpec};

const NAMES: [&str; 2] = ["read_file", "list"];

fn split(text: &str, piece: usize) -> (String, Vec<(String, String)>) {
    let mut splitter = Splitter::new(NAMES.map(Arc::from).to_vec());
    let mut said = String::new();
    let chars: Vec<char> = text.chars().collect();
    for piece in chars.chunks(piece) {
        said.push_str(&splitter.push(&piece.iter().collect::<String>()));
    }
    let (rest, calls) = splitter.finish();
    said.push_str(&rest);
    let calls = calls.into_iter();
    (
        said,
        calls
            .map(|Call { name, arguments }| (name, arguments))
            .collect(),
    )
}

#[test]
fn calls_are_read_in_every_spelling_and_from_any_pieces() {
    let one = |name: &str, arguments: &str| vec![(name.to_owned(), arguments.to_owned())];
    let two = [one("read_file", r#"{"path":"a"}"#), one("list", "{}")].concat();
    for (text, said, calls) in [
        ("Just an answer.", "Just an answer.", vec![]),
        (
            "I look.\ntool_call_name: read_file\ntool_call_arguments: {\"path\":\"a\"}\n",
            "I look.\n",
            one("read_file", r#"{"path":"a"}"#),
        ),
        (
            "Tool_Call_Name: `READ_FILE`\nTOOL_CALL_ARGUMENTS: `{\"path\":\"a\"}`",
            "",
            one("read_file", r#"{"path":"a"}"#),
        ),
        (
            "tool_call_name: read_file tool_call_arguments: {\"path\":\"a\"}",
            "",
            one("read_file", r#"{"path":"a"}"#),
        ),
        (
            "tool_call_name: read_file\n\n\ntool_call_arguments: {\"path\":\n \"a }\"\n}\nand then",
            "",
            one("read_file", "{\"path\":\n \"a }\"\n}"),
        ),
        (
            "tool_call_name: list\nno arguments at all\n",
            "",
            one("list", "{}"),
        ),
        (
            "tool_call_name: read_file\ntool_call_arguments: {\"path\":\"a\"}\nnow\ntool_call_name: list\n",
            "",
            two.clone(),
        ),
        ("read_file\n{\"path\":\"a\"}\nlist", "", two.clone()),
        (
            "tool_call_name: unknown_one\ntool_call_arguments: {}",
            "",
            one("unknown_one", "{}"),
        ),
        (
            "The list of files\nread_file is a tool, list\n",
            "The list of files\nread_file is a tool, list\n",
            vec![],
        ),
        (
            "Here it is.<｜tool▁calls▁begin｜>garbage\nmore",
            "Here it is.",
            vec![],
        ),
        ("a < b and <|not a token", "a < b and <|not a token", vec![]),
    ] {
        for piece in [1, 2, 3, 7, 1_000] {
            assert_eq!(
                split(text, piece),
                (said.to_owned(), calls.clone()),
                "{text:?} by {piece}"
            );
        }
    }
}

#[test]
fn text_that_can_be_no_call_is_not_held_back() {
    let mut splitter = Splitter::new(NAMES.map(Arc::from).to_vec());
    assert_eq!(splitter.push("The answ"), "The answ");
    assert_eq!(splitter.push("er"), "er");
    assert_eq!(splitter.push(" ends.\nto"), " ends.\n");
    assert_eq!(splitter.push("ol"), "");
    assert_eq!(splitter.push("s are fine"), "tools are fine");
}

#[test]
fn without_permission_nothing_is_a_call() {
    let mut splitter = Splitter::new(Vec::new());
    let text = "tool_call_name: list\n";
    assert_eq!(splitter.push(text), text);
    assert_eq!(splitter.finish(), (String::new(), vec![]));
}

#[test]
fn a_request_has_no_native_calls_left() {
    let spec = ToolSpec {
        name: "list".into(),
        description: "Lists.".into(),
        input_schema: Json::parse(r#"{"type":"object"}"#).unwrap(),
    };
    let call = ToolCall {
        id: "c".into(),
        name: "list".into(),
        arguments: "not json".into(),
    };
    let result = ToolResult {
        call_id: "c".into(),
        name: "list".into(),
        content: "a\nb".into(),
        is_error: true,
        images: Vec::new(),
    };
    let request = Request {
        model: "m".into(),
        system: Some("Be good.".into()),
        messages: vec![
            Message::User(vec![Part::text("go")]),
            Message::Assistant(vec![Part::text("I look."), Part::Call(call)]),
            Message::Tool(vec![result]),
        ],
        tools: Arc::new(ToolSet::new(vec![spec])),
        tools_allowed: false,
        options: Arc::new(Options::default()),
    };
    let told = translated(request.clone());
    assert!(told.tools.is_empty());
    let system = told.system.unwrap();
    for wanted in [
        "Be good.",
        "tool_call_name: NAME",
        "- list: Lists.",
        "without calling",
    ] {
        assert!(system.contains(wanted), "{system}");
    }
    let [_, Message::Assistant(said), Message::User(results)] = &told.messages[..] else {
        panic!("{:?}", told.messages)
    };
    let text = |part: &Part| match part {
        Part::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        text(&said[1]),
        "\ntool_call_name: list\ntool_call_arguments: {}\n"
    );
    assert_eq!(text(&results[0]), "[Tool result for list] (failed): a\nb\n");
    let without = Request {
        tools: Arc::default(),
        ..request
    };
    assert_eq!(&*translated(without).system.unwrap(), "Be good.");
}
