//! A picture as a value: what kind it is and its bytes as base64 text. Which kinds and sizes may be recorded is not
//! decided here.

use std::sync::Arc;

/// A picture that a tool gave. A clone shares the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    /// What kind it is, such as `image/png`.
    pub media_type: Arc<str>,
    /// Its bytes as base64 (RFC 4648, padded, without line breaks). Empty where only the size is told: a page of a
    /// history that is for showing.
    pub base64: Arc<str>,
    /// How many bytes it has, not counted in base64.
    pub bytes: u64,
}

impl Picture {
    /// A picture of bytes.
    #[must_use]
    pub fn of_bytes(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.into(),
            base64: encoded(bytes).into(),
            bytes: bytes.len() as u64,
        }
    }

    /// A picture of base64 text, as another program gave it; none when it is no padded base64 without line breaks.
    #[must_use]
    pub fn of_base64(media_type: &str, base64: &str) -> Option<Self> {
        let bytes = decoded_len(base64)?;
        Some(Self {
            media_type: media_type.into(),
            base64: base64.into(),
            bytes,
        })
    }

    /// The same without its bytes, to be told of.
    #[must_use]
    pub fn told(&self) -> Self {
        Self {
            media_type: Arc::clone(&self.media_type),
            base64: "".into(),
            bytes: self.bytes,
        }
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            text.push(if at > group.len() {
                '='
            } else {
                char::from(ALPHABET[(bits >> (18 - 6 * at) & 63) as usize])
            });
        }
    }
    text
}

/// How many bytes a padded base64 text stands for; none when it is no such text.
fn decoded_len(text: &str) -> Option<u64> {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    let body = &text.as_bytes()[..text.len() - padding];
    let fine = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let whole = text.len().is_multiple_of(4) && padding <= 2 && body.iter().all(fine);
    whole.then(|| (text.len() / 4 * 3 - padding) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_padded_base64() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (b"fooba", "Zm9vYmE="),
            (b"foobar", "Zm9vYmFy"),
            (&[0xfb, 0xff, 0xfe], "+//+"),
        ] {
            let picture = Picture::of_bytes("image/png", bytes);
            assert_eq!(
                (&*picture.base64, picture.bytes),
                (text, bytes.len() as u64)
            );
            assert_eq!(Picture::of_base64("image/png", text), Some(picture));
        }
    }

    #[test]
    fn what_is_no_base64_is_no_picture() {
        for text in [
            "Zg", "Zg=", "Zg===", "=", "====", "Zm9\n", "Zm-_", "Z=g=", "é9v",
        ] {
            assert_eq!(Picture::of_base64("image/png", text), None, "{text:?}");
        }
    }
}
