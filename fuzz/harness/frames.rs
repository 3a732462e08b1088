//! Bytes as frames of either side: whatever they are nothing panics, and what is read is written and read again as the same.
//! Shared by the fuzz target and by the test that replays the corpus.

use attache_protocol::{FromHost, FromViewer, decode, encode};

/// The input: the bytes of one frame.
pub(crate) fn check(data: &[u8]) {
    if let Ok(frame) = decode::<FromViewer>(data) {
        let bytes = encode(&frame);
        // What was short may be written longer, and is then no frame any more: nothing else may be lost.
        if let Ok(again) = decode::<FromViewer>(&bytes) {
            assert_eq!(again, frame);
            assert_eq!(encode(&again), bytes);
        }
        if let FromViewer::Command { body, .. } = &frame {
            let _changes = body.changes();
        }
    }
    if let Ok(frame) = decode::<FromHost>(data) {
        let bytes = encode(&frame);
        if let Ok(again) = decode::<FromHost>(&bytes) {
            assert_eq!(again, frame);
            assert_eq!(encode(&again), bytes);
        }
    }
}
