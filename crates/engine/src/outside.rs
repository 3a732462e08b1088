//! A session that runs no turns, as the program outside uses it that it stands for: its tools are
//! called from there, and what it is told is read there.
//!
//! A call goes through the tool and the port that a turn uses, so that names, answers and refusals are
//! those that a model gets. Whose program may speak for which session is the door's business.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use attache_agent::{CallContext, Caller, Cancel, ToolOutcome, Toolbelt};
use attache_model::ToolSpec;
use attache_session::{
    Answer, CallId, Command, ErrorCode, ItemId, Origin, QueueId, SessionId, Summary, Told, TurnId,
};
use futures_util::FutureExt;
use serde_json::Value;

use crate::error::EngineError;
use crate::handle::EngineHandle;
use crate::port::Port;
use crate::turn_task::fault;

/// The toolset of which a program outside is given the tools.
const TOOLSET: &str = "agent-session";

/// A call of a tool from outside.
#[derive(Clone, Debug)]
pub struct OutsideCall {
    /// The session that it is made as; one that runs no turns.
    pub session: SessionId,
    /// The call's id. What a call creates hangs on it: a repeat finds the same child.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// Its arguments, an object.
    pub arguments: Value,
    /// Ends it early.
    pub cancel: Cancel,
}

/// A tool that can be called from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutsideTool {
    /// How it is offered.
    pub spec: ToolSpec,
    /// Whether a call may change something.
    pub changes_state: bool,
}

/// A notice that waits to be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingNotice {
    /// Its id.
    pub item: ItemId,
    /// The session that it tells of.
    pub about: SessionId,
    /// What it says: the header of the host, or the text that the watcher chose.
    pub text: Arc<str>,
    /// What that session said.
    pub told: Option<Told>,
}

impl EngineHandle {
    /// The tools that a program outside can call.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when this host has not that toolset.
    pub fn outside_tools(&self) -> Result<Vec<OutsideTool>, EngineError> {
        let belt = self.outside_belt()?;
        let specs = belt.offered().specs().iter();
        Ok(specs
            .map(|spec| OutsideTool {
                spec: spec.clone(),
                changes_state: belt.get(&spec.name).is_none_or(|tool| tool.changes_state()),
            })
            .collect())
    }

    /// An id for a call that its caller gave none.
    #[must_use]
    pub fn fresh_call(&self) -> CallId {
        format!("outside-{}", self.shared().config.time.fresh()).into()
    }

    fn outside_belt(&self) -> Result<Toolbelt, EngineError> {
        self.toolsets()
            .only(&[TOOLSET.to_owned()])
            .map_err(|error| EngineError::new(ErrorCode::Internal, error.to_string()))
    }

    /// Calls a tool as a session that runs no turns. What the tool refuses is its outcome.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when there is no such session or no such tool.
    pub async fn call_tool(&self, call: OutsideCall) -> Result<ToolOutcome, EngineError> {
        let OutsideCall {
            session,
            call,
            tool: name,
            arguments,
            cancel,
        } = call;
        let created = self.created(session)?;
        if created.runs_turns {
            return Err(EngineError::unknown(session));
        }
        let belt = self.outside_belt()?;
        let Some(tool) = belt.get(&name) else {
            return Err(EngineError::new(
                ErrorCode::InvalidArguments,
                format!("there is no tool {name:?}"),
            ));
        };
        let context = CallContext {
            caller: Caller {
                session,
                turn: TurnId(0),
                call,
            },
            working_directory: PathBuf::from(&*created.working_directory),
            sessions: Arc::new(Port(Arc::clone(self.shared()))),
            cancel: cancel.clone(),
        };
        // Dropping a call leaves nothing of it running.
        let ended = tokio::select! {
            biased;
            ended = AssertUnwindSafe(tool.call(context, arguments)).catch_unwind() => ended,
            () = cancel.cancelled() => return Err(EngineError::new(
                ErrorCode::NotPermitted,
                "the call was given up by the one who made it",
            )),
        };
        Ok(ended.unwrap_or_else(|_fault| fault()))
    }

    /// The notices that wait in a session that runs no turns, oldest first, those that are on their way
    /// to it by now included.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown or cannot be loaded.
    pub async fn waiting_notices(
        &self,
        session: SessionId,
    ) -> Result<Vec<WaitingNotice>, EngineError> {
        self.row(session)?;
        self.shared().sync(session).await?;
        let state = self.state(session).await?;
        let waiting = state.queue(QueueId::Immediate).into_iter();
        Ok(waiting
            .flat_map(|queue| &queue.items)
            .filter_map(|item| match item.origin {
                Origin::Notice {
                    about,
                    watch: _,
                    ref told,
                } => Some(WaitingNotice {
                    item: item.id,
                    about,
                    text: Arc::clone(&item.text),
                    told: told.clone(),
                }),
                Origin::Viewer | Origin::Session(_) => None,
            })
            .collect())
    }

    /// Says that notices were read. Those that wait no longer are passed over.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown, or when it runs turns.
    pub async fn acknowledge(
        &self,
        session: SessionId,
        items: Vec<ItemId>,
    ) -> Result<(), EngineError> {
        if items.is_empty() {
            return Ok(());
        }
        let read = Command::Acknowledge { items };
        match self.command(session, read, None).await? {
            Answer::Done | Answer::Unchanged => Ok(()),
            _ => Err(EngineError::lost()),
        }
    }

    /// Whether a session has an epoch in this life of the host.
    #[must_use]
    pub fn is_started(&self, session: SessionId) -> bool {
        self.shared().registry.epoch(session).is_some()
    }

    /// A session that runs no turns, as its row says; any other is unknown here.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when there is no such session, or the store cannot be read.
    pub fn outside_root(&self, session: SessionId) -> Result<Arc<Summary>, EngineError> {
        let row = self.row(session)?;
        if row.view.summary.runs_turns {
            return Err(EngineError::unknown(session));
        }
        Ok(row.view.summary)
    }
}
