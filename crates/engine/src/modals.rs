//! Questions to a person, as the host knows them: which are open, by whom they are asked through which ancestors, and who waits
//! for the answer. What an answer is and when a question ends are rules of `session`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use attache_agent::{AskPerson, Asked, Caller, Questions};
use attache_session::{
    Answer, Command, ErrorCode, Json, Modal, ModalAnswer, ModalId, ModalState, SessionId, Timestamp,
};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::ask::Shared;
use crate::error::EngineError;
use crate::lineage;
use crate::observe::Change;

/// How long an answer is waited for where the definition does not say.
const WAITED_FOR: u32 = 60 * 60;

/// Longest schema of a form, in bytes.
const SCHEMA_LIMIT: usize = 64 * 1024;

/// A session on the way from a root to who asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathStep {
    /// The session.
    pub session: SessionId,
    /// Its name.
    pub name: Arc<str>,
}

/// A question that is open.
#[derive(Clone, PartialEq, Debug)]
pub struct OpenModal {
    /// The question.
    pub modal: Arc<Modal>,
    /// Who asks, last, and its ancestors by who created whom, the root first.
    pub path: Arc<[PathStep]>,
    /// When it was asked.
    pub at: Timestamp,
}

impl OpenModal {
    /// Who asks.
    #[must_use]
    pub fn asker(&self) -> SessionId {
        self.path
            .last()
            .map_or(SessionId(Uuid::nil()), |step| step.session)
    }

    fn passes(&self, session: SessionId) -> bool {
        self.path.iter().any(|step| step.session == session)
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Modals(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// In the order in which they were asked.
    open: Vec<OpenModal>,
    waiters: HashMap<ModalId, oneshot::Sender<ModalState>>,
    /// Which sessions that wait for another were told of which question: once is enough.
    told: HashSet<(SessionId, ModalId)>,
}

impl Modals {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open questions of a session and of all below it.
    pub(crate) fn below(&self, session: SessionId) -> Vec<OpenModal> {
        let inner = self.lock();
        let open = inner.open.iter().filter(|open| open.passes(session));
        open.cloned().collect()
    }

    /// Whether somebody below a session asks of which `waiter` was not told. It is from now on.
    pub(crate) fn tell_of(&self, waiter: SessionId, session: SessionId) -> bool {
        let mut inner = self.lock();
        let Inner { open, told, .. } = &mut *inner;
        let mut is_new = false;
        for open in open.iter().filter(|open| open.passes(session)) {
            is_new |= told.insert((waiter, open.modal.id));
        }
        is_new
    }

    fn find(&self, session: SessionId, modal: ModalId) -> Option<OpenModal> {
        let inner = self.lock();
        let mut open = inner.open.iter();
        open.find(|open| open.modal.id == modal && open.asker() == session)
            .cloned()
    }
}

/// One who waits for an answer. Dropped, it does not any more.
struct Waiter<'a> {
    modals: &'a Modals,
    modal: ModalId,
    answer: oneshot::Receiver<ModalState>,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.modals.lock().waiters.remove(&self.modal);
    }
}

impl Shared {
    /// A question was raised or has ended, and that is durable: whoever waits is told, and so are the viewers of all
    /// sessions through which it is asked.
    pub(crate) fn modal_changed(
        &self,
        session: SessionId,
        modal: &Arc<Modal>,
        state: &ModalState,
        at: Timestamp,
    ) {
        let open = if *state == ModalState::Open {
            let open = OpenModal {
                modal: Arc::clone(modal),
                path: self.path(session),
                at,
            };
            self.modals.lock().open.push(open.clone());
            open
        } else {
            let mut inner = self.modals.lock();
            let place = inner.open.iter().position(|open| open.modal.id == modal.id);
            // One of an earlier life of the host is known to nobody here.
            let Some(place) = place else { return };
            inner.told.retain(|(_, told)| *told != modal.id);
            if let Some(waiter) = inner.waiters.remove(&modal.id) {
                // A call that has gone needs no answer.
                let _told = waiter.send(state.clone());
            }
            inner.open.remove(place)
        };
        for step in open.path.iter() {
            if let Some(mailbox) = self.registry.in_use(step.session)
                && let Some(observation) = mailbox.observation()
            {
                observation.publish([Change::Modal {
                    open: open.clone(),
                    state: state.clone(),
                }]);
            }
            if step.session != session {
                self.registry.changed(step.session);
            }
        }
    }

    /// The way from the root to a session.
    fn path(&self, session: SessionId) -> Arc<[PathStep]> {
        let chain = self.chain(session).unwrap_or_default();
        let path: Vec<PathStep> = chain
            .iter()
            .filter_map(|payer| {
                let row = self.row(payer.session).ok()??;
                Some(PathStep {
                    session: payer.session,
                    name: Arc::clone(&row.view.summary.name),
                })
            })
            .collect();
        path.into()
    }

    /// Puts a question of a call, to whom its definition says, and waits for what comes of it.
    pub(crate) async fn ask_person(
        self: &Arc<Self>,
        caller: &Caller,
        ask: AskPerson,
    ) -> Result<Asked, EngineError> {
        let created = lineage::created(self, caller.session)?;
        let compiled = self
            .interned
            .get(&created.definition, &self.config.toolsets)?;
        let limits = compiled.definition.limits;
        let has_parent = !self
            .known_row(caller.session)?
            .view
            .summary
            .parents
            .is_empty();
        match limits.questions {
            Questions::Deny => {
                let text = "nobody can be asked: the definition of this agent denies questions";
                return Err(EngineError::new(ErrorCode::NotPermitted, text));
            }
            Questions::AskParent if has_parent => {
                self.ask_parent(caller, &ask).await?;
                return Ok(Asked::Parent);
            }
            Questions::AskParent | Questions::Ask => {}
        }
        let seconds = limits.question_seconds.unwrap_or(WAITED_FOR);
        let modal = Arc::new(self.modal(caller, ask, seconds)?);
        let (sender, answer) = oneshot::channel();
        self.modals.lock().waiters.insert(modal.id, sender);
        let mut waiter = Waiter {
            modals: &self.modals,
            modal: modal.id,
            answer,
        };
        let raise = Command::RaiseModal {
            modal: Arc::clone(&modal),
        };
        self.ask(caller.session, raise).await?;
        let over = Duration::from_secs(seconds.into());
        let state = match tokio::time::timeout(over, &mut waiter.answer).await {
            Ok(state) => state,
            Err(_over) => {
                let expire = Command::ExpireModal { modal: modal.id };
                // Unchanged where an answer was first.
                self.ask(caller.session, expire).await?;
                (&mut waiter.answer).await
            }
        };
        match state {
            Ok(ModalState::Answered { answer, by }) => Ok(Asked::Answered { answer, by }),
            Ok(ModalState::Expired) => Ok(Asked::Expired),
            Ok(ModalState::Withdrawn | ModalState::Open) | Err(_) => Err(EngineError::lost()),
        }
    }

    fn modal(&self, caller: &Caller, ask: AskPerson, seconds: u32) -> Result<Modal, EngineError> {
        let AskPerson {
            tool,
            arguments,
            kind,
            text,
            body,
            choices,
            free,
            schema,
        } = ask;
        if let Some(schema) = &schema {
            let invalid = |text: String| EngineError::new(ErrorCode::InvalidArguments, text);
            if schema.to_string().len() > SCHEMA_LIMIT {
                return Err(invalid("the schema has more than 64 KiB".to_owned()));
            }
            jsonschema::validator_for(schema)
                .map_err(|fault| invalid(format!("the schema is none: {fault}")))?;
        }
        let digest = Sha256::digest(arguments.as_bytes());
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Modal {
            id: ModalId(self.config.time.fresh()),
            turn: caller.turn,
            call: Arc::clone(&caller.call),
            tool,
            digest: digest.into(),
            kind,
            text: text.into(),
            body: body.map(Into::into),
            choices: choices.into_iter().map(Into::into).collect(),
            free,
            schema: schema.map(|schema| Json::from_checked(schema.to_string())),
            seconds,
        })
    }

    /// Tells those who hold the session what it asks; the answer comes as input.
    async fn ask_parent(
        self: &Arc<Self>,
        caller: &Caller,
        ask: &AskPerson,
    ) -> Result<(), EngineError> {
        let me = caller.session;
        let mut text = format!(
            "Session {me} asks you, because its definition puts its questions to you and not to a person. Answer it with \
             agent_session_send. It asks: {:?}",
            ask.text
        );
        if !ask.choices.is_empty() {
            text.push_str(&format!(" It offers the answers {:?}.", ask.choices));
        }
        if let Some(schema) = &ask.schema {
            text.push_str(&format!(
                " It wants values that fit the JSON schema {schema}."
            ));
        }
        let tell = Command::TellParents {
            turn: caller.turn,
            code: "asks".into(),
            text: text.into(),
        };
        self.ask(me, tell).await?;
        Ok(())
    }

    /// Answers an open question; the first answer counts.
    pub(crate) async fn answer_modal(
        self: &Arc<Self>,
        session: SessionId,
        modal: ModalId,
        answer: ModalAnswer,
        by: Arc<str>,
        key: Option<(Uuid, [u8; 32])>,
    ) -> Result<Answer, EngineError> {
        if let Some(open) = self.modals.find(session, modal)
            && let (Some(schema), Some(content)) = (&open.modal.schema, &answer.content)
        {
            fits(schema, content)?;
        }
        let answer = Command::AnswerModal { modal, answer, by };
        self.ask_keyed(session, answer, key).await
    }
}

/// Whether a form's values fit its schema.
fn fits(schema: &Json, content: &Json) -> Result<(), EngineError> {
    let invalid = |text: String| EngineError::new(ErrorCode::InvalidArguments, text);
    let read = |json: &Json| serde_json::from_str::<serde_json::Value>(json.as_str());
    let (Ok(schema), Ok(content)) = (read(schema), read(content)) else {
        return Err(invalid("the values are no JSON".to_owned()));
    };
    let schema = jsonschema::validator_for(&schema)
        .map_err(|fault| invalid(format!("the form's schema is none: {fault}")))?;
    schema.validate(&content).map_err(|fault| {
        let place = fault.instance_path().to_string();
        let place = if place.is_empty() {
            "the values"
        } else {
            &*place
        };
        invalid(format!("{place}: {fault}"))
    })
}
