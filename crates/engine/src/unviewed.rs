//! What happens when nobody looks at a session any more: viewers are counted here, and a session that is not to go on by itself
//! is ended once its last viewer has left and nothing else holds it. One gate decides between a viewer who comes and that end:
//! whoever is first wins, and an epoch that is being ended takes no viewer. Which holders count is a rule of `session`.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use attache_session::{Answer, Command, Holder, SessionId, Status};
use tokio::runtime::Handle;

use crate::ask::Shared;
use crate::error::EngineError;
use crate::lineage;
use crate::mailbox::SharedMailbox;
use crate::observe::TreeFeed;

/// How long it takes until what the store refused is tried again.
const STORAGE_RETRY: Duration = Duration::from_secs(1);

/// A viewer, or somebody who is about to become one: while this lives, the session is looked at.
pub struct Viewing {
    shared: Arc<Shared>,
    session: SessionId,
    mailbox: SharedMailbox,
}

impl Viewing {
    /// Somebody looks at a session from now on; none when its epoch is just being ended.
    pub(crate) fn begin(shared: &Arc<Shared>, session: SessionId) -> Option<Self> {
        let mailbox = shared.registry.mailbox(session);
        mailbox.viewer_came().then(|| Self {
            shared: Arc::clone(shared),
            session,
            mailbox,
        })
    }

    pub(crate) fn mailbox(&self) -> &SharedMailbox {
        &self.mailbox
    }
}

impl Drop for Viewing {
    fn drop(&mut self) {
        if self.mailbox.viewer_left() {
            keep(&self.shared, self.session, &self.mailbox);
        }
    }
}

/// Ends a session in its time that its last viewer has left.
fn keep(shared: &Arc<Shared>, session: SessionId, mailbox: &SharedMailbox) {
    // Without a runtime the host is gone, and its sessions with it.
    if let Ok(runtime) = Handle::try_current() {
        let keeper = Keeper {
            feed: shared.feeds.subscribe(),
            shared: Arc::clone(shared),
            session,
            mailbox: Arc::clone(mailbox),
            waited_for: Vec::new(),
        };
        runtime.spawn(keeper.run());
    }
}

/// What a look at a session shows that nobody looks at.
enum Look {
    /// It has no epoch, or goes on by itself, or follows its parents.
    Stays,
    /// Nothing holds it.
    Free,
    /// These do, and these sessions are at work below it.
    Held(Vec<Holder>, HashSet<SessionId>),
}

/// Waits until nothing holds a session any more.
struct Keeper {
    shared: Arc<Shared>,
    session: SessionId,
    mailbox: SharedMailbox,
    feed: TreeFeed,
    waited_for: Vec<Holder>,
}

impl Keeper {
    async fn run(mut self) {
        while !self.is_done().await {}
        drop(self.mailbox);
        self.shared.registry.tidy(self.session);
    }

    /// Whether somebody looks on again, or it has ended.
    async fn is_done(&mut self) -> bool {
        if self.shared.is_closing() || self.mailbox.keeper_leaves() {
            return true;
        }
        match self.shared.look(self.session) {
            Ok(Look::Stays) => self.mailbox.keeper_ends(),
            Ok(Look::Free) => match self.stop().await {
                Ok(true) => self.mailbox.keeper_ends(),
                Ok(false) => false,
                Err(_refused) => {
                    self.rest().await;
                    false
                }
            },
            Ok(Look::Held(holders, at_work)) => {
                for holder in holders {
                    if !self.waited_for.contains(&holder) {
                        self.waited_for.push(holder);
                    }
                }
                // A session that begins to work below is told of by one that works, or changes itself.
                while !self
                    .feed
                    .next()
                    .await
                    .iter()
                    .any(|changed| *changed == self.session || at_work.contains(changed))
                {
                }
                false
            }
            Err(_unreadable) => {
                self.rest().await;
                false
            }
        }
    }

    /// Ends the epoch unless a viewer was first. Whether that is over; else it is looked at again.
    async fn stop(&mut self) -> Result<bool, EngineError> {
        if !self.mailbox.fence() {
            return Ok(false);
        }
        let stop = Command::StopUnviewed {
            held_by: Vec::new(),
            waited_for: self.waited_for.clone(),
            partial: None,
        };
        let answer = self.shared.ask(self.session, stop).await;
        self.mailbox.unfence();
        // Whoever waited for that is no viewer of rows: those would wake this one too.
        self.shared.registry.changed(self.session);
        if answer? == Answer::Done {
            return Ok(true);
        }
        // What holds it came in between, and is seen by the next look.
        self.rest().await;
        Ok(false)
    }

    async fn rest(&mut self) {
        let _rung = tokio::time::timeout(STORAGE_RETRY, self.feed.next()).await;
    }
}

impl Shared {
    /// A viewer is to work with a session: when its last viewer has left, it ends unless it is to go on by itself. Those who
    /// only look hold it while they do, and their leaving alone ends nothing.
    pub(crate) fn opened(&self, session: SessionId) {
        self.registry.mailbox(session).opened();
    }

    /// A session is not to go on by itself any more: with nobody looking on, it ends.
    pub(crate) fn no_longer_by_itself(self: &Arc<Self>, session: SessionId) {
        let mailbox = self.registry.mailbox(session);
        mailbox.opened();
        if mailbox.needs_keeper() {
            keep(self, session, &mailbox);
        }
    }

    /// Waits until an epoch that is just being ended is over.
    pub(crate) async fn fence_gone(&self, session: SessionId) {
        let Some(mailbox) = self.registry.in_use(session) else {
            return;
        };
        let mut changes = self.registry.changes(session);
        while mailbox.is_fenced() {
            // The other end lives in the registry while somebody waits: it is not gone.
            let _rung = changes.changed().await;
        }
        drop((changes, mailbox));
        self.registry.tidy(session);
    }

    /// Refuses what would change an epoch that is just being ended.
    pub(crate) fn not_fenced(&self, session: SessionId) -> Result<(), EngineError> {
        match self.registry.in_use(session) {
            Some(mailbox) if mailbox.is_fenced() => Err(EngineError::unviewed(session)),
            _ => Ok(()),
        }
    }

    fn look(&self, session: SessionId) -> Result<Look, EngineError> {
        let row = self.known_row(session)?;
        let summary = &row.view.summary;
        // Children follow their parents, not their viewers.
        let follows = !summary.parents.is_empty();
        if !row.view.is_live() || summary.continue_in_background || follows {
            return Ok(Look::Stays);
        }
        let (mut holders, at_work) = self.held_from_outside(session)?;
        if !summary.watching.is_empty() {
            holders.push(Holder::Waits);
        }
        if summary.asks > 0 {
            holders.push(Holder::Modals);
        }
        Ok(if holders.is_empty() {
            Look::Free
        } else {
            Look::Held(holders, at_work)
        })
    }

    /// What holds a session that is not in its own state, and its descendants that are at work.
    pub(crate) fn held_from_outside(
        &self,
        session: SessionId,
    ) -> Result<(Vec<Holder>, HashSet<SessionId>), EngineError> {
        let mut holders = Vec::new();
        let below = lineage::descendants(self, session)?;
        let at_work: HashSet<SessionId> = below
            .iter()
            .filter(|row| row.status == Status::Running)
            .map(|row| row.session)
            .collect();
        if !at_work.is_empty() {
            holders.push(Holder::Children);
        }
        if self.known_row(session)?.view.unread.notices > 0 {
            holders.push(Holder::Notices);
        }
        Ok((holders, at_work))
    }
}
