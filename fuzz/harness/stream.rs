//! Bytes as a stream: whatever they are and however they are divided, nothing panics, every division gives the same, and
//! what came can be sent back. Shared by the fuzz target and by the test that replays the corpus.

use std::sync::Arc;

use attache_model::dialect::Phase;
use attache_model::sse::SseReader;
use attache_model::{
    Assembler, Completion, Delta, Deltas, Dialect, Message, ModelError, Part, Quirks, Request,
};

/// What a stream amounts to.
#[derive(PartialEq, Debug)]
struct Reply {
    completion: Completion,
    notices: Vec<String>,
    error: Option<ModelError>,
    too_long: bool,
    phase: Phase,
}

/// The input: a dialect, how many lengths of pieces follow (16 at most), these, and the bytes of the stream. What the
/// pieces do not cover comes in one.
pub(crate) fn check(data: &[u8]) {
    let [dialect, count, rest @ ..] = data else {
        return;
    };
    let dialect = Dialect::ALL[usize::from(*dialect) % Dialect::ALL.len()];
    let (lengths, bytes) = rest.split_at((usize::from(*count) % 16).min(rest.len()));
    let whole = read(dialect, [bytes]);
    assert_eq!(read(dialect, bytes.chunks(1)), whole, "byte by byte");
    let mut left = bytes;
    let mut pieces = Vec::new();
    for length in lengths {
        let (piece, more) = left.split_at(usize::from(*length).min(left.len()));
        pieces.push(piece);
        left = more;
    }
    pieces.push(left);
    assert_eq!(read(dialect, pieces), whole, "in pieces");
    for call in whole.completion.calls() {
        let _ = call.input();
    }
    send_back(whole.completion.parts);
}

fn read<'a>(dialect: Dialect, pieces: impl IntoIterator<Item = &'a [u8]>) -> Reply {
    let mut sse = SseReader::new();
    let mut decoder = dialect.decoder();
    let mut out = Deltas::new();
    let mut taken = Taken::default();
    let mut too_long = false;
    'pieces: for piece in pieces {
        sse.push(piece);
        loop {
            match sse.next_event() {
                Ok(Some(event)) => decoder.push(event, &mut out),
                Ok(None) => break,
                Err(_) => {
                    too_long = true;
                    break 'pieces;
                }
            }
        }
        taken.take(&mut out);
    }
    if !too_long && let Some(event) = sse.finish() {
        decoder.push(event, &mut out);
    }
    let phase = decoder.phase();
    let end = decoder.end(&mut out);
    taken.take(&mut out);
    if phase != Phase::Failed {
        assert_eq!(taken.failed, None, "a failure is a phase");
        taken.failed = end.err();
    }
    Reply {
        completion: taken.assembler.finish(),
        notices: taken.notices,
        error: taken.failed,
        too_long,
        phase,
    }
}

/// What deltas promise, whatever the stream was.
#[derive(Default)]
struct Taken {
    assembler: Assembler,
    notices: Vec<String>,
    failed: Option<ModelError>,
    stopped: bool,
    calls: usize,
}

impl Taken {
    fn take(&mut self, out: &mut Deltas) {
        for delta in out.drain() {
            assert_eq!(self.failed, None, "nothing follows a failure");
            match &delta {
                Delta::Text(text) | Delta::Reasoning(text) => {
                    assert!(!text.is_empty(), "no delta is empty");
                }
                Delta::CallStarted { index, .. } => {
                    assert_eq!(*index, self.calls, "calls are counted");
                    self.calls += 1;
                }
                Delta::CallArguments { index, fragment } => {
                    assert!(*index < self.calls, "the call has been started");
                    assert!(!fragment.is_empty(), "no delta is empty");
                }
                Delta::Stop(_) => {
                    assert!(!self.stopped, "a reply stops once");
                    self.stopped = true;
                }
                Delta::Notice(text) => self.notices.push(text.clone()),
                Delta::Failed(error) => self.failed = Some(error.clone()),
                Delta::ReasoningOpaque(_) | Delta::Usage(_) => {}
            }
            self.assembler.push(&delta);
        }
    }
}

/// The next request is JSON in every dialect, also when the text is another than it was.
fn send_back(parts: Vec<Part>) {
    let without_text: Vec<Part> = parts
        .iter()
        .filter(|part| !matches!(part, Part::Text(_)))
        .cloned()
        .chain([Part::text("é")])
        .collect();
    for parts in [parts, without_text] {
        let request = Request {
            model: "gemini-3".into(),
            system: None,
            messages: vec![Message::Assistant(parts)],
            tools: Arc::default(),
            tools_allowed: true,
            options: Arc::default(),
        };
        let quirks = Quirks::profile("openrouter").unwrap_or_default();
        for dialect in Dialect::ALL {
            let body = dialect.body(&request, &quirks);
            let read = serde_json::from_slice::<serde_json::Value>(&body);
            assert!(read.is_ok(), "{dialect:?}: {read:?}");
        }
    }
}
