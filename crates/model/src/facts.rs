//! What is known of models beside their wires: how much their context holds, and what their tokens cost. The table is a
//! data file; a user's own rows win over it. What a call costs is computed here, in whole billionths of a dollar.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::usage::Usage;

/// The table that comes with the program.
const TABLE: &str = include_str!("../data/models.tsv");

/// The line of the table that names its version.
const VERSION: &str = "# version: ";

/// What is known of one model; what is `None` is not known.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ModelFacts {
    /// Tokens of its context, answer included.
    pub context: Option<u64>,
    /// Tokens of an answer at most.
    pub output: Option<u64>,
    /// What its tokens cost.
    pub prices: Option<Prices>,
}

/// Prices in US dollars a million tokens.
#[derive(Clone, PartialEq, Debug)]
pub struct Prices {
    /// Of the prompt.
    pub input: f64,
    /// Of the answer.
    pub output: f64,
    /// Of prompt tokens that came from the provider's cache; none: as the prompt.
    pub cache_read: Option<f64>,
    /// Of prompt tokens that were written to it; none: as the prompt.
    pub cache_write: Option<f64>,
    /// Of tokens of reasoning; none: as the answer.
    pub reasoning: Option<f64>,
    /// Where they are from.
    pub version: Arc<str>,
}

/// Rows that a user has written; what one leaves out stays as the table has it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OwnFacts(HashMap<String, OwnRow>);

/// One row of a user.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OwnRow {
    /// As in [`ModelFacts`].
    pub context: Option<u64>,
    /// As in [`ModelFacts`].
    pub output: Option<u64>,
    /// As in [`Prices`].
    pub input_usd: Option<f64>,
    /// As in [`Prices`].
    pub output_usd: Option<f64>,
    /// As in [`Prices`].
    pub cache_read_usd: Option<f64>,
    /// As in [`Prices`].
    pub cache_write_usd: Option<f64>,
    /// As in [`Prices`].
    pub reasoning_usd: Option<f64>,
}

impl Prices {
    /// What a call with this usage cost, in billionths of a dollar; none when the provider did not count prompt or
    /// answer.
    #[must_use]
    pub fn usd_nanos(&self, usage: &Usage) -> Option<u64> {
        let Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
        } = *usage;
        let (input, output) = (input?, output?);
        let read = cache_read.unwrap_or(0).min(input);
        let written = cache_write.unwrap_or(0).min(input - read);
        let thought = reasoning.unwrap_or(0).min(output);
        let sum = [
            (input - read - written, self.input),
            (read, self.cache_read.unwrap_or(self.input)),
            (written, self.cache_write.unwrap_or(self.input)),
            (output - thought, self.output),
            (thought, self.reasoning.unwrap_or(self.output)),
        ]
        .iter()
        // A dollar a million tokens is a thousand billionths a token.
        .map(|(tokens, price)| *tokens as f64 * price * 1_000.0)
        .sum::<f64>();
        (sum.is_finite() && sum >= 0.0).then_some(sum.round() as u64)
    }
}

impl OwnFacts {
    /// These rows, by `PROVIDER/MODEL`.
    #[must_use]
    pub fn new(rows: HashMap<String, OwnRow>) -> Self {
        Self(rows)
    }

    /// What is known of a model.
    #[must_use]
    pub fn of(&self, provider: &str, id: &str) -> ModelFacts {
        let name = format!("{provider}/{id}");
        let known = known(provider, id);
        match self.0.get(&name) {
            Some(row) => row.over(known),
            None => known,
        }
    }
}

impl OwnRow {
    fn over(&self, known: ModelFacts) -> ModelFacts {
        let Self {
            context,
            output,
            input_usd,
            output_usd,
            cache_read_usd,
            cache_write_usd,
            reasoning_usd,
        } = *self;
        let priced = [
            input_usd,
            output_usd,
            cache_read_usd,
            cache_write_usd,
            reasoning_usd,
        ];
        let prices = if priced.iter().all(Option::is_none) {
            known.prices
        } else {
            let old = known.prices.as_ref();
            let input = input_usd.or(old.map(|old| old.input));
            let answer = output_usd.or(old.map(|old| old.output));
            input.zip(answer).map(|(input, output)| Prices {
                input,
                output,
                cache_read: cache_read_usd.or(old.and_then(|old| old.cache_read)),
                cache_write: cache_write_usd.or(old.and_then(|old| old.cache_write)),
                reasoning: reasoning_usd.or(old.and_then(|old| old.reasoning)),
                version: "models.toml".into(),
            })
        };
        ModelFacts {
            context: context.or(known.context),
            output: output.or(known.output),
            prices,
        }
    }
}

/// The table's row of a model: of its own name, or of its name without the date of a snapshot.
fn known(provider: &str, id: &str) -> ModelFacts {
    static ROWS: OnceLock<HashMap<&str, &str>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        TABLE
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once('\t'))
            .collect()
    });
    let id = id.strip_prefix("models/").unwrap_or(id);
    let row = rows
        .get(format!("{provider}/{id}").as_str())
        .or_else(|| rows.get(format!("{provider}/{}", undated(id)).as_str()));
    row.map_or_else(ModelFacts::default, |row| parse(row))
}

fn parse(row: &str) -> ModelFacts {
    let mut cells = row
        .split('\t')
        .map(|cell| (!cell.is_empty()).then_some(cell));
    let mut next = || cells.next().flatten();
    let count = |cell: Option<&str>| cell.and_then(|cell| cell.parse().ok());
    let price = |cell: Option<&str>| cell.and_then(|cell| cell.parse().ok());
    let (context, output) = (count(next()), count(next()));
    let (input, answer) = (price(next()), price(next()));
    let (cache_read, cache_write) = (price(next()), price(next()));
    ModelFacts {
        context,
        output,
        prices: input.zip(answer).map(|(input, output)| Prices {
            input,
            output,
            cache_read,
            cache_write,
            reasoning: None,
            version: version().into(),
        }),
    }
}

/// The version of the table.
#[must_use]
pub fn version() -> &'static str {
    TABLE
        .lines()
        .find_map(|line| line.strip_prefix(VERSION))
        .unwrap_or("unknown")
}

/// A name without a date at its end: `-2025-08-07`, `-20250807`.
fn undated(id: &str) -> &str {
    let is_date = |tail: &str| {
        let digits = tail.chars().filter(char::is_ascii_digit).count();
        digits == 8 && tail.chars().all(|c| c.is_ascii_digit() || c == '-')
    };
    for length in [11, 9] {
        if let Some(at) = id.len().checked_sub(length)
            && let Some(tail) = id.get(at..)
            && tail.starts_with('-')
            && is_date(tail)
        {
            return &id[..at];
        }
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64) -> Usage {
        Usage {
            input: Some(input),
            output: Some(output),
            ..Usage::default()
        }
    }

    fn prices() -> Prices {
        Prices {
            input: 3.0,
            output: 15.0,
            cache_read: Some(0.3),
            cache_write: Some(3.75),
            reasoning: None,
            version: "v".into(),
        }
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        let prices = prices();
        assert_eq!(prices.usd_nanos(&usage(1_000_000, 0)), Some(3_000_000_000));
        assert_eq!(prices.usd_nanos(&usage(1, 1)), Some(18_000));
        let cached = Usage {
            cache_read: Some(800),
            cache_write: Some(100),
            reasoning: Some(10),
            ..usage(1_000, 20)
        };
        // 100 at 3, 800 at 0.3, 100 at 3.75, 20 at 15.
        let want = 100 * 3_000 + 800 * 300 + 100 * 3_750 + 20 * 15_000;
        assert_eq!(prices.usd_nanos(&cached), Some(want));
        let dear = Prices {
            reasoning: Some(30.0),
            ..prices.clone()
        };
        assert_eq!(dear.usd_nanos(&cached), Some(want + 10 * 15_000));
        // A provider that counts more cached tokens than there are is not paid for it.
        let odd = Usage {
            cache_read: Some(5_000),
            ..usage(1_000, 0)
        };
        assert_eq!(prices.usd_nanos(&odd), Some(1_000 * 300));
    }

    #[test]
    fn what_was_not_counted_has_no_known_cost() {
        assert_eq!(prices().usd_nanos(&Usage::default()), None);
        let half = Usage {
            input: Some(1),
            ..Usage::default()
        };
        assert_eq!(prices().usd_nanos(&half), None);
    }

    #[test]
    fn the_table_is_whole_and_knows_the_usual_models() {
        let mut last = "";
        let mut rows = 0;
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let (name, row) = line.split_once('\t').unwrap();
            assert!(
                name.contains('/') && name > last,
                "{name} stands behind {last}"
            );
            last = name;
            rows += 1;
            for cell in row.split('\t') {
                assert!(
                    cell.is_empty() || cell.parse::<f64>().is_ok_and(|n| n >= 0.0),
                    "{line}"
                );
            }
        }
        assert!(rows > 1_000, "{rows}");
        assert_ne!(version(), "unknown");
        let own = OwnFacts::default();
        for (provider, id) in [
            ("openai", "gpt-4o"),
            ("openai", "gpt-4o-2024-08-06"),
            ("anthropic", "claude-sonnet-4-5"),
            ("gemini", "models/gemini-2.5-pro"),
            ("gemini", "gemini-2.5-pro"),
        ] {
            let facts = own.of(provider, id);
            assert!(facts.context.is_some_and(|n| n > 10_000), "{provider}/{id}");
            assert!(facts.prices.is_some(), "{provider}/{id}");
        }
        assert_eq!(own.of("openai", "no-such-model"), ModelFacts::default());
        assert_eq!(
            own.of("ollama", "deepseek-v4-pro").prices,
            None,
            "it runs here"
        );
    }

    #[test]
    fn dates_at_the_end_of_a_name_are_no_part_of_it() {
        for (name, want) in [
            ("gpt-x-2025-08-07", "gpt-x"),
            ("claude-x-20250807", "claude-x"),
            ("gpt-x", "gpt-x"),
            ("gpt-4.1", "gpt-4.1"),
            ("x-12345678901", "x-12345678901"),
            ("é", "é"),
        ] {
            assert_eq!(undated(name), want);
        }
    }

    #[test]
    fn a_users_row_wins_and_what_it_leaves_out_stays() {
        let row = |row| OwnFacts::new(HashMap::from([("openai/gpt-4o".to_owned(), row)]));
        let table = OwnFacts::default().of("openai", "gpt-4o");
        let limit = row(OwnRow {
            context: Some(7),
            ..OwnRow::default()
        })
        .of("openai", "gpt-4o");
        assert_eq!((limit.context, &limit.prices), (Some(7), &table.prices));
        let price = row(OwnRow {
            input_usd: Some(9.0),
            ..OwnRow::default()
        })
        .of("openai", "gpt-4o");
        let prices = price.prices.unwrap();
        assert_eq!((prices.input, &*prices.version), (9.0, "models.toml"));
        assert_eq!(prices.output, table.prices.unwrap().output);
        // Half a price is none.
        let half = OwnFacts::new(HashMap::from([(
            "mine/m".to_owned(),
            OwnRow {
                input_usd: Some(1.0),
                ..OwnRow::default()
            },
        )]));
        assert_eq!(half.of("mine", "m").prices, None);
    }
}
