//! Scripts as they are written, before any check beyond their form. `script` makes the checked form of them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// Bounds of a count, both included.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Range {
    pub(super) fn holds(self, count: u64) -> bool {
        (self.min..=self.max).contains(&count)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireScript {
    /// For people.
    #[serde(default, rename = "description")]
    pub(super) _description: Option<String>,
    #[serde(default)]
    pub(super) counters: BTreeMap<String, Spanned<WireCounter>>,
    pub(super) rules: Vec<Spanned<WireRule>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireCounter {
    pub(super) tool: Option<String>,
    pub(super) user: Option<String>,
    #[serde(default)]
    pub(super) kept: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireRule {
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) when: WireWhen,
    #[serde(default)]
    pub(super) capture: BTreeMap<String, Spanned<WireCapture>>,
    #[serde(default)]
    pub(super) add: BTreeMap<String, u64>,
    pub(super) reply: Vec<Spanned<WireAction>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WireWhen {
    pub(super) user: Option<String>,
    pub(super) not_user: Option<String>,
    pub(super) any_user: Option<String>,
    pub(super) system: Option<String>,
    pub(super) not_system: Option<String>,
    pub(super) model: Option<String>,
    pub(super) step: Option<Range>,
    pub(super) offered: Names,
    pub(super) not_offered: Names,
    pub(super) tools_allowed: Option<bool>,
    pub(super) results: Vec<WireResultCondition>,
    pub(super) counters: BTreeMap<String, Range>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireResultCondition {
    pub(super) tool: Option<String>,
    #[serde(default)]
    pub(super) everywhere: bool,
    pub(super) matches: Option<String>,
    pub(super) not_matches: Option<String>,
    pub(super) is_error: Option<bool>,
    pub(super) count: Option<Range>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireCapture {
    pub(super) from: Option<WireFrom>,
    pub(super) tool: Option<String>,
    #[serde(default)]
    pub(super) everywhere: bool,
    pub(super) regex: Option<String>,
    pub(super) each: Option<String>,
    #[serde(default, rename = "where")]
    pub(super) filter: BTreeMap<String, serde_json::Value>,
    pub(super) pointer: Option<String>,
    #[serde(default)]
    pub(super) all: bool,
    pub(super) max: Option<usize>,
    #[serde(default)]
    pub(super) optional: bool,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub(super) enum WireFrom {
    User,
    AnyUser,
    System,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireAction {
    pub(super) text: Option<String>,
    pub(super) chunks: Option<Vec<String>>,
    pub(super) reasoning: Option<String>,
    pub(super) call: Option<String>,
    pub(super) delay_ms: Option<u64>,
    pub(super) usage: Option<WireUsage>,
    pub(super) no_usage: Option<bool>,
    pub(super) error: Option<String>,
    pub(super) cut: Option<bool>,
    pub(super) silence: Option<bool>,
    pub(super) ping: Option<bool>,
    pub(super) stop: Option<String>,
    // What belongs to one of the above.
    pub(super) piece: Option<usize>,
    pub(super) every_ms: Option<u64>,
    pub(super) arguments: Option<serde_json::Value>,
    pub(super) raw_arguments: Option<String>,
    pub(super) for_each: Option<String>,
    pub(super) cut_after: Option<usize>,
    pub(super) status: Option<u16>,
    pub(super) retry_after_ms: Option<u64>,
    pub(super) retryable: Option<bool>,
    pub(super) message: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireUsage {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) cache_read: Option<u64>,
    pub(super) cache_write: Option<u64>,
    pub(super) reasoning: Option<u64>,
}

/// One name or a list of names.
#[derive(Default)]
pub(super) struct Names(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NamesVisitor;
        impl<'de> Visitor<'de> for NamesVisitor {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a list of names")
            }

            fn visit_str<E>(self, name: &str) -> Result<Names, E> {
                Ok(Names(vec![name.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = seq.next_element()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_any(NamesVisitor)
    }
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Bounds {
            min: Option<u64>,
            max: Option<u64>,
        }
        struct RangeVisitor;
        impl<'de> Visitor<'de> for RangeVisitor {
            type Value = Range;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count, or {min: N, max: N}")
            }

            fn visit_u64<E>(self, count: u64) -> Result<Range, E> {
                Ok(Range {
                    min: count,
                    max: count,
                })
            }

            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Range, E> {
                let count =
                    u64::try_from(count).map_err(|_| E::custom("a count is not negative"))?;
                Ok(Range {
                    min: count,
                    max: count,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Range, A::Error> {
                let Bounds { min, max } = Bounds::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Range {
                    min: min.unwrap_or(0),
                    max: max.unwrap_or(u64::MAX),
                })
            }
        }
        deserializer.deserialize_any(RangeVisitor)
    }
}
