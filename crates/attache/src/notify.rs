//! Desktop notifications by the terminal: an escape sequence that some terminals show as a notification of the desktop. Off
//! unless it is asked for, and never written where no terminal reads it.

use std::io::{IsTerminal, Write};

use attache_client::protocol::NotificationKind;

use crate::fail::Failure;
use crate::safe::in_line;

/// The variable that asks for it.
const VARIABLE: &str = "ATTACHE_NOTIFY";

/// Which sequence is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bell {
    /// None.
    Off,
    /// OSC 9, as iTerm2, kitty, WezTerm, Windows Terminal and others take it.
    Osc9,
    /// OSC 777, as foot, Ghostty, urxvt, VTE and others take it.
    Osc777,
}

impl Bell {
    /// What the variable `ATTACHE_NOTIFY` asks for.
    pub(crate) fn chosen() -> Result<Self, Failure> {
        let chosen = std::env::var(VARIABLE).unwrap_or_default();
        match chosen.as_str() {
            "" | "off" => Ok(Self::Off),
            "osc9" => Ok(Self::Osc9),
            "osc777" => Ok(Self::Osc777),
            other => Err(Failure::usage(format!(
                "{VARIABLE} is {other:?}; it may be off, osc9 or osc777"
            ))),
        }
    }

    /// The sequence; none when it is off. The name comes from elsewhere and steers nothing.
    fn sequence(self, name: &str, kind: NotificationKind) -> Option<String> {
        let name = in_line(name).replace(';', ",");
        let words = kind.words();
        match self {
            Self::Off => None,
            Self::Osc9 => Some(format!("\u{1b}]9;{name} {words}\u{7}")),
            Self::Osc777 => Some(format!("\u{1b}]777;notify;attache;{name} {words}\u{7}")),
        }
    }

    /// Tells a person.
    pub(crate) fn ring(self, name: &str, kind: NotificationKind) {
        let mut terminal = std::io::stderr().lock();
        if let Some(sequence) = self.sequence(name, kind)
            && terminal.is_terminal()
        {
            // A terminal that is gone needs no notification.
            let _rung = terminal.write_all(sequence.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_no_sequence_and_begins_none() {
        let name = "a\u{7}\u{1b}]52;c;evil\u{9c}; b";
        for (bell, begins) in [
            (Bell::Osc9, "\u{1b}]9;"),
            (Bell::Osc777, "\u{1b}]777;notify;attache;"),
        ] {
            let sequence = bell.sequence(name, NotificationKind::Idle).unwrap();
            let inner = sequence.strip_prefix(begins).unwrap();
            let inner = inner.strip_suffix('\u{7}').unwrap();
            assert!(
                !inner.contains(['\u{7}', '\u{1b}', '\u{9c}', ';']),
                "{inner:?}"
            );
            assert!(inner.ends_with("has ended its run"), "{inner:?}");
        }
        assert_eq!(Bell::Off.sequence(name, NotificationKind::Budget), None);
    }
}
