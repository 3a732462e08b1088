//! The engine as doors use it: start, create, command, read, watch, wait, stop.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attache_agent::{Definition, SessionContext, Toolsets};
use attache_session::{
    Answer, Birth, Budget, BudgetChange, Command, Created, EndReason, Epoch, ErrorCode, Generation,
    ItemId, Json, Ledger, Limit, ModalAnswer, ModalId, Origin, Position, SessionId, Setting, State,
    Status,
};
use attache_store::{Append, Born, LogItem, Page, PageQuery, RowFilter};
use uuid::Uuid;

use crate::ask::{FreshIds, Shared};
use crate::catalog::Catalog;
use crate::config::{Config, Environment};
use crate::error::EngineError;
use crate::lineage;
use crate::modals::OpenModal;
use crate::observe::{Observed, Observer, TreeFeed};
use crate::port::Port;
use crate::settings::ToolSwitch;
use crate::unviewed::Viewing;
use crate::view::SessionRow;
use crate::waits::{Quiet, until_settled};
use crate::{context, ledger, recovery};

/// Starts engines.
pub struct Engine;

/// A root session that is to be created.
#[derive(Clone, Debug)]
pub struct NewRoot {
    /// The id that it gets; a caller that repeats itself after a lost answer names the same one.
    pub id: Option<SessionId>,
    /// Its definition, parameters filled in.
    pub definition: Definition,
    /// The model as `PROVIDER/MODEL`; empty for a session that runs no turns and whose children get
    /// what the settings name by then.
    pub model: String,
    /// Where its tools work: an absolute folder that exists.
    pub working_directory: PathBuf,
    /// Its name; the definition's when there is none.
    pub name: Option<String>,
    /// First input.
    pub first: Option<String>,
    /// Variables of the client, for it and its descendants.
    pub environment: Environment,
    /// Whether it goes on without viewers.
    pub continue_in_background: bool,
    /// False for one that stands for a program outside.
    pub runs_turns: bool,
    /// Limits of its tree, over those of its definition and those that every root has.
    pub budget: BudgetChange,
}

/// A running engine. Cheap to clone.
#[derive(Clone)]
pub struct EngineHandle(Arc<Shared>);

impl Engine {
    /// Starts an engine over a store. What an earlier life of the host left open is written down in
    /// the background; it reads so at once.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the store cannot be read or written.
    pub async fn start(config: Config) -> Result<EngineHandle, EngineError> {
        let entities = context::identify(&config.store, &config.time, &config.identity).await?;
        let shared = Arc::new(Shared::new(config, entities));
        tokio::spawn(recovery::recover_all(Arc::clone(&shared)));
        Ok(EngineHandle(shared))
    }
}

impl EngineHandle {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    /// Creates a root session; with first input, its first turn starts.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the definition asks for unknown tools or the store refuses.
    pub async fn create_root(&self, new: NewRoot) -> Result<SessionId, EngineError> {
        let shared = &self.0;
        if shared.is_closing() {
            return Err(EngineError::closing());
        }
        let NewRoot {
            id,
            definition,
            model,
            working_directory,
            name,
            first,
            environment,
            continue_in_background,
            runs_turns,
            budget,
        } = new;
        shared
            .config
            .toolsets
            .belt(&definition.tools)
            .map_err(|error| EngineError::new(ErrorCode::DefinitionInvalid, error.to_string()))?;
        // Nothing is made whose first run could only fail. Where none runs, a child is asked for it.
        if runs_turns {
            shared.config.models.resolve(&model, &environment)?;
        }
        let budget = Budget::of_a_root().with(&definition.budget).with(&budget);
        if runs_turns && budget.get(Limit::Usd).is_some() {
            lineage::priced(shared, &model, &environment)?;
        }
        let id = id.unwrap_or_else(|| SessionId(shared.config.time.fresh()));
        let created = Created {
            name: name.unwrap_or_else(|| definition.name.clone()).into(),
            agent: definition.name.as_str().into(),
            definition: definition.to_json(),
            model: model.into(),
            working_directory: working_directory.display().to_string().into(),
            root: id,
            parents: Vec::new(),
            takes_input: runs_turns,
            runs_turns,
            owning_profile: shared.entities.profile,
            executor_bindings: Json::from_checked("[]"),
            trust: None,
            continue_in_background,
            budget,
        };
        let epoch = Epoch(shared.config.time.fresh());
        let first = first.map(|text| {
            (
                ItemId(shared.config.time.fresh()),
                Arc::from(text),
                Origin::Viewer,
            )
        });
        let new = attache_session::NewSession {
            id,
            epoch,
            created,
            first,
        };
        let birth = Birth::of(&new, shared.now(), &mut FreshIds(shared));
        let Some(born) = Born::of(&birth, Generation(1)) else {
            return Err(EngineError::new(
                ErrorCode::Internal,
                "a birth without its first event",
            ));
        };
        let append = Append {
            session: id,
            generation: born.generation,
            expected: Position(0),
            events: born.events,
            summary: born.summary,
            mail: Vec::new(),
            taken: Vec::new(),
            charges: Vec::new(),
            births: Vec::new(),
            links: Vec::new(),
            command: None,
            expects: Vec::new(),
        };
        #[cfg(feature = "fault")]
        let kinds = attache_store::fault::kinds(&append);
        shared.set_environment(id, environment);
        let before = shared.registry.set_epoch(id, Some(epoch));
        if let Err(refused) = shared.config.store.commit(append).await {
            shared.registry.set_epoch(id, before);
            if before.is_none() {
                shared.forget_environment(id);
            }
            return Err(refused.into());
        }
        #[cfg(feature = "fault")]
        for kind in &kinds {
            attache_store::fault::reached(kind, attache_store::fault::Place::BeforeEffect);
        }
        shared.changed(id);
        shared.wake(id);
        Ok(id)
    }

    /// Asks a session to carry out a command of a viewer. `key` is the id that the viewer gave it
    /// with a digest of its content: a repeat gets the first answer.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the rules or the store refuse it.
    pub async fn command(
        &self,
        session: SessionId,
        command: Command,
        key: Option<(Uuid, [u8; 32])>,
    ) -> Result<Answer, EngineError> {
        if self.0.is_closing() {
            return Err(EngineError::closing());
        }
        self.0.not_fenced(session)?;
        self.0.ask_keyed(session, command, key).await
    }

    /// What a viewer's command was answered when it was carried out; none when it has not been. For commands that would do
    /// something before they are put to their session.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the id was another command's, or the store cannot be read.
    pub fn first_answer(
        &self,
        session: SessionId,
        key: (Uuid, [u8; 32]),
    ) -> Result<Option<Answer>, EngineError> {
        crate::plan::first_answer(&self.0, session, key)
    }

    /// Starts an epoch where there is none; what waited is then consumed.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown or the store refuses.
    pub async fn start(
        &self,
        session: SessionId,
        environment: Option<Environment>,
    ) -> Result<Answer, EngineError> {
        if self.0.is_closing() {
            return Err(EngineError::closing());
        }
        if let Some(environment) = environment {
            self.provide(session, environment)?;
        }
        self.0.fence_gone(session).await;
        let epoch = Epoch(self.0.config.time.fresh());
        self.0.ask(session, Command::Start { epoch }).await
    }

    /// Hands over variables of a client that goes on with a session. A root that is stopped begins
    /// anew with them; else its tree gets those that it lacks, and keeps those that it has. The answer
    /// is whether it lacked any.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown.
    pub fn provide(
        &self,
        session: SessionId,
        environment: Environment,
    ) -> Result<bool, EngineError> {
        let row = self.0.known_row(session)?;
        if row.root == session && self.0.registry.epoch(session).is_none() {
            self.0.set_environment(session, environment);
            return Ok(false);
        }
        Ok(self.0.fill_environment(row.root, environment))
    }

    /// Cuts a session's conversation for its model now, with a summary that the model makes. The history stays.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown, there is nothing to cut, or the model fails.
    pub async fn compact(&self, session: SessionId) -> Result<(), EngineError> {
        crate::compaction::compact(&self.0, session).await
    }

    /// Ends a session's run; with `tree`, those of all its descendants too. The answer is whether
    /// any ran.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown.
    pub async fn interrupt(&self, session: SessionId, tree: bool) -> Result<bool, EngineError> {
        if tree {
            self.0.known_row(session)?;
            let ended = self.0.end_runs(session, EndReason::Interrupted).await?;
            Ok(ended.any)
        } else {
            self.0.cancel(session, EndReason::Interrupted).await
        }
    }

    /// Ends a session's epoch now, with every descendant that no other living parent holds. The
    /// answer is whether it had one.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown or the store refuses.
    pub async fn terminate(&self, session: SessionId) -> Result<bool, EngineError> {
        self.0.known_row(session)?;
        self.0.end_epochs(session).await
    }

    /// Deletes a stored session. One that is idle is ended first.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown, or when it runs or a descendant that would end with
    /// it does.
    pub async fn delete(&self, session: SessionId) -> Result<(), EngineError> {
        let row = self.0.known_row(session)?;
        match row.status {
            Status::Running => {
                return Err(EngineError::new(
                    ErrorCode::NotPermitted,
                    format!("session {session} is running; interrupt or terminate it first"),
                ));
            }
            Status::Idle | Status::Error => {
                let running = self.0.running_below(session)?;
                if running > 0 {
                    let are = if running == 1 {
                        "descendant is"
                    } else {
                        "descendants are"
                    };
                    return Err(EngineError::new(
                        ErrorCode::NotPermitted,
                        format!(
                            "{running} {are} running and would end with session {session}; wait \
                             for the end, or terminate it first"
                        ),
                    ));
                }
                self.0.end_epochs(session).await?;
            }
            Status::Stopped => {
                // An earlier life of the host may have left it with watchers that nobody has told
                // yet. What cannot be loaded can be removed all the same.
                let _told = self.0.sync(session).await;
            }
        }
        // What cannot be told now holds nothing up: the sender may be unreadable itself.
        let _told = self.0.tell_undeliverable(session).await;
        self.0.config.store.delete(session).await?;
        if row.root == session {
            self.0.forget_environment(session);
        }
        self.0.changed(session);
        Ok(())
    }

    /// A session's row.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown or the store cannot be read.
    pub fn row(&self, session: SessionId) -> Result<SessionRow, EngineError> {
        self.0.known_row(session)
    }

    /// A session's row as of a state of it that an [`Observer`] gave: what others did to it since,
    /// its unread mail, is of now, and it itself is not ahead of the records that were seen.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown or the store cannot be read.
    ///
    /// [`Observer`]: crate::Observer
    pub fn row_as_of(&self, state: &State) -> Result<SessionRow, EngineError> {
        self.0.row_as_of(state)
    }

    /// Rows of a listing, all pages of it.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the store cannot be read.
    pub fn rows(&self, filter: RowFilter) -> Result<Vec<SessionRow>, EngineError> {
        lineage::rows(&self.0, filter)
    }

    /// One page of rows of a listing: at most `limit` after `after`.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the store cannot be read.
    pub fn rows_after(
        &self,
        filter: RowFilter,
        after: Option<SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, EngineError> {
        let rows = self.0.config.store.rows(filter, after, limit)?;
        Ok(rows
            .into_iter()
            .map(|row| SessionRow::of(row, &self.0.registry))
            .collect())
    }

    /// What a session was born with.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown or the store cannot be read.
    pub fn created(&self, session: SessionId) -> Result<Arc<Created>, EngineError> {
        lineage::created(&self.0, session)
    }

    /// A page of stored events.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown or the store cannot be read.
    pub fn page(&self, session: SessionId, query: &PageQuery) -> Result<Page, EngineError> {
        self.0.known_row(session)?;
        Ok(self.0.config.store.page(session, query)?)
    }

    /// The tool calls of a session's last run, or of the one that runs now; none when it has had no run, or nothing is
    /// known of it.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown or the store cannot be read.
    pub fn ledger(&self, session: SessionId) -> Result<Option<Ledger>, EngineError> {
        ledger::of(&self.0, session)
    }

    /// Stored events after a position.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the store cannot be read.
    pub fn log(
        &self,
        session: SessionId,
        after: Position,
        limit: usize,
    ) -> Result<Vec<LogItem>, EngineError> {
        Ok(self.0.config.store.events(session, after, limit)?)
    }

    /// Sessions whose id ends with `suffix`.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the store cannot be read.
    pub fn ids_ending(&self, suffix: &str, limit: usize) -> Result<Vec<SessionId>, EngineError> {
        Ok(self.0.config.store.ids_ending(suffix, limit)?)
    }

    /// What a session can know of itself.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the store cannot be read.
    pub fn context(
        &self,
        session: SessionId,
        host_parents: Option<&[SessionId]>,
    ) -> Result<SessionContext, EngineError> {
        context::of(&self.0, session, host_parents)
    }

    /// Attaches a viewer: the session now, and all that follows.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown or cannot be loaded.
    pub async fn attach(&self, session: SessionId) -> Result<Observed, EngineError> {
        let viewing = self.view(session).await?;
        let observation = viewing.mailbox().observe();
        let snapshot = self.0.snapshot(session).await?;
        let observer = Observer::new(viewing, observation, snapshot.window_end, &snapshot.live);
        Ok(Observed { snapshot, observer })
    }

    /// Counts a viewer who has not attached yet, for as long as the answer lives. Where the epoch is just being ended because
    /// nobody looked on, that comes first.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown.
    pub async fn view(&self, session: SessionId) -> Result<Viewing, EngineError> {
        self.0.known_row(session)?;
        loop {
            if let Some(viewing) = Viewing::begin(&self.0, session) {
                return Ok(viewing);
            }
            self.0.fence_gone(session).await;
        }
    }

    /// Says that a viewer works with a session and does not only look: when its last viewer has left and nothing else holds
    /// it, it ends unless it is to continue in the background. That holds until its epoch is over.
    pub fn opened(&self, session: SessionId) {
        self.0.opened(session);
    }

    /// Changes a setting of a session. Switching off that it continues in the background ends it like its last viewer's
    /// leaving where nobody looks on.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown, the rules or the store refuse it, there is no such tool, or the model
    /// cannot be had.
    pub async fn set(
        &self,
        session: SessionId,
        setting: Setting,
        key: Option<(Uuid, [u8; 32])>,
    ) -> Result<Answer, EngineError> {
        self.0.may_set(session, &setting)?;
        let stays = setting != Setting::ContinueInBackground(false);
        let answer = self.command(session, Command::Set { setting }, key).await?;
        if !stays {
            self.0.no_longer_by_itself(session);
        }
        Ok(answer)
    }

    /// The state of a session now: its queues, its open calls, its children.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown or cannot be loaded.
    pub async fn state(
        &self,
        session: SessionId,
    ) -> Result<Arc<attache_session::State>, EngineError> {
        Ok(self.0.snapshot(session).await?.state)
    }

    /// Whether a viewer is attached to a session.
    #[must_use]
    pub fn is_viewed(&self, session: SessionId) -> bool {
        self.0
            .registry
            .in_use(session)
            .is_some_and(|mailbox| mailbox.is_viewed())
    }

    /// What streams in a session now.
    #[must_use]
    pub fn live(&self, session: SessionId) -> Option<crate::live::LiveItem> {
        Some(self.0.registry.in_use(session)?.live.read(Clone::clone))
    }

    /// Which sessions a session waits for by a call that is under way.
    #[must_use]
    pub fn waiting_for(&self, session: SessionId) -> Vec<SessionId> {
        self.0.waiting.of(session)
    }

    /// Watches the rows of all sessions.
    #[must_use]
    pub fn tree_feed(&self) -> TreeFeed {
        self.0.feeds.subscribe()
    }

    /// The questions to a person that are open in a session and in all below it, in the order in which they were asked.
    #[must_use]
    pub fn modals(&self, session: SessionId) -> Vec<OpenModal> {
        self.0.modals.below(session)
    }

    /// Answers an open question of a session; the first answer counts. `by` is the program by which it came.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown, the question is not open any more, or the answer does not fit it.
    pub async fn answer_modal(
        &self,
        session: SessionId,
        modal: ModalId,
        answer: ModalAnswer,
        by: &str,
        key: Option<(Uuid, [u8; 32])>,
    ) -> Result<Answer, EngineError> {
        self.0
            .answer_modal(session, modal, answer, by.into(), key)
            .await
    }

    /// The tools of a session's definition, and which of them its model is offered, in the order in which it sees them.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the definition asks for tools that this host does not have.
    pub fn tools(&self, state: &State) -> Result<Vec<ToolSwitch>, EngineError> {
        self.0.tools(state)
    }

    /// Waits until a session, or it with all its descendants, has settled.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown or the store cannot be read.
    pub async fn settled(&self, session: SessionId, reach: Quiet) -> Result<(), EngineError> {
        self.0.known_row(session)?;
        until_settled(&self.0, session, reach).await
    }

    /// The sessions as tools reach them.
    #[must_use]
    pub fn sessions(&self) -> Arc<dyn attache_agent::Sessions> {
        Arc::new(Port(Arc::clone(&self.0)))
    }

    /// The definitions that can be named.
    #[must_use]
    pub fn catalog(&self) -> &Arc<dyn Catalog> {
        &self.0.config.catalog
    }

    /// The toolsets that definitions can ask for.
    #[must_use]
    pub fn toolsets(&self) -> &Toolsets {
        &self.0.config.toolsets
    }

    /// How many sessions have an epoch, and how many of them are at work.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        let in_use = self.0.registry.all_in_use();
        let busy = in_use
            .iter()
            .filter(|(_, mailbox)| mailbox.running_turn().is_some());
        (self.0.registry.live_count(), busy.count())
    }

    /// Whether a session is at work, or a viewer looks on or may come back.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        let in_use = self.0.registry.all_in_use();
        in_use
            .iter()
            .any(|(_, mailbox)| mailbox.running_turn().is_some() || mailbox.is_viewed())
    }

    /// Ends all work in good order: no new work, `grace` for the turns that run, then each gets its
    /// record. Returns when nothing runs any more.
    pub async fn shutdown(&self, grace: Duration) {
        self.0.shut_down(grace).await;
    }
}
