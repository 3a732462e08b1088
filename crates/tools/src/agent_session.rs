//! Toolset `agent-session`: create, address, read, wait for and stop sub-agent sessions.

mod acquire;
mod create;
mod get;
mod list;
mod on_complete;
mod read_events;
mod send;
mod stop;
mod wait;

use std::sync::Arc;

use attache_agent::{Tool, ToolError, ToolOutcome, Toolset};

/// The toolset.
pub struct AgentSession;

impl Toolset for AgentSession {
    fn kind(&self) -> &'static str {
        "agent-session"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![
            Arc::new(create::Create::default()),
            Arc::new(list::List::default()),
            Arc::new(get::Get::default()),
            Arc::new(send::Send::default()),
            Arc::new(stop::Stop::default()),
            Arc::new(read_events::ReadEvents::default()),
            Arc::new(wait::Wait::default()),
            Arc::new(on_complete::OnComplete::default()),
            Arc::new(acquire::Acquire::default()),
        ]
    }
}

/// What one tool does, apart from how it is called.
pub(crate) type Answer = Result<ToolOutcome, ToolError>;

/// Makes a tool of a name, whether it changes state, a schema and an async function of context and arguments. What else
/// it is (`may_repeat`, `is_bookkeeping`) stands in parentheses behind the name.
macro_rules! tool {
    ($(#[$doc:meta])* $name:ident $(($($is:ident),+))?, $changes:literal, $spec:expr, $call:path) => {
        $(#[$doc])*
        pub(crate) struct $name(attache_agent::offer::ToolSpec);

        impl Default for $name {
            fn default() -> Self {
                Self($spec)
            }
        }

        impl attache_agent::Tool for $name {
            fn spec(&self) -> &attache_agent::offer::ToolSpec {
                &self.0
            }

            fn changes_state(&self) -> bool {
                $changes
            }

            $($(fn $is(&self) -> bool {
                true
            })+)?

            fn call<'a>(
                &'a self,
                context: attache_agent::CallContext,
                arguments: serde_json::Value,
            ) -> attache_agent::ToolFuture<'a> {
                Box::pin(async move {
                    match $call(context, arguments).await {
                        Ok(outcome) => outcome,
                        Err(error) => error.into(),
                    }
                })
            }
        }
    };
}
pub(crate) use tool;
