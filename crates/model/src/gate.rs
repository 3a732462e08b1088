//! The line before a provider, as pure rules: how many requests may be under way, how many requests and tokens a minute,
//! and when to leave a provider alone that is down. Waiting itself is in `line`; time is an argument.
//!
//! A session has one request at a time, so first come, first served is fair over sessions: whoever was served stands
//! behind all that waited meanwhile.

mod line;

use std::collections::VecDeque;
use std::time::Duration;

pub use line::{Gate, GateClosed, Pass, Standing};

/// Failures in a row after which a provider counts as down.
const DOWN_AFTER: u32 = 5;

/// How long a provider that has just gone down is left alone; doubled at each probe that fails.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest time between two probes.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long a provider may be down before those who wait for it are sent away.
const DOWN_FOR_GOOD: Duration = Duration::from_secs(120);

/// What a provider takes at most.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GateLimits {
    /// Requests under way at once; at least 1.
    pub in_flight: usize,
    /// Requests in any minute; none is no limit.
    pub requests_per_minute: Option<u32>,
    /// Tokens in any minute, of prompts and answers; none is no limit.
    pub tokens_per_minute: Option<u64>,
}

impl Default for GateLimits {
    fn default() -> Self {
        Self {
            in_flight: 64,
            requests_per_minute: None,
            tokens_per_minute: None,
        }
    }
}

/// Why the first one in line waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// As many requests are under way as may be.
    Places(usize),
    /// So many requests went in the last minute as may go.
    Requests(u32),
    /// So many tokens went in the last minute as may go.
    Tokens(u64),
    /// The provider is down; this is what it said last.
    Down(String),
}

/// How a request ended, as far as its provider is concerned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It answered: whatever it said, it is up.
    Up,
    /// It did not answer, or said that it cannot.
    Down(String),
    /// Nobody waited for the end.
    Unknown,
}

/// A bucket of tokens in the sense of rate limits. Its size is a tenth of the limit and it fills with nine tenths of the
/// limit a minute: so no minute, wherever it begins, sees more than the limit.
#[derive(Debug)]
struct Bucket {
    size: f64,
    per_second: f64,
    level: f64,
    at: Duration,
}

impl Bucket {
    fn new(limit: f64) -> Self {
        let size = (limit / 10.0).max(1.0);
        Self {
            size,
            per_second: (limit - size).max(limit / 2.0).max(1e-9) / 60.0,
            level: size,
            at: Duration::ZERO,
        }
    }

    fn fill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.level = (self.level + passed * self.per_second).min(self.size);
        self.at = now;
    }

    /// How long until `amount` is there; what is more than the bucket holds is let through when it is full.
    fn until(&self, amount: f64) -> Option<Duration> {
        // A remainder of arithmetic is no reason to wait.
        let missing = amount.min(self.size) - self.level - 1e-6;
        (missing > 0.0).then(|| Duration::from_secs_f64(missing / self.per_second))
    }
}

#[derive(Debug)]
enum Circuit {
    /// Requests pass; so many have failed in a row.
    Closed { failures: u32 },
    /// Nobody passes before `until`; then one does, to see.
    Open {
        since: Duration,
        until: Duration,
        pause: Duration,
        probing: bool,
        last: String,
    },
}

#[derive(Debug)]
struct InLine {
    ticket: u64,
    tokens: u64,
}

/// The rules of one line.
#[derive(Debug)]
pub(crate) struct Rules {
    in_flight_limit: usize,
    in_flight: usize,
    requests: Option<(u32, Bucket)>,
    tokens: Option<(u64, Bucket)>,
    circuit: Circuit,
    line: VecDeque<InLine>,
    next: u64,
}

/// What the first one in line can do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Head {
    /// It passes, and has left the line.
    Passed,
    /// It waits, for this long unless something changes first; without a time until something does.
    Waits(Option<Duration>),
    /// It is sent away, and has left the line; this is what the provider said last.
    SentAway(String),
}

impl Rules {
    pub(crate) fn new(limits: &GateLimits) -> Self {
        let GateLimits {
            in_flight,
            requests_per_minute,
            tokens_per_minute,
        } = limits;
        Self {
            in_flight_limit: (*in_flight).max(1),
            in_flight: 0,
            requests: requests_per_minute.map(|limit| (limit, Bucket::new(f64::from(limit)))),
            tokens: tokens_per_minute.map(|limit| (limit, Bucket::new(limit as f64))),
            circuit: Circuit::Closed { failures: 0 },
            line: VecDeque::new(),
            next: 0,
        }
    }

    /// Stands in line with a request of about this many tokens.
    pub(crate) fn join(&mut self, tokens: u64) -> u64 {
        self.next += 1;
        self.line.push_back(InLine {
            ticket: self.next,
            tokens,
        });
        self.next
    }

    /// Gives up a place in line; true when it was the first.
    pub(crate) fn give_up(&mut self, ticket: u64) -> bool {
        let first = self.line.front().is_some_and(|one| one.ticket == ticket);
        self.line.retain(|one| one.ticket != ticket);
        first
    }

    pub(crate) fn first(&self) -> Option<u64> {
        self.line.front().map(|one| one.ticket)
    }

    /// What the line waits for. When its first one may pass this very moment, what the line waits for most.
    pub(crate) fn cause(&mut self, now: Duration) -> Cause {
        let tokens = self.line.front().map_or(1, |one| one.tokens);
        match (self.kept(now, tokens), &self.requests, &self.tokens) {
            (Some((cause, _)), _, _) => cause,
            (None, Some((limit, _)), _) => Cause::Requests(*limit),
            (None, None, Some((limit, _))) => Cause::Tokens(*limit),
            (None, None, None) => Cause::Places(self.in_flight_limit),
        }
    }

    fn kept(&mut self, now: Duration, tokens: u64) -> Option<(Cause, Option<Duration>)> {
        if let Circuit::Open {
            until,
            probing,
            last,
            ..
        } = &self.circuit
            && (*probing || now < *until)
        {
            let wait = (!*probing).then(|| until.saturating_sub(now));
            return Some((Cause::Down(last.clone()), wait));
        }
        if self.in_flight >= self.in_flight_limit {
            return Some((Cause::Places(self.in_flight_limit), None));
        }
        if let Some((limit, bucket)) = &mut self.requests {
            bucket.fill(now);
            if let Some(wait) = bucket.until(1.0) {
                return Some((Cause::Requests(*limit), Some(wait)));
            }
        }
        if let Some((limit, bucket)) = &mut self.tokens {
            bucket.fill(now);
            if let Some(wait) = bucket.until(tokens as f64) {
                return Some((Cause::Tokens(*limit), Some(wait)));
            }
        }
        None
    }

    /// Lets the first one pass, if it may.
    pub(crate) fn admit(&mut self, now: Duration) -> Head {
        let Some(tokens) = self.line.front().map(|one| one.tokens) else {
            return Head::Waits(None);
        };
        match self.kept(now, tokens) {
            Some((Cause::Down(last), _)) if self.is_down_for_good(now) => {
                self.line.pop_front();
                return Head::SentAway(last);
            }
            Some((_, wait)) => return Head::Waits(wait),
            None => {}
        }
        if let Some((_, bucket)) = &mut self.requests {
            bucket.level -= 1.0;
        }
        if let Some((_, bucket)) = &mut self.tokens {
            bucket.level -= tokens as f64;
        }
        if let Circuit::Open { probing, .. } = &mut self.circuit {
            *probing = true;
        }
        self.line.pop_front();
        self.in_flight += 1;
        Head::Passed
    }

    fn is_down_for_good(&self, now: Duration) -> bool {
        // While one asks, its answer is waited for.
        matches!(self.circuit, Circuit::Open { since, probing: false, .. }
            if now.saturating_sub(since) >= DOWN_FOR_GOOD)
    }

    /// A request ended. `estimated` is what it was let in with, `used` what it really took.
    pub(crate) fn ended(
        &mut self,
        now: Duration,
        verdict: &Verdict,
        estimated: u64,
        used: Option<u64>,
    ) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let (Some((_, bucket)), Some(used)) = (&mut self.tokens, used) {
            bucket.fill(now);
            bucket.level = (bucket.level + estimated as f64 - used as f64).min(bucket.size);
        }
        match (&mut self.circuit, verdict) {
            (circuit, Verdict::Up) => *circuit = Circuit::Closed { failures: 0 },
            (Circuit::Closed { failures }, Verdict::Down(last)) => {
                *failures += 1;
                if *failures >= DOWN_AFTER {
                    self.circuit = Circuit::Open {
                        since: now,
                        until: now + FIRST_PAUSE,
                        pause: FIRST_PAUSE,
                        probing: false,
                        last: last.clone(),
                    };
                }
            }
            (
                Circuit::Open {
                    until,
                    pause,
                    probing,
                    last,
                    ..
                },
                Verdict::Down(now_said),
            ) => {
                // Requests that were under way when it went down say nothing new.
                if *probing {
                    *pause = (*pause * 2).min(LONGEST_PAUSE);
                    *until = now + *pause;
                    *probing = false;
                }
                *last = now_said.clone();
            }
            (Circuit::Open { probing, .. }, Verdict::Unknown) => *probing = false,
            (Circuit::Closed { .. }, Verdict::Unknown) => {}
        }
    }
}

#[cfg(test)]
mod tests;
