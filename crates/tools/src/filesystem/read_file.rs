//! `read_file`: the text of a file, page by page, or a picture to look at.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};

use attache_agent::session::{ErrorCode, Picture};
use attache_agent::{CallContext, ToolError, ToolOutcome};
use serde_json::{Value, json};

use super::confine::{Fault, shown};
use super::picture::{PICTURE_BYTES, media_type};
use super::{ANSWER_BYTES, Stop, on_files, with_adjusted};
use crate::agent_session::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

/// Lines of one page.
const LINES: u64 = 2_000;

/// From its beginning, a file is told from a binary one.
const SAMPLE: usize = 8 * 1024;

/// A file is read this far to count its lines once the page is full.
const COUNTED_BYTES: usize = 256 * 1024 * 1024;

/// Lines between two looks at whether the text is still wanted.
const LINES_AT_ONCE: u64 = 4_096;

tool!(
    /// The tool.
    ReadFile,
    false,
    show::spec(
        "read_file",
        "Read a text file of the working directory, or look at a picture there. Use it before you \
         edit a file, and to look at what grep or list_directory found. A long file comes in pages: \
         go on with next_offset as offset. The content is as it is in the file, without line \
         numbers. A PNG, JPEG, GIF or WebP of at most 3.75 MiB is shown to you as a picture.",
        &json!({
            "path": { "type": "string", "description": "The file, from the working directory." },
            "offset": { "type": "integer", "description": "First line, counted from 1. Default 1." },
            "limit": { "type": "integer", "description": "Lines at most: 2000, which is the most." }
        }),
        &["path"]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let path = arguments.required_text("path")?;
    let start = arguments.number("offset", 1, 1..=u64::MAX)?;
    let limit = arguments.number("limit", LINES, 1..=LINES)?;
    let adjusted = arguments.done()?;
    on_files(&context, move |confined, stop| {
        let relative = confined.relative(&path)?;
        let file = confined.file(&relative).map_err(|fault| fault.at(&path))?;
        let read = read(file, start, limit, stop).map_err(|why| match why {
            Why::Fault(fault) => fault.at(&path),
            Why::Stopped(error) => error,
        })?;
        let mut image = None;
        let mut answer = match read {
            Read::Picture(kind, bytes) => {
                image = Some(Picture::of_bytes(kind, &bytes));
                json!({ "picture": { "media_type": kind, "bytes": bytes.len() } })
            }
            Read::LargePicture(kind, size) => json!({
                "binary": true,
                "size": size,
                "media_type": kind,
                "note": format!(
                    "This picture is too large to be shown: at most {PICTURE_BYTES} bytes are. Write a smaller copy \
                     (scaled down, cropped, or as JPEG or WebP) into the working directory and read that."
                ),
            }),
            Read::Binary(size) => json!({
                "binary": true,
                "size": size,
                "note": "This is no UTF-8 text, so it is not shown.",
            }),
            Read::Text(page) => page.shown(start),
        };
        answer["path"] = json!(shown(&relative));
        let outcome = ToolOutcome::json(&with_adjusted(answer, adjusted));
        Ok(match image {
            Some(image) => outcome.with_image(image),
            None => outcome,
        })
    })
    .await
}

enum Why {
    Fault(Fault),
    Stopped(ToolError),
}

impl From<std::io::Error> for Why {
    fn from(error: std::io::Error) -> Self {
        Self::Fault(error.into())
    }
}

enum Read {
    /// A picture of a kind, whole.
    Picture(&'static str, Vec<u8>),
    /// A picture of a kind and its size, too large to be shown.
    LargePicture(&'static str, u64),
    Binary(u64),
    Text(Page),
}

fn read(file: File, start: u64, limit: u64, stop: &Stop) -> Result<Read, Why> {
    let size = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(8 * SAMPLE, file);
    let sample = reader.fill_buf()?;
    if is_binary(&sample[..sample.len().min(SAMPLE)]) {
        return match media_type(sample) {
            Some(kind) => picture(kind, size, reader),
            None => Ok(Read::Binary(size)),
        };
    }
    let mut page = Page::new(start, limit);
    let mut pieces = 0_u64;
    let mut bytes = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            page.ends();
            return Ok(Read::Text(page));
        }
        let (piece, ended) = match memchr::memchr(b'\n', buffer) {
            Some(end) => (&buffer[..=end], true),
            None => (buffer, false),
        };
        page.take(piece, ended);
        let taken = piece.len();
        reader.consume(taken);
        bytes += taken;
        pieces += 1;
        if pieces.is_multiple_of(LINES_AT_ONCE) {
            stop.check().map_err(Why::Stopped)?;
            if page.full && bytes > COUNTED_BYTES {
                page.counted = false;
                return Ok(Read::Text(page));
            }
        }
    }
}

/// A picture, when it is small enough; a file that grows meanwhile is not read without end.
fn picture(kind: &'static str, size: u64, reader: BufReader<File>) -> Result<Read, Why> {
    if size > PICTURE_BYTES {
        return Ok(Read::LargePicture(kind, size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    reader.take(PICTURE_BYTES + 1).read_to_end(&mut bytes)?;
    let read = bytes.len() as u64;
    Ok(if read > PICTURE_BYTES {
        Read::LargePicture(kind, read)
    } else {
        Read::Picture(kind, bytes)
    })
}

/// Text has no NUL, and few bytes that are no UTF-8.
pub(super) fn is_binary(sample: &[u8]) -> bool {
    if memchr::memchr(0, sample).is_some() {
        return true;
    }
    let odd: usize = sample
        .utf8_chunks()
        .map(|chunk| chunk.invalid().len())
        .sum();
    odd * 10 > sample.len()
}

/// The lines that are shown, and the count of all.
struct Page {
    start: u64,
    limit: u64,
    bytes: Vec<u8>,
    lines: u64,
    /// Where the line that is being read begins in `bytes`.
    line_start: usize,
    /// Lines that have ended.
    total: u64,
    /// A line has begun and not ended.
    open: bool,
    /// Nothing more is taken.
    full: bool,
    /// The only line is too long and was cut.
    cut: bool,
    /// All lines were counted.
    counted: bool,
}

impl Page {
    fn new(start: u64, limit: u64) -> Self {
        Self {
            start,
            limit,
            bytes: Vec::new(),
            lines: 0,
            line_start: 0,
            total: 0,
            open: false,
            full: false,
            cut: false,
            counted: true,
        }
    }

    fn take(&mut self, piece: &[u8], ended: bool) {
        if self.total + 1 >= self.start && !self.full {
            let room = ANSWER_BYTES - self.bytes.len();
            if piece.len() <= room {
                self.bytes.extend_from_slice(piece);
            } else if self.lines == 0 {
                self.bytes.extend_from_slice(&piece[..room]);
                self.cut = true;
            } else {
                // The next page begins with this line.
                self.bytes.truncate(self.line_start);
                self.full = true;
            }
            if ended && !self.full {
                self.end_line();
            }
        }
        self.open = !ended;
        self.total += u64::from(ended);
    }

    fn end_line(&mut self) {
        self.lines += 1;
        self.line_start = self.bytes.len();
        self.full = self.lines == self.limit || self.cut;
    }

    fn ends(&mut self) {
        if self.open {
            if self.total + 1 >= self.start && !self.full {
                self.end_line();
            }
            self.total += 1;
        }
    }

    fn shown(mut self, start: u64) -> Value {
        if self.cut {
            // The cut falls between characters.
            let valid = std::str::from_utf8(&self.bytes);
            if let Err(error) = valid
                && error.error_len().is_none()
            {
                self.bytes.truncate(error.valid_up_to());
            }
        }
        let content = String::from_utf8_lossy(&self.bytes);
        let after = start.saturating_add(self.lines);
        let more = !self.counted || after <= self.total;
        let mut shown = json!({
            "content": &*content,
            "start_line": start,
            "lines": self.lines,
            "total_lines": self.counted.then_some(self.total),
            "truncated": more || self.cut,
            "next_offset": more.then_some(after),
        });
        let mut notes = Vec::new();
        if matches!(content, std::borrow::Cow::Owned(_)) {
            notes.push("Bytes that are no UTF-8 are shown as U+FFFD.");
        }
        if self.cut {
            notes.push("The line is too long and was cut; grep finds text in it.");
        }
        if self.lines == 0 && self.total > 0 {
            notes.push("The offset lies behind the last line.");
        }
        if !notes.is_empty() {
            shown["note"] = json!(notes.join(" "));
        }
        shown
    }
}

/// A whole file that is small enough to be worked on at once; none when it is larger.
pub(super) fn whole(file: &File, most: u64) -> Result<Option<Vec<u8>>, Fault> {
    let size = file.metadata()?.len();
    if size > most {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// What is said of a file that is too large to be worked on at once.
pub(super) fn too_large(path: &str, most: u64) -> ToolError {
    ToolError::new(
        ErrorCode::TextTooLarge,
        format!(
            "{} has more than {most} bytes",
            crate::arguments::quoted(path)
        ),
    )
    .with_hint("Read it in pages with read_file; write the part that you need into a smaller file.")
}
