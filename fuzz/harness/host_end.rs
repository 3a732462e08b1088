//! A host's end that is put to anything: the frames of a stream are numbered without gaps, its window stays within its bounds, and
//! whoever comes back goes on exactly where it stood. Shared by the fuzz target and by the test that replays the corpus.

use std::collections::VecDeque;

use attache_protocol::{
    Attachment, FromHost, GRACE_MILLIS, HostStream, Patch, StreamPlace, Taken, WINDOW_LIMIT, decode,
};

/// The input: pairs of a step and how much of it.
pub(crate) fn check(data: &[u8]) {
    let mut stream = HostStream::new("s", Some("e"), 3);
    // Lengths of the frames that are kept, as they should be.
    let mut kept: VecDeque<u64> = VecDeque::new();
    let mut cursor = 3;
    let mut attachment = Attachment::Reserved;
    let mut now = 0_u64;
    for step in data.chunks_exact(2).take(2_048) {
        let much = usize::from(step[1]);
        match step[0] % 8 {
            kind @ (0 | 1) => {
                let size = if kind == 0 { much } else { much * 512 };
                let before = stream.next();
                let patch = Patch::ItemText {
                    turn: 1,
                    step: 1,
                    offset: 0,
                    text: "x".repeat(size),
                };
                stream.put(kind == 0, patch, WINDOW_LIMIT);
                let wrote = stream.next() - before;
                assert_eq!(wrote, u64::from(!stream.is_over()));
                kept.extend((wrote == 1).then_some(before));
            }
            2 => {
                // Little room is left by others: the newest frame is kept all the same.
                let before = stream.next();
                let topic = Patch::TreeGone {};
                stream.put(true, topic, much);
                kept.extend((stream.next() > before).then_some(before));
            }
            3 if much == 255 => {
                let before = stream.next();
                let was_over = stream.is_over();
                stream.ends("terminated", WINDOW_LIMIT);
                assert!(stream.is_over());
                kept.extend((!was_over).then_some(before));
            }
            3 => match stream.take(cursor) {
                Taken::Passed => {
                    assert!(cursor < stream.first() || cursor > stream.next());
                    cursor = stream.next();
                }
                Taken::Frames(frames) => {
                    for frame in &frames {
                        assert_eq!(number(frame), cursor, "without gaps");
                        cursor += 1;
                    }
                }
            },
            4 => {
                let sequence = stream.first().saturating_sub(2) + much as u64;
                let place = StreamPlace {
                    epoch: Some("e".to_owned()),
                    sequence,
                };
                let is_there = sequence >= stream.first() && sequence <= stream.next();
                let was_told = stream.is_over() && sequence == stream.next();
                let goes_on = (is_there && !was_told).then_some(sequence);
                assert_eq!(stream.resumes(&place), goes_on);
                let other = StreamPlace {
                    epoch: None,
                    sequence,
                };
                assert_eq!(stream.resumes(&other), None);
            }
            5 => {
                now += much as u64 * 64;
                let before = attachment;
                attachment = attachment.passed(now);
                assert!(
                    before.counts() || !attachment.counts(),
                    "what is over stays over"
                );
            }
            6 => {
                attachment = attachment.lost(now);
                if let Attachment::InGrace { until } = attachment {
                    assert!(until <= now + GRACE_MILLIS);
                }
            }
            _ => {
                attachment = match attachment.returns(now) {
                    Some(back) => back.sent(),
                    None => {
                        assert!(!attachment.passed(now).counts());
                        Attachment::Reserved
                    }
                };
            }
        }
        while kept.front().is_some_and(|first| *first < stream.first()) {
            kept.pop_front();
        }
        assert_eq!(kept.len() as u64, stream.next() - stream.first());
        // One frame is always kept, however large.
        assert!(stream.bytes() <= WINDOW_LIMIT || kept.len() == 1);
    }
}

fn number(frame: &[u8]) -> u64 {
    match decode::<FromHost>(frame) {
        Ok(FromHost::Delta(delta)) => delta.sequence,
        Ok(FromHost::SessionTerminal { sequence, .. }) => sequence,
        other => panic!("{other:?}"),
    }
}
