//! Waiting in line: a ticket that may be dropped at any moment, and a pass that gives its place back. Which one may go
//! is decided in the rules; only the first in line holds a timer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Cause, GateLimits, Head, Rules, Verdict};
use crate::clock;

/// The line before one provider. Shared by all sessions of the process that use it.
#[derive(Debug)]
pub struct Gate {
    provider: Arc<str>,
    born: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    rules: Rules,
    /// Those who wait, to be told when they are the first.
    bells: HashMap<u64, Arc<Notify>>,
}

/// The provider is down, and has been for long: nobody waits for it any more.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{provider} has not answered for two minutes; it said last: {last}")]
pub struct GateClosed {
    /// The provider.
    pub provider: Arc<str>,
    /// What came of the last request to it.
    pub last: String,
}

/// What somebody waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The provider.
    pub provider: Arc<str>,
    /// What the line waits for, for people: `8 requests at once`, `60 requests a minute`, `it is down`.
    pub cause: String,
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "waits for {} ({})", self.provider, self.cause)
    }
}

/// The right to have one request under way. Dropping it gives the place back.
#[derive(Debug)]
pub struct Pass {
    gate: Arc<Gate>,
    estimated: u64,
    verdict: Verdict,
    used: Option<u64>,
}

impl Pass {
    /// Says how the request ended for its provider.
    pub fn judge(&mut self, verdict: Verdict) {
        self.verdict = verdict;
    }

    /// Says how many tokens it took.
    pub fn used(&mut self, tokens: u64) {
        self.used = Some(tokens);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let now = self.gate.now();
        let mut inner = self.gate.lock();
        inner
            .rules
            .ended(now, &self.verdict, self.estimated, self.used);
        inner.ring_first();
    }
}

/// A place in line that is given up when it is dropped.
struct Ticket {
    gate: Arc<Gate>,
    number: u64,
    bell: Arc<Notify>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut inner = self.gate.lock();
        inner.bells.remove(&self.number);
        if inner.rules.give_up(self.number) {
            inner.ring_first();
        }
    }
}

impl Inner {
    fn ring_first(&self) {
        let first = self.rules.first();
        if let Some(bell) = first.and_then(|ticket| self.bells.get(&ticket)) {
            bell.notify_one();
        }
    }
}

impl Gate {
    /// A line before a provider of this name.
    #[must_use]
    pub fn new(provider: &str, limits: &GateLimits) -> Self {
        Self {
            provider: provider.into(),
            born: clock::now(),
            inner: Mutex::new(Inner {
                rules: Rules::new(limits),
                bells: HashMap::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        clock::now().saturating_duration_since(self.born)
    }

    /// Passes when nobody is before it and nothing keeps it; `tokens` is about what the request will take.
    ///
    /// # Errors
    /// What it would wait for otherwise.
    pub fn try_pass(self: &Arc<Self>, tokens: u64) -> Result<Pass, Standing> {
        let now = self.now();
        let mut inner = self.lock();
        let ticket = inner.rules.join(tokens);
        if inner.rules.first() == Some(ticket)
            && let Head::Passed = inner.rules.admit(now)
        {
            return Ok(self.pass(tokens));
        }
        inner.rules.give_up(ticket);
        Err(self.standing_of(&mut inner, now))
    }

    /// What the line waits for now.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let now = self.now();
        self.standing_of(&mut self.lock(), now)
    }

    fn standing_of(&self, inner: &mut Inner, now: Duration) -> Standing {
        let cause = match inner.rules.cause(now) {
            Cause::Places(limit) => format!("{limit} requests at once"),
            Cause::Requests(limit) => format!("{limit} requests a minute"),
            Cause::Tokens(limit) => format!("{limit} tokens a minute"),
            Cause::Down(last) => format!("it is down: {last}"),
        };
        Standing {
            provider: Arc::clone(&self.provider),
            cause,
        }
    }

    /// Waits in line and passes. Dropping the future gives the place in line up.
    ///
    /// # Errors
    /// [`GateClosed`] when the provider has been down for too long.
    pub async fn pass_in_turn(self: Arc<Self>, tokens: u64) -> Result<Pass, GateClosed> {
        let bell = Arc::new(Notify::new());
        let number = {
            let mut inner = self.lock();
            let number = inner.rules.join(tokens);
            inner.bells.insert(number, Arc::clone(&bell));
            number
        };
        let ticket = Ticket {
            gate: Arc::clone(&self),
            number,
            bell,
        };
        loop {
            let head = {
                let now = self.now();
                let mut inner = self.lock();
                if inner.rules.first() == Some(number) {
                    let head = inner.rules.admit(now);
                    if !matches!(head, Head::Waits(_)) {
                        inner.ring_first();
                    }
                    head
                } else {
                    Head::Waits(None)
                }
            };
            match head {
                Head::Passed => return Ok(self.pass(tokens)),
                Head::SentAway(last) => {
                    return Err(GateClosed {
                        provider: Arc::clone(&self.provider),
                        last,
                    });
                }
                Head::Waits(Some(time)) => {
                    // Rung or due: both mean that it looks again.
                    let _due = tokio::time::timeout(time, ticket.bell.notified()).await;
                }
                Head::Waits(None) => ticket.bell.notified().await,
            }
        }
    }

    fn pass(self: &Arc<Self>, estimated: u64) -> Pass {
        Pass {
            gate: Arc::clone(self),
            estimated,
            verdict: Verdict::Unknown,
            used: None,
        }
    }
}
