//! A viewer's attachment, which outlives its connection for a while. See `docs/state-machines.md`.

/// How long an attachment waits for its viewer after the connection was lost, in milliseconds.
pub const GRACE_MILLIS: u64 = 5_000;

/// See the module. Times are milliseconds of one clock that never goes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attachment {
    /// Asked for and granted; the beginning of the stream is on its way.
    Reserved,
    /// The viewer is there.
    Attached,
    /// The connection was lost; the viewer may come back until then.
    InGrace {
        /// When it has been waited for long enough.
        until: u64,
    },
    /// It is over.
    Released,
}

impl Attachment {
    /// Whether it counts as a viewer of its session.
    #[must_use]
    pub fn counts(self) -> bool {
        self != Self::Released
    }

    /// The beginning of the stream was sent.
    #[must_use]
    pub fn sent(self) -> Self {
        match self {
            Self::Reserved => Self::Attached,
            other => other,
        }
    }

    /// The connection ended without a word. Whoever never got the beginning of the stream has nothing to come back to.
    #[must_use]
    pub fn lost(self, now: u64) -> Self {
        match self {
            Self::Attached => Self::InGrace {
                until: now.saturating_add(GRACE_MILLIS),
            },
            Self::Reserved | Self::Released => Self::Released,
            Self::InGrace { until } => Self::InGrace { until },
        }
    }

    /// The viewer names it on a connection: also while the loss of the one before has not been noticed. None when it is
    /// over.
    #[must_use]
    pub fn returns(self, now: u64) -> Option<Self> {
        match self.passed(now) {
            Self::Released => None,
            Self::Reserved | Self::Attached | Self::InGrace { .. } => Some(Self::Reserved),
        }
    }

    /// Time has passed.
    #[must_use]
    pub fn passed(self, now: u64) -> Self {
        match self {
            Self::InGrace { until } if until <= now => Self::Released,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Attachment::{Attached, InGrace, Released, Reserved};

    #[test]
    fn every_step_of_an_attachment() {
        let grace = InGrace { until: 6_000 };
        // State, sent, lost at 1,000, returns at 5,999, returns at 6,000, time 6,000.
        let rows = [
            (
                Reserved,
                Attached,
                Released,
                Some(Reserved),
                Some(Reserved),
                Reserved,
            ),
            (
                Attached,
                Attached,
                grace,
                Some(Reserved),
                Some(Reserved),
                Attached,
            ),
            (grace, grace, grace, Some(Reserved), None, Released),
            (Released, Released, Released, None, None, Released),
        ];
        for (state, sent, lost, early, late, later) in rows {
            assert_eq!(state.sent(), sent, "{state:?} sent");
            assert_eq!(state.lost(1_000), lost, "{state:?} lost");
            assert_eq!(state.returns(5_999), early, "{state:?} returns in time");
            assert_eq!(state.returns(6_000), late, "{state:?} returns late");
            assert_eq!(state.passed(6_000), later, "{state:?} waits");
            assert_eq!(state.counts(), state != Released);
        }
    }

    #[test]
    fn a_second_loss_does_not_prolong_the_grace() {
        let lost = Attached.lost(1_000);
        assert_eq!(lost.lost(4_000), lost);
        assert_eq!(lost.passed(5_999), lost);
    }
}
