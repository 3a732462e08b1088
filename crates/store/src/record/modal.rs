//! The record of a question to a person, and of how it stands.

use std::sync::Arc;

use attache_session::{CallId, Json, Modal, ModalAnswer, ModalId, ModalKind, ModalState, TurnId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::parts::Count;

#[derive(Serialize, Deserialize)]
pub(super) struct ModalSetRecord {
    modal: Uuid,
    #[serde(default)]
    turn: Count,
    call: CallId,
    #[serde(default)]
    tool: Arc<str>,
    #[serde(default)]
    digest: Arc<str>,
    kind: String,
    #[serde(default)]
    text: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    choices: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    free: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<Arc<str>>,
    #[serde(default)]
    seconds: Count,
    state: StateRecord,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
enum StateRecord {
    Open {},
    Answered {
        #[serde(default)]
        accepted: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Arc<str>>,
        #[serde(default)]
        by: Arc<str>,
    },
    Expired {},
    Withdrawn {},
}

impl ModalSetRecord {
    pub(super) fn of(modal: &Modal, state: &ModalState) -> Self {
        let Modal {
            id,
            turn,
            call,
            tool,
            digest,
            kind,
            text,
            body,
            choices,
            free,
            schema,
            seconds,
        } = modal.clone();
        Self {
            modal: id.0,
            turn: turn.0.into(),
            call,
            tool,
            digest,
            kind: kind.as_str().to_owned(),
            text,
            body,
            choices,
            free,
            schema: schema.map(|schema| schema.shared()),
            seconds: seconds.into(),
            state: StateRecord::of(state),
        }
    }

    /// None for a kind of question that this version does not know.
    pub(super) fn value(self) -> Option<(Modal, ModalState)> {
        let Self {
            modal,
            turn,
            call,
            tool,
            digest,
            kind,
            text,
            body,
            choices,
            free,
            schema,
            seconds,
            state,
        } = self;
        let modal = Modal {
            id: ModalId(modal),
            turn: TurnId(turn.small()),
            call,
            tool,
            digest,
            kind: ModalKind::parse(&kind)?,
            text,
            body,
            choices,
            free,
            schema: schema.map(Json::from_checked),
            seconds: seconds.small(),
        };
        Some((modal, state.value()))
    }
}

impl StateRecord {
    fn of(state: &ModalState) -> Self {
        match state {
            ModalState::Open => Self::Open {},
            ModalState::Answered { answer, by } => {
                let ModalAnswer {
                    accepted,
                    text,
                    content,
                } = answer.clone();
                Self::Answered {
                    accepted,
                    text,
                    content: content.map(|content| content.shared()),
                    by: Arc::clone(by),
                }
            }
            ModalState::Expired => Self::Expired {},
            ModalState::Withdrawn => Self::Withdrawn {},
        }
    }

    fn value(self) -> ModalState {
        match self {
            Self::Open {} => ModalState::Open,
            Self::Answered {
                accepted,
                text,
                content,
                by,
            } => ModalState::Answered {
                answer: ModalAnswer {
                    accepted,
                    text,
                    content: content.map(Json::from_checked),
                },
                by,
            },
            Self::Expired {} => ModalState::Expired,
            Self::Withdrawn {} => ModalState::Withdrawn,
        }
    }
}
