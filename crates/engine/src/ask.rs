//! What all parts of an engine share, and the ways to reach a session's actor.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use attache_session::{
    Answer, Command, EndReason, Ids, SessionId, Starts, State, Summary, Timestamp,
};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::actor;
use crate::bounds::AllBounds;
use crate::busy::Busy;
use crate::compiled::Interned;
use crate::config::{Config, Environment};
use crate::context::Entities;
use crate::ending::Endings;
use crate::error::EngineError;
use crate::folds::Folds;
use crate::limits::Limits;
use crate::mailbox::{Ask, Message};
use crate::modals::Modals;
use crate::observe::{Snapshot, TreeFeeds};
use crate::places::Places;
use crate::registry::Registry;
use crate::view::SessionRow;
use crate::waits::Waiting;

/// What all parts of an engine share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) entities: Entities,
    pub(crate) registry: Registry,
    pub(crate) folds: Folds,
    pub(crate) interned: Interned,
    pub(crate) feeds: TreeFeeds,
    pub(crate) limits: Limits,
    pub(crate) bounds: AllBounds,
    pub(crate) places: Arc<Places>,
    pub(crate) busy: Busy,
    /// Variables of the clients that started the roots.
    environments: Mutex<HashMap<SessionId, Arc<Environment>>>,
    pub(crate) waiting: Waiting,
    pub(crate) endings: Endings,
    pub(crate) modals: Modals,
    closing: AtomicBool,
    cutting: AtomicBool,
}

/// Fresh ids for one decision.
pub(crate) struct FreshIds<'a>(pub(crate) &'a Shared);

impl Ids for FreshIds<'_> {
    fn fresh(&mut self) -> Uuid {
        self.0.config.time.fresh()
    }
}

/// The place where the answer to a command comes.
pub(crate) type Reply = oneshot::Receiver<Result<Answer, EngineError>>;

/// Waits for the answer to a command that [`Shared::post`] has put in line.
pub(crate) async fn answered(posted: Result<Reply, EngineError>) -> Result<Answer, EngineError> {
    posted?
        .await
        .unwrap_or_else(|_gone| Err(EngineError::lost()))
}

impl Shared {
    pub(crate) fn new(config: Config, entities: Entities) -> Self {
        Self {
            config,
            entities,
            registry: Registry::default(),
            folds: Folds::default(),
            interned: Interned::default(),
            feeds: TreeFeeds::default(),
            limits: Limits::default(),
            bounds: AllBounds::default(),
            places: Arc::default(),
            busy: Busy::default(),
            environments: Mutex::default(),
            waiting: Waiting::default(),
            endings: Endings::default(),
            modals: Modals::default(),
            closing: AtomicBool::new(false),
            cutting: AtomicBool::new(false),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.config.time.now()
    }

    /// A number from 0 up to 1, so that many do not do the same at the same moment.
    pub(crate) fn spread(&self) -> f64 {
        let random = self.config.time.fresh().as_u128() & 0xFFFF_FFFF;
        random as f64 / f64::from(u32::MAX)
    }

    pub(crate) fn environment(&self, root: SessionId) -> Arc<Environment> {
        let known = self
            .environments
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.get(&root).cloned().unwrap_or_default()
    }

    pub(crate) fn set_environment(&self, root: SessionId, environment: Environment) {
        let mut known = self
            .environments
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.insert(root, Arc::new(environment));
    }

    /// Adds variables that a root lacks, and says whether it lacked any.
    pub(crate) fn fill_environment(&self, root: SessionId, more: Environment) -> bool {
        let mut known = self
            .environments
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(known.entry(root).or_default()).fill_in(more)
    }

    pub(crate) fn forget_environment(&self, root: SessionId) {
        self.environments
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&root);
    }

    /// No new work from now on.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// The grace is over: a turn that ends now ends its session's epoch too.
    pub(crate) fn cut(&self) {
        self.cutting.store(true, Ordering::Release);
    }

    pub(crate) fn is_cutting(&self) -> bool {
        self.cutting.load(Ordering::Acquire)
    }

    /// Which turns of a session may start.
    pub(crate) fn starts(&self, session: SessionId) -> Starts {
        if self.is_closing() {
            return Starts::None;
        }
        self.ending_of(session)
            .map_or(Starts::All, |(_, starts)| starts)
    }

    /// How a turn of a session ends that begins now; none when it may go on.
    pub(crate) fn ends_at_once(&self, session: SessionId) -> Option<EndReason> {
        if self.is_closing() {
            return Some(EndReason::Interrupted);
        }
        self.ending_of(session).map(|(reason, _)| reason)
    }

    /// A session's row, as this life of the host sees it.
    pub(crate) fn row(&self, session: SessionId) -> Result<Option<SessionRow>, EngineError> {
        let row = self.config.store.row(session)?;
        Ok(row.map(|row| SessionRow::of(row, &self.registry)))
    }

    /// The same; an unknown session is an error.
    pub(crate) fn known_row(&self, session: SessionId) -> Result<SessionRow, EngineError> {
        self.row(session)?
            .ok_or_else(|| EngineError::unknown(session))
    }

    /// The row as it was in a state of the session; its unread mail is of now.
    pub(crate) fn row_as_of(&self, state: &State) -> Result<SessionRow, EngineError> {
        let mut row = self
            .config
            .store
            .row(state.id)?
            .ok_or_else(|| EngineError::unknown(state.id))?;
        if let Some(summary) = Summary::of(state) {
            row.summary = Arc::new(summary);
        }
        Ok(SessionRow::of(row, &self.registry))
    }

    /// Says to all who watch that a session, or what lies unread for it, has changed.
    pub(crate) fn changed(&self, session: SessionId) {
        self.registry.changed(session);
        self.feeds.changed(session);
    }

    /// Says that a session may have mail.
    pub(crate) fn wake(self: &Arc<Self>, session: SessionId) {
        let mailbox = self.registry.mailbox(session);
        if mailbox.wake() {
            actor::start(Arc::clone(self), session, mailbox);
        }
    }

    /// Asks a session to decide a command; the answer comes when it is durable.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        session: SessionId,
        command: Command,
    ) -> Result<Answer, EngineError> {
        self.ask_keyed(session, command, None).await
    }

    /// The same for a command that a viewer gave an id.
    pub(crate) async fn ask_keyed(
        self: &Arc<Self>,
        session: SessionId,
        command: Command,
        key: Option<(Uuid, [u8; 32])>,
    ) -> Result<Answer, EngineError> {
        answered(self.post(session, command, key)).await
    }

    /// Puts a command in line and gives the place where its answer will come.
    pub(crate) fn post(
        self: &Arc<Self>,
        session: SessionId,
        command: Command,
        key: Option<(Uuid, [u8; 32])>,
    ) -> Result<Reply, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.deliver(
            session,
            Message::Command(Box::new(Ask {
                command,
                key,
                reply,
            })),
        )?;
        Ok(answer)
    }

    /// Where a session stands.
    pub(crate) async fn snapshot(
        self: &Arc<Self>,
        session: SessionId,
    ) -> Result<Snapshot, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.deliver(session, Message::Snapshot(reply))?;
        answer
            .await
            .unwrap_or_else(|_gone| Err(EngineError::lost()))
    }

    /// Waits until a session has taken the mail that lies there now.
    pub(crate) async fn sync(self: &Arc<Self>, session: SessionId) -> Result<(), EngineError> {
        let (reply, answer) = oneshot::channel();
        self.deliver(session, Message::Sync(reply))?;
        answer.await.map_err(|_gone| EngineError::lost())
    }

    fn deliver(self: &Arc<Self>, session: SessionId, message: Message) -> Result<(), EngineError> {
        let mailbox = self.registry.mailbox(session);
        if mailbox.put(message)? {
            actor::start(Arc::clone(self), session, mailbox);
        }
        Ok(())
    }
}
