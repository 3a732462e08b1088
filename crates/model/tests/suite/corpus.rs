//! The corpus of the fuzz targets, replayed: what a fuzzer found once stays mended without one.

use std::path::PathBuf;

use attache_model::Dialect;

use crate::decoders::sse;
use crate::replies::recorded;

#[path = "../../../../fuzz/harness/stream.rs"]
mod stream;
#[path = "../../../../fuzz/harness/tool_calls.rs"]
mod tool_calls;

fn folder(target: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../fuzz/corpus", target]
        .iter()
        .collect()
}

fn replay(target: &str, check: fn(&[u8])) {
    let mut count = 0;
    for file in std::fs::read_dir(folder(target)).unwrap() {
        check(&std::fs::read(file.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "there is a corpus");
}

#[test]
fn the_corpus_of_streams_is_replayed() {
    replay("stream", stream::check);
}

#[test]
fn the_corpus_of_tool_calls_is_replayed() {
    replay("tool_calls", tool_calls::check);
}

/// A recorded reply as the input of the target: the dialect and the pieces in signs that one can read.
fn seed(dialect: Dialect, events: &[&str]) -> Vec<u8> {
    let at = Dialect::ALL.iter().position(|known| *known == dialect);
    let head = format!("{}3 AZ", at.unwrap());
    [head.into_bytes(), sse(events)].concat()
}

#[test]
fn every_recorded_reply_is_in_the_corpus() {
    for (name, dialect, events) in recorded() {
        let path = folder("stream").join(name);
        let seed = seed(dialect, &events);
        if std::env::var_os("ATTACHE_WRITE_CORPUS").is_some() {
            std::fs::write(&path, &seed).unwrap();
        }
        assert!(
            std::fs::read(&path).is_ok_and(|kept| kept == seed),
            "{name} is not what was recorded: run this test with ATTACHE_WRITE_CORPUS=1"
        );
    }
}
