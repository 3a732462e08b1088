//! What people set for one session while it lasts: how it is called, which model speaks in it, which of its tools are switched
//! off, and whether it goes on when nobody looks on. And what may keep a session going that nobody looks at.

use std::sync::Arc;

use crate::outcome::named;

/// Longest name of a session, in characters: it stands at the head of a list.
pub const SESSION_NAME_CHARS: usize = 200;

/// Most tools that can be switched off, so that a state stays small.
pub const SWITCHED_OFF: usize = 1_000;

/// The settings of a session. What is none is as the session was born.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Settings {
    /// Whether it goes on when its last viewer has left.
    pub continue_in_background: bool,
    /// Its name for people.
    pub name: Option<Arc<str>>,
    /// The model of its next runs, as `PROVIDER/MODEL`.
    pub model: Option<Arc<str>>,
    /// Names of tools that the model is not offered, in order.
    pub switched_off: Vec<Arc<str>>,
}

impl Settings {
    /// Whether the model is offered a tool.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        !self.switched_off.iter().any(|off| **off == *tool)
    }
}

/// A change of one setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setting {
    /// Whether it goes on when its last viewer has left.
    ContinueInBackground(bool),
    /// Its name for people; not empty.
    Name(Arc<str>),
    /// The model of its next runs; not empty. Whether there is such a model is not looked at here.
    Model(Arc<str>),
    /// Whether the model is offered a tool, from its next request on.
    Tool {
        /// The tool's name. Whether there is such a tool is not looked at here.
        name: Arc<str>,
        /// Whether it is offered.
        offered: bool,
    },
}

named! {
    /// What keeps a session going that nobody looks at any more. A turn of its own is none of this.
    Holder {
        /// A descendant is at work.
        Children = "children",
        /// A question to a person is open.
        Modals = "modals",
        /// A notice lies unread.
        Notices = "notices",
        /// It has asked to be told of another session's end.
        Waits = "waits",
    }
}
