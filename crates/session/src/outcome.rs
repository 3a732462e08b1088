//! What came of a run, how its loop ended, and why an epoch ended: three closed lists with their
//! stable names. The mapping from end reason to outcome is here and nowhere else.

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable name.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The value of a stable name.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use named;

named! {
    /// What came of the last run.
    Outcome {
        /// The loop came to its own end.
        Succeeded = "succeeded",
        /// A provider, a store or a bug ended it.
        Failed = "failed",
        /// Interrupted by a person or a program, or cut by a crash.
        Interrupted = "interrupted",
        /// Stopped or terminated.
        Cancelled = "cancelled",
        /// A deadline passed.
        TimedOut = "timed-out",
        /// The tree's budget was used up.
        OutOfBudget = "out-of-budget",
    }
}

impl Outcome {
    /// Whether a session whose last run came to this reads `error`.
    #[must_use]
    pub fn is_error(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut | Self::OutOfBudget)
    }
}

named! {
    /// How a run's loop ended.
    EndReason {
        /// The model ended its answer.
        Completed = "completed",
        /// The model ended without any text in the whole run.
        NoOutput = "no-output",
        /// The model refused.
        Refusal = "refusal",
        /// The answer hit the provider's length limit.
        Length = "length",
        /// The provider's content filter cut the answer.
        ContentFilter = "content-filter",
        /// The model repeated the same call.
        RepeatedCall = "repeated-call",
        /// The iteration limit was reached; the last round was the summary.
        IterationLimit = "iteration-limit",
        /// The provider failed.
        ProviderError = "provider-error",
        /// The store refused or failed.
        StorageError = "storage-error",
        /// Interrupted.
        Interrupted = "interrupted",
        /// Cancelled.
        Cancelled = "cancelled",
        /// The deadline passed.
        Deadline = "deadline",
        /// The budget was used up.
        Budget = "budget",
        /// The host ended or restarted while the run was under way.
        HostRestart = "host-restart",
    }
}

impl EndReason {
    /// What a run that ended so came to.
    #[must_use]
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Completed | Self::NoOutput | Self::IterationLimit => Outcome::Succeeded,
            Self::Refusal
            | Self::Length
            | Self::ContentFilter
            | Self::RepeatedCall
            | Self::ProviderError
            | Self::StorageError => Outcome::Failed,
            Self::Interrupted | Self::HostRestart => Outcome::Interrupted,
            Self::Cancelled => Outcome::Cancelled,
            Self::Deadline => Outcome::TimedOut,
            Self::Budget => Outcome::OutOfBudget,
        }
    }
}

named! {
    /// Why a session's epoch ended.
    StopReason {
        /// A person or a program terminated it.
        Terminated = "terminated",
        /// The last holder gave it up.
        Disposed = "disposed",
        /// No living parent holds it any more.
        ParentEnded = "parent-ended",
        /// Its host shut down in good order.
        HostShutdown = "host-shutdown",
        /// Its host was gone; written by the next life of the host.
        HostRestart = "host-restart",
        /// Nobody looked on any more, nothing else held it, and it was not to go on by itself.
        LastViewerLeft = "last-viewer-left",
    }
}

impl StopReason {
    /// How a run ends that is under way when its session's epoch ends so.
    #[must_use]
    pub fn ends_runs_as(self) -> EndReason {
        match self {
            Self::HostShutdown | Self::LastViewerLeft => EndReason::Interrupted,
            Self::HostRestart => EndReason::HostRestart,
            Self::Terminated | Self::Disposed | Self::ParentEnded => EndReason::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for v in Outcome::ALL {
            assert_eq!(Outcome::parse(v.as_str()), Some(*v));
        }
        for v in EndReason::ALL {
            assert_eq!(EndReason::parse(v.as_str()), Some(*v));
        }
        for v in StopReason::ALL {
            assert_eq!(StopReason::parse(v.as_str()), Some(*v));
        }
        assert_eq!(Outcome::parse("done"), None);
    }

    #[test]
    fn each_end_reason_has_its_outcome() {
        let table = [
            ("completed", "succeeded"),
            ("no-output", "succeeded"),
            ("refusal", "failed"),
            ("length", "failed"),
            ("content-filter", "failed"),
            ("repeated-call", "failed"),
            ("iteration-limit", "succeeded"),
            ("provider-error", "failed"),
            ("storage-error", "failed"),
            ("interrupted", "interrupted"),
            ("cancelled", "cancelled"),
            ("deadline", "timed-out"),
            ("budget", "out-of-budget"),
            ("host-restart", "interrupted"),
        ];
        assert_eq!(table.len(), EndReason::ALL.len());
        for (reason, outcome) in table {
            assert_eq!(
                EndReason::parse(reason).unwrap().outcome().as_str(),
                outcome
            );
        }
    }
}
