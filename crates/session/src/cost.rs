//! Money: what one model call cost, and sums of it. An unknown price is an unknown cost, never zero, and a sum in which
//! one is unknown says so. Prices themselves are not known here.

use std::sync::Arc;

/// What one model call cost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cost {
    /// In billionths of a US dollar.
    pub usd_nanos: u64,
    /// The price table that it was computed with, for whoever looks it up later.
    pub prices: Arc<str>,
}

/// A sum of costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// Sum of the known costs, in billionths of a US dollar; none when none is known.
    pub usd_nanos: Option<u64>,
    /// Some calls' costs are unknown: the sum is the least that it was.
    pub at_least: bool,
}

impl Spent {
    /// Adds a call.
    pub fn call(&mut self, cost: Option<&Cost>) {
        self.add(&Self {
            usd_nanos: cost.map(|cost| cost.usd_nanos),
            at_least: cost.is_none(),
        });
    }

    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        let Self {
            usd_nanos,
            at_least,
        } = other;
        if let Some(more) = usd_nanos {
            self.usd_nanos = Some(self.usd_nanos.unwrap_or(0).saturating_add(*more));
        }
        self.at_least |= at_least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_an_unknown_part_is_the_least_that_it_was() {
        let cost = |usd_nanos| Cost {
            usd_nanos,
            prices: "v".into(),
        };
        let mut spent = Spent::default();
        assert_eq!((spent.usd_nanos, spent.at_least), (None, false));
        spent.call(None);
        assert_eq!((spent.usd_nanos, spent.at_least), (None, true));
        spent.call(Some(&cost(5)));
        spent.call(Some(&cost(0)));
        assert_eq!((spent.usd_nanos, spent.at_least), (Some(5), true));
        let mut known = Spent::default();
        known.call(Some(&cost(2)));
        assert_eq!((known.usd_nanos, known.at_least), (Some(2), false));
        known.add(&spent);
        assert_eq!((known.usd_nanos, known.at_least), (Some(7), true));
        known.call(Some(&cost(u64::MAX)));
        assert_eq!(known.usd_nanos, Some(u64::MAX), "it does not begin anew");
    }
}
