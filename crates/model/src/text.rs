//! Mending of text that arrives in pieces: bytes that are not UTF-8, characters cut between two pieces, and halves of
//! surrogate pairs. It knows nothing of JSON documents or of dialects; the decoders hand it string contents as bytes.

use std::borrow::Cow;
use std::str::from_utf8;

/// One stream of text that comes in fragments. A fragment may end inside a character or inside a surrogate pair (as
/// three bytes `ED A0..AF xx`, the way a JSON reader hands out a lone `\uD83D`); what is unfinished waits for the next.
#[derive(Default, Debug)]
pub(crate) struct Mender {
    tail: Vec<u8>,
}

impl Mender {
    /// Appends the text of `fragment` to `out`. Each ill-formed sequence becomes one U+FFFD.
    pub(crate) fn push(&mut self, fragment: &[u8], out: &mut String) {
        if self.tail.is_empty()
            && let Ok(text) = from_utf8(fragment)
        {
            out.push_str(text);
            return;
        }
        let mut joined = std::mem::take(&mut self.tail);
        joined.extend_from_slice(fragment);
        let rest = mend(&joined, out);
        joined.drain(..rest);
        self.tail = joined;
    }

    /// Appends what is left of a character that never got its end: one U+FFFD, or nothing.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if !self.tail.is_empty() {
            self.tail.clear();
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Text of a whole byte string, mended.
pub(crate) fn mended(bytes: &[u8]) -> Cow<'_, str> {
    match from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let mut out = String::with_capacity(bytes.len());
            let mut mender = Mender::default();
            mender.push(bytes, &mut out);
            mender.finish(&mut out);
            Cow::Owned(out)
        }
    }
}

/// Mends `bytes` into `out` up to an unfinished end, and returns where that end begins.
fn mend(bytes: &[u8], out: &mut String) -> usize {
    let mut at = 0;
    loop {
        let fault = match from_utf8(&bytes[at..]) {
            Ok(text) => {
                out.push_str(text);
                return bytes.len();
            }
            Err(fault) => fault,
        };
        let good = at + fault.valid_up_to();
        if let Ok(text) = from_utf8(&bytes[at..good]) {
            out.push_str(text);
        }
        let rest = &bytes[good..];
        match surrogate(rest) {
            Surrogate::High(high) => match surrogate(&rest[3..]) {
                Surrogate::Low(low) => {
                    let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    at = good + 6;
                }
                Surrogate::Unfinished => return good,
                Surrogate::High(_) | Surrogate::None => {
                    out.push(char::REPLACEMENT_CHARACTER);
                    at = good + 3;
                }
            },
            Surrogate::Low(_) => {
                out.push(char::REPLACEMENT_CHARACTER);
                at = good + 3;
            }
            Surrogate::Unfinished => return good,
            Surrogate::None => match fault.error_len() {
                None => return good,
                Some(len) => {
                    out.push(char::REPLACEMENT_CHARACTER);
                    at = good + len;
                }
            },
        }
    }
}

enum Surrogate {
    High(u32),
    Low(u32),
    /// The bytes end before one can say.
    Unfinished,
    None,
}

/// Looks for a surrogate written as three bytes at the start of `bytes`.
fn surrogate(bytes: &[u8]) -> Surrogate {
    match *bytes {
        [] | [0xED] => Surrogate::Unfinished,
        [0xED, 0xA0..=0xBF] => Surrogate::Unfinished,
        [0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF, ..] => {
            let code = 0xD000 | (u32::from(second & 0x3F) << 6) | u32::from(third & 0x3F);
            if code < 0xDC00 {
                Surrogate::High(code)
            } else {
                Surrogate::Low(code)
            }
        }
        _ => Surrogate::None,
    }
}

/// Replaces escapes of lone surrogates (`\uD83D` without its partner) in JSON text by `\uFFFD`. Other text stays as it is.
pub(crate) fn mend_escapes(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    if !json.contains("\\u") {
        return Cow::Borrowed(json);
    }
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let Some(code) = escape(&bytes[at..]) else {
            at += 2;
            continue;
        };
        match code {
            0xD800..=0xDBFF if matches!(escape(&bytes[at + 6..]), Some(0xDC00..=0xDFFF)) => {
                at += 12
            }
            0xD800..=0xDFFF => {
                let out = out.get_or_insert_with(|| String::with_capacity(json.len()));
                out.push_str(&json[copied..at]);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            _ => at += 6,
        }
    }
    match out {
        None => Cow::Borrowed(json),
        Some(mut out) => {
            out.push_str(&json[copied..]);
            Cow::Owned(out)
        }
    }
}

/// The code of a `\uXXXX` escape at the start of `bytes`.
fn escape(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |code, digit| {
        Some(code * 16 + char::from(*digit).to_digit(16)?)
    })
}

/// The first `limit` bytes of `text`, cut back to a character border, without control characters except line breaks.
pub(crate) fn clipped(text: &str, limit: usize) -> String {
    let end = text.floor_char_boundary(limit.min(text.len()));
    let mut out: String = text[..end]
        .chars()
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .collect();
    if end < text.len() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(parts: &[&[u8]]) -> String {
        let mut out = String::new();
        let mut mender = Mender::default();
        for part in parts {
            mender.push(part, &mut out);
        }
        mender.finish(&mut out);
        out
    }

    #[test]
    fn cut_characters_and_pairs_come_together() {
        let cases: &[(&[&[u8]], &str)] = &[
            (&[b"\xE9", b"\x82\xA3"], "那"),
            (&[b"a\xF0\x9F", b"\x8C\x8Db"], "a🌍b"),
            (&[b"x\xED\xA0\xBD", b"\xED\xB8\x80y"], "x😀y"),
            (&[b"\xED\xA0\xBD\xED\xB8\x80"], "😀"),
            (&[b"\xED\xA0\xBD", b"z"], "\u{fffd}z"),
            (&[b"\xED\xB8\x80z"], "\u{fffd}z"),
            (
                &[b"\xED\xA0\xBD", b"\xED\xA0\xBD", b"\xED\xB8\x80"],
                "\u{fffd}😀",
            ),
            (&[b"a\xFFb"], "a\u{fffd}b"),
            (&[b"a\xF0\x9F"], "a\u{fffd}"),
            (&[b"\xED", b"\x9F\xBF"], "\u{d7ff}"),
            (&[b"a\xED"], "a\u{fffd}"),
            (&[b"\xED\xA0", b"q"], "\u{fffd}\u{fffd}q"),
        ];
        for (parts, want) in cases {
            assert_eq!(pieces(parts), *want, "{parts:x?}");
        }
    }

    #[test]
    fn clipping_never_cuts_a_character() {
        for limit in 0..12 {
            let out = clipped("ééé🙏\u{7}", limit);
            assert!(out.len() <= limit + '…'.len_utf8());
        }
        assert_eq!(clipped("a\u{1b}b\nc", 10), "a b\nc");
    }

    proptest! {
        #[test]
        fn proper_text_survives_every_cut(text: String, cut in 0usize..64) {
            let bytes = text.as_bytes();
            let cut = cut.min(bytes.len());
            prop_assert_eq!(pieces(&[&bytes[..cut], &bytes[cut..]]), text);
        }

        #[test]
        fn any_bytes_give_the_same_text_in_pieces(bytes: Vec<u8>) {
            let whole = pieces(&[&bytes]);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(pieces(&single), whole);
        }
    }
}
