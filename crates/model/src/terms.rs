//! What a provider's profile says about asking it: how long to be patient, how often to try again, which line to stand
//! in, and what its models need to be told. Plain data; who waits and tries is the caller.

use std::sync::Arc;
use std::time::Duration;

use crate::gate::{Gate, GateLimits};

/// How long a request may take, part by part. The connection's own limit is the client's (10 seconds).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// From the request to the first byte of the answer.
    pub first_byte: Duration,
    /// Between any two signs of life; pings of the provider count.
    pub silence: Duration,
    /// Between any two pieces of the reply; pings do not count, reasoning does.
    pub no_progress: Duration,
}

impl Default for Patience {
    /// Reasoning models think for minutes, and not all providers send pings meanwhile.
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(300),
            silence: Duration::from_secs(300),
            no_progress: Duration::from_secs(600),
        }
    }
}

/// When a request is tried again: only before the first content, and only when the failure allows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retries {
    /// How often at most.
    pub most: u32,
    /// The longest wait that a provider may ask for. Beyond it the request fails at once and says when to come back.
    pub longest_wait: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            most: 4,
            longest_wait: Duration::from_secs(60),
        }
    }
}

/// What a provider is configured with: the settings' part of [`Terms`].
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ProviderTerms {
    /// How long to wait.
    pub patience: Patience,
    /// When to try again.
    pub retries: Retries,
    /// What it takes at most.
    pub limits: GateLimits,
}

/// How a model is to be asked.
#[derive(Clone, Default, Debug)]
pub struct Terms {
    /// How long to wait.
    pub patience: Patience,
    /// When to try again.
    pub retries: Retries,
    /// The line to stand in; none for a model that is always there.
    pub gate: Option<Arc<Gate>>,
    /// Whether an empty answer, a claim or an announcement without a call is worth a reminder. Not for models that say what
    /// they were told to say.
    pub reminders: bool,
}
