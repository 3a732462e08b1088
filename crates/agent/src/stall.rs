//! When a run counts as stalled: nothing of its model or its tools has come for too long. Pure: time is an argument, counted
//! from any fixed moment. A stalled run is told of once and goes on; only its definition may say that it ends.

use std::time::Duration;

/// How long a run may make no progress while it waits for its model.
const STALLED_AFTER: Duration = Duration::from_secs(450);

/// How long while tools run.
const TOOL_STALLED_AFTER: Duration = Duration::from_secs(1_200);

/// What becomes of a run that has stalled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnStall {
    /// Its parent is told, and it goes on.
    #[default]
    Report,
    /// Its parent is told, and the run ends.
    Interrupt,
}

/// What a run does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// It asks its model.
    Asking,
    /// Its tools run.
    Calling,
    /// It waits for other sessions, or for a place: whoever it waits for is watched there.
    Waiting,
}

/// Watches one run.
#[derive(Clone, Debug)]
pub struct StallWatch {
    asking: Duration,
    calling: Duration,
    doing: Doing,
    since: Duration,
    told: bool,
}

impl StallWatch {
    /// A watch over a run that begins now; none is the default time.
    #[must_use]
    pub fn new(asking: Option<Duration>, calling: Option<Duration>, now: Duration) -> Self {
        Self {
            asking: asking.unwrap_or(STALLED_AFTER),
            calling: calling.unwrap_or(TOOL_STALLED_AFTER),
            doing: Doing::Asking,
            since: now,
            told: false,
        }
    }

    /// Something of the run came: a piece of the reply, a result.
    pub fn progress(&mut self, now: Duration) {
        self.since = now;
        self.told = false;
    }

    /// What it does now; another thing than before counts as progress.
    pub fn does(&mut self, doing: Doing, now: Duration) {
        if self.doing != doing {
            self.doing = doing;
            self.progress(now);
        }
    }

    /// When it counts as stalled if nothing comes; never while it waits, or once that was told.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        let limit = match self.doing {
            _ if self.told => return None,
            Doing::Asking => self.asking,
            Doing::Calling => self.calling,
            Doing::Waiting => return None,
        };
        Some(self.since + limit)
    }

    /// How long it has stalled, if it has by now; said once, until there is progress.
    pub fn stalled(&mut self, now: Duration) -> Option<Duration> {
        if self.due()? > now {
            return None;
        }
        self.told = true;
        Some(now - self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_run_is_stalled_once_after_so_long_without_progress() {
        let mut watch = StallWatch::new(None, None, s(0));
        assert_eq!(watch.due(), Some(s(450)));
        watch.progress(s(100));
        assert_eq!(watch.stalled(s(549)), None);
        assert_eq!(watch.stalled(s(551)), Some(s(451)));
        assert_eq!(
            (watch.stalled(s(2_000)), watch.due()),
            (None, None),
            "said once"
        );
        watch.progress(s(3_000));
        assert_eq!(watch.due(), Some(s(3_450)));
    }

    #[test]
    fn tools_have_more_time_and_waiting_has_all() {
        let mut watch = StallWatch::new(Some(s(10)), Some(s(60)), s(0));
        watch.does(Doing::Calling, s(5));
        assert_eq!(watch.due(), Some(s(65)));
        watch.does(Doing::Calling, s(30));
        assert_eq!(watch.due(), Some(s(65)), "the same is no progress");
        watch.does(Doing::Waiting, s(40));
        assert_eq!((watch.due(), watch.stalled(s(9_999))), (None, None));
        watch.does(Doing::Asking, s(10_000));
        assert_eq!(watch.due(), Some(s(10_010)));
    }
}
