//! Rules for questions to a person: they queue up behind each other, the first answer counts, and none outlives its call.

use std::sync::Arc;

use super::Draft;
use crate::command::{Answer, Rejected};
use crate::event::Event;
use crate::id::ModalId;
use crate::modal::{Modal, ModalAnswer, ModalState, OPEN_MODALS};

/// Puts a question of an open call of the current turn behind those that are open.
pub(super) fn raise(draft: &mut Draft, modal: &Arc<Modal>) -> Result<Answer, Rejected> {
    let Some(open) = draft.state.turn.as_ref().filter(|it| it.id == modal.turn) else {
        return Err(Rejected::StaleTurn { turn: modal.turn });
    };
    if !open.calls.iter().any(|call| call.id == modal.call) {
        let call = Arc::clone(&modal.call);
        return Err(Rejected::UnknownCall { call });
    }
    modal.check().map_err(|why| Rejected::NoQuestion { why })?;
    if draft.state.modals.iter().any(|known| known.id == modal.id) {
        return Ok(Answer::Unchanged);
    }
    if draft.state.modals.len() >= OPEN_MODALS {
        return Err(Rejected::TooManyQuestions { most: OPEN_MODALS });
    }
    settle(draft, modal, ModalState::Open);
    Ok(Answer::Done)
}

/// The first answer that fits counts.
pub(super) fn answer(
    draft: &mut Draft,
    modal: ModalId,
    answer: &ModalAnswer,
    by: &Arc<str>,
) -> Result<Answer, Rejected> {
    let known = draft.state.modals.iter().find(|known| known.id == modal);
    let known = Arc::clone(known.ok_or(Rejected::AlreadySettled)?);
    known
        .fits(answer)
        .map_err(|why| Rejected::NoAnswer { why })?;
    let state = ModalState::Answered {
        answer: answer.clone(),
        by: Arc::clone(by),
    };
    settle(draft, &known, state);
    Ok(Answer::Done)
}

/// Nobody has answered in time.
pub(super) fn expire(draft: &mut Draft, modal: ModalId) -> Answer {
    let known = draft.state.modals.iter().find(|known| known.id == modal);
    let Some(known) = known.map(Arc::clone) else {
        return Answer::Unchanged;
    };
    settle(draft, &known, ModalState::Expired);
    Answer::Done
}

/// Takes back what calls have asked that are over.
pub(super) fn withdraw(draft: &mut Draft, is_over: impl Fn(&Modal) -> bool) {
    let open = draft.state.modals.iter();
    let over: Vec<Arc<Modal>> = open.filter(|modal| is_over(modal)).cloned().collect();
    for modal in over {
        settle(draft, &modal, ModalState::Withdrawn);
    }
}

fn settle(draft: &mut Draft, modal: &Arc<Modal>, state: ModalState) {
    draft.push(Event::ModalSet {
        modal: Arc::clone(modal),
        state,
    });
}
