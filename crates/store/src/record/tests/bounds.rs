//! Limits, bounds and last words of any kind, for the tables of records.

use attache_session::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{one_of, word};

pub(super) fn budget() -> impl Strategy<Value = Budget> {
    vec((one_of(Limit::ALL), option::of(any::<u64>())), 0..4).prop_map(|limits| {
        let mut budget = Budget::NONE;
        for (limit, most) in limits {
            budget.set(limit, most);
        }
        budget
    })
}

pub(super) fn bounds() -> impl Strategy<Value = Bounds> {
    (budget(), any::<bool>(), vec(one_of(Limit::ALL), 0..3)).prop_map(|(budget, paused, told)| {
        Bounds {
            budget,
            paused,
            told,
        }
    })
}

pub(super) fn said_last() -> impl Strategy<Value = Option<Told>> {
    option::of((word(), any::<bool>()).prop_map(|(text, earlier)| Told { text, earlier }))
}
