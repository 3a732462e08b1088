//! Questions to a person, from the engine's values to frames and back. A frame has room for each of them.

use attache_engine::{EngineError, OpenModal, PathStep};
use attache_protocol::{
    ModalAnswer as AnswerView, ModalEnd, ModalKind as KindView, ModalView, Patch, PathView, json,
};
use attache_session::{
    ErrorCode, Json, Modal, ModalAnswer, ModalId, ModalKind, ModalState, preview,
};

use crate::to_wire;

/// Characters of a question's texts on the wire: with its choices it stays far below a frame's limit.
const TEXT_CHARS: usize = 4 * 1024;

/// An open question.
pub(crate) fn view(open: &OpenModal) -> ModalView {
    let asker = open.asker();
    let OpenModal { modal, path, at } = open;
    let Modal {
        id,
        turn: _,
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
    } = &**modal;
    let cut = |text: &str| preview(text, TEXT_CHARS).0.to_owned();
    ModalView {
        modal_id: id.to_string(),
        session_id: asker.to_string(),
        path: path.iter().map(step).collect(),
        kind: match kind {
            ModalKind::Permission => KindView::Permission,
            ModalKind::Question => KindView::Question,
            ModalKind::Form => KindView::Form,
            ModalKind::Plan => KindView::Plan,
            ModalKind::SignIn => KindView::SignIn,
        },
        text: cut(text),
        body: body.as_deref().map(cut),
        choices: choices.iter().map(ToString::to_string).collect(),
        free: *free,
        schema: schema.as_ref().and_then(|schema| json(schema.as_str())),
        tool: tool.to_string(),
        call_id: call.to_string(),
        arguments_digest: digest.to_string(),
        raised_at: to_wire::time(*at),
        seconds: *seconds,
    }
}

fn step(step: &PathStep) -> PathView {
    let PathStep { session, name } = step;
    PathView {
        session_id: session.to_string(),
        name: name.to_string(),
    }
}

/// What viewers are told of a question that was raised or has ended.
pub(crate) fn patch(open: &OpenModal, state: ModalState) -> Patch {
    let end = match state {
        ModalState::Open => {
            let modal = Box::new(view(open));
            return Patch::ModalPut { modal };
        }
        ModalState::Answered { answer, by } => {
            let ModalAnswer {
                accepted,
                text,
                content,
            } = answer;
            ModalEnd::Answered {
                answer: AnswerView {
                    accepted,
                    text: text.map(|text| preview(&text, TEXT_CHARS).0.to_owned()),
                    content: content.and_then(|content| json(content.as_str())),
                },
                by: by.to_string(),
            }
        }
        ModalState::Expired => ModalEnd::Expired {},
        ModalState::Withdrawn => ModalEnd::Withdrawn {},
    };
    Patch::ModalGone {
        asker_session_id: open.asker().to_string(),
        modal_id: open.modal.id.to_string(),
        end,
    }
}

/// The id of a question. What is none names no open question.
pub(crate) fn id(text: &str) -> Result<ModalId, EngineError> {
    let id = text.parse::<uuid::Uuid>().map(ModalId);
    id.map_err(|_none| {
        let text = "there is no such open question";
        EngineError::new(ErrorCode::AlreadySettled, text)
    })
}

/// An answer as it came.
pub(crate) fn answer(answer: AnswerView) -> ModalAnswer {
    let AnswerView {
        accepted,
        text,
        content,
    } = answer;
    ModalAnswer {
        accepted,
        text: text.map(Into::into),
        content: content.map(|content| Json::from_checked(content.to_string())),
    }
}
