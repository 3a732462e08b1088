//! The registry of toolsets: tools are opt-in, by kind or by name, and always in the same order.

use std::sync::Arc;

use attache_agent::{CallContext, Tool, ToolFuture, ToolOutcome, Toolset, Toolsets};
use attache_model::{Json, ToolSpec};
use serde_json::Value;

struct Named(ToolSpec);

impl Tool for Named {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _context: CallContext, _arguments: Value) -> ToolFuture<'a> {
        Box::pin(async { ToolOutcome::json(&Value::Null) })
    }
}

struct Set(&'static str, &'static [&'static str]);

impl Toolset for Set {
    fn kind(&self) -> &'static str {
        self.0
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let tool = |name: &&str| {
            let spec = ToolSpec {
                name: (*name).into(),
                description: "".into(),
                input_schema: Json::empty_object(),
            };
            Arc::new(Named(spec)) as Arc<dyn Tool>
        };
        self.1.iter().map(tool).collect()
    }
}

fn names(sets: &Toolsets, wanted: &[&str]) -> Result<Vec<String>, String> {
    let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
    let belt = sets.belt(&wanted).map_err(|error| error.to_string())?;
    Ok(belt
        .offered()
        .specs()
        .iter()
        .map(|spec| spec.name.to_string())
        .collect())
}

#[test]
fn a_definition_gets_what_it_names_and_nothing_else() {
    let sets = Toolsets::new()
        .with(Arc::new(Set("files", &["read", "write"])))
        .with(Arc::new(Set("talk", &["say"])));
    assert_eq!(names(&sets, &[]).unwrap(), [""; 0]);
    assert_eq!(
        names(&sets, &["talk", "files"]).unwrap(),
        ["read", "write", "say"]
    );
    assert_eq!(names(&sets, &["say", "write"]).unwrap(), ["write", "say"]);
    assert_eq!(
        names(&sets, &["files", "write"]).unwrap(),
        ["read", "write"]
    );
    let error = names(&sets, &["files", "shout"]).unwrap_err();
    assert!(
        error.contains("shout") && error.contains("files, talk"),
        "{error}"
    );
}

#[test]
fn a_later_toolset_of_the_same_kind_replaces_the_earlier() {
    let sets = Toolsets::new()
        .with(Arc::new(Set("files", &["read"])))
        .with(Arc::new(Set("files", &["other"])));
    assert_eq!(names(&sets, &["files"]).unwrap(), ["other"]);
    assert_eq!(sets.kinds(), ["files"]);
}
