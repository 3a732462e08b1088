//! Models that play in a simulation: they do anything with their children.

use std::collections::BTreeSet;
use std::time::Duration;

use attache_model::{ErrorKind, ModelError, ModelFacts, Prices, Usage};
use attache_session::{BudgetChange, Limit};
use attache_testkit::{Dice, Message, Piece, Puppet, Request, text};
use serde_json::{Value, json};

/// Requests of one life after which models only answer, so that every plan ends.
const REQUESTS: u32 = 40;

/// One request in so many fails, and one in so many takes longer than the shortest wait lasts.
const FAILS_ONCE_IN: u64 = 30;
const DAWDLES_ONCE_IN: u64 = 16;

/// The deepest generation that is made.
const DEEPEST: u32 = 4;

/// How deep a model stands: its first input says so.
fn depth(request: &Request) -> u32 {
    let first = request.messages.first();
    let Some(Message::User(_)) = first else {
        return 9;
    };
    let mut alone = request.clone();
    alone.messages.truncate(1);
    let input = Puppet::last_user(&alone);
    let number = input.strip_prefix("work ").and_then(|rest| rest.get(..1));
    number.and_then(|digit| digit.parse().ok()).unwrap_or(9)
}

/// Children that a history tells of.
fn children(request: &Request) -> Vec<String> {
    let mut ids = BTreeSet::new();
    for message in &request.messages {
        let Message::Tool(results) = message else {
            continue;
        };
        for result in results
            .iter()
            .filter(|it| &*it.name == "agent_session_create")
        {
            let value: Value = serde_json::from_str(&result.content).unwrap_or_default();
            ids.extend(value["session_id"].as_str().map(str::to_owned));
        }
    }
    ids.into_iter().collect()
}

/// A budget of few limits, some of which bind soon.
pub(crate) fn budget(dice: &mut Dice) -> BudgetChange {
    let mut budget = BudgetChange::default();
    for (limit, most) in [
        (Limit::Concurrent, 1 + dice.below(3)),
        (Limit::Agents, 1 + dice.below(8)),
        (Limit::Depth, 1 + dice.below(4)),
        (Limit::Tokens, 200 + dice.below(6_000)),
        (Limit::ToolCalls, 2 + dice.below(30)),
        (Limit::Usd, 1 + dice.below(12)),
        (Limit::Wall, 1 + dice.below(4)),
    ] {
        if dice.chance(3) {
            let added = budget.add(limit.as_str(), &most.to_string());
            added.expect("each once");
        }
    }
    budget
}

/// A model of which a thousand tokens cost a dollar.
pub(crate) fn priced() -> ModelFacts {
    ModelFacts {
        prices: Some(Prices {
            input: 1_000.0,
            output: 1_000.0,
            cache_read: None,
            cache_write: None,
            reasoning: None,
            version: "test".into(),
        }),
        ..ModelFacts::default()
    }
}

/// A model, which is the same for all sessions of a world.
pub(crate) struct Model {
    dice: Dice,
    /// How much it can be asked at once, in bytes of text.
    holds: Option<usize>,
    requests: u32,
    /// How often it was asked for more than it holds.
    pub(crate) overflows: u32,
}

impl Model {
    pub(crate) fn new(mut dice: Dice) -> Self {
        let narrow = dice.chance(4);
        let holds = usize::try_from(1_500 + dice.below(3_000)).ok();
        Self {
            holds: holds.filter(|_| narrow),
            dice,
            requests: 0,
            overflows: 0,
        }
    }

    /// What it says.
    pub(crate) fn say(&mut self, request: &Request) -> Vec<Piece> {
        let dice = &mut self.dice;
        self.requests += 1;
        let mut pieces = vec![Piece::Pause(Duration::from_millis(dice.below(20)))];
        if dice.chance(DAWDLES_ONCE_IN) {
            pieces.push(Piece::Pause(Duration::from_millis(1_500)));
        }
        let asked: usize = request.messages.iter().map(Message::text_len).sum();
        if self.holds.is_some_and(|most| asked > most) {
            let error = ModelError::new(ErrorKind::ContextOverflow, "the prompt is too long");
            pieces.push(Piece::Fail(error));
            self.overflows += 1;
            return pieces;
        }
        if !dice.chance(4) {
            pieces.push(Piece::Usage(Usage {
                input: u64::try_from(asked / 4).ok(),
                output: Some(1 + dice.below(20)),
                ..Usage::default()
            }));
        }
        if dice.chance(FAILS_ONCE_IN) {
            pieces.push(Piece::Text("half an answer".to_owned()));
            pieces.push(Piece::Fail(ModelError::new(ErrorKind::Refused, "no")));
            return pieces;
        }
        if self.requests > REQUESTS || Puppet::rounds(request) > 3 || !request.tools_allowed {
            pieces.extend(text("enough"));
            return pieces;
        }
        let depth = depth(request);
        let known = children(request);
        for _ in 0..1 + dice.below(2) {
            pieces.extend(call(dice, depth, &known));
        }
        pieces
    }
}

/// A call, or a thought.
fn call(dice: &mut Dice, depth: u32, known: &[String]) -> Vec<Piece> {
    let (name, arguments) = match dice.below(11) {
        0..3 if depth < DEEPEST => {
            let first = format!("work {} of {}", depth + 1, dice.below(1_000));
            let mut all = json!({ "initial_message": first });
            if dice.chance(6) {
                let limits = budget(dice);
                let limits = limits.iter().map(|(limit, most)| {
                    let most = most.map(|most| limit.shown(most));
                    let most: Option<u64> = most.map(|most| most.parse().expect("a whole number"));
                    (limit.to_string(), json!(most))
                });
                all["budget"] = limits.collect();
            }
            ("create", all)
        }
        3 => ("list", json!({})),
        4 => ("on_complete", json!({ "session_id": "." })),
        other if !known.is_empty() => {
            let mut all = json!({ "session_id": dice.pick(known) });
            let name = match other {
                5 | 6 => {
                    all["wait_for_idle"] = json!(dice.chance(2));
                    if dice.chance(3) {
                        all["timeout_seconds"] = json!(dice.below(2));
                    }
                    "wait"
                }
                7 => "on_complete",
                8 => {
                    all["text"] = json!("more");
                    if dice.chance(2) {
                        all["immediacy"] = json!("immediate");
                    }
                    "send"
                }
                9 => {
                    all["dispose"] = json!(dice.chance(2));
                    "stop"
                }
                _ => "acquire",
            };
            (name, all)
        }
        _ => {
            return vec![
                Piece::Text("thinking".to_owned()),
                Piece::Pause(Duration::from_millis(dice.below(30))),
            ];
        }
    };
    let name = format!("agent_session_{name}");
    vec![Piece::Call(name, arguments.to_string())]
}
