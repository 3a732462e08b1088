//! The stable error codes that every door shows, each with its category, whether a repeat may
//! help, and a fixed hint that says what to do next. A code never carries data.

use crate::outcome::named;

named! {
    /// What kind of failure a code is.
    Category {
        /// The request itself is wrong.
        Invalid = "invalid",
        /// What it names is not there, or not for the caller.
        NotFound = "not-found",
        /// It does not fit what is there now.
        Conflict = "conflict",
        /// A rule forbids it.
        Refused = "refused",
        /// Something that it needs does not answer.
        Unavailable = "unavailable",
        /// It took too long.
        Timeout = "timeout",
        /// A fault of ours.
        Internal = "internal",
    }
}

named! {
    /// A stable error code.
    ErrorCode {
        /// Arguments that do not fit the schema.
        InvalidArguments = "invalid-arguments",
        /// A frame that does not fit the protocol.
        InvalidMessage = "invalid-message",
        /// Text beyond the limit.
        TextTooLarge = "text-too-large",
        /// Unknown, or not for the caller: one answer for both.
        UnknownSession = "unknown-session",
        /// The session is stopped.
        SessionStopped = "session-stopped",
        /// The caller gave up its hold on the session.
        SessionDisposed = "session-disposed",
        /// The session takes no input.
        NoUserInput = "no-user-input",
        /// A session waits for itself.
        SelfWait = "self-wait",
        /// A wait that would close a circle.
        WaitCycle = "wait-cycle",
        /// A definition that does not load.
        DefinitionInvalid = "definition-invalid",
        /// A definition that nobody knows.
        DefinitionUnknown = "definition-unknown",
        /// A trust profile that cannot be resolved.
        TrustUnresolvable = "trust-unresolvable",
        /// A child that would get more than its parent.
        ExceedsParent = "exceeds-parent",
        /// The host cannot run it.
        HostIncompatible = "host-incompatible",
        /// A limit of the tree is reached.
        LimitReached = "limit-reached",
        /// A money limit with a model of unknown price.
        PriceUnknown = "price-unknown",
        /// Changed since.
        RevisionConflict = "revision-conflict",
        /// A command id was used for something else.
        CommandIdReused = "command-id-reused",
        /// A question to a person is not open any more.
        AlreadySettled = "already-settled",
        /// The session has moved to another owner.
        EpochFenced = "epoch-fenced",
        /// Another process holds the store.
        StoreLocked = "store-locked",
        /// The disk is full.
        StorageFull = "storage-full",
        /// The store is damaged.
        StorageCorrupt = "storage-corrupt",
        /// The provider did not accept the key.
        ProviderAuth = "provider-auth",
        /// The provider cannot be reached.
        ProviderUnreachable = "provider-unreachable",
        /// The provider is overloaded.
        ProviderOverloaded = "provider-overloaded",
        /// The provider refused the request.
        ProviderRefused = "provider-refused",
        /// The provider does not know the model.
        ModelUnknown = "model-unknown",
        /// The caller may not do this.
        NotPermitted = "not-permitted",
        /// A fault of ours.
        Internal = "internal",
    }
}

impl ErrorCode {
    /// Its category.
    #[must_use]
    pub fn category(self) -> Category {
        match self {
            Self::InvalidArguments
            | Self::InvalidMessage
            | Self::TextTooLarge
            | Self::SelfWait
            | Self::WaitCycle
            | Self::DefinitionInvalid => Category::Invalid,
            Self::UnknownSession | Self::DefinitionUnknown | Self::ModelUnknown => {
                Category::NotFound
            }
            Self::SessionStopped
            | Self::SessionDisposed
            | Self::NoUserInput
            | Self::RevisionConflict
            | Self::CommandIdReused
            | Self::AlreadySettled
            | Self::EpochFenced => Category::Conflict,
            Self::TrustUnresolvable
            | Self::ExceedsParent
            | Self::LimitReached
            | Self::PriceUnknown
            | Self::ProviderAuth
            | Self::ProviderRefused
            | Self::NotPermitted => Category::Refused,
            Self::HostIncompatible
            | Self::StoreLocked
            | Self::StorageFull
            | Self::ProviderUnreachable
            | Self::ProviderOverloaded => Category::Unavailable,
            Self::StorageCorrupt | Self::Internal => Category::Internal,
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn retryable(self) -> bool {
        matches!(
            self,
            Self::StoreLocked
                | Self::StorageFull
                | Self::ProviderUnreachable
                | Self::ProviderOverloaded
        )
    }

    /// What to do next.
    #[must_use]
    pub fn hint(self) -> Option<&'static str> {
        Some(match self {
            Self::InvalidArguments => "Correct what the message names, then try again.",
            Self::InvalidMessage => "Send a frame that fits the schema of the negotiated version.",
            Self::TextTooLarge => "Send at most 1 MiB; put larger content into a file and name it.",
            Self::UnknownSession => "Look the id up with agent_session_list or `attache ls`.",
            Self::SessionStopped => {
                "Acquire the session with agent_session_acquire (or `attache start`), then send."
            }
            Self::SessionDisposed => "Acquire the session with agent_session_acquire, then send.",
            Self::NoUserInput => "Read it with agent_session_read_events; it takes no input.",
            Self::SelfWait => "Wait for a child; a session cannot wait for itself.",
            Self::WaitCycle => "Wait for a child; an ancestor may be waiting for this session.",
            Self::DefinitionInvalid => "Mend the definition at the named place.",
            Self::DefinitionUnknown => {
                "Use a name of `attache agents`, or give the definition as an object."
            }
            Self::TrustUnresolvable => "Name a trust profile that exists.",
            Self::ExceedsParent => "Ask for no more than the parent itself has.",
            Self::HostIncompatible => "Run it on a host that has what it needs.",
            Self::LimitReached => "List children, reuse or stop some, then try again.",
            Self::PriceUnknown => "Set no money limit, or use a model whose price is known.",
            Self::RevisionConflict => "Read the current revision and decide again.",
            Self::CommandIdReused => "Use a fresh id for a new command.",
            Self::AlreadySettled => "Nothing needs to be done; what came of it is in the history.",
            Self::EpochFenced => "Attach to the session's new owner.",
            Self::StoreLocked => "End the other process that uses this state folder, or use it.",
            Self::StorageFull => "Free some disk space; nothing needs a restart.",
            Self::StorageCorrupt => "Restore the state folder from a copy; see `attache doctor`.",
            Self::ProviderAuth => "Check the API key; `attache doctor` shows where it comes from.",
            Self::ProviderUnreachable => "Check the base URL and that the server runs.",
            Self::ProviderOverloaded => "Try again later.",
            Self::ProviderRefused => "Read the provider's message; the request must change.",
            Self::ModelUnknown => "Check the spelling of the model, as PROVIDER/MODEL.",
            Self::NotPermitted => "Ask somebody who may.",
            Self::Internal => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_faults_of_ours_have_no_hint() {
        for code in ErrorCode::ALL {
            assert_eq!(
                code.hint().is_none(),
                *code == ErrorCode::Internal,
                "{code}"
            );
        }
    }

    #[test]
    fn what_may_be_repeated_is_unavailable() {
        for code in ErrorCode::ALL.iter().filter(|code| code.retryable()) {
            assert_eq!(code.category(), Category::Unavailable, "{code}");
        }
    }
}
