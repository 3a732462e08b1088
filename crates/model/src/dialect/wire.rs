//! Small types for reading providers' JSON leniently and without copying: strings as bytes (so that half surrogate
//! pairs and bytes that are not UTF-8 get through to the mender) and counts that may be anything.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::error::{ErrorKind, ModelError};
use crate::text;

/// A string as its bytes, in WTF-8 when the JSON had half a surrogate pair. A list of text parts reads as their join.
#[derive(Default, Debug)]
pub(super) struct Str<'a>(Cow<'a, [u8]>);

impl<'a> Str<'a> {
    /// A string that did not come over the wire.
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self(Cow::Borrowed(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn text(&self) -> Cow<'_, str> {
        text::mended(&self.0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The bytes of an optional string, empty when there is none.
pub(super) fn bytes<'s>(field: &'s Option<Str<'_>>) -> &'s [u8] {
    field.as_ref().map_or(&[], Str::bytes)
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(StrVisitor)
    }
}

struct StrVisitor;

impl<'de> Visitor<'de> for StrVisitor {
    type Value = Str<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Str<'de>, E> {
        Ok(Str(Cow::Borrowed(bytes)))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Str<'de>, E> {
        Ok(Str(Cow::Owned(bytes.to_vec())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Str<'de>, E> {
        Ok(Str(Cow::Borrowed(text.as_bytes())))
    }

    fn visit_str<E>(self, text: &str) -> Result<Str<'de>, E> {
        Ok(Str(Cow::Owned(text.as_bytes().to_vec())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Str<'de>, A::Error> {
        #[derive(Deserialize)]
        struct TextPart<'a> {
            #[serde(borrow, default)]
            text: Option<Str<'a>>,
        }
        let mut joined = Vec::new();
        while let Some(part) = seq.next_element::<TextPart<'de>>()? {
            joined.extend_from_slice(bytes(&part.text));
        }
        Ok(Str(Cow::Owned(joined)))
    }
}

/// A count. What is not a whole number of at least 0 reads as unknown.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Count(pub(super) Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count")
    }

    fn visit_u64<E>(self, count: u64) -> Result<Count, E> {
        Ok(Count(Some(count)))
    }

    fn visit_i64<E>(self, count: i64) -> Result<Count, E> {
        Ok(Count(u64::try_from(count).ok()))
    }

    fn visit_f64<E>(self, count: f64) -> Result<Count, E> {
        let whole = count >= 0.0 && count.fract() == 0.0 && count < 9e15;
        Ok(Count(whole.then_some(count as u64)))
    }

    fn visit_unit<E>(self) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_str<E>(self, text: &str) -> Result<Count, E> {
        Ok(Count(text.trim().parse().ok()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Count, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Count, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }
}

/// Reads one event's data into a borrowed form.
pub(super) fn read<'a, T: Deserialize<'a>>(event: &'a [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(event)
}

/// Reads one event's data that has no usual form into a value: bytes and escapes are mended first.
pub(super) fn read_odd(event: &[u8]) -> Result<serde_json::Value, ModelError> {
    let text = text::mended(event);
    serde_json::from_str(&text::mend_escapes(&text)).map_err(|fault| {
        ModelError::new(
            ErrorKind::Malformed,
            format!("an event of the stream is not JSON: {fault}"),
        )
    })
}

/// An event that is JSON, but not of this dialect.
pub(super) fn not_of_dialect(fault: &serde_json::Error) -> ModelError {
    ModelError::new(
        ErrorKind::Malformed,
        format!("an event of the stream has an unknown form: {fault}"),
    )
}
