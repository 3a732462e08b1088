//! Well-formed replies of every dialect, as they come over the wire: byte by byte, in random pieces, through the HTTP
//! shell, damaged, and sent back in the next request.

use attache_model::dialect::{Decoder, Phase};
use attache_model::{Deltas, Dialect, Message, Part, Quirks, StreamStep};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::decoders::{outcome, read, sse};
use crate::http::{Play, ask, model, serve, stream};
use crate::replies::recorded;
use crate::support::{completion, request, run, user};

// G-01, G-02: one byte a read, other line ends, comments, data over two lines.
#[test]
fn every_recorded_reply_reads_the_same_in_every_spelling() {
    for (name, dialect, events) in recorded() {
        let bytes = sse(&events);
        let plain = outcome(dialect, &bytes);
        assert_eq!(plain.error, None, "{name}");
        assert!(matches!(plain.phase, Phase::Closed | Phase::Stopped));
        let text = String::from_utf8(bytes).unwrap();
        let crlf = text.replace('\n', "\r\n");
        let tight = crlf.replace("data: ", "data:");
        let noisy = text.replace("data: ", ": PROCESSING\n\nid: 7\nretry: 10\ndata: ");
        let split = text.replacen("data: {", "data: {\ndata: ", 1);
        for other in [crlf, tight, noisy, split] {
            assert_eq!(outcome(dialect, other.as_bytes()), plain, "{name}");
        }
        // A terminal event is not waited for when the connection ends, and what comes behind it is not read.
        let late = [&events[..], &["nonsense"]].concat();
        if plain.phase == Phase::Closed {
            assert_eq!(outcome(dialect, &sse(&late)), plain, "{name}");
        }
    }
}

// G-01
#[test]
fn a_byte_that_is_no_text_is_one_mark() {
    for (name, dialect, events) in recorded() {
        let mut bytes = sse(&events);
        let Some(at) = bytes.windows(2).position(|pair| pair == [0xF0, 0x9F]) else {
            continue;
        };
        let plain = outcome(dialect, &bytes);
        bytes.insert(at, 0xFF);
        let marked = outcome(dialect, &bytes);
        assert_eq!(marked.error, None, "{name}");
        assert_eq!(marked.text.replace('\u{fffd}', ""), plain.text, "{name}");
        assert_eq!(marked.stop, plain.stop, "{name}");
    }
}

// A turn has other things to hear of while a reply is on its way, also while a fast one is held back to be told of at once.
#[tokio::test]
async fn a_wait_that_is_dropped_loses_nothing_and_holds_nothing_back() {
    const PIECES: usize = 300;
    let piece = r#"{"choices":[{"delta":{"content":"x"}}]}"#;
    let mut events = vec![piece; PIECES];
    events.push(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#);
    events.push("[DONE]");
    let server = serve(vec![Play::Trickle(stream(&events))]).await;
    let model = model(Dialect::OpenAiChat, &format!("{}/v1", server.address));
    let mut reply = model.start(ask());
    let (mut text, mut dropped, mut untold) = (0, 0, Deltas::new());
    loop {
        let told = tokio::select! {
            biased;
            step = reply.next(&mut untold) => Some(step),
            () = tokio::task::yield_now() => None,
        };
        match told {
            None => dropped += 1,
            Some(step) => {
                let came = std::mem::take(&mut untold);
                text += completion(came.as_slice()).text().len();
                if step == StreamStep::End {
                    break;
                }
                assert_eq!(step, StreamStep::Bytes);
            }
        }
    }
    assert_eq!(text, PIECES);
    assert!(dropped > 0, "no wait was ever dropped");
}

// G-01, through the shell.
#[tokio::test]
async fn every_recorded_reply_comes_through_one_byte_a_write() {
    for (name, dialect, events) in recorded() {
        let bytes = sse(&events);
        let server = serve(vec![Play::Trickle(stream(&events))]).await;
        let (deltas, end) = run(&*model(dialect, &format!("{}/v1", server.address)), ask()).await;
        assert_eq!(end, Ok(()), "{name}");
        let done = completion(&deltas);
        let want = read(dialect, [&bytes[..]]);
        assert_eq!(
            (done.text(), done.usage, done.stop.clone()),
            (want.text, want.usage, want.stop),
            "{name}"
        );
        let calls: Vec<_> = done
            .calls()
            .map(|call| {
                (
                    call.id.to_string(),
                    call.name.to_string(),
                    call.arguments.to_string(),
                )
            })
            .collect();
        assert_eq!(calls, want.calls, "{name}");
        server.seen.await.unwrap();
    }
}

/// A reply as a history keeps it: reasoning, then the whole text, then the calls.
pub(crate) fn kept(parts: &[Part]) -> Vec<Part> {
    let text: String = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(&**text),
            _ => None,
        })
        .collect();
    let of = |call: bool| {
        let wanted = move |part: &&Part| match part {
            Part::Call(_) => call,
            Part::Reasoning { .. } => !call,
            _ => false,
        };
        parts.iter().filter(wanted).cloned()
    };
    let text = (!text.is_empty()).then(|| Part::text(text));
    of(false).chain(text).chain(of(true)).collect()
}

// G-10: what the provider gave opaquely is in the next request, where it was.
#[test]
fn a_reply_goes_back_as_it_came() {
    let next = |name: &str, profile: &str| {
        let (_, dialect, events) = recorded()
            .into_iter()
            .find(|(known, ..)| *known == name)
            .unwrap();
        let mut decoder = dialect.decoder();
        let mut out = Deltas::new();
        for event in events {
            decoder.push(event.as_bytes(), &mut out);
        }
        decoder.end(&mut out).unwrap();
        let done = completion(out.as_slice());
        let history = vec![user("hi"), Message::Assistant(kept(&done.parts))];
        let quirks = Quirks::profile(profile).unwrap();
        let body = dialect.body(&request(history), &quirks);
        serde_json::from_slice::<Value>(&body).unwrap()
    };
    let body = next("responses", "openai");
    let kinds: Vec<_> = body["input"].as_array().unwrap()[1..]
        .iter()
        .map(|item| item["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        kinds,
        ["reasoning", "message", "function_call", "function_call"]
    );
    assert_eq!(
        body["input"][1],
        json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "ZW5j",
            "summary": [{"type": "summary_text", "text": "hm 😀"}, {"type": "summary_text", "text": "so"}]})
    );
    let body = next("responses-alone", "openai");
    assert_eq!(body["input"][1]["encrypted_content"], "ZQ==");
    assert_eq!(body["input"][2]["call_id"], "c");
    let body = next("gemini", "gemini");
    assert_eq!(
        body["contents"][1]["parts"],
        json!([
            {"text": "Let me "},
            {"text": "look 那🌍.", "thoughtSignature": "c2ln"},
            {"functionCall": {"id": "f1", "name": "get", "args": {"x": "é🙏"}}, "thoughtSignature": "Y2FsbA=="},
            {"functionCall": {"id": "call_1", "name": "put", "args": {"y": 2.0}}},
        ])
    );
    let body = next("gemini-late", "gemini");
    assert_eq!(
        body["contents"][1]["parts"],
        json!([{"text": "a"}, {"text": "", "thoughtSignature": "cw=="}])
    );
    let body = next("messages", "anthropic");
    assert_eq!(
        body["messages"][1]["content"][0],
        json!({"type": "thinking", "thinking": "hm 😀", "signature": "c2ln"})
    );
    let body = next("chat-details", "openrouter");
    assert_eq!(
        body["messages"][1]["reasoning_details"],
        json!([{"type": "reasoning.text", "text": "hm", "format": "f", "index": 0, "signature": "s"}])
    );
}

fn push_all(decoder: &mut dyn Decoder, events: &[String]) {
    let mut out = Deltas::new();
    for event in events {
        decoder.push(event.as_bytes(), &mut out);
    }
    let _ = decoder.end(&mut out);
}

proptest! {
    #[test]
    fn random_pieces_give_the_same(cuts in proptest::collection::vec(0usize..4000, 0..12)) {
        for (_, dialect, events) in recorded() {
            let bytes = sse(&events);
            let mut cuts: Vec<_> = cuts.iter().map(|cut| (*cut).min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]);
            prop_assert_eq!(read(dialect, pieces), read(dialect, [&bytes[..]]));
        }
    }

    #[test]
    fn nothing_makes_a_decoder_panic(
        picks in proptest::collection::vec((any::<usize>(), any::<usize>(), any::<u8>()), 0..12),
        dialect in 0usize..4,
    ) {
        let pool: Vec<&str> = recorded().into_iter().flat_map(|(_, _, events)| events).collect();
        let events: Vec<String> = picks
            .iter()
            .map(|(event, at, byte)| {
                let mut bytes = pool[event % pool.len()].as_bytes().to_vec();
                let at = at % bytes.len();
                bytes[at] = *byte;
                String::from_utf8_lossy(&bytes).into_owned()
            })
            .collect();
        push_all(&mut *Dialect::ALL[dialect].decoder(), &events);
    }
}
