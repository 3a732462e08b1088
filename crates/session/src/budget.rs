//! What a tree of sessions may use: limits, what events count on them, and who may spawn.
//!
//! A limit stands at one session and binds it together with everything that was spawned below it. Counters are kept by
//! the store, one for each limit that is set, and charged from the root down along the chain of spawners. Nothing here
//! knows what has been used: that is an argument.

use std::fmt;
use std::sync::Arc;

use crate::event::{Event, Stamped};
use crate::id::SessionId;
use crate::outcome::named;

named! {
    /// What can be limited.
    Limit {
        /// Turns in flight at once that do not wait.
        Concurrent = "concurrent",
        /// Living sessions below.
        Agents = "agents",
        /// Generations below.
        Depth = "depth",
        /// Tokens, in and out.
        Tokens = "tokens",
        /// Money, in billionths of a US dollar.
        Usd = "usd",
        /// Time in which a turn was in flight, in milliseconds.
        Wall = "wall",
        /// Calls of tools.
        ToolCalls = "tool-calls",
    }
}

/// Units of [`Limit::Usd`] in a dollar.
const NANOS: f64 = 1e9;

/// Units of [`Limit::Wall`] in a second.
const MILLIS: u64 = 1_000;

impl Limit {
    /// Whether what is used of it stays used: it ends runs, and nothing gives it back.
    #[must_use]
    pub fn is_spent(self) -> bool {
        match self {
            Self::Tokens | Self::Usd | Self::Wall | Self::ToolCalls => true,
            Self::Concurrent | Self::Agents | Self::Depth => false,
        }
    }

    /// An amount in the units that people write: dollars, seconds, or a count.
    #[must_use]
    pub fn in_units(self, amount: u64) -> f64 {
        match self {
            Self::Usd => amount as f64 / NANOS,
            Self::Wall => amount as f64 / MILLIS as f64,
            _ => amount as f64,
        }
    }

    /// An amount as people write it: dollars, seconds, or a number.
    #[must_use]
    pub fn shown(self, amount: u64) -> String {
        match self {
            Self::Usd => {
                let text = format!("{:.6}", amount as f64 / NANOS);
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            Self::Wall => (amount / MILLIS).to_string(),
            _ => amount.to_string(),
        }
    }

    fn amount(self, text: &str) -> Option<u64> {
        match self {
            Self::Usd => {
                let dollars: f64 = text.parse().ok()?;
                (dollars.is_finite() && (0.0..=1e9).contains(&dollars))
                    .then(|| (dollars * NANOS).round() as u64)
            }
            Self::Wall => text.parse::<u64>().ok()?.checked_mul(MILLIS),
            // Without a place nothing would ever run.
            Self::Concurrent => text.parse().ok().filter(|places| *places > 0),
            _ => text.parse().ok(),
        }
        .filter(|amount| i64::try_from(*amount).is_ok())
    }
}

/// The limits that stand at one session; none is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Budget([Option<u64>; Limit::ALL.len()]);

impl Budget {
    /// No limit at all.
    pub const NONE: Self = Self([None; Limit::ALL.len()]);

    /// What a root has where nobody says otherwise.
    #[must_use]
    pub fn of_a_root() -> Self {
        let mut budget = Self::NONE;
        budget.set(Limit::Concurrent, Some(8));
        budget.set(Limit::Agents, Some(200));
        budget.set(Limit::Depth, Some(5));
        budget
    }

    /// A limit.
    #[must_use]
    pub fn get(&self, limit: Limit) -> Option<u64> {
        self.0[limit as usize]
    }

    /// Sets or lifts a limit.
    pub fn set(&mut self, limit: Limit, most: Option<u64>) {
        self.0[limit as usize] = most;
    }

    /// The same with a change carried out.
    #[must_use]
    pub fn with(mut self, change: &BudgetChange) -> Self {
        for (limit, most) in &change.0 {
            self.set(*limit, *most);
        }
        self
    }

    /// The limits that are set.
    pub fn iter(&self) -> impl Iterator<Item = (Limit, u64)> + '_ {
        Limit::ALL
            .iter()
            .filter_map(|limit| Some((*limit, self.get(*limit)?)))
    }

    /// Whether nothing is limited.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

impl fmt::Display for Budget {
    /// As [`BudgetChange::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (limit, most)) in self.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{limit}={}", limit.shown(most))?;
        }
        Ok(())
    }
}

/// Limits that are to be set or lifted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BudgetChange(Vec<(Limit, Option<u64>)>);

/// A budget that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BudgetError {
    /// No such limit.
    #[error(
        "there is no limit {0:?}: the limits are concurrent, agents, depth, tokens, usd, wall, tool-calls"
    )]
    Unknown(String),
    /// A limit without a value, or with one that is none.
    #[error("{limit} takes a number or `none`, for example {}", example(*.limit))]
    BadValue {
        /// The limit.
        limit: Limit,
    },
    /// The same limit twice.
    #[error("{0} is there twice")]
    Twice(Limit),
}

fn example(limit: Limit) -> String {
    match limit {
        Limit::Usd => "usd=1.50 (dollars)".to_owned(),
        Limit::Wall => "wall=600 (seconds)".to_owned(),
        other => format!("{other}=10"),
    }
}

impl BudgetChange {
    /// Reads `KEY=VALUE,…`: a value is a number, or `none` to lift the limit. Money is in dollars, time in seconds.
    ///
    /// # Errors
    ///
    /// [`BudgetError`] with what is wrong and what is right.
    pub fn parse(text: &str) -> Result<Self, BudgetError> {
        let mut change = Self::default();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            change.add(key.trim(), value.trim())?;
        }
        Ok(change)
    }

    /// Adds one limit, its value as [`BudgetChange::parse`] reads it.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn add(&mut self, key: &str, value: &str) -> Result<(), BudgetError> {
        let shown = || crate::text::preview(key, 40).0.to_owned();
        let limit = Limit::parse(key).ok_or_else(|| BudgetError::Unknown(shown()))?;
        let most = match value {
            "none" => None,
            other => Some(limit.amount(other).ok_or(BudgetError::BadValue { limit })?),
        };
        if self.0.iter().any(|(known, _)| *known == limit) {
            return Err(BudgetError::Twice(limit));
        }
        self.0.push((limit, most));
        Ok(())
    }

    /// Says more; what is said of a limit later counts.
    pub fn extend(&mut self, more: &Self) {
        for (limit, most) in more.iter() {
            self.0.retain(|(known, _)| *known != limit);
            self.0.push((limit, most));
        }
    }

    /// What is changed, in the order in which it was said.
    pub fn iter(&self) -> impl Iterator<Item = (Limit, Option<u64>)> + '_ {
        self.0.iter().copied()
    }

    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for BudgetChange {
    /// As [`BudgetChange::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (limit, most)) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let most = most.map_or_else(|| "none".to_owned(), |most| limit.shown(most));
            write!(f, "{comma}{limit}={most}")?;
        }
        Ok(())
    }
}

/// What stands at a session for its tree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bounds {
    /// Its limits.
    pub budget: Budget,
    /// Nothing is spawned in its tree until somebody lets it go on.
    pub paused: bool,
    /// The limits of which it has been told that they are nearly used up.
    pub told: Vec<Limit>,
}

/// One of those whose limits bind a session: an ancestor in the chain of spawners, or the session itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Payer {
    /// The session at which the limits stand.
    pub session: SessionId,
    /// Its limits.
    pub bounds: Arc<Bounds>,
}

/// What events of one session count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bill {
    /// Sessions that came to life, less those that ended.
    pub agents: i64,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Known money.
    pub usd_nanos: u64,
    /// Calls of tools.
    pub tool_calls: u64,
}

impl Bill {
    /// What these events of one session count.
    #[must_use]
    pub fn of(events: &[Stamped]) -> Self {
        let mut bill = Self::default();
        for stamped in events {
            match &stamped.event {
                Event::Started { .. } => bill.agents += 1,
                Event::Stopped { .. } => bill.agents -= 1,
                Event::Said { step, .. } | Event::Compacted { step, .. } => {
                    let usage = &step.usage;
                    bill.tokens += usage.input.unwrap_or(0) + usage.output.unwrap_or(0);
                    bill.usd_nanos += step.cost.as_ref().map_or(0, |cost| cost.usd_nanos);
                }
                Event::CallStarted { .. } => bill.tool_calls += 1,
                _ => {}
            }
        }
        bill
    }

    fn amount(&self, limit: Limit) -> i64 {
        let amount = match limit {
            Limit::Tokens => self.tokens,
            Limit::Usd => self.usd_nanos,
            Limit::ToolCalls => self.tool_calls,
            Limit::Concurrent | Limit::Agents | Limit::Depth | Limit::Wall => 0,
        };
        i64::try_from(amount).unwrap_or(i64::MAX)
    }
}

/// A change of one counter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Due {
    /// The session at which the limit stands.
    pub session: SessionId,
    /// The limit.
    pub limit: Limit,
    /// What is added; negative gives back.
    pub amount: i64,
    /// What the counter may not exceed; none is taken whatever it comes to: it has been used already.
    pub most: Option<u64>,
}

/// What an append of a session is charged with: `own` is what its own events count, `births` how many sessions it brings
/// to life. `chain` begins at the root and ends with the session itself. Births may be refused; nothing else is, because
/// it has happened.
#[must_use]
pub fn dues(chain: &[Payer], own: &Bill, births: usize) -> Vec<Due> {
    let mut dues = Vec::new();
    for (index, payer) in chain.iter().enumerate() {
        let is_itself = index + 1 == chain.len();
        for (limit, most) in payer.bounds.budget.iter() {
            let mut add = |amount, most| {
                if amount != 0 {
                    dues.push(Due {
                        session: payer.session,
                        limit,
                        amount,
                        most,
                    });
                }
            };
            if limit == Limit::Agents {
                // A session is not one of those below itself. What is given back comes first.
                add(if is_itself { 0 } else { own.agents }, None);
                add(i64::try_from(births).unwrap_or(i64::MAX), Some(most));
            } else {
                add(own.amount(limit), None);
            }
        }
    }
    dues
}

/// Why nothing may be spawned, or not so much given.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Somebody paused the tree.
    #[error(
        "spawning is paused in the tree of session {session}; a person lets it go on with `attache resume {session}`"
    )]
    Paused {
        /// Where.
        session: SessionId,
    },
    /// Too many generations.
    #[error(
        "the limit depth={most} of session {session} is reached: do the work yourself, or give it to a session that exists"
    )]
    Depth {
        /// Where the limit stands.
        session: SessionId,
        /// The limit.
        most: u64,
    },
    /// All of it is used.
    #[error("the limit {limit}={} of session {session} is used up ({} used)", .limit.shown(*.most), .limit.shown(*.used))]
    Spent {
        /// Where the limit stands.
        session: SessionId,
        /// The limit.
        limit: Limit,
        /// What is used.
        used: u64,
        /// The limit's value.
        most: u64,
    },
    /// A child would get more than is left.
    #[error("a child cannot get {limit}={}: {} is left under the limit of session {session}", .limit.shown(*.asked), .limit.shown(*.left))]
    Exceeds {
        /// Where the limit stands.
        session: SessionId,
        /// The limit.
        limit: Limit,
        /// What was asked for.
        asked: u64,
        /// What is left.
        left: u64,
    },
}

/// Whether a session may spawn at all, as far as its ancestors' bounds tell without counters. `chain` ends with it.
///
/// # Errors
///
/// [`Refusal`], naming what refuses and where it stands.
pub fn may_spawn(chain: &[Payer]) -> Result<(), Refusal> {
    for (index, payer) in chain.iter().enumerate() {
        let session = payer.session;
        if payer.bounds.paused {
            return Err(Refusal::Paused { session });
        }
        if let Some(most) = payer.bounds.budget.get(Limit::Depth)
            && (chain.len() - index) as u64 > most
        {
            return Err(Refusal::Depth { session, most });
        }
    }
    Ok(())
}

/// The first limit of a chain that is used up. Whoever it binds runs no further.
pub fn spent(chain: &[Payer], mut used: impl FnMut(SessionId, Limit) -> u64) -> Option<Refusal> {
    chain.iter().find_map(|payer| {
        let session = payer.session;
        let limits = payer.bounds.budget.iter();
        limits
            .filter(|(limit, _)| limit.is_spent())
            .find_map(|(limit, most)| {
                let used = used(session, limit);
                (used >= most).then_some(Refusal::Spent {
                    session,
                    limit,
                    used,
                    most,
                })
            })
    })
}

/// The budget of a child that asks for one: each limit at most what is left above it.
///
/// # Errors
///
/// [`Refusal::Exceeds`] for more than that.
pub fn grant(
    chain: &[Payer],
    asked: &BudgetChange,
    mut used: impl FnMut(SessionId, Limit) -> u64,
) -> Result<Budget, Refusal> {
    let budget = Budget::NONE.with(asked);
    for (limit, asked) in budget.iter() {
        for (index, payer) in chain.iter().enumerate() {
            let Some(most) = payer.bounds.budget.get(limit) else {
                continue;
            };
            let left = match limit {
                Limit::Concurrent => most,
                // The child itself is one generation.
                Limit::Depth => most.saturating_sub((chain.len() - index) as u64),
                // And one living session.
                Limit::Agents => most.saturating_sub(used(payer.session, limit) + 1),
                _ => most.saturating_sub(used(payer.session, limit)),
            };
            if asked > left {
                return Err(Refusal::Exceeds {
                    session: payer.session,
                    limit,
                    asked,
                    left,
                });
            }
        }
    }
    Ok(budget)
}

/// Of how much of a limit its session is told: four fifths.
#[must_use]
pub fn is_nearly_spent(used: u64, most: u64) -> bool {
    used.saturating_mul(5) >= most.saturating_mul(4)
}

#[cfg(test)]
mod tests;
