//! A call of a tool: as the client's root, with progress while it lasts and an end when the client
//! gives it up.

use std::time::Duration;

use attache_engine::parts::Cancel;
use attache_engine::{EngineError, EngineHandle, OutsideCall};
use attache_session::{CallId, ItemId, SessionId};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, ProgressNotificationParam,
    RequestMetaObject,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::arguments;
use crate::door::Door;
use crate::notices::{self, Read};
use crate::seat::Seat;

/// How often a client that asked for it is told that a call is under way. Clients give up after a
/// minute without a word, some after ten seconds.
const PROGRESS: Duration = Duration::from_secs(5);

/// Where a client can name its call, so that a repeat creates nothing twice.
const CALL_ID: &str = "attache/call-id";

/// Longest name of a call.
const CALL_ID_CHARS: usize = 200;

/// Answers a call. What goes wrong is a result that says so; only a tool that does not exist is an
/// error of the protocol.
pub(crate) async fn call(
    door: &Door,
    seat: &Seat,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let tool = request.name.into_owned();
    if !door.0.tools.iter().any(|known| known.name == tool) {
        return Err(ErrorData::invalid_params(
            format!("there is no tool `{tool}`"),
            None,
        ));
    }
    let arguments = request.arguments.unwrap_or_default();
    let call = name_of(&context.meta).unwrap_or_else(|| door.0.engine.fresh_call());
    let answered = answer(door, seat, tool, call, arguments, context);
    let answer = tokio::select! {
        biased;
        // Nobody hears the answer any more: dropping the call leaves nothing of it running.
        () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
        answer = answered => answer,
    };
    Ok(answer.result().into())
}

/// What a client calls itself: the name of a root that is made for it.
pub(crate) fn client_name(context: &RequestContext<RoleServer>) -> String {
    let client = context.client_info().map(|client| client.name);
    let client = client.filter(|name| !name.trim().is_empty());
    client.map_or_else(|| "mcp client".to_owned(), |name| format!("{name} (mcp)"))
}

fn name_of(meta: &RequestMetaObject) -> Option<CallId> {
    let value = serde_json::to_value(meta).ok()?;
    let name = value.get(CALL_ID)?.as_str()?;
    let fits = !name.is_empty() && name.chars().count() <= CALL_ID_CHARS;
    fits.then(|| format!("client-{name}").into())
}

async fn answer(
    door: &Door,
    seat: &Seat,
    tool: String,
    call: CallId,
    mut arguments: Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> Answer {
    let engine = &door.0.engine;
    let for_door = match arguments::take(&mut arguments) {
        Ok(for_door) => for_door,
        Err(error) => return error.into(),
    };
    let root = match seat
        .root(engine, &client_name(context), for_door.root)
        .await
    {
        Ok(root) => root,
        Err(error) => return error.into(),
    };
    let reads = child_that_is_read(&tool, &arguments, root);
    let before = match begin(engine, root, for_door.acknowledge).await {
        Ok(before) => before,
        Err(error) => return Answer::from(error).with_root(root, Vec::new()),
    };
    let (_set, cancel) = Cancel::new();
    let total = arguments.get("timeout_seconds").and_then(Value::as_f64);
    let called = engine.call_tool(OutsideCall {
        session: root,
        call,
        tool,
        arguments: Value::Object(arguments),
        cancel,
    });
    let answer = match with_progress(called, total, context).await {
        Ok(outcome) => Answer::from(outcome),
        Err(error) => error.into(),
    };
    let read = match reads {
        Some(child) if !answer.is_error => {
            match answer.object.get("ended_by").and_then(Value::as_str) {
                Some("settled" | "stopped") => Read::ToItsEnd(child),
                _ => Read::Now(child),
            }
        }
        _ => Read::Nothing,
    };
    match finish(engine, root, &before, read).await {
        Ok(shown) => answer.with_root(root, shown),
        // What was done is done: the answer stands, and the notices wait.
        Err(_unread) => answer.with_root(root, Vec::new()),
    }
}

/// The child whose notices a call of this tool reads.
fn child_that_is_read(
    tool: &str,
    arguments: &Map<String, Value>,
    root: SessionId,
) -> Option<SessionId> {
    let reads = matches!(
        tool,
        "agent_session_get" | "agent_session_wait" | "agent_session_read_events"
    );
    let named = arguments.get("session_id").and_then(Value::as_str);
    let child = named.and_then(|id| id.parse().ok());
    child.filter(|child| reads && *child != root)
}

/// Takes what was acknowledged, and says which notices wait.
async fn begin(
    engine: &EngineHandle,
    root: SessionId,
    acknowledged: Vec<ItemId>,
) -> Result<Vec<ItemId>, EngineError> {
    engine.acknowledge(root, acknowledged).await?;
    let waiting = engine.waiting_notices(root).await?;
    Ok(waiting.iter().map(|notice| notice.item).collect())
}

/// Sorts the notices that wait after the call, and gives those that are shown.
async fn finish(
    engine: &EngineHandle,
    root: SessionId,
    before: &[ItemId],
    read: Read,
) -> Result<Vec<Value>, EngineError> {
    let waiting = engine.waiting_notices(root).await?;
    let sorted = notices::sort(waiting, before, read);
    let shown = sorted.shown.iter();
    let shown = shown.map(|notice| notices::shown(engine, notice));
    let shown = shown.collect::<Result<_, _>>()?;
    engine.acknowledge(root, sorted.read).await?;
    Ok(shown)
}

/// Waits for a call, and tells a client that gave a progress token that it is still under way.
async fn with_progress<T>(
    called: impl Future<Output = T>,
    total: Option<f64>,
    context: &RequestContext<RoleServer>,
) -> T {
    tokio::pin!(called);
    let Some(token) = context.meta.get_progress_token() else {
        return called.await;
    };
    let mut ticks = tokio::time::interval(PROGRESS);
    let mut passed = 0.0;
    loop {
        tokio::select! {
            biased;
            done = &mut called => return done,
            _tick = ticks.tick() => {
                let mut progress = ProgressNotificationParam::new(token.clone(), passed)
                    .with_message(format!("under way for {passed} s"));
                progress.total = total.filter(|total| *total >= passed);
                // A client that is gone cancels the call by that.
                let _told = context.peer.notify_progress(progress).await;
                passed += PROGRESS.as_secs_f64();
            }
        }
    }
}
