//! The clock of a turn's progress: when it runs out, the parents are told. The rule is in `agent`.

use std::pin::Pin;
use std::time::Duration;

use attache_agent::{Doing, Limits, StallWatch};
use attache_session::SessionId;
use tokio::time::{Instant, Sleep};

use crate::clock;

/// Watches the turn of a session that has somebody to tell.
pub(crate) struct Stalls {
    watch: StallWatch,
    begun: Instant,
    /// Set for no later than it is due, and looked at again when it rings: not set anew for each piece of a reply.
    timer: Pin<Box<Sleep>>,
}

impl Stalls {
    pub(crate) fn new(limits: Limits) -> Self {
        let seconds = |limit: Option<u32>| limit.map(|limit| Duration::from_secs(limit.into()));
        let asking = seconds(limits.stall_seconds);
        let watch = StallWatch::new(asking, seconds(limits.tool_stall_seconds), Duration::ZERO);
        let begun = clock::instant();
        let due = begun + watch.due().unwrap_or_default();
        Self {
            watch,
            begun,
            timer: Box::pin(tokio::time::sleep_until(due)),
        }
    }

    pub(crate) fn progress(&mut self) {
        self.watch.progress(clock::instant() - self.begun);
    }

    pub(crate) fn does(&mut self, doing: Doing) {
        self.watch.does(doing, clock::instant() - self.begun);
    }

    /// Waits until the turn has stalled, and says for how long it has. The future may be dropped.
    pub(crate) async fn stalled(&mut self) -> Duration {
        loop {
            let Some(due) = self.watch.due() else {
                // Told, or nothing to watch: whoever changes that asks again.
                return std::future::pending().await;
            };
            let due = self.begun + due;
            if self.timer.deadline() > due || self.timer.is_elapsed() {
                self.timer.as_mut().reset(due);
            }
            self.timer.as_mut().await;
            if let Some(passed) = self.watch.stalled(clock::instant() - self.begun) {
                return passed;
            }
        }
    }
}

/// What the parents are told.
pub(crate) fn told(session: SessionId, passed: Duration, tools: &[String], ends: bool) -> String {
    let doing = if tools.is_empty() {
        "it waits for its model".to_owned()
    } else {
        format!("it runs {}", tools.join(", "))
    };
    let then = if ends {
        "Its definition ends such a run."
    } else {
        "It goes on: look at it with agent_session_get, or end it with agent_session_stop."
    };
    format!(
        "Session {session} has made no progress for {} s: {doing}. {then}",
        passed.as_secs()
    )
}
