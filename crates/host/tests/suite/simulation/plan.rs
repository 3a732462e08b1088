//! What happens in one world: who looks at which session, and step by step what everybody does and what goes wrong. A plan is
//! data: a seed makes one, a file keeps one, and both are played in the same way. Steps name things by their place in what a
//! viewer sees at that moment, so that a plan stays one when steps are taken out of it.

use attache_protocol::{decode, encode};
use attache_testkit::Dice;
use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Plan {
    pub(crate) head: Head,
    pub(crate) steps: Vec<Step>,
}

/// Where a plan begins.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Head {
    /// The seed of all delays.
    pub(crate) seed: u64,
    /// Root sessions.
    pub(crate) roots: usize,
    /// Whether the first root has a child, which is the last session.
    pub(crate) child: bool,
    pub(crate) viewers: Vec<Looks>,
}

/// A viewer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Looks {
    /// Which session it looks at.
    pub(crate) session: usize,
    pub(crate) read_only: bool,
}

/// One thing that a viewer does, or that is done to it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Step {
    /// Virtual milliseconds after the step before.
    pub(crate) after: u64,
    pub(crate) viewer: usize,
    pub(crate) act: Act,
}

/// Where input goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Into {
    Immediate,
    Default,
    /// A queue of its name, which is held.
    Held,
    /// A queue of its name, which is not.
    Aside,
}

/// What is done. `nth` counts through the queues or items that the viewer sees, around and around.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(
    tag = "do",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
#[serde(deny_unknown_fields)]
pub(crate) enum Act {
    Enqueue {
        into: Into,
        /// Makes the model call a tool before it answers.
        calls: bool,
        start: bool,
    },
    Edit {
        nth: usize,
    },
    Remove {
        nth: usize,
    },
    Move {
        nth: usize,
        to: usize,
        first: bool,
    },
    CreateQueue {
        held: bool,
    },
    /// Holds a queue, or releases one that is held.
    Configure {
        nth: usize,
    },
    DeleteQueue {
        nth: usize,
    },
    Interrupt {},
    Terminate {},
    Start {},
    /// Leaves the session, and keeps the connection.
    Detach {},
    /// Attaches once more over the connection that stands.
    Attach {},
    /// Connects anew. A connection that still stands is left behind, and the host believes in it for so long.
    Connect {
        unnoticed: u64,
    },
    /// The viewer's program begins anew and knows nothing.
    Restart {},
    Cut {
        up: usize,
        down: usize,
        unnoticed: u64,
    },
    Stall {},
    ReadOn {},
    /// Says one of its newest commands once more.
    Repeat {
        back: usize,
    },
    /// Somebody at the host says more than a window holds.
    Flood {},
}

impl Act {
    fn is_against_a_revision(&self) -> bool {
        matches!(
            self,
            Self::Edit { .. } | Self::Remove { .. } | Self::Move { .. } | Self::Configure { .. }
        )
    }
}

/// A step of a plan that takes so long that grace is over.
const LONG: u64 = 5_600;

/// One plan in so many has a flood: it is slow.
const FLOOD_IN: u64 = 80;

impl Plan {
    /// The plan of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let roots = 1 + usize::from(dice.chance(4));
        let child = dice.chance(6);
        let sessions = roots + usize::from(child);
        let viewers = 1 + small(&mut dice, 4);
        let viewers = (0..viewers).map(|_| Looks {
            session: small(&mut dice, sessions),
            read_only: dice.chance(8),
        });
        let viewers: Vec<Looks> = viewers.collect();
        let mut steps = Vec::new();
        let mut is_cut = vec![false; viewers.len()];
        for _ in 0..10 + dice.below(26) {
            let viewer = small(&mut dice, viewers.len());
            let after = match dice.below(12) {
                0 => LONG,
                1 | 2 => 200 + dice.below(1_500),
                3..=5 => 0,
                _ => dice.below(150),
            };
            let act = if is_cut[viewer] && dice.chance(2) {
                Act::Connect { unnoticed: 0 }
            } else {
                act(&mut dice)
            };
            is_cut[viewer] = match &act {
                Act::Cut { .. } => true,
                Act::Connect { .. } | Act::Restart {} => false,
                _ => is_cut[viewer],
            };
            // Another one does the same at once: against the same revision, as far as both see the same.
            let clash = (act.is_against_a_revision() && dice.chance(2)).then(|| Step {
                after: 0,
                viewer: small(&mut dice, viewers.len()),
                act: act.clone(),
            });
            steps.push(Step { after, viewer, act });
            steps.extend(clash);
        }
        if dice.chance(FLOOD_IN) {
            let viewer = small(&mut dice, viewers.len());
            let at = small(&mut dice, steps.len() + 1);
            let [stall, flood] = [(5, Act::Stall {}), (30, Act::Flood {})]
                .map(|(after, act)| Step { after, viewer, act });
            steps.splice(at..at, [stall, flood]);
        }
        let head = Head {
            seed: dice.throw(),
            roots,
            child,
            viewers,
        };
        Self { head, steps }
    }

    /// As it is kept in a file: the beginning, then a line for each step.
    pub(crate) fn to_text(&self) -> String {
        let lines = std::iter::once(encode(&self.head)).chain(self.steps.iter().map(encode));
        let lines = lines.map(|line| String::from_utf8(line).unwrap() + "\n");
        lines.collect()
    }

    /// As [`Plan::to_text`] wrote it, or as somebody has changed that.
    pub(crate) fn from_text(text: &str) -> Self {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let head = lines.next().expect("a plan has a beginning");
        Self {
            head: decode(head.as_bytes()).expect("the first line is the beginning of a plan"),
            steps: lines
                .map(|line| decode(line.as_bytes()).expect("each other line is a step"))
                .collect(),
        }
    }
}

fn small(dice: &mut Dice, end: usize) -> usize {
    usize::try_from(dice.below(end as u64)).unwrap_or(0)
}

fn into(dice: &mut Dice) -> Into {
    *dice.pick(&[
        Into::Immediate,
        Into::Default,
        Into::Default,
        Into::Held,
        Into::Held,
        Into::Aside,
    ])
}

/// How long a loss goes unnoticed: mostly not at all, sometimes for longer than grace is.
fn unnoticed(dice: &mut Dice) -> u64 {
    match dice.below(6) {
        0..=2 => 0,
        3 | 4 => dice.below(400),
        _ => dice.below(7_000),
    }
}

fn act(dice: &mut Dice) -> Act {
    let nth = small(dice, 16);
    match dice.below(40) {
        0..=9 => Act::Enqueue {
            into: into(dice),
            calls: dice.chance(6),
            start: !dice.chance(4),
        },
        10 | 11 => Act::Edit { nth },
        12 => Act::Remove { nth },
        13 | 14 => Act::Move {
            nth,
            to: small(dice, 8),
            first: dice.chance(2),
        },
        15 => Act::CreateQueue {
            held: dice.chance(2),
        },
        16 | 17 => Act::Configure { nth },
        18 => Act::DeleteQueue { nth },
        19 | 20 => Act::Interrupt {},
        21 | 22 => Act::Terminate {},
        23 | 24 => Act::Start {},
        25 => Act::Detach {},
        26 => Act::Attach {},
        27 | 28 => Act::Connect {
            unnoticed: unnoticed(dice),
        },
        29 => Act::Restart {},
        30..=34 => Act::Cut {
            up: if dice.chance(2) { 0 } else { small(dice, 600) },
            down: if dice.chance(3) { 0 } else { small(dice, 900) },
            unnoticed: unnoticed(dice),
        },
        35 => Act::Stall {},
        36 | 37 => Act::ReadOn {},
        _ => Act::Repeat {
            back: small(dice, 4),
        },
    }
}

#[test]
fn a_plan_comes_back_from_its_text_as_it_was() {
    for seed in 1..50 {
        let plan = Plan::of(seed);
        assert_eq!(Plan::from_text(&plan.to_text()), plan);
    }
}
