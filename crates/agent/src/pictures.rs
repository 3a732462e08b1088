//! Bounds of pictures: which of a result are recorded, and how many of a history are sent. What is left out is always
//! named where it stood.

use attache_model::Message;
use attache_session::{Picture, preview};

use crate::tool::ToolOutcome;

/// The kinds that every provider takes.
const KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

const MIB: usize = 1024 * 1024;

/// Most base64 of one picture: what Anthropic takes.
const PICTURE_BASE64: usize = 5 * MIB;

/// Most pictures of a result.
const RESULT_PICTURES: usize = 8;

/// Most base64 of all pictures of a result.
const RESULT_BASE64: usize = 10 * MIB;

/// Most pictures of a request. From more on, Anthropic takes only smaller ones.
const SENT_PICTURES: usize = 20;

/// Most base64 of all pictures of a request: Gemini takes 20 MB with everything that is said. Beyond it, a session
/// could not be asked any more.
const SENT_BASE64: usize = 15 * MIB;

/// Takes out of an outcome the pictures that are not recorded, and names them behind its content.
pub(crate) fn within_bounds(mut outcome: ToolOutcome) -> ToolOutcome {
    let mut kept: Vec<Picture> = Vec::new();
    let mut size = 0;
    for picture in std::mem::take(&mut outcome.images) {
        let why = if !KINDS.contains(&&*picture.media_type) {
            "only PNG, JPEG, GIF and WebP can be shown"
        } else if picture.base64.is_empty() {
            "it is empty"
        } else if picture.base64.len() > PICTURE_BASE64 {
            "a picture has at most 3.75 MiB"
        } else if kept.len() == RESULT_PICTURES {
            "a result has at most 8 pictures"
        } else if size + picture.base64.len() > RESULT_BASE64 {
            "the pictures of a result have at most 7.5 MiB together"
        } else {
            size += picture.base64.len();
            kept.push(picture);
            continue;
        };
        let (kind, _) = preview(&picture.media_type, 64);
        let note = format!(
            "\n[A picture is left out here: {kind}, {} bytes. It is not shown, because {why}.]",
            picture.bytes
        );
        outcome.content.push_str(&note);
    }
    outcome.images = kept;
    outcome
}

/// Leaves out all pictures but the newest that a request has room for.
pub(crate) fn keep_newest(messages: &mut [Message]) {
    let mut count = 0;
    let mut size = 0;
    for message in messages.iter_mut().rev() {
        let Message::Tool(results) = message else {
            continue;
        };
        for result in results.iter_mut().rev() {
            count += result.images.len();
            let sizes = result.images.iter().map(|image| image.base64.len());
            size += sizes.sum::<usize>();
            if count > SENT_PICTURES || size > SENT_BASE64 {
                result.leave_pictures_out(
                    "It is not shown any more, because newer ones are; look at it again if you need it.",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use attache_model::{Image, ToolResult};

    use super::*;

    fn picture(kind: &str, base64: usize) -> Picture {
        Picture::of_base64(kind, &"A".repeat(base64)).unwrap()
    }

    #[test]
    fn what_is_not_recorded_is_named() {
        let png = |base64| picture("image/png", base64);
        for (given, kept, named) in [
            (vec![], 0, vec![]),
            (vec![png(4)], 1, vec![]),
            (vec![png(PICTURE_BASE64)], 1, vec![]),
            (
                vec![png(PICTURE_BASE64 + 4), png(4)],
                1,
                vec!["3932163 bytes. It is not shown, because a picture has at most 3.75 MiB"],
            ),
            (
                vec![picture("image/svg+xml", 8), picture("text/html", 4), png(4)],
                1,
                vec!["image/svg+xml, 6 bytes", "text/html, 3 bytes"],
            ),
            (vec![png(0)], 0, vec!["it is empty"]),
            (
                vec![png(4); 10],
                8,
                vec!["at most 8 pictures", "at most 8 pictures"],
            ),
            (
                vec![png(PICTURE_BASE64), png(PICTURE_BASE64), png(4)],
                2,
                vec!["7.5 MiB together"],
            ),
            (
                ["image/jpeg", "image/gif", "image/webp"]
                    .map(|kind| picture(kind, 4))
                    .to_vec(),
                3,
                vec![],
            ),
        ] {
            let mut outcome = ToolOutcome::json(&serde_json::json!({ "seen": true }));
            outcome.images = given;
            let outcome = within_bounds(outcome);
            assert_eq!(outcome.images.len(), kept);
            let lines: Vec<&str> = outcome.content.lines().collect();
            assert_eq!(
                (lines[0], lines.len()),
                (r#"{"seen":true}"#, 1 + named.len())
            );
            for (line, part) in lines[1..].iter().zip(named) {
                assert!(line.contains(part), "{line}");
            }
            assert!(outcome.content.len() < 1_000);
        }
    }

    fn results(sizes: &[usize]) -> Message {
        let image = |size: &usize| Image {
            media_type: "image/png".into(),
            base64: Arc::from("A".repeat(*size)),
        };
        Message::Tool(vec![ToolResult {
            content: "shot".into(),
            images: sizes.iter().map(image).collect(),
            ..ToolResult::default()
        }])
    }

    fn shown(messages: &[Message]) -> Vec<usize> {
        let of = |message: &Message| match message {
            Message::Tool(results) => results.iter().map(|it| it.images.len()).sum(),
            _ => 0,
        };
        messages.iter().map(of).collect()
    }

    #[test]
    fn the_newest_pictures_are_sent() {
        let large = 5 * MIB;
        for (given, sent) in [
            (vec![&[4; 8][..]; 2], vec![8, 8]),
            (vec![&[4; 8][..]; 4], vec![0, 0, 8, 8]),
            (
                vec![&[4; 8][..], &[4; 4], &[4; 8], &[4; 8]],
                vec![0, 4, 8, 8],
            ),
            (vec![&[large][..]; 4], vec![0, 1, 1, 1]),
            // What is older than one that does not fit is left out too, so that the order of events stays plain.
            (
                vec![&[4][..], &[large], &[large, large], &[large]],
                vec![0, 0, 2, 1],
            ),
        ] {
            let mut messages: Vec<_> = given.into_iter().map(results).collect();
            keep_newest(&mut messages);
            assert_eq!(shown(&messages), sent);
            let once = messages.clone();
            keep_newest(&mut messages);
            assert_eq!(messages, once);
            for (message, sent) in messages.iter().zip(sent) {
                let Message::Tool(results) = message else {
                    panic!("results were expected, not {message:?}");
                };
                assert_eq!(results[0].content.contains("not shown any more"), sent == 0);
            }
        }
    }
}
