//! How work is ended from outside: a session's run, those of a whole tree, and all of a host's.

mod reach;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use attache_session::{Answer, Command, EndReason, SessionId, Starts, Status, StopReason};
use attache_store::RowFilter;

use self::reach::{EndGuard, Ending, Reach};
use crate::ask::{Shared, answered};
use crate::error::EngineError;
use crate::lineage;
use crate::view::SessionRow;

pub(crate) use self::reach::Endings;

/// How long turns that were told to end may take to write that down. They do nothing else by then, so
/// only a store that hangs takes longer; what it keeps back is recovered at the next start.
const WRITTEN_DOWN: Duration = Duration::from_secs(3);

/// The runs of a tree that have been ended, and may not go on before this is dropped.
pub(crate) struct Ended {
    /// Whether any of them ran.
    pub(crate) any: bool,
    _guard: EndGuard,
}

impl Shared {
    /// Ends the runs of a session and of all below it, all at the same time, and gives their
    /// registrations up. When it is done nothing of the tree runs, and nothing runs before the answer
    /// is dropped; then what still waits in queues goes on. Stopping needs no durability: where the
    /// store refuses to have registrations given up, the runs end all the same, and the answer is that
    /// refusal.
    pub(crate) async fn end_runs(
        self: &Arc<Self>,
        top: SessionId,
        reason: EndReason,
    ) -> Result<Ended, EngineError> {
        let shared = Arc::clone(self);
        // By itself: whoever asks may be in the tree, and is cut with it.
        let ended = tokio::spawn(async move { shared.end_runs_of_tree(top, reason).await });
        ended
            .await
            .unwrap_or_else(|_fault| Err(EngineError::lost()))
    }

    async fn end_runs_of_tree(
        self: &Arc<Self>,
        top: SessionId,
        reason: EndReason,
    ) -> Result<Ended, EngineError> {
        let guard = EndGuard::new(self, top, Reach::All, reason, Starts::Notices);
        let mut told = HashSet::new();
        let mut any = false;
        let mut refused = None;
        // Again for what was being born when the end began.
        loop {
            let rows = self.reached(&guard, self.family(top)?);
            let new: Vec<_> = rows
                .into_iter()
                .filter(|row| told.insert(row.session))
                .collect();
            if new.is_empty() {
                break;
            }
            let mut asked = Vec::new();
            for row in &new {
                let cancel = Command::Cancel {
                    reason,
                    watches: true,
                };
                if self.has_what_ends(row.session)? {
                    asked.push(self.post(row.session, cancel, None));
                }
            }
            // Behind the registrations, so that few tell others of their end.
            for row in &new {
                if let Some(mailbox) = self.registry.in_use(row.session) {
                    any |= mailbox.cancel(None, reason);
                }
            }
            for asked in asked {
                match answered(asked).await {
                    Ok(answer) => any |= answer == Answer::Done,
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
            for row in &new {
                self.run_ended(row.session).await;
            }
        }
        match refused {
            None => Ok(Ended { any, _guard: guard }),
            Some(error) => Err(error),
        }
    }

    /// Whether a session has a run or registrations that could end. One that nobody uses is not
    /// loaded for nothing.
    fn has_what_ends(&self, session: SessionId) -> Result<bool, EngineError> {
        let row = self.known_row(session)?;
        let at_work = self.registry.in_use(session).is_some();
        let open = row.view.turn().is_some() || !row.view.summary.watching.is_empty();
        Ok(row.view.is_live() && (at_work || open))
    }

    /// Waits until no turn of a session runs that has been told to end.
    async fn run_ended(&self, session: SessionId) {
        let Some(mailbox) = self.registry.in_use(session) else {
            return;
        };
        let mut changes = self.registry.changes(session);
        while mailbox.running_turn().is_some() {
            // The other end lives in the registry while somebody waits: it is not gone.
            let _rung = changes.changed().await;
        }
        drop((changes, mailbox));
        self.registry.tidy(session);
    }

    /// Rows of a session and of all below it, parents of a birth before their children.
    fn family(&self, top: SessionId) -> Result<Vec<SessionRow>, EngineError> {
        let row = self.known_row(top)?;
        if row.root == top {
            return lineage::rows(self, RowFilter::Tree(top));
        }
        let mut rows = vec![row];
        rows.extend(lineage::descendants(self, top)?);
        Ok(rows)
    }

    /// Of these rows those of the sessions that an end reaches.
    fn reached(&self, ending: &Ending, mut rows: Vec<SessionRow>) -> Vec<SessionRow> {
        let lines: HashMap<SessionId, usize> = rows
            .iter()
            .enumerate()
            .map(|(index, row)| (row.session, index))
            .collect();
        let mut look = |id| match lines.get(&id) {
            Some(index) => rows.get(*index).map(|row| self.lineage_in(row)),
            None => self.lineage(id),
        };
        let reached: HashSet<SessionId> = lines
            .keys()
            .copied()
            .filter(|id| ending.reaches(*id, &self.registry, &mut look))
            .collect();
        rows.retain(|row| reached.contains(&row.session));
        rows
    }

    /// Ends the epochs of a session and of all below it that no other living session holds, all at
    /// the same time. The answer is whether it had one.
    pub(crate) async fn end_epochs(self: &Arc<Self>, top: SessionId) -> Result<bool, EngineError> {
        let shared = Arc::clone(self);
        // By itself: what has begun is not left half done when whoever asked is gone.
        let ended = tokio::spawn(async move { shared.end_epochs_of_tree(top).await });
        ended
            .await
            .unwrap_or_else(|_fault| Err(EngineError::lost()))
    }

    async fn end_epochs_of_tree(self: &Arc<Self>, top: SessionId) -> Result<bool, EngineError> {
        let lived = self.known_row(top)?.status != Status::Stopped;
        let guard = EndGuard::new(self, top, Reach::Held, EndReason::Cancelled, Starts::None);
        let mut told = HashSet::new();
        let mut refused = None;
        // Again for what was being born when the end began.
        loop {
            let mut rows = self.family(top)?;
            if self.take_holds(&rows, &told).await {
                rows = self.family(top)?;
            }
            let rows = self.reached(&guard, rows);
            let mut asked = Vec::new();
            for row in rows {
                if !told.insert(row.session) || row.session != top && !row.view.is_live() {
                    continue;
                }
                let partial = None;
                let command = if row.session == top {
                    let reason = StopReason::Terminated;
                    Command::Stop { reason, partial }
                } else {
                    let mut parents = row.view.summary.parents.clone();
                    parents.retain(|parent| {
                        self.registry.epoch(*parent).is_none() || guard.has_reached(*parent)
                    });
                    Command::EndWith { parents, partial }
                };
                asked.push((row.session, self.post(row.session, command, None)));
            }
            if asked.is_empty() {
                break;
            }
            for (session, asked) in asked {
                match answered(asked).await {
                    // It has been taken up from outside just now, or is stopped already.
                    Ok(Answer::Unchanged) => {
                        guard.spare(session);
                        self.wake(session);
                    }
                    Ok(_) => {}
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
        }
        for session in told {
            self.run_ended(session).await;
        }
        match refused {
            None => Ok(lived),
            Some(error) => Err(error),
        }
    }

    /// How many descendants of a session run that a termination of it would end.
    pub(crate) fn running_below(&self, session: SessionId) -> Result<usize, EngineError> {
        let as_if = Ending::new(session, Reach::Held, EndReason::Cancelled, Starts::None);
        let rows = self.reached(&as_if, self.family(session)?);
        let running = rows
            .iter()
            .filter(|row| row.session != session && row.status == Status::Running);
        Ok(running.count())
    }

    /// Has sessions take word of holds that lies unread, so that their rows say who holds them. Those
    /// that were told of the end already need not. The answer is whether there was any.
    async fn take_holds(self: &Arc<Self>, rows: &[SessionRow], told: &HashSet<SessionId>) -> bool {
        let unsure = rows.iter().filter(|row| {
            row.view.is_live() && !told.contains(&row.session) && self.has_unread_hold(row)
        });
        let takes: Vec<_> = unsure
            .map(|row| {
                let (shared, session) = (Arc::clone(self), row.session);
                tokio::spawn(async move { shared.sync(session).await })
            })
            .collect();
        let any = !takes.is_empty();
        for take in takes {
            // One that cannot be loaded is left to the word that its parents send it.
            let _taken = take.await;
        }
        any
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
        let _told = tokio::time::timeout(WRITTEN_DOWN, self.stop_viewed()).await;
    }

    /// Ends the epochs that somebody looks at, so that each viewer is told. All others end with the process, which is written
    /// down when they are needed next.
    async fn stop_viewed(self: &Arc<Self>) {
        let viewed = self.registry.all_in_use().into_iter();
        let viewed = viewed.filter(|(_, mailbox)| mailbox.is_viewed());
        let asked: Vec<_> = viewed
            .map(|(session, _)| {
                let stop = Command::Stop {
                    reason: StopReason::HostShutdown,
                    partial: None,
                };
                self.post(session, stop, None)
            })
            .collect();
        for asked in asked {
            // What the store refuses now is written down by the next life of the host.
            let _stopped = answered(asked).await;
        }
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
