//! Tools that take their time, before they do anything and again before they answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use attache_agent::{CallContext, Tool, ToolFuture, Toolset, Toolsets};
use attache_model::ToolSpec;
use serde_json::Value;

use crate::dice::Dice;

/// Longest time that a call waits at either end, in virtual milliseconds, where nothing else is asked for.
const SLOWEST_MS: u64 = 8;

struct SlowTool {
    tool: Arc<dyn Tool>,
    dice: Arc<Mutex<Dice>>,
    slowest_ms: u64,
}

impl SlowTool {
    async fn wait(&self) {
        let time = {
            let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
            // Many calls do what they do at once: their order is a case of its own.
            dice.chance(3).then(|| dice.below(self.slowest_ms))
        };
        if let Some(time) = time {
            tokio::time::sleep(Duration::from_millis(time)).await;
        }
    }
}

impl Tool for SlowTool {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn changes_state(&self) -> bool {
        self.tool.changes_state()
    }

    fn may_repeat(&self) -> bool {
        self.tool.may_repeat()
    }

    fn waits(&self) -> bool {
        self.tool.waits()
    }

    fn is_bookkeeping(&self) -> bool {
        self.tool.is_bookkeeping()
    }

    fn call<'a>(&'a self, context: CallContext, arguments: Value) -> ToolFuture<'a> {
        Box::pin(async move {
            self.wait().await;
            let outcome = self.tool.call(context, arguments).await;
            self.wait().await;
            outcome
        })
    }
}

struct SlowSet {
    kind: &'static str,
    tools: Vec<Arc<dyn Tool>>,
}

impl Toolset for SlowSet {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }
}

/// The same toolsets, whose calls take as long as the dice say.
#[must_use]
pub fn slow_tools(sets: &Toolsets, dice: Dice) -> Toolsets {
    tools_as_slow_as(sets, dice, SLOWEST_MS)
}

/// The same, whose calls wait less than so many virtual milliseconds at either end.
#[must_use]
pub fn tools_as_slow_as(sets: &Toolsets, dice: Dice, slowest_ms: u64) -> Toolsets {
    let dice = Arc::new(Mutex::new(dice));
    let slow = |tool: &Arc<dyn Tool>| -> Arc<dyn Tool> {
        Arc::new(SlowTool {
            tool: Arc::clone(tool),
            dice: Arc::clone(&dice),
            slowest_ms,
        })
    };
    let mut all = Toolsets::new();
    for kind in sets.kinds() {
        let belt = sets.belt(&[kind.to_owned()]).unwrap_or_default();
        let offered = belt.offered().specs().iter();
        let tools = offered.filter_map(|spec| belt.get(&spec.name)).map(slow);
        let tools = tools.collect();
        all = all.with(Arc::new(SlowSet { kind, tools }));
    }
    all
}
