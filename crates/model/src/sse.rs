//! The one reader of server-sent events: bytes in any division to whole events. It does not look into the data.

/// Most bytes of one event, line ends and field names included.
pub const EVENT_LIMIT: usize = 1 << 20;

/// An event was longer than [`EVENT_LIMIT`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an event of the stream is longer than 1 MiB")]
pub struct EventTooLong;

/// Reads events out of a growing buffer. One buffer serves all events; an event with a single `data` line is handed out
/// as a slice of it. Line ends are LF, CRLF or CR; comments, `event`, `id` and `retry` are passed over.
#[derive(Default, Debug)]
pub struct SseReader {
    buf: Vec<u8>,
    /// Where the unfinished event begins.
    event: usize,
    /// Where the unfinished line begins.
    line: usize,
    /// Up to where the unfinished line has been searched for its end.
    searched: usize,
    /// The single data line of the unfinished event.
    first: Option<(usize, usize)>,
    /// The data lines joined by LF, once there are two.
    joined: Vec<u8>,
    is_joined: bool,
    /// The last line ended with CR: an LF that comes next belongs to it.
    after_cr: bool,
    started: bool,
}

impl SseReader {
    /// A reader at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next bytes. Call [`SseReader::next_event`] until it gives `None` afterwards.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.event > 0 {
            self.buf.drain(..self.event);
            self.line -= self.event;
            self.searched -= self.event;
            if let Some((from, to)) = &mut self.first {
                *from -= self.event;
                *to -= self.event;
            }
            self.event = 0;
        }
        self.buf.extend_from_slice(bytes);
    }

    /// The data of the next whole event, if it has come.
    ///
    /// # Errors
    /// When an event does not end within the limit. The stream cannot be read on.
    pub fn next_event(&mut self) -> Result<Option<&[u8]>, EventTooLong> {
        loop {
            if self.after_cr && self.line < self.buf.len() {
                if self.buf[self.line] == b'\n' {
                    self.line += 1;
                    self.searched = self.line;
                }
                self.after_cr = false;
                self.forget_if_idle();
            }
            let found = memchr::memchr2(b'\n', b'\r', &self.buf[self.searched..]);
            let Some(offset) = found else {
                self.searched = self.buf.len();
                if self.buf.len() - self.event > EVENT_LIMIT {
                    return Err(EventTooLong);
                }
                return Ok(None);
            };
            let (from, to) = (self.line, self.searched + offset);
            self.after_cr = self.buf[to] == b'\r';
            self.line = to + 1;
            self.searched = self.line;
            if self.line - self.event > EVENT_LIMIT {
                return Err(EventTooLong);
            }
            if from < to {
                self.take_line(from, to);
                self.forget_if_idle();
            } else {
                self.event = self.line;
                if let Some(data) = self.dispatch() {
                    return Ok(Some(self.slice(data)));
                }
            }
        }
    }

    /// The data of an event that the end of the stream cut off before its empty line. Some servers leave it out.
    pub fn finish(&mut self) -> Option<&[u8]> {
        let (from, to) = (self.line, self.buf.len());
        if from < to {
            self.take_line(from, to);
        }
        (self.event, self.line, self.searched) = (to, to, to);
        self.dispatch().map(|data| self.slice(data))
    }

    fn slice(&self, data: Data) -> &[u8] {
        match data {
            Data::Line(from, to) => &self.buf[from..to],
            Data::Joined => &self.joined,
        }
    }

    /// An unfinished event without data needs no memory, so that endless comments do not count as one long event.
    fn forget_if_idle(&mut self) {
        if self.first.is_none() && !self.is_joined {
            self.event = self.line;
        }
    }

    fn dispatch(&mut self) -> Option<Data> {
        let first = self.first.take();
        if std::mem::take(&mut self.is_joined) {
            return Some(Data::Joined);
        }
        first.map(|(from, to)| Data::Line(from, to))
    }

    fn take_line(&mut self, mut from: usize, to: usize) {
        if !self.started {
            self.started = true;
            if self.buf[from..to].starts_with(b"\xEF\xBB\xBF") {
                from += 3;
            }
        }
        let line = &self.buf[from..to];
        let Some(rest) = line.strip_prefix(b"data") else {
            return;
        };
        let value = match rest {
            [] => to,
            [b':', b' ', ..] => from + 6,
            [b':', ..] => from + 5,
            _ => return,
        };
        match self.first {
            None => self.first = Some((value, to)),
            Some((first, end)) => {
                if !self.is_joined {
                    self.is_joined = true;
                    self.joined.clear();
                    self.joined.extend_from_slice(&self.buf[first..end]);
                }
                self.joined.push(b'\n');
                self.joined.extend_from_slice(&self.buf[value..to]);
            }
        }
    }
}

enum Data {
    Line(usize, usize),
    Joined,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut reader = SseReader::new();
        let mut events = Vec::new();
        for piece in pieces {
            reader.push(piece);
            while let Some(data) = reader.next_event().unwrap() {
                events.push(String::from_utf8(data.to_vec()).unwrap());
            }
        }
        if let Some(data) = reader.finish() {
            events.push(String::from_utf8(data.to_vec()).unwrap());
        }
        events
    }

    const CASES: &[(&str, &[&str])] = &[
        ("data: a\n\ndata: b\n\n", &["a", "b"]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
        ("data: a\r\rdata: b\r\r", &["a", "b"]),
        ("data:a\n\ndata:  b\n\n", &["a", " b"]),
        (
            ": PROCESSING\n\nevent: ping\ndata: {}\n\nid: 7\nretry: 10\ndata: x\n\n",
            &["{}", "x"],
        ),
        ("data: {\ndata: }\n\n", &["{\n}"]),
        (
            "data: a\r\n: note\r\ndata: b\r\n\r\ndata: c\r\n\r\n",
            &["a\nb", "c"],
        ),
        ("data\n\ndata:\n\n", &["", ""]),
        ("\u{feff}data: a\n\n", &["a"]),
        ("dataset: a\n\nevent: x\n\ndata: b", &["b"]),
        ("data: a\ndata: b", &["a\nb"]),
        (
            "data: a\ndata: b\ndata: c\n\ndata: d\ndata: e\n\n",
            &["a\nb\nc", "d\ne"],
        ),
        ("", &[]),
    ];

    #[test]
    fn every_lawful_spelling_gives_the_same_events() {
        for (input, want) in CASES {
            assert_eq!(read([input.as_bytes()]), *want, "{input:?}");
            assert_eq!(
                read(input.as_bytes().chunks(1)),
                *want,
                "by bytes {input:?}"
            );
        }
    }

    #[test]
    fn an_event_ends_at_the_cr_of_its_empty_line() {
        let mut reader = SseReader::new();
        reader.push(b"data: a\r\n\r");
        assert_eq!(reader.next_event(), Ok(Some(&b"a"[..])));
        reader.push(b"\ndata: b\r\n\r\n");
        assert_eq!(reader.next_event(), Ok(Some(&b"b"[..])));
        assert_eq!(reader.next_event(), Ok(None));
    }

    #[test]
    fn the_limit_is_for_one_event_and_comments_do_not_add_up() {
        let mut reader = SseReader::new();
        for _ in 0..3 * EVENT_LIMIT / 1024 {
            reader.push(format!(": {}\n", "x".repeat(1021)).as_bytes());
            assert_eq!(reader.next_event(), Ok(None));
        }
        assert!(reader.buf.len() < 4096);
        let big = format!("data: {}\n\n", "x".repeat(EVENT_LIMIT - 10));
        reader.push(big.as_bytes());
        assert_eq!(
            reader.next_event().unwrap().unwrap().len(),
            EVENT_LIMIT - 10
        );
        reader.push(&vec![b'x'; EVENT_LIMIT + 1]);
        assert_eq!(reader.next_event(), Err(EventTooLong));
        let mut reader = SseReader::new();
        reader.push(format!("data: {}\n\n", "x".repeat(EVENT_LIMIT)).as_bytes());
        assert_eq!(reader.next_event(), Err(EventTooLong));
    }

    proptest! {
        #[test]
        fn the_division_into_reads_does_not_matter(case in 0..CASES.len(), cuts in proptest::collection::vec(0usize..80, 0..6)) {
            let (input, want) = CASES[case];
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(input.len())).collect();
            cuts.extend([0, input.len()]);
            cuts.sort_unstable();
            let bytes = input.as_bytes();
            prop_assert_eq!(read(cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]])), want);
        }

        #[test]
        fn no_bytes_make_it_panic(pieces: Vec<Vec<u8>>) {
            let mut reader = SseReader::new();
            for piece in &pieces {
                reader.push(piece);
                while reader.next_event().unwrap().is_some() {}
            }
            reader.finish();
        }
    }
}
