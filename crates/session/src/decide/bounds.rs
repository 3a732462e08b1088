//! Rules for what binds a tree: limits are set by people, and a session is told when one of its own is nearly used up.

use std::sync::Arc;

use super::Draft;
use super::mail::push_notice;
use crate::budget::{Bounds, BudgetChange, Limit};
use crate::command::Answer;
use crate::event::Event;
use crate::id::{Ids, WatchId};
use crate::outcome::EndReason;

/// A limit that is set anew is told of anew.
pub(super) fn set(draft: &mut Draft, change: &BudgetChange, paused: Option<bool>) -> Answer {
    let mut bounds = Bounds::clone(&draft.state.bounds);
    bounds.budget = bounds.budget.with(change);
    bounds.paused = paused.unwrap_or(bounds.paused);
    let before = draft.state.bounds.budget;
    let budget = bounds.budget;
    bounds
        .told
        .retain(|limit| budget.get(*limit) == before.get(*limit));
    put(draft, bounds)
}

/// Tells the session, if it lives and has not been told. When nothing is left by then only people are: input would start a
/// run that ends at once.
pub(super) fn nearly_spent(
    draft: &mut Draft,
    limit: Limit,
    used: u64,
    most: u64,
    ids: &mut dyn Ids,
) -> Answer {
    let state = &draft.state;
    let known = state.bounds.told.contains(&limit);
    if known || !state.is_live() || state.bounds.budget.get(limit) != Some(most) {
        return Answer::Unchanged;
    }
    let mut bounds = Bounds::clone(&state.bounds);
    bounds.told.push(limit);
    let about = state.id;
    put(draft, bounds);
    if used >= most {
        let text = format!(
            "the budget of this session and its sub-agents is used up: {limit}, {} of {}",
            limit.shown(used),
            limit.shown(most)
        );
        draft.push(Event::Noted {
            code: EndReason::Budget.as_str().into(),
            text: text.into(),
        });
        return Answer::Done;
    }
    let text = format!(
        "Four fifths of the budget of this session and its sub-agents are used: {limit}, {} of {}. At the limit every run \
         of the tree ends at its next step. Bring the work to an end, or leave out what can be left out.",
        limit.shown(used),
        limit.shown(most),
    );
    let watch = WatchId(ids.fresh());
    push_notice(draft, about, watch, &text.into(), None, ids);
    Answer::Done
}

fn put(draft: &mut Draft, bounds: Bounds) -> Answer {
    if bounds == *draft.state.bounds {
        return Answer::Unchanged;
    }
    let bounds = Arc::new(bounds);
    draft.push(Event::BoundsSet { bounds });
    Answer::Done
}
