//! What is stored, as types of their own, and the only conversions between them and the values of
//! `session`. Every record says its kind, its version and the reader that it needs. Writing is
//! strict; reading is lenient: unknown members are ignored, newer members have a value when they
//! are missing, and an event that cannot be understood is kept as `Event::Unknown`.

mod event;
mod mail;
mod modal;
mod parts;
mod read;
mod report;
mod summary;
#[cfg(test)]
mod tests;
mod write;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub(crate) use mail::{Class, decode_mail, encode_mail};
pub(crate) use read::{decode_event, needs, show_event, told};
pub(crate) use summary::{
    Fixed, decode_partial, decode_summary, encode_fixed, encode_partial, encode_summary,
};
pub(crate) use write::encode_event;

/// The version of the records that this program writes.
const VERSION: u32 = 1;

/// The reader that understands them.
const MIN_READER: u32 = 1;

/// Why a record cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unusable {
    /// It needs a newer reader.
    TooNew(u32),
    /// It is no record.
    Broken(String),
}

/// A record as it is written.
#[derive(Serialize)]
struct Envelope<'a, T> {
    kind: &'a str,
    v: u32,
    min_reader: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<i64>,
    f: T,
}

/// A record as it is read, its fields not yet.
#[derive(Deserialize)]
struct Opened<'a> {
    #[serde(borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(default)]
    min_reader: parts::Count,
    #[serde(default)]
    observed: Option<i64>,
    #[serde(borrow, default)]
    f: Option<&'a RawValue>,
}

impl<'a> Opened<'a> {
    fn of(body: &'a str) -> Result<Self, Unusable> {
        serde_json::from_str(body).map_err(|error| Unusable::Broken(error.to_string()))
    }

    fn fields(&self) -> &'a str {
        self.f.map_or("{}", RawValue::get)
    }
}

fn seal<T: Serialize>(kind: &str, observed: Option<i64>, fields: T) -> String {
    let envelope = Envelope {
        kind,
        v: VERSION,
        min_reader: MIN_READER,
        observed,
        f: fields,
    };
    // Records hold strings, numbers and lists of them: nothing that has no JSON.
    serde_json::to_string(&envelope).unwrap_or_default()
}
