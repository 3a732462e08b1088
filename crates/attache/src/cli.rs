//! The command line as it is written: subcommands, flags and their examples.

use std::net::SocketAddr;
use std::path::PathBuf;

use attache_host::Storage;
use attache_host::web::{host_name, listen_address};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

/// Hosts agent sessions that you can delegate from, walk away from and come back to.
#[derive(Parser, Debug)]
#[command(name = "attache", version, max_term_width = 100)]
#[command(after_help = "Example:\n  attache run \"Summarise the files in this folder\"")]
pub(crate) struct Cli {
    /// Print data as JSON: one document, or one object a line where it streams.
    #[arg(long, global = true)]
    json: bool,

    #[command(flatten)]
    pub(crate) elsewhere: Elsewhere,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Which host a command talks to, where it is not this user's daemon.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "A host elsewhere")]
pub(crate) struct Elsewhere {
    /// Talk to a host elsewhere, `wss://NAME[:PORT]`, as the variable ATTACHE_HOST does. ATTACHE_TOKEN has its token.
    #[arg(long, global = true, value_name = "URL", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) host: Option<String>,
    /// A file with the token, instead of the variable.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A PEM file with what vouches for the host beside what this system trusts.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) host_cert: Option<PathBuf>,
}

impl Cli {
    pub(crate) fn json(&self) -> bool {
        self.json
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Show the main job without a key or a network: a scripted parent and its sub-agents.
    ///
    /// Only the model is scripted. The parent looks at DIR through three sub-agents that really read
    /// its files, and joins what they found.
    #[command(after_help = "Example:\n  attache demo ~/project")]
    Demo {
        /// The folder to look at; the current one by default.
        dir: Option<PathBuf>,
    },
    /// Run one session until it and all its sub-agents are quiet, and stream the answer.
    #[command(
        after_help = "Example:\n  attache run --model openai/gpt-5 \"Review the last commit\"\n  git diff | attache run -"
    )]
    Run(Run),
    /// Talk to a session line by line: a new one, or one that exists.
    #[command(after_help = "Example:\n  attache chat\n  attache chat 3f9a1c2b")]
    Chat(Chat),
    /// Look at a session line by line and work with it; the connection comes back by itself.
    ///
    /// What is typed is sent; it answers a question where one is open; behind a slash it is a command. With ATTACHE_NOTIFY=osc9
    /// (or osc777) the terminal is asked to show what happens as notifications of the desktop.
    #[command(
        after_help = "Examples:\n  attache attach 3f9a1c2b --plain\n  attache attach 3f9a1c2b --read-only"
    )]
    Attach(Attach),
    /// Run the daemon in the foreground.
    #[command(
        after_help = "Example:\n  attache serve\n  attache serve --store sqlite:/srv/attache\n  attache serve --listen\n  attache serve --listen 0.0.0.0:7433 --tls-cert box.pem --tls-key box.key --allow-host box.example"
    )]
    Serve {
        /// Where sessions are kept: `sqlite:FOLDER`, or `memory:` for sessions that go with the daemon.
        #[arg(long, value_name = "URL", value_parser = store)]
        store: Option<Storage>,
        /// The name of the profile that owns sessions; `user@machine` by default.
        #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
        profile: Option<String>,
        #[command(flatten)]
        web: Web,
        /// Leave after some idle time, as a daemon does that a command has started.
        #[arg(long, hide = true, conflicts_with = "listen")]
        on_demand: bool,
    },
    /// Make, list and revoke the tokens with which viewers elsewhere come to the daemon's listener.
    #[command(
        after_help = "Examples:\n  attache token create --name phone\n  attache token list\n  attache token revoke phone"
    )]
    Token {
        #[command(subcommand)]
        command: Token,
    },
    /// Serve another agent over MCP on standard input and output.
    ///
    /// It delegates by the tools of the `agent-session` toolset. What it creates stays when it is gone.
    #[command(
        after_help = "Example:\n  claude mcp add attache -- attache mcp\n  attache mcp --agent reviewer --model openai/gpt-5"
    )]
    Mcp(Mcp),
    /// End the daemon in good order and start it anew.
    ///
    /// Work under way has 30 seconds to come to its end; what then still runs is interrupted.
    #[command(after_help = "Example:\n  attache restart\n  attache restart --now")]
    Restart {
        /// Do not wait: what runs is interrupted after the five seconds that any end of a daemon leaves.
        #[arg(long)]
        now: bool,
    },
    /// List sessions, oldest first.
    #[command(after_help = "Example:\n  attache ls --status running")]
    Ls {
        /// Only sessions of this status.
        #[arg(long)]
        status: Option<StatusName>,
        /// Only sessions without a parent.
        #[arg(long)]
        roots: bool,
    },
    /// Show the tree of sessions with status, outcome and usage.
    #[command(after_help = "Example:\n  attache tree\n  attache tree 3f9a1c2b --json")]
    Tree {
        /// A session whose tree is shown; all trees by default.
        id: Option<String>,
        /// Every session in a line of its own: long lists of sub-agents are not folded.
        #[arg(long)]
        all: bool,
    },
    /// Show one session in full.
    #[command(after_help = "Examples:\n  attache show 3f9a1c2b\n  attache show 3f9a1c2b --ledger")]
    Show {
        /// The session: its id, or at least 6 characters from its end.
        id: String,
        /// Also the tool calls of its last run: what each came to, how long it took, whether it changed something.
        #[arg(long)]
        ledger: bool,
    },
    /// Send input to a session; a stopped one is started.
    #[command(
        after_help = "Example:\n  attache send 3f9a1c2b \"Look at the tests too\"\n  attache send 3f9a1c2b --immediate \"Stop at the first failure\""
    )]
    Send(Send),
    /// Wait until a session and all its sub-agents are quiet.
    #[command(after_help = "Example:\n  attache wait 3f9a1c2b --timeout 60")]
    Wait {
        /// The session.
        id: String,
        /// Only until the session itself has settled.
        #[arg(long = "self")]
        itself: bool,
        /// Seconds at most; exit code 5 when they run out.
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u64>,
    },
    /// Read a session's history.
    #[command(
        after_help = "Example:\n  attache events 3f9a1c2b --type tool_call --search src/\n  attache events 3f9a1c2b --follow"
    )]
    Events(Events),
    /// Start a stopped session; what waits for it is worked on.
    #[command(after_help = "Example:\n  attache start 3f9a1c2b")]
    Start {
        /// The session.
        id: String,
    },
    /// Cut a long conversation for its model, with a summary that the model makes; the history stays.
    #[command(after_help = "Example:\n  attache compact 3f9a1c2b")]
    Compact {
        /// The session.
        id: String,
    },
    /// Show or change what a session and all its sub-agents may use.
    ///
    /// Limits are concurrent (turns at once), agents (living sub-agents), depth (generations), tokens, usd (dollars), wall
    /// (seconds of work) and tool-calls; `none` lifts one. Runs that a limit ended go on with the next message.
    #[command(
        after_help = "Examples:\n  attache budget 3f9a1c2b\n  attache budget 3f9a1c2b tokens=2000000,usd=none"
    )]
    Budget {
        /// The session, mostly a root.
        id: String,
        /// Limits to set or lift: KEY=VALUE,…
        change: Option<String>,
    },
    /// Let a session go on when nobody looks at it any more, or end it by then.
    ///
    /// Without it the session ends when its last viewer has left, as soon as no sub-agent of it is at work. Switched off
    /// while nobody looks on, it ends like that at once.
    #[command(after_help = "Example:\n  attache background 3f9a1c2b on")]
    Background {
        /// The session.
        id: String,
        /// Whether it goes on.
        switch: Switch,
    },
    /// Let no sub-agent be created in a session's tree until `attache resume`; what runs goes on.
    #[command(after_help = "Example:\n  attache pause 3f9a1c2b")]
    Pause {
        /// The session, mostly a root.
        id: String,
    },
    /// Let sub-agents be created again in a session's tree.
    #[command(after_help = "Example:\n  attache resume 3f9a1c2b")]
    Resume {
        /// The session.
        id: String,
    },
    /// End a session's current run; what was said stays.
    #[command(after_help = "Example:\n  attache interrupt 3f9a1c2b --tree")]
    Interrupt {
        /// The session.
        id: String,
        /// The runs of all its sub-agents too.
        #[arg(long)]
        tree: bool,
    },
    /// End a session and all its sub-agents now; the history stays.
    #[command(after_help = "Example:\n  attache terminate 3f9a1c2b")]
    Terminate {
        /// The session.
        id: String,
    },
    /// Delete a stored session that is not running.
    #[command(after_help = "Example:\n  attache rm 3f9a1c2b --yes")]
    Rm {
        /// The session.
        id: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// List the agent definitions that can be named, and those that do not load.
    #[command(after_help = "Example:\n  attache agents")]
    Agents,
    /// Show the settings in force and where they come from, and check what a run needs.
    ///
    /// The chosen model is asked for one word, which costs a few tokens: is it reached, is the key accepted, is the model
    /// known, does the answer stream.
    #[command(after_help = "Examples:\n  attache doctor\n  attache doctor --model ollama/qwen3")]
    Doctor {
        /// The model to try, as PROVIDER/MODEL; the chosen one by default.
        #[arg(long, value_name = "PROVIDER/MODEL")]
        model: Option<String>,
        /// Ask no model.
        #[arg(long)]
        offline: bool,
    },
    /// Print the completion script of a shell.
    #[command(
        after_help = "Example:\n  attache completions bash > ~/.local/share/bash-completion/completions/attache"
    )]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// The task; `-` reads it from standard input.
    pub(crate) prompt: String,
    #[command(flatten)]
    pub(crate) choice: Choice,
    /// Print the session's id and return; it goes on by itself.
    #[arg(long, conflicts_with = "in_process")]
    pub(crate) detach: bool,
    /// Run in this process, without a daemon; refused while one holds the state folder.
    #[arg(long)]
    pub(crate) in_process: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Chat {
    /// A session that exists; a new one by default.
    #[arg(conflicts_with_all = ["agent", "model", "parameters", "budget", "dir"])]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) choice: Choice,
}

#[derive(Args, Debug)]
pub(crate) struct Attach {
    /// The session.
    pub(crate) id: String,
    /// Line by line.
    #[arg(long)]
    pub(crate) plain: bool,
    /// Change nothing, and end nothing by leaving.
    #[arg(long)]
    pub(crate) read_only: bool,
}

/// What a new session is made of.
#[derive(Args, Debug, Default)]
pub(crate) struct Choice {
    /// An agent definition; `attache agents` lists them.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The model.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// What it and all its sub-agents may use: concurrent, agents, depth, tokens, usd, wall (seconds), tool-calls; `none`
    /// lifts a limit. A new session has concurrent=8,agents=200,depth=5.
    #[arg(long, value_name = "K=V,…")]
    pub(crate) budget: Option<String>,
    /// The folder that it works in; the current one by default. On a host elsewhere it is a folder there, and has to be named.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// A value of one of the definition's parameters; repeatable.
    #[arg(long = "param", value_name = "K=V", value_parser = pair)]
    pub(crate) parameters: Vec<(String, String)>,
}

/// A listener for those elsewhere.
#[derive(Args, Debug, Default)]
pub(crate) struct Web {
    /// Serve viewers at `/attach` and other agents at `/mcp` of this address. One that others can reach needs TLS, and a
    /// token that was made before.
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1:7433",
        value_parser = listen_address
    )]
    pub(crate) listen: Option<SocketAddr>,
    /// The certificate of the listener with those that vouch for it, a PEM file.
    #[arg(long, value_name = "FILE", requires = "listen", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's key, a PEM file.
    #[arg(long, value_name = "FILE", requires = "listen", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A name by which the listener is called too; repeatable. Requests that call it otherwise are refused.
    #[arg(long = "allow-host", value_name = "NAME", requires = "listen", value_parser = host_name)]
    pub(crate) allow_hosts: Vec<String>,
}

/// What is done with tokens.
#[derive(Subcommand, Debug)]
pub(crate) enum Token {
    /// Make a token, and print its secret: this once, it is kept nowhere.
    #[command(
        after_help = "Examples:\n  attache token create --name phone\n  attache token create --scope write --session 3f9a1c2b"
    )]
    Create {
        /// Its name, which no other has; one is made up by default.
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// What its bearer may do; each has what those before it have.
        #[arg(long, value_name = "SCOPE", default_value = "read")]
        scope: ScopeName,
        /// Only this session and those spawned below it.
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// List the tokens, oldest first.
    #[command(after_help = "Example:\n  attache token list --json")]
    List,
    /// Take a token back; connections that came with it end at once.
    #[command(after_help = "Example:\n  attache token revoke phone")]
    Revoke {
        /// Its name or its id.
        token: String,
    },
}

/// What a token lets its bearer do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ScopeName {
    /// Look at sessions and follow them.
    Read,
    /// Create, change and delete sessions too: what runs in them runs as you.
    Write,
    /// Make and revoke tokens too.
    Admin,
}

#[derive(Args, Debug)]
pub(crate) struct Mcp {
    /// The agent definition that sessions get when none is named; `attache agents` lists them.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The model of sessions whose definition names none.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// An earlier `root_session_id`, or at least 6 characters from its end, to go on with.
    #[arg(long, value_name = "ID")]
    pub(crate) root: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Send {
    /// The session.
    pub(crate) id: String,
    /// The text; `-` reads it from standard input.
    pub(crate) text: String,
    /// Steer the current run at its next tool boundary.
    #[arg(long, conflicts_with_all = ["queue", "held"])]
    pub(crate) immediate: bool,
    /// A queue of this name, made if there is none.
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// Hold it back: a queue that is made for it is held.
    #[arg(long)]
    pub(crate) held: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Events {
    /// The session.
    pub(crate) id: String,
    /// Only events after this time, as an earlier page gave it.
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
    /// Only events of this type; repeatable.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<TypeName>,
    /// Only events that contain this, in whatever case.
    #[arg(long)]
    pub(crate) search: Option<String>,
    /// At most this many, 1 to 200.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Go on with what comes.
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StatusName {
    Running,
    Idle,
    Stopped,
    Error,
}

impl StatusName {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Stopped => "stopped",
            Self::Error => "error",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum TypeName {
    User,
    Assistant,
    ToolCall,
    ToolResult,
    Diagnostic,
}

impl TypeName {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::Diagnostic => "diagnostic",
        }
    }
}

fn store(text: &str) -> Result<Storage, String> {
    match text.split_once(':') {
        Some(("memory", "")) => Ok(Storage::Memory),
        Some(("sqlite", folder)) if !folder.is_empty() => std::path::absolute(folder)
            .map(Storage::Folder)
            .map_err(|fault| fault.to_string()),
        _ => Err("must be `sqlite:FOLDER` or `memory:`".to_owned()),
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must have the form NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound_and_every_command_has_an_example() {
        let command = Cli::command();
        command.clone().debug_assert();
        for sub in command.get_subcommands() {
            let help = sub
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                help.contains("Example"),
                "{} has no example",
                sub.get_name()
            );
        }
    }

    /// Help is what the tables of bad input are made from.
    #[test]
    fn help_hides_nothing_that_takes_a_value() {
        for sub in Cli::command().get_subcommands() {
            assert!(!sub.is_hide_set(), "{}", sub.get_name());
            for argument in sub
                .get_arguments()
                .filter(|argument| argument.is_hide_set())
            {
                let name = (sub.get_name(), argument.get_id().as_str());
                assert!(!argument.get_action().takes_values(), "{name:?}");
            }
        }
    }
}

/// On or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Switch {
    /// It is to be so.
    On,
    /// It is not to be so.
    Off,
}
