//! Pictures of results: written with them, told of in pages.

use attache_session::*;

use proptest::prelude::*;

use super::{read, word};
use crate::record::{encode_event, show_event};

pub(super) fn picture() -> impl Strategy<Value = Picture> {
    (word(), word(), any::<u64>()).prop_map(|(media_type, base64, bytes)| Picture {
        media_type,
        base64,
        bytes,
    })
}

#[test]
fn a_result_without_pictures_is_written_as_ever_and_a_picture_is_shown_without_its_bytes() {
    let of = |images| Stamped {
        at: Timestamp(1),
        observed: None,
        event: Event::CallEnded {
            turn: TurnId(3),
            result: CallResult {
                call: "c".into(),
                content: "text".into(),
                is_error: false,
                spawned: None,
                origin: ResultOrigin::Tool,
                images,
                took_micros: None,
                report: None,
            },
        },
    };
    let before = r#"{"kind":"call-ended","v":1,"min_reader":1,"f":{"turn":3,"call":"c","is_error":false,"cut":false}}"#;
    assert_eq!(encode_event(&of(Vec::new())).unwrap(), before);
    let picture = Picture::of_bytes("image/png", b"fo");
    let stored = encode_event(&of(vec![picture.clone()]))
        .unwrap()
        .into_owned();
    let shown = show_event(Timestamp(1), &stored, Some("text")).unwrap();
    assert_eq!(shown, of(vec![picture.told()]));
    assert_eq!((picture.told().bytes, &*picture.told().base64), (2, ""));
}

#[test]
fn g60_a_result_of_another_version_still_reads() {
    // Written before results had pictures, and by a version whose pictures have more to them.
    let ended = |images| Event::CallEnded {
        turn: TurnId(3),
        result: CallResult {
            call: "c".into(),
            content: "text".into(),
            is_error: false,
            spawned: None,
            origin: ResultOrigin::Tool,
            images,
            took_micros: None,
            report: None,
        },
    };
    let body = r#"{"kind":"call-ended","v":1,"min_reader":1,"f":{"turn":3,"call":"c","is_error":false,"cut":false}}"#;
    assert_eq!(read(body), Ok(ended(Vec::new())));
    let body = r#"{"kind":"call-ended","f":{"turn":3,"call":"c","images":[{"media_type":"image/png","base64":"Zm8=","bytes":2,"alt":"x"}]}}"#;
    let picture = Picture::of_bytes("image/png", b"fo");
    assert_eq!(read(body), Ok(ended(vec![picture])));
}
