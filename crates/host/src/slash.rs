//! What commands behind a slash do, and what they say. How they are written is in `protocol`.

use std::fmt::Write as _;

use attache_engine::{EngineError, EngineHandle};
use attache_protocol::{Answer, SLASH_COMMANDS, Slash, Typed, slash_usage};
use attache_session::{Answer as Decided, BudgetChange, SessionId, Setting, preview};
use uuid::Uuid;

use crate::attachments::Attachments;
use crate::from_wire;

/// Characters of a waiting item that is listed.
const ITEM_CHARS: usize = 100;

/// Items of a queue that are listed.
const ITEMS: usize = 20;

/// What carries a command out.
pub(crate) struct Desk<'a> {
    pub(crate) engine: &'a EngineHandle,
    pub(crate) attachments: &'a Attachments,
    pub(crate) session: SessionId,
    /// The command's id and digest.
    pub(crate) key: (Uuid, [u8; 32]),
}

/// What a line comes to.
pub(crate) enum Done {
    /// This answer.
    Answer(Answer),
    /// A compaction, which takes its time.
    Compacts,
}

fn told(text: impl Into<String>) -> Done {
    Done::Answer(Answer::Slash {
        known: true,
        text: text.into(),
    })
}

impl Desk<'_> {
    /// Carries a typed line out.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown, or refuses what is asked.
    pub(crate) async fn carry_out(&self, line: &str) -> Result<Done, EngineError> {
        let slash = match Typed::of(line) {
            Typed::Slash(slash) => slash,
            Typed::Misused(usage) => return Ok(told(format!("it is used like this: {usage}"))),
            Typed::Text | Typed::Unknown => {
                let known = false;
                let text = String::new();
                return Ok(Done::Answer(Answer::Slash { known, text }));
            }
        };
        let row = self.engine.row(self.session)?;
        let summary = &row.view.summary;
        Ok(match slash {
            Slash::Help(about) => told(help(about.as_deref())),
            Slash::Model(None) => told(format!("the model is {}", summary.model)),
            Slash::Model(Some(model)) => {
                let changed = self.set(Setting::Model(model.as_str().into())).await?;
                told(match changed {
                    true => format!("the next run is with {model}"),
                    false => format!("the model is {model} already"),
                })
            }
            Slash::Rename(name) => {
                self.set(Setting::Name(name.as_str().into())).await?;
                told(format!("the session is called {name}"))
            }
            Slash::Background(set) => {
                if let Some(on) = set {
                    self.set(Setting::ContinueInBackground(on)).await?;
                }
                told(match set.unwrap_or(summary.continue_in_background) {
                    true => "the session goes on when nobody looks at it",
                    false => "the session ends when its last viewer has left",
                })
            }
            Slash::Tools => told(self.tools().await?),
            Slash::Tool { name, enabled } => {
                let setting = Setting::Tool {
                    name: name.as_str().into(),
                    offered: enabled,
                };
                self.set(setting).await?;
                let is = if enabled { "on" } else { "off" };
                told(format!("{name} is switched {is}, from the next run on"))
            }
            Slash::WorkingDirectory => told(summary.working_directory.to_string()),
            Slash::Queues => told(self.queues().await?),
            Slash::Viewers => told(self.viewers()),
            Slash::Budget(change) => {
                if let Some(change) = change {
                    let change: BudgetChange = from_wire::budget(Some(&change))?;
                    self.engine.set_budget(self.session, change, None).await?;
                }
                told(self.budget()?)
            }
            Slash::Compact => Done::Compacts,
            Slash::Interrupt(tree) => {
                let ran = self.engine.interrupt(self.session, tree).await?;
                told(if ran { "interrupted" } else { "nothing ran" })
            }
            Slash::Terminate => {
                let lived = self.engine.terminate(self.session).await?;
                told(if lived {
                    "the session is ended"
                } else {
                    "the session was stopped already"
                })
            }
        })
    }

    async fn set(&self, setting: Setting) -> Result<bool, EngineError> {
        let set = self.engine.set(self.session, setting, Some(self.key));
        Ok(set.await? == Decided::Done)
    }

    async fn tools(&self) -> Result<String, EngineError> {
        let state = self.engine.state(self.session).await?;
        let mut text = String::new();
        for tool in self.engine.tools(&state)? {
            let is = if tool.offered { "on " } else { "off" };
            let line = tool.description.lines().next().unwrap_or_default();
            let (line, _) = preview(line, ITEM_CHARS);
            // Writing to a text does not fail.
            let _written = writeln!(text, "{is} {}  {line}", tool.name);
        }
        Ok(if text.is_empty() {
            "there are no tools".to_owned()
        } else {
            text
        })
    }

    async fn queues(&self) -> Result<String, EngineError> {
        let state = self.engine.state(self.session).await?;
        let mut text = String::new();
        for queue in &state.queues {
            for item in queue.items.iter().take(ITEMS) {
                let (shown, more) = preview(&item.text, ITEM_CHARS);
                let more = if more { "…" } else { "" };
                let _written = writeln!(text, "{}: {shown}{more}", queue.name);
            }
            if let Some(more) = queue
                .items
                .len()
                .checked_sub(ITEMS)
                .filter(|more| *more > 0)
            {
                let _written = writeln!(text, "{}: and {more} more", queue.name);
            }
        }
        Ok(if text.is_empty() {
            "nothing waits".to_owned()
        } else {
            text
        })
    }

    fn viewers(&self) -> String {
        let viewers = self.attachments.viewers(self.session);
        let lines = viewers.iter().map(|viewer| {
            let looks = if viewer.read_only { ", looks only" } else { "" };
            let lost = if viewer.in_grace { ", lost" } else { "" };
            format!("{}{looks}{lost}\n", viewer.program)
        });
        let text: String = lines.collect();
        if text.is_empty() {
            "nobody looks on".to_owned()
        } else {
            text
        }
    }

    fn budget(&self) -> Result<String, EngineError> {
        let (limits, paused) = self.engine.budget(self.session)?;
        let mut text = String::new();
        for limit in &limits {
            let used = limit.used.map(|used| limit.limit.shown(used).to_string());
            let used = used.unwrap_or_else(|| "?".to_owned());
            let most = limit.limit.shown(limit.most);
            let _written = writeln!(text, "{}: {used} of {most}", limit.limit);
        }
        if paused {
            text.push_str("paused: nothing is spawned\n");
        }
        Ok(if text.is_empty() {
            "there are no limits".to_owned()
        } else {
            text
        })
    }
}

fn help(about: Option<&str>) -> String {
    let of = |(usage, what): (&str, &str)| format!("{usage}  {what}\n");
    match about {
        None => SLASH_COMMANDS.iter().copied().map(of).collect(),
        Some(name) => {
            let name = format!("/{}", name.trim_start_matches('/'));
            let known = slash_usage(&name).map(of);
            known.unwrap_or_else(|| format!("there is no command {name}; /help lists all\n"))
        }
    }
}
