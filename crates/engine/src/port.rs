//! The port through which tools reach sessions: who may see what, and what each question does.
//! The rules themselves are commands of `session`; what stands here looks things up and waits.

mod waiting;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attache_agent::{
    AskPerson, Asked, Caller, ChildCreated, CreateChild, EventPage, EventQuery, ListChildren,
    PortError, PortFuture, ResultPage, RunningItem, SessionContext, SessionDetail, SessionInfo,
    Sessions, WaitFor, Waited, Watching,
};
use attache_session::{
    Answer, Command, EndReason, Epoch, ErrorCode, ItemId, Ledger, NewSession, Notice, Origin,
    QueueId, SessionId, Settled, Status, WatchId,
};
use attache_store::PageQuery;

use crate::ask::Shared;
use crate::context;
use crate::error::EngineError;
use crate::ledger;
use crate::lineage::{self, visible};
use crate::results;
use crate::view::{SessionRow, event_view, kind_of_name};
use crate::waits::settled;

/// The sessions of one engine, as tools reach them.
pub(crate) struct Port(pub(crate) Arc<Shared>);

impl Port {
    fn detail(&self, caller: &Caller, row: SessionRow) -> Result<SessionDetail, EngineError> {
        let shared = &self.0;
        let receipts = shared.receipts(&row, Some(caller.session))?;
        let mut running_items = Vec::new();
        if let Some(mailbox) = shared.registry.in_use(row.session) {
            mailbox.live.read(|live| {
                if !live.text.is_empty() {
                    running_items.push(RunningItem {
                        role: "assistant",
                        text: live.text.clone(),
                    });
                }
                for (_, name) in &live.calls {
                    running_items.push(RunningItem {
                        role: "tool",
                        text: name.to_string(),
                    });
                }
            });
        }
        running_items.extend(shared.modals.below(row.session).into_iter().map(|open| {
            let asker = open.asker();
            let by = (asker != row.session).then(|| format!(" (session {asker})"));
            RunningItem {
                role: "question",
                text: format!("{}{}", open.modal.text, by.unwrap_or_default()),
            }
        }));
        let mut waiting_for: Vec<SessionId> = shared.waiting.of(row.session);
        waiting_for.extend(&row.view.summary.watching);
        waiting_for.sort_unstable();
        waiting_for.dedup();
        waiting_for
            .retain(|id| matches!(shared.row(*id), Ok(Some(row)) if row.status == Status::Running));
        Ok(SessionDetail {
            session: row.session,
            status: row.status,
            row: row.view,
            running_items,
            waiting_for,
            receipts,
        })
    }

    async fn create_child(
        &self,
        caller: &Caller,
        new: CreateChild,
    ) -> Result<ChildCreated, EngineError> {
        match self.try_create(caller, &new).await {
            Err(error)
                if [ErrorCode::LimitReached, ErrorCode::ExceedsParent].contains(&error.code)
                    && self.0.end_left_behind(caller.session).await? =>
            {
                self.try_create(caller, &new).await
            }
            done => done,
        }
    }

    async fn try_create(
        &self,
        caller: &Caller,
        new: &CreateChild,
    ) -> Result<ChildCreated, EngineError> {
        let shared = &self.0;
        if shared.is_closing() {
            return Err(EngineError::closing());
        }
        let created = lineage::child_of(shared, caller.session, new)?;
        let child = SessionId(shared.config.time.fresh());
        let first = new.initial_message.as_deref().map(|text| {
            let item = ItemId(shared.config.time.fresh());
            (item, Arc::from(text), Origin::Session(caller.session))
        });
        let epoch = Epoch(shared.config.time.fresh());
        let child = Box::new(NewSession {
            id: child,
            epoch,
            created,
            first,
        });
        let command = Command::Spawn {
            call: Some(Arc::clone(&caller.call)),
            child,
        };
        match shared.ask(caller.session, command).await? {
            Answer::Child { child } => {
                let row = shared.known_row(child)?;
                Ok(ChildCreated {
                    session: child,
                    status: row.status,
                    created_at: row.view.summary.created_at,
                })
            }
            _ => Err(EngineError::lost()),
        }
    }

    fn list_children(
        &self,
        caller: &Caller,
        query: &ListChildren,
    ) -> Result<Vec<SessionInfo>, EngineError> {
        let shared = &self.0;
        let mut rows = if query.recursive {
            lineage::descendants(shared, caller.session)?
        } else {
            lineage::children(shared, caller.session)?
        };
        // Children come in the order in which they joined, which breaks ties of birth.
        rows.sort_by_key(|row| row.view.summary.created_at);
        let from = match query.after {
            None => 0,
            Some(after) => {
                rows.iter()
                    .position(|row| row.session == after)
                    .ok_or_else(|| EngineError::unknown(after))?
                    + 1
            }
        };
        Ok(rows
            .into_iter()
            .skip(from)
            .filter(|row| query.status.is_none_or(|status| status == row.status))
            .take(query.limit)
            .map(|row| SessionInfo {
                session: row.session,
                status: row.status,
                row: row.view,
            })
            .collect())
    }

    async fn send_to(
        &self,
        caller: &Caller,
        target: SessionId,
        text: String,
        immediate: bool,
    ) -> Result<ItemId, EngineError> {
        let shared = &self.0;
        let row = visible(shared, caller.session, target)?;
        if !row.view.summary.takes_input {
            return Err(EngineError::new(
                ErrorCode::NoUserInput,
                format!("session {target} takes no input"),
            ));
        }
        let item = ItemId(shared.config.time.fresh());
        let command = if target == caller.session {
            Command::Enqueue {
                item: Some(item),
                queue: if immediate {
                    QueueId::Immediate
                } else {
                    QueueId::Default
                },
                text: text.into(),
                origin: Origin::Session(target),
            }
        } else {
            let epoch = match row.view.summary.epoch {
                Some(epoch) if row.view.is_live() => epoch,
                // The rules know whether it was given up or only stopped: an epoch that nobody has
                // is refused by either.
                _ => Epoch(uuid::Uuid::nil()),
            };
            Command::Send {
                to: target,
                epoch,
                item,
                text: text.into(),
                immediate,
            }
        };
        match shared.ask(caller.session, command).await {
            Ok(_) => Ok(item),
            Err(error) if error.code == ErrorCode::SessionStopped => Err(EngineError::new(
                ErrorCode::SessionStopped,
                format!("session {target} is stopped"),
            )),
            Err(error) => Err(error),
        }
    }

    async fn stop_tree(
        &self,
        caller: &Caller,
        target: SessionId,
        dispose: bool,
    ) -> Result<bool, EngineError> {
        let shared = &self.0;
        let row = visible(shared, caller.session, target)?;
        if dispose && target == caller.session {
            return Err(EngineError::new(
                ErrorCode::InvalidArguments,
                "a session holds its children, not itself: dispose needs a child's id",
            ));
        }
        if dispose && !row.view.summary.parents.contains(&caller.session) {
            return Err(EngineError::new(
                ErrorCode::InvalidArguments,
                "only a child can be given up, and this session is a child of another one",
            ));
        }
        let was_running = row.status == Status::Running;
        // Nothing of it goes on before it has been given up.
        let _ended = shared.end_runs(target, EndReason::Cancelled).await?;
        if dispose {
            shared
                .ask(caller.session, Command::Release { child: target })
                .await?;
            shared.sync(target).await?;
        }
        Ok(was_running)
    }

    fn events(
        &self,
        caller: &Caller,
        target: SessionId,
        query: EventQuery,
    ) -> Result<EventPage, EngineError> {
        visible(&self.0, caller.session, target)?;
        let mut kinds = Vec::new();
        for name in &query.event_types {
            kinds.push(kind_of_name(name).ok_or_else(|| {
                EngineError::new(
                    ErrorCode::InvalidArguments,
                    format!("there is no event type {name:?}"),
                )
            })?);
        }
        let page = PageQuery {
            after: query.after,
            up_to: None,
            kinds,
            search: query.search,
            limit: query.limit,
            newest: false,
        };
        self.page(target, &page)
    }

    fn page(&self, target: SessionId, query: &PageQuery) -> Result<EventPage, EngineError> {
        let page = self.0.config.store.page(target, query)?;
        let next_cursor = if page.more {
            page.items.last().map(|item| item.event.at)
        } else {
            None
        };
        Ok(EventPage {
            events: page
                .items
                .iter()
                .filter_map(|item| event_view(&item.event))
                .collect(),
            total_matching: page.total_matching,
            next_cursor,
        })
    }

    async fn register(
        &self,
        caller: &Caller,
        target: SessionId,
        message: Option<String>,
    ) -> Result<Watching, EngineError> {
        let shared = &self.0;
        visible(shared, caller.session, target)?;
        // What the caller sent before is mail by then, and counts as work.
        shared.sync(caller.session).await?;
        let watch = WatchId(shared.config.time.fresh());
        let message: Option<Arc<str>> = message.map(Arc::from);
        let done = target != caller.session && settled(shared, target)? == Settled::Yes;
        // Read after that: an end that came in between is the one to tell of.
        let row = shared.known_row(target)?;
        let settled = done.then(|| Notice {
            watch,
            message: message.clone(),
            outcome: row.view.outcome(),
            end_reason: row.view.end_reason(),
            stopped: row.status == Status::Stopped,
            told: row.view.told(),
        });
        let command = Command::Watch {
            watch,
            target,
            message,
            settled,
        };
        let answer = shared.ask(caller.session, command).await?;
        Ok(Watching {
            fired_immediately: answer == Answer::FiredAtOnce,
        })
    }

    async fn hold(
        &self,
        caller: &Caller,
        target: SessionId,
    ) -> Result<(bool, SessionDetail), EngineError> {
        let shared = &self.0;
        let unknown = || EngineError::unknown(target);
        if target == caller.session {
            return Err(EngineError::new(
                ErrorCode::InvalidArguments,
                "acquire needs the id of another session",
            ));
        }
        let row = shared.known_row(target)?;
        let store = &shared.config.store;
        if !store.descends(target, caller.session)? {
            // What an ancestor of the caller created, but neither the ancestor itself.
            let own = shared.known_row(caller.session)?;
            let reachable = row.root == own.root
                && row.spawner.is_some()
                && !store.descends(caller.session, target)?
                && row
                    .view
                    .summary
                    .parents
                    .iter()
                    .try_fold(false, |found, parent| {
                        Ok::<_, EngineError>(found || store.descends(caller.session, *parent)?)
                    })?;
            if !reachable {
                return Err(unknown());
            }
        }
        let answer = shared
            .ask(caller.session, Command::Acquire { child: target })
            .await?;
        shared.sync(target).await?;
        let row = shared.known_row(target)?;
        Ok((answer == Answer::Unchanged, self.detail(caller, row)?))
    }
}

fn port<'a, T: 'a>(
    answer: impl Future<Output = Result<T, EngineError>> + Send + 'a,
) -> PortFuture<'a, T> {
    Box::pin(async move { answer.await.map_err(PortError::from) })
}

impl Sessions for Port {
    fn create<'a>(&'a self, caller: &'a Caller, new: CreateChild) -> PortFuture<'a, ChildCreated> {
        port(self.create_child(caller, new))
    }

    fn list<'a>(
        &'a self,
        caller: &'a Caller,
        query: ListChildren,
    ) -> PortFuture<'a, Vec<SessionInfo>> {
        port(async move { self.list_children(caller, &query) })
    }

    fn get<'a>(&'a self, caller: &'a Caller, session: SessionId) -> PortFuture<'a, SessionDetail> {
        port(async move { self.detail(caller, visible(&self.0, caller.session, session)?) })
    }

    fn ledger<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
    ) -> PortFuture<'a, Option<Ledger>> {
        port(async move {
            visible(&self.0, caller.session, session)?;
            ledger::of(&self.0, session)
        })
    }

    fn send<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
        text: String,
        immediate: bool,
    ) -> PortFuture<'a, ItemId> {
        port(self.send_to(caller, session, text, immediate))
    }

    fn stop<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
        dispose: bool,
    ) -> PortFuture<'a, bool> {
        port(self.stop_tree(caller, session, dispose))
    }

    fn read_events<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
        query: EventQuery,
    ) -> PortFuture<'a, EventPage> {
        port(async move { self.events(caller, session, query) })
    }

    fn read_result<'a>(
        &'a self,
        caller: &'a Caller,
        call: String,
        cursor: u64,
    ) -> PortFuture<'a, Option<ResultPage>> {
        port(async move { results::page_of(&self.0, caller.session, &call, cursor) })
    }

    fn wait<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
        wait_for: WaitFor,
        timeout: Duration,
        events: usize,
    ) -> PortFuture<'a, Waited> {
        port(self.wait_for(caller, session, wait_for, timeout, events))
    }

    fn on_complete<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
        message: Option<String>,
    ) -> PortFuture<'a, Watching> {
        port(self.register(caller, session, message))
    }

    fn acquire<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
    ) -> PortFuture<'a, (bool, SessionDetail)> {
        port(self.hold(caller, session))
    }

    fn ask<'a>(&'a self, caller: &'a Caller, ask: AskPerson) -> PortFuture<'a, Asked> {
        port(self.0.ask_person(caller, ask))
    }

    fn context<'a>(&'a self, caller: &'a Caller) -> PortFuture<'a, SessionContext> {
        port(async move { context::of(&self.0, caller.session, None) })
    }

    fn working_directory(&self, caller: &Caller) -> Option<PathBuf> {
        let created = lineage::created(&self.0, caller.session).ok()?;
        Some(PathBuf::from(&*created.working_directory))
    }
}
