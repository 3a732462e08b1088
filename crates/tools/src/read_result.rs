//! `read_result`: reads on in a result that was too long to be given whole. Every agent that has any tool has it.

use attache_agent::{CallContext, READ_RESULT, ResultPage, ToolError, ToolOutcome};
use serde_json::{Value, json};

use crate::agent_session::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

tool!(
    /// The tool.
    ReadResult(is_bookkeeping),
    false,
    show::spec(
        READ_RESULT,
        "Read on in a result of one of your own calls of which a part was left out. The place where \
         it was cut names result_id and cursor; go on with next_cursor until it is null. Read only \
         what you need.",
        &json!({
            "result_id": {
                "type": "string",
                "description": "The result, as the place where it was cut names it."
            },
            "cursor": {
                "type": "integer",
                "description": "Where to go on, in characters: 0 is the beginning. Default 0."
            }
        }),
        &["result_id"]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let id = arguments.required_text("result_id")?;
    let cursor = arguments.number("cursor", 0, 0..=u64::from(u32::MAX))?;
    let adjusted = arguments.done()?;
    let page = context
        .sessions
        .read_result(&context.caller, id.clone(), cursor)
        .await?;
    let Some(ResultPage {
        content,
        total,
        next,
    }) = page
    else {
        let (shown, _) = attache_agent::session::preview(&id, 64);
        return Err(
            ToolError::invalid(format!("there is no result {shown:?} of a call of yours"))
                .with_hint("Use the result_id that stands where the result was cut."),
        );
    };
    let mut shown = json!({
        "content": content,
        "total_characters": total,
        "next_cursor": next,
    });
    if !adjusted.is_empty() {
        shown["adjusted"] = Value::Object(adjusted);
    }
    Ok(ToolOutcome::json(&shown))
}
