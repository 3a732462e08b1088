//! Helpers of the tests: requests, running a stream to its end.

use std::sync::Arc;

use attache_model::{
    Assembler, Completion, Delta, Deltas, Json, Message, Model, ModelError, Part, Request,
    StreamStep, ToolCall, ToolResult, ToolSet, ToolSpec,
};

pub(crate) fn request(messages: Vec<Message>) -> Request {
    Request {
        model: "m".into(),
        system: None,
        messages,
        tools: Arc::default(),
        tools_allowed: true,
        options: Arc::default(),
    }
}

pub(crate) fn user(text: &str) -> Message {
    Message::User(vec![Part::text(text)])
}

pub(crate) fn result(call: &ToolCall, content: &str) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: content.into(),
        is_error: false,
        images: Vec::new(),
    }
}

pub(crate) fn tools(names: &[&str]) -> Arc<ToolSet> {
    let spec = |name: &&str| ToolSpec {
        name: (*name).into(),
        description: "a tool".into(),
        input_schema: Json::parse(r#"{"type":"object","properties":{}}"#).unwrap(),
    };
    Arc::new(ToolSet::new(names.iter().map(spec).collect()))
}

/// All deltas of a reply, and how it ended.
pub(crate) async fn run(
    model: &dyn Model,
    request: Request,
) -> (Vec<Delta>, Result<(), ModelError>) {
    let mut stream = model.start(request);
    let mut out = Deltas::new();
    loop {
        match stream.next(&mut out).await {
            StreamStep::Bytes => {}
            StreamStep::End => return (out.drain().collect(), Ok(())),
            StreamStep::Failed(error) => return (out.drain().collect(), Err(error)),
        }
    }
}

pub(crate) fn completion(deltas: &[Delta]) -> Completion {
    let mut assembler = Assembler::new();
    for delta in deltas {
        assembler.push(delta);
    }
    assembler.finish()
}
