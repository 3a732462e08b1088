//! Commands that a person types behind a slash, for every viewer alike: which there are, what a line means, and whether it
//! changes something. What they do is the host's business; what a viewer does for itself (leaving, for example) is not among
//! them.

/// A command that was typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Slash {
    /// What there is, or how one command is used.
    Help(Option<String>),
    /// The model of the next runs: shown, or set to this.
    Model(Option<String>),
    /// The session's name from now on.
    Rename(String),
    /// Whether the session goes on when its last viewer has left: shown, or set.
    Background(Option<bool>),
    /// The tools with their switches.
    Tools,
    /// A tool's switch.
    Tool {
        /// The tool.
        name: String,
        /// Whether the model is offered it.
        enabled: bool,
    },
    /// Where the tools work.
    WorkingDirectory,
    /// What waits in the queues.
    Queues,
    /// Who looks on.
    Viewers,
    /// The limits of the tree: shown, or changed.
    Budget(Option<String>),
    /// Cut the conversation for the model.
    Compact,
    /// End the run; with true those of all sub-agents too.
    Interrupt(bool),
    /// End the session.
    Terminate,
}

/// What a line is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Typed {
    /// Text for the agent.
    Text,
    /// It begins with a slash and names no command: text for the agent too, as far as the viewer has none of that name.
    Unknown,
    /// A command that is not used so; this is how.
    Misused(&'static str),
    /// A command.
    Slash(Slash),
}

/// How each command is written, and what it does.
pub const SLASH_COMMANDS: [(&str, &str); 13] = [
    ("/help [COMMAND]", "what there is, or how a command is used"),
    (
        "/model [PROVIDER/MODEL]",
        "show the model, or set that of the next runs",
    ),
    ("/rename NAME", "give the session a name"),
    (
        "/background [on|off]",
        "whether the session goes on when its last viewer has left",
    ),
    ("/tools", "the tools, and which of them are switched off"),
    (
        "/tool NAME on|off",
        "switch a tool on or off, from the next run on",
    ),
    ("/working-directory", "where the tools work"),
    ("/queues", "what waits in the queues"),
    ("/viewers", "who looks on"),
    (
        "/budget [K=V,…]",
        "show the limits of the tree, or change them",
    ),
    (
        "/compact",
        "cut the conversation for the model; the history stays",
    ),
    (
        "/interrupt [tree]",
        "end the run; with `tree` those of all sub-agents too",
    ),
    (
        "/terminate",
        "end the session and its sub-agents; the history stays",
    ),
];

/// How a command is written.
#[must_use]
pub fn slash_usage(name: &str) -> Option<(&'static str, &'static str)> {
    let named = |usage: &str| usage.split(' ').next() == Some(name);
    SLASH_COMMANDS
        .iter()
        .copied()
        .find(|(usage, _)| named(usage))
}

impl Typed {
    /// Reads a line.
    #[must_use]
    pub fn of(line: &str) -> Self {
        let line = line.trim();
        if !line.starts_with('/') || line.contains('\n') {
            return Self::Text;
        }
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let Some((usage, _)) = slash_usage(name) else {
            return Self::Unknown;
        };
        let given = (!rest.is_empty()).then(|| rest.to_owned());
        let nothing = |slash| rest.is_empty().then_some(slash);
        let slash = match name {
            "/help" => Some(Slash::Help(given)),
            "/model" => Some(Slash::Model(given)),
            "/rename" => given.map(Slash::Rename),
            "/background" => match given.as_deref().map(switch) {
                None => Some(Slash::Background(None)),
                Some(on) => on.map(|on| Slash::Background(Some(on))),
            },
            "/tools" => nothing(Slash::Tools),
            "/tool" => rest
                .rsplit_once(char::is_whitespace)
                .and_then(|(name, to)| {
                    let (name, enabled) = (name.trim().to_owned(), switch(to)?);
                    Some(Slash::Tool { name, enabled })
                }),
            "/working-directory" => nothing(Slash::WorkingDirectory),
            "/queues" => nothing(Slash::Queues),
            "/viewers" => nothing(Slash::Viewers),
            "/budget" => Some(Slash::Budget(given)),
            "/compact" => nothing(Slash::Compact),
            "/interrupt" if rest == "tree" => Some(Slash::Interrupt(true)),
            "/interrupt" => nothing(Slash::Interrupt(false)),
            "/terminate" => nothing(Slash::Terminate),
            _ => None,
        };
        slash.map_or(Self::Misused(usage), Self::Slash)
    }

    /// Whether it changes something in the session.
    #[must_use]
    pub fn changes(&self) -> bool {
        match self {
            Self::Text | Self::Unknown | Self::Misused(_) => false,
            Self::Slash(slash) => match slash {
                Slash::Help(_)
                | Slash::Tools
                | Slash::WorkingDirectory
                | Slash::Queues
                | Slash::Viewers => false,
                Slash::Model(set) | Slash::Budget(set) => set.is_some(),
                Slash::Background(set) => set.is_some(),
                Slash::Rename(_)
                | Slash::Tool { .. }
                | Slash::Compact
                | Slash::Interrupt(_)
                | Slash::Terminate => true,
            },
        }
    }
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_line_means() {
        let text = |text: &str| Some(text.to_owned());
        let table = [
            ("hello", Typed::Text),
            ("/tools\nand more", Typed::Text),
            ("/fly away", Typed::Unknown),
            ("/", Typed::Unknown),
            ("/Help", Typed::Unknown),
            ("/help", Typed::Slash(Slash::Help(None))),
            (" /help /tool ", Typed::Slash(Slash::Help(text("/tool")))),
            ("/model a/b", Typed::Slash(Slash::Model(text("a/b")))),
            (
                "/rename  a name ",
                Typed::Slash(Slash::Rename("a name".to_owned())),
            ),
            ("/rename", Typed::Misused("/rename NAME")),
            ("/background", Typed::Slash(Slash::Background(None))),
            (
                "/background on",
                Typed::Slash(Slash::Background(Some(true))),
            ),
            ("/background maybe", Typed::Misused("/background [on|off]")),
            ("/tools", Typed::Slash(Slash::Tools)),
            ("/tools all", Typed::Misused("/tools")),
            ("/tool grep", Typed::Misused("/tool NAME on|off")),
            ("/interrupt tree", Typed::Slash(Slash::Interrupt(true))),
            ("/interrupt all", Typed::Misused("/interrupt [tree]")),
            ("/terminate", Typed::Slash(Slash::Terminate)),
        ];
        for (line, typed) in table {
            assert_eq!(Typed::of(line), typed, "{line:?}");
        }
        let off = Slash::Tool {
            name: "grep".to_owned(),
            enabled: false,
        };
        assert_eq!(Typed::of("/tool grep off"), Typed::Slash(off));
    }

    #[test]
    fn each_command_is_one_and_it_is_known_which_change_something() {
        for (usage, _) in SLASH_COMMANDS {
            let name = usage.split(' ').next().unwrap();
            assert_ne!(Typed::of(name), Typed::Unknown, "{usage}");
        }
        for (line, changes) in [
            ("/help", false),
            ("/model", false),
            ("/model a/b", true),
            ("/budget", false),
            ("/budget tokens=1", true),
            ("/background", false),
            ("/background off", true),
            ("/rename x", true),
            ("/tool x on", true),
            ("/compact", true),
            ("/interrupt", true),
            ("/terminate", true),
            ("/queues", false),
            ("hello", false),
        ] {
            assert_eq!(Typed::of(line).changes(), changes, "{line}");
        }
    }
}
