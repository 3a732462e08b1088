//! Waits of tools: until something new is said, until a session has settled, or until the waiter is steered.

use std::time::Duration;

use attache_agent::{Caller, WaitEnd, WaitFor, Waited};
use attache_session::{ErrorCode, SessionId, Settled, Status};
use attache_store::{Kind, PageQuery};

use super::Port;
use crate::error::EngineError;
use crate::lineage::visible;
use crate::waits::{Quiet, WaitGuard, settled, until_settled};

impl Port {
    pub(super) async fn wait_for(
        &self,
        caller: &Caller,
        target: SessionId,
        wait_for: WaitFor,
        timeout: Duration,
        events: usize,
    ) -> Result<Waited, EngineError> {
        let shared = &self.0;
        if target == caller.session {
            return Err(EngineError::new(
                ErrorCode::SelfWait,
                format!("session {target} cannot wait for itself"),
            ));
        }
        if shared.config.store.descends(caller.session, target)? {
            return Err(EngineError::new(
                ErrorCode::WaitCycle,
                format!("session {target} is an ancestor and may itself wait"),
            ));
        }
        let from = visible(shared, caller.session, target)?.last_at;
        // What the caller sent before is mail by then, and counts as work.
        shared.sync(caller.session).await?;
        let guard = WaitGuard::new(shared, caller.session, target);
        let ended_by = tokio::select! {
            biased;
            ended = self.until(target, from, wait_for) => ended?,
            () = self.steered(caller.session) => WaitEnd::Steered,
            () = self.asked(caller.session, target) => WaitEnd::NeedsAttention,
            () = tokio::time::sleep(timeout) => WaitEnd::Timeout,
        };
        drop(guard);
        let row = shared.known_row(target)?;
        let ended_by = match ended_by {
            WaitEnd::Settled if row.status == Status::Stopped => WaitEnd::Stopped,
            other => other,
        };
        let query = PageQuery {
            after: Some(from),
            up_to: None,
            kinds: Vec::new(),
            search: None,
            limit: events,
            newest: false,
        };
        let new_events = self.page(target, &query)?;
        Ok(Waited {
            ended_by,
            detail: self.detail(caller, row)?,
            new_events,
        })
    }

    /// Ends when the target has settled, or, for a wait for output, has said something new.
    async fn until(
        &self,
        target: SessionId,
        from: attache_session::Timestamp,
        wait_for: WaitFor,
    ) -> Result<WaitEnd, EngineError> {
        let shared = &self.0;
        if wait_for == WaitFor::Settled {
            until_settled(shared, target, Quiet::Itself).await?;
            return Ok(WaitEnd::Settled);
        }
        let mut changes = shared.registry.changes(target);
        let query = PageQuery {
            after: Some(from),
            up_to: None,
            kinds: vec![
                Kind::Assistant,
                Kind::ToolCall,
                Kind::ToolResult,
                Kind::Diagnostic,
            ],
            search: None,
            limit: 1,
            newest: false,
        };
        loop {
            changes.mark_unchanged();
            if !shared.config.store.page(target, &query)?.items.is_empty() {
                return Ok(WaitEnd::Output);
            }
            if settled(shared, target)? == Settled::Yes {
                return Ok(WaitEnd::Settled);
            }
            // The other end lives in the registry while somebody waits: it is not gone.
            let _rung = changes.changed().await;
        }
    }

    /// Ends when a person is asked by the target or below it, of which the waiter was not told before.
    async fn asked(&self, waiter: SessionId, target: SessionId) {
        let mut changes = self.0.registry.changes(target);
        loop {
            changes.mark_unchanged();
            if self.0.modals.tell_of(waiter, target) {
                return;
            }
            // The other end lives in the registry while somebody waits: it is not gone.
            let _rung = changes.changed().await;
        }
    }

    /// Ends when steering input waits for the session.
    async fn steered(&self, session: SessionId) {
        let Some(mailbox) = self.0.registry.in_use(session) else {
            return std::future::pending().await;
        };
        let mut changes = self.0.registry.changes(session);
        loop {
            changes.mark_unchanged();
            if mailbox.is_steered() {
                return;
            }
            let _rung = changes.changed().await;
        }
    }
}
