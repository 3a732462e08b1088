//! Calls that a model makes again and again: told once, then stopped. A repetition is the same call in the next round
//! with the same result; tools whose answer may change by waiting are not counted.

use std::collections::HashMap;
use std::sync::Arc;

use attache_session::{CallId, Picture};

/// The time in a row at which a call ends the run, before it is made.
const TOO_OFTEN: u32 = 3;

/// What was called with what.
type Signature = (Arc<str>, String);

#[derive(Default)]
pub(super) struct Repeats {
    seen: HashMap<Signature, Seen>,
    /// Calls of this round.
    open: HashMap<CallId, Signature>,
    /// The tool whose call was just repeated, until the model is told.
    told: Option<Arc<str>>,
}

struct Seen {
    round: u32,
    times: u32,
    result: Option<Shown>,
}

/// What a result said and showed.
type Shown = (Arc<str>, Vec<Picture>);

impl Repeats {
    /// Whether a call would be made too often in a row.
    pub(super) fn is_too_often(&self, round: u32, name: &Arc<str>, arguments: &str) -> bool {
        let known = self.seen.get(&(Arc::clone(name), canonical(arguments)));
        known.is_some_and(|seen| seen.round + 1 == round && seen.times + 1 >= TOO_OFTEN)
    }

    /// A call is made.
    pub(super) fn begins(&mut self, round: u32, id: &CallId, name: &Arc<str>, arguments: &str) {
        let signature = (Arc::clone(name), canonical(arguments));
        self.seen.retain(|_, seen| seen.round + 1 >= round);
        let seen = self.seen.entry(signature.clone()).or_insert(Seen {
            round: round.saturating_sub(1),
            times: 0,
            result: None,
        });
        // The same call beside itself is one time.
        if seen.round < round {
            seen.times += 1;
            seen.round = round;
        }
        self.open.insert(Arc::clone(id), signature);
    }

    /// A call of this round has its result.
    pub(super) fn ends(&mut self, id: &CallId, content: &Arc<str>, images: &[Picture]) {
        let Some(signature) = self.open.remove(id) else {
            return;
        };
        let name = Arc::clone(&signature.0);
        let Some(seen) = self.seen.get_mut(&signature) else {
            return;
        };
        let same = seen
            .result
            .as_ref()
            .is_none_or(|(said, shown)| said == content && shown == images);
        seen.result = Some((Arc::clone(content), images.to_vec()));
        if !same {
            seen.times = 1;
        } else if seen.times > 1 {
            self.told = Some(name);
        }
    }

    /// What the model is to be told now of a call that it repeated.
    pub(super) fn remark(&mut self) -> Option<String> {
        let name = self.told.take()?;
        let (name, _) = attache_session::preview(&name, 64);
        Some(format!(
            "You have called {name:?} again with the same arguments, and the result is the same. It will not change by \
             itself: mend the arguments, use another tool, or answer with what you have. The same call a third time \
             ends this run."
        ))
    }
}

/// The arguments without what does not matter: white space and the order of members.
fn canonical(arguments: &str) -> String {
    serde_json::from_str::<serde_json::Value>(arguments).map_or_else(
        |_fault| arguments.trim().to_owned(),
        |mut value| {
            value.sort_all_objects();
            value.to_string()
        },
    )
}
