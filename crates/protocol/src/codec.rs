//! How a frame becomes bytes and back. One frame is one JSON object; a transport sets frames apart,
//! by lines or by messages. A frame that is too large or too deep is refused before it is read.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Most bytes of a frame.
pub const FRAME_LIMIT: usize = 1024 * 1024;

/// Deepest nesting of a frame.
pub const DEPTH_LIMIT: usize = 32;

/// A frame that is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidMessage {
    /// More bytes than a frame may have.
    #[error("a frame has at most {FRAME_LIMIT} bytes")]
    TooLarge,
    /// Nested deeper than a frame may be.
    #[error("a frame is at most {DEPTH_LIMIT} levels deep")]
    TooDeep,
    /// Not JSON, or not a frame of this version.
    #[error("not a frame of this version: {0}")]
    Malformed(String),
}

/// Writes a frame, without anything behind it. Frames hold no line ends: JSON escapes them.
#[must_use]
pub fn encode<T: Serialize>(frame: &T) -> Vec<u8> {
    // Frames are made of strings, numbers, lists and objects: writing one cannot fail.
    serde_json::to_vec(frame).unwrap_or_default()
}

/// How many bytes [`encode`] would write, without keeping them.
#[must_use]
pub fn encoded_len<T: Serialize>(frame: &T) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // See `encode`: it cannot fail.
    let _written = serde_json::to_writer(&mut count, frame);
    count.0
}

/// Reads a frame.
///
/// # Errors
///
/// [`InvalidMessage`] when it is too large, too deep, or no frame of this version.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, InvalidMessage> {
    if bytes.len() > FRAME_LIMIT {
        return Err(InvalidMessage::TooLarge);
    }
    if depth(bytes) > DEPTH_LIMIT {
        return Err(InvalidMessage::TooDeep);
    }
    serde_json::from_slice(bytes).map_err(|fault| InvalidMessage::Malformed(fault.to_string()))
}

/// A text of JSON as a value, for members that are passed on as they are; none when it is not JSON.
#[must_use]
pub fn json(text: &str) -> Option<serde_json::Value> {
    serde_json::from_str(text).ok()
}

/// How deep the brackets of a text go, those inside strings left out.
pub(crate) fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in bytes {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, FromHost, FromViewer};

    #[test]
    fn a_frame_comes_back_as_it_was() {
        let frame = FromViewer::command(
            "c1",
            Command::Interrupt {
                session_id: "s\n\"{[".to_owned(),
                tree: true,
            },
        );
        let bytes = encode(&frame);
        assert_eq!(encoded_len(&frame), bytes.len());
        assert!(!bytes.contains(&b'\n'));
        assert_eq!(decode::<FromViewer>(&bytes), Ok(frame));
    }

    #[test]
    fn what_is_unknown_is_refused() {
        for text in [
            r#"{"type":"hello","version":1,"features":[],"program":"p","more":1}"#,
            r#"{"type":"shout"}"#,
            r#"{"type":"command","command-id":"c","body":{"kind":"host-status","more":1}}"#,
            r#"{"type":"command","command-id":"c","body":{"kind":"steer"}}"#,
            r#"{"type":"command","command_id":"c","body":{"kind":"host-status"}}"#,
            "{",
            "",
            "null",
        ] {
            let refused = decode::<FromViewer>(text.as_bytes());
            assert!(
                matches!(refused, Err(InvalidMessage::Malformed(_))),
                "{text}: {refused:?}"
            );
        }
    }

    #[test]
    fn a_frame_that_is_too_large_or_too_deep_is_refused_unread() {
        let large = vec![b' '; FRAME_LIMIT + 1];
        assert_eq!(decode::<FromHost>(&large), Err(InvalidMessage::TooLarge));
        let deep = "[".repeat(DEPTH_LIMIT + 1);
        assert_eq!(
            decode::<FromHost>(deep.as_bytes()),
            Err(InvalidMessage::TooDeep)
        );
        assert_eq!(depth(br#"{"a":"[[[\"[[["}"#), 1);
    }
}
