//! Tools that do what their arguments tell them: what a ledger shows of proxies, of batches and of failures that no
//! model reads as one can be had without any of them.

use std::sync::Arc;
use std::time::Duration;

use attache_agent::{CallContext, Tool, ToolFuture, ToolOutcome, Toolset};
use attache_model::{Json, ToolSpec};
use attache_session::{CallReport, NestedCall};
use serde_json::{Value, json};

/// Toolset `teller`: `invoke_tool`, which changes state, and `look_up`, which does not.
///
/// Arguments, all of them optional: `text` is the result; `is_error` makes it an error; `pause_ms` is how long the call
/// takes, in virtual time; `hang` makes it last as long as its run. What the ledger is told is `target`, `detail`,
/// `failed`, and `nested` with `name`, `arguments`, `failed` and `changes_state` of each.
pub struct Teller;

impl Toolset for Teller {
    fn kind(&self) -> &'static str {
        "teller"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let tool = |name: &str, changes_state| -> Arc<dyn Tool> {
            Arc::new(Told {
                spec: ToolSpec {
                    name: name.into(),
                    description: "Does what it is told.".into(),
                    input_schema: Json::from_value(&json!({ "type": "object" })),
                },
                changes_state,
            })
        };
        vec![tool("invoke_tool", true), tool("look_up", false)]
    }
}

struct Told {
    spec: ToolSpec,
    changes_state: bool,
}

impl Tool for Told {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn changes_state(&self) -> bool {
        self.changes_state
    }

    fn call<'a>(&'a self, _context: CallContext, arguments: Value) -> ToolFuture<'a> {
        Box::pin(async move {
            let is = |member: &str| arguments[member] == true;
            if is("hang") {
                std::future::pending::<()>().await;
            }
            if let Some(millis) = arguments["pause_ms"].as_u64() {
                tokio::time::sleep(Duration::from_millis(millis)).await;
            }
            let text = arguments["text"].as_str().unwrap_or("told");
            ToolOutcome {
                content: text.to_owned(),
                is_error: is("is_error"),
                ..ToolOutcome::json(&Value::Null)
            }
            .with_report(report(&arguments))
        })
    }
}

fn report(arguments: &Value) -> CallReport {
    let text = |member: &str| arguments[member].as_str().map(Arc::from);
    let nested = arguments["nested"].as_array().into_iter().flatten();
    CallReport {
        target: text("target"),
        detail: text("detail"),
        failed: arguments["failed"] == true,
        nested: nested
            .map(|call| NestedCall {
                name: call["name"].as_str().unwrap_or_default().into(),
                arguments: call["arguments"].to_string().into(),
                failed: call["failed"] == true,
                changes_state: call["changes_state"] == true,
            })
            .collect(),
        nested_total: 0,
    }
}
