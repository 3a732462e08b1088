//! The differences that there are between the two readings, and why ours is the one we want. A row is checked as it
//! stands: one that is no longer so fails the test, as does a difference that has no row.

/// One field of one case that the two read differently.
pub(crate) struct Difference {
    pub(crate) case: &'static str,
    pub(crate) field: &'static str,
    pub(crate) ours: &'static str,
    pub(crate) theirs: &'static str,
    /// Why ours is right.
    pub(crate) why: &'static str,
}

/// Servers cut text between the halves of a character that JSON spells as two escapes. The other library refuses the
/// event, and with it the whole reply; ours joins the halves.
const HALF: &str = "one half of a character in an event is no reason to lose a reply";

/// The error says its own code, as gateways send it after the head is out. Ours keeps it: it decides whether to try again.
const CODE: &str = "a code inside the stream is what a status would have been";

/// The table.
pub(crate) const EXPECTED: &[Difference] = &[
    Difference {
        case: "chat-calls as it came",
        field: "end",
        ours: "calls",
        theirs: "failed",
        why: HALF,
    },
    Difference {
        case: "responses as it came",
        field: "end",
        ours: "calls",
        theirs: "failed",
        why: HALF,
    },
    Difference {
        case: "messages as it came",
        field: "end",
        ours: "calls",
        theirs: "failed",
        why: HALF,
    },
    Difference {
        case: "gemini as it came",
        field: "end",
        ours: "calls",
        theirs: "failed",
        why: HALF,
    },
    Difference {
        case: "chat with an error inside",
        field: "end",
        ours: "failed with 502",
        theirs: "failed",
        why: CODE,
    },
];
