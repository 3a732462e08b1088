//! The names of things: one newtype for each kind of id, so that two kinds cannot be mixed up.
//! Nothing here makes an id; fresh ones come in through [`Ids`].

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.as_hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            /// Takes only the usual form with hyphens, 36 characters long.
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                let id = Uuid::try_parse(text)?;
                if text.len() == 36 {
                    Ok(Self(id))
                } else {
                    // A second parse of nothing gives the library's own error value.
                    Uuid::try_parse("").map(Self)
                }
            }
        }
    };
}

uuid_id! {
    /// A session, for ever: a UUIDv7 in its usual form.
    SessionId
}
uuid_id! {
    /// One item of input, from the moment it was accepted until it is in the history.
    ItemId
}
uuid_id! {
    /// A registration to be told when another session has settled.
    WatchId
}
uuid_id! {
    /// A question to a person.
    ModalId
}
uuid_id! {
    /// One life of a session in one life of its host; unloading does not end it.
    Epoch
}

/// A run of the agent loop, numbered from 1 within its session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TurnId(pub u32);

/// Number of a stored event in its session's log, from 1; 0 is "before the first".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position(pub u64);

impl Position {
    /// The position `count` events later.
    #[must_use]
    pub fn plus(self, count: usize) -> Self {
        Self(self.0 + count as u64)
    }
}

/// The ownership number of a session in the store; it goes up at each takeover.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Generation(pub u64);

/// A queue of one session: `immediate` and `default` always exist, custom ones are numbered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum QueueId {
    /// Takes what must steer a running turn.
    Immediate,
    /// Takes what waits for the turn's end.
    Default,
    /// Made by a person or a program; the number is never used again in that session.
    Custom(u32),
}

/// A tool call as its provider named it, made unique within its session by the turn.
pub type CallId = Arc<str>;

/// Where fresh ids come from. The shell draws UUIDv7s, tests count upwards.
pub trait Ids {
    /// An id that was never given before.
    fn fresh(&mut self) -> Uuid;
}

impl<F: FnMut() -> Uuid> Ids for F {
    fn fresh(&mut self) -> Uuid {
        self()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_usual_form_is_an_id() {
        let text = "01931f2e-0000-7000-8000-000000000001";
        assert_eq!(SessionId::from_str(text).unwrap().to_string(), text);
        for bad in [
            "",
            ".",
            "01931f2e000070008000000000000001",
            "../../etc/passwd",
            "a/b",
        ] {
            assert!(SessionId::from_str(bad).is_err(), "{bad}");
        }
    }
}
