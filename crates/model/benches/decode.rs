//! What a delta costs between the bytes of a read and its text: nanoseconds and allocations, of each dialect, when a read
//! brings one event and when it brings as much as a socket holds. The network and all that is done with text is elsewhere.

#![expect(clippy::print_stdout, reason = "a benchmark says what it found")]

#[expect(dead_code, reason = "this one waits for no disk")]
#[path = "../../store/benches/shared/clock.rs"]
mod clock;

use std::alloc::System;

use attache_model::sse::SseReader;
use attache_model::{Delta, Deltas, Dialect};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use clock::{middle, time};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const DELTAS: usize = 20_000;

/// Bytes of text in a delta.
const SIZE: usize = 64;

/// Times that a stream is read; the middle one counts.
const RUNS: usize = 15;

/// Bytes that a read of a busy socket brings.
const READ: usize = 16 * 1024;

fn main() {
    for dialect in Dialect::ALL {
        let deltas = (0..DELTAS).map(|number| event(dialect, number));
        let events: Vec<Vec<u8>> = before(dialect).into_iter().chain(deltas).collect();
        let whole = events.concat();
        let by_event = || measure(dialect, || events.iter().map(Vec::as_slice));
        let by_read = || measure(dialect, || whole.chunks(READ));
        for (what, measured) in [
            ("one event a read", by_event()),
            ("16 KiB a read", by_read()),
        ] {
            let (nanos, allocations) = measured;
            println!(
                "  decode, {}, {what}: {nanos:.0} ns and {allocations:.2} allocations a delta (n={RUNS})",
                dialect.as_str()
            );
        }
    }
}

/// Nanoseconds and allocations of a delta.
fn measure<'a, I: Iterator<Item = &'a [u8]>>(
    dialect: Dialect,
    pieces: impl Fn() -> I,
) -> (f64, f64) {
    let region = Region::new(ALLOCATOR);
    read(dialect, pieces());
    let made = region.change();
    let times = (0..RUNS).map(|_| time(|| read(dialect, pieces())).1);
    let nanos = middle(times.collect()).as_nanos() as f64;
    let allocations = (made.allocations + made.reallocations) as f64;
    (nanos / DELTAS as f64, allocations / DELTAS as f64)
}

/// Reads a stream as the HTTP shell does, and lets go of each text where a turn would take it.
fn read<'a>(dialect: Dialect, pieces: impl Iterator<Item = &'a [u8]>) {
    let mut sse = SseReader::new();
    let mut decoder = dialect.decoder();
    let mut out = Deltas::new();
    let mut text = 0;
    for piece in pieces {
        sse.push(piece);
        while let Some(event) = sse.next_event().expect("events are small") {
            decoder.push(event, &mut out);
        }
        for delta in out.drain() {
            if let Delta::Text(more) = &delta {
                text += more.len();
            }
        }
    }
    assert_eq!(text, DELTAS * SIZE, "all of the text has come");
}

/// What comes before the first delta, where the dialect has a block that deltas belong to.
fn before(dialect: Dialect) -> Option<Vec<u8>> {
    let start = r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    (dialect == Dialect::Anthropic).then(|| format!("{start}\n\n").into_bytes())
}

/// A delta as the provider of the dialect sends it, with all that it sends beside the text.
fn event(dialect: Dialect, number: usize) -> Vec<u8> {
    let text = format!("{number:x<SIZE$}");
    match dialect {
        Dialect::OpenAiChat => format!(
            r#"data: {{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}]}}"#
        ),
        Dialect::OpenAiResponses => format!(
            "event: response.output_text.delta\ndata: {}",
            format_args!(
                r#"{{"type":"response.output_text.delta","sequence_number":{number},"item_id":"msg_1","output_index":0,"content_index":0,"delta":"{text}","logprobs":[]}}"#
            )
        ),
        Dialect::Anthropic => format!(
            "event: content_block_delta\ndata: {}",
            format_args!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
            )
        ),
        Dialect::Gemini => format!(
            r#"data: {{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}],"role":"model"}},"index":0}}],"usageMetadata":{{"promptTokenCount":9,"totalTokenCount":9}},"modelVersion":"m","responseId":"r"}}"#
        ),
    }
    .into_bytes()
    .into_iter()
    .chain(*b"\n\n")
    .collect()
}
