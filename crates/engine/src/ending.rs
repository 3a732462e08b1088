//! How work is ended from outside: a session's run, those of a whole tree, and all of a host's.

use std::sync::Arc;
use std::time::Duration;

use attache_session::{Answer, Command, EndReason, SessionId};

use crate::ask::Shared;
use crate::error::EngineError;
use crate::lineage;

/// How long turns that were told to end may take to write that down. They do nothing else by then, so
/// only a store that hangs takes longer; what it keeps back is recovered at the next start.
const WRITTEN_DOWN: Duration = Duration::from_secs(3);

impl Shared {
    /// Ends the runs of a session and of all below it, from the top down; `spared` is left alone. The
    /// answer is whether any of them ran. Stopping needs no durability: where the store refuses to have
    /// registrations given up, the runs end all the same, and the answer is that refusal.
    pub(crate) async fn cancel_tree(
        self: &Arc<Self>,
        session: SessionId,
        reason: EndReason,
        spared: Option<SessionId>,
    ) -> Result<bool, EngineError> {
        let mut any = self.cancel_all(session, reason).await;
        for row in lineage::descendants(self, session)? {
            if Some(row.session) != spared && row.view.is_live() {
                let ran = self.cancel_all(row.session, reason).await;
                any = match (any, ran) {
                    (Ok(any), Ok(ran)) => Ok(any || ran),
                    (Err(first), _) => Err(first),
                    (Ok(_), Err(error)) => Err(error),
                };
            }
        }
        any
    }

    /// Ends a session's run and gives its registrations up.
    async fn cancel_all(
        self: &Arc<Self>,
        session: SessionId,
        reason: EndReason,
    ) -> Result<bool, EngineError> {
        let watches = true;
        let answer = self.ask(session, Command::Cancel { reason, watches }).await;
        if answer.is_err()
            && let Some(mailbox) = self.registry.in_use(session)
        {
            mailbox.cancel(None, reason);
        }
        Ok(answer? == Answer::Done)
    }

    /// Ends a session's run. Goes past the line, because a token needs no durability; in line only
    /// when the turn is about to begin.
    pub(crate) async fn cancel(
        self: &Arc<Self>,
        session: SessionId,
        reason: EndReason,
    ) -> Result<bool, EngineError> {
        if let Some(mailbox) = self.registry.in_use(session)
            && mailbox.cancel(None, reason)
        {
            return Ok(true);
        }
        let row = self.known_row(session)?;
        if row.view.turn().is_none() {
            return Ok(false);
        }
        let answer = self
            .ask(
                session,
                Command::Cancel {
                    reason,
                    watches: false,
                },
            )
            .await?;
        Ok(answer == Answer::Done)
    }

    /// Ends all work of the host: no new work, `grace` for the turns that run, then all that still
    /// run are told to end at the same moment, so that none of them goes on because another one has
    /// ended. Returns when nothing runs any more.
    pub(crate) async fn shut_down(self: &Arc<Self>, grace: Duration) {
        self.close();
        // A grace that runs out is no fault: what still runs is ended below.
        let _over = tokio::time::timeout(grace, self.no_work()).await;
        self.cut();
        for (_, mailbox) in self.registry.all_in_use() {
            mailbox.cancel(None, EndReason::Interrupted);
        }
        let _late = tokio::time::timeout(WRITTEN_DOWN, self.no_work()).await;
    }

    /// Waits until no turn runs, and none is about to begin.
    async fn no_work(&self) {
        loop {
            let all = self.registry.all_in_use();
            let at_work = all.into_iter().find(|(_, mailbox)| mailbox.is_at_work());
            let Some((session, mailbox)) = at_work else {
                return;
            };
            let mut changes = self.registry.changes(session);
            while mailbox.is_at_work() {
                // The other end lives in the registry while somebody waits: it is not gone.
                let _rung = changes.changed().await;
            }
        }
    }
}
