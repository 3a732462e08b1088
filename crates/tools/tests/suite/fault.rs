//! Faults of a tool itself, and calls that are ended: one fault stays one fault.

use std::sync::Arc;

use attache_agent::offer::{Json, ToolSpec};
use attache_agent::{
    CallContext, Caller, Cancel, Definition, Tool, ToolFuture, ToolOutcome, Toolset,
};
use attache_session::TurnId;
use attache_store::memory::MemoryStore;
use attache_testkit::{Piece, Puppet, World, json_of, text};
use serde_json::{Value, json};

use crate::kit::on;

/// A tool that panics: at once, or when it is looked at again.
struct Faulty {
    spec: ToolSpec,
    at_once: bool,
}

impl Faulty {
    fn called(name: &str, at_once: bool) -> Arc<dyn Tool> {
        let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        let spec = ToolSpec {
            name: name.into(),
            description: "panics".into(),
            input_schema: Json::from_value(&schema),
        };
        Arc::new(Self { spec, at_once })
    }
}

impl Tool for Faulty {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, _context: CallContext, _arguments: Value) -> ToolFuture<'a> {
        Box::pin(async move {
            if !self.at_once {
                tokio::task::yield_now().await;
            }
            panic!("an injected fault")
        })
    }
}

struct Faults;

impl Toolset for Faults {
    fn kind(&self) -> &'static str {
        "faults"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Faulty::called("now", true), Faulty::called("later", false)]
    }
}

#[tokio::test]
async fn g52_a_panic_in_a_tool_is_one_failed_call() {
    let world = World::with(
        Arc::new(MemoryStore::new()),
        Puppet::default(),
        attache_tools::built_in().with(Arc::new(Faults)),
        Vec::new(),
    )
    .await;
    world.puppet.teach(|request| {
        if Puppet::task(request) != "fail" {
            return text("fine");
        }
        if Puppet::after_tools(request) {
            return text("went on");
        }
        ["now", "later", "agent_session_list"]
            .map(|name| Piece::Call(name.to_owned(), "{}".to_owned()))
            .to_vec()
    });
    let definition = Definition {
        name: "faulty".to_owned(),
        tools: vec!["faults".to_owned(), "agent-session".to_owned()],
        ..Definition::default()
    };
    let root = world.root_of(definition, Some("fail")).await;
    world.quiet(root).await;
    let results = Puppet::results(&world.puppet.requests()[1]);
    for failed in &results[..2] {
        let failed: Value = serde_json::from_str(failed).unwrap();
        assert_eq!(failed["error"]["code"], "internal");
    }
    assert_eq!(results[2], "[]");
    let shown = on(&world, root, "get", root).await;
    assert_eq!(
        (&shown["status"], &shown["result_preview"]),
        (&json!("idle"), &json!("went on"))
    );
    // Everything else works on.
    let child = world.child(root, Some("work")).await;
    world.quiet(child).await;
    assert_eq!(on(&world, root, "get", child).await["outcome"], "succeeded");
}

#[tokio::test]
async fn work_on_files_ends_with_its_call() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "text").unwrap();
    let root = world
        .root_at(folder.path(), Definition::built_in(), None)
        .await;
    let call = async |tool: &str, arguments: Value, cancelled: bool| -> ToolOutcome {
        let belt = attache_tools::built_in().belt(&[tool.to_owned()]).unwrap();
        let (set, cancel) = Cancel::new();
        set.send_replace(cancelled);
        let context = CallContext {
            caller: Caller {
                session: root,
                turn: TurnId(1),
                call: "call".into(),
            },
            working_directory: folder.path().to_owned(),
            sessions: world.engine.sessions(),
            cancel,
        };
        belt.get(tool).unwrap().call(context, arguments).await
    };
    for (tool, arguments) in [
        ("grep", json!({ "pattern": "text" })),
        ("glob", json!({ "pattern": "*" })),
        ("list_directory", json!({})),
        ("write_file", json!({ "path": "new", "content": "" })),
        (
            "edit_file",
            json!({ "path": "file", "old_string": "text", "new_string": "" }),
        ),
    ] {
        let ended = call(tool, arguments.clone(), true).await;
        assert!(ended.is_error, "{tool}");
        assert_eq!(json_of(&ended)["error"]["code"], "internal");
        if tool != "write_file" && tool != "edit_file" {
            assert!(!call(tool, arguments, false).await.is_error, "{tool}");
        }
    }
    assert!(!folder.path().join("new").exists());
    let file = std::fs::read_to_string(folder.path().join("file")).unwrap();
    assert_eq!(file, "text");
}
