//! How much of a long result a model is given at once: its beginning and its end, with a note between them that says how
//! to read on. The whole stays on record.

use std::sync::Arc;

/// Most characters of a result that a model is given as they are.
pub const RESULT_CHARS: usize = 100_000;

/// Characters of the beginning of a longer one.
const HEAD_CHARS: usize = 80_000;

/// Characters of its end.
const TAIL_CHARS: usize = 10_000;

/// Characters of a page of a long result.
pub const PAGE_CHARS: usize = 40_000;

/// The name of the tool that reads on.
pub const READ_RESULT: &str = "read_result";

/// A result as a model is given it. `call` is what [`READ_RESULT`] calls it by.
#[must_use]
pub(crate) fn bounded(content: &Arc<str>, call: &str) -> Arc<str> {
    // Bytes are never fewer than characters.
    if content.len() <= RESULT_CHARS {
        return Arc::clone(content);
    }
    let count = content.chars().count();
    if count <= RESULT_CHARS {
        return Arc::clone(content);
    }
    let head = from(content, 0, HEAD_CHARS);
    let tail = from(content, count - TAIL_CHARS, TAIL_CHARS);
    let left_out = count - HEAD_CHARS - TAIL_CHARS;
    format!(
        "{head}\n\n[{left_out} of {count} characters are left out here. Read on with {READ_RESULT}, \
         result_id {call:?}, cursor {HEAD_CHARS}.]\n\n{tail}"
    )
    .into()
}

/// A page of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultPage {
    /// What stands there.
    pub content: String,
    /// Characters of the whole.
    pub total: u64,
    /// Where the next page begins; none at the end.
    pub next: Option<u64>,
}

/// The page of a whole result that begins after `cursor` characters.
#[must_use]
pub fn page(content: &str, cursor: u64) -> ResultPage {
    let total = content.chars().count();
    let cursor = usize::try_from(cursor).unwrap_or(usize::MAX).min(total);
    let next = cursor + PAGE_CHARS;
    ResultPage {
        content: from(content, cursor, PAGE_CHARS).to_owned(),
        total: total as u64,
        next: (next < total).then_some(next as u64),
    }
}

/// `count` characters after `skip` others.
fn from(text: &str, skip: usize, count: usize) -> &str {
    let byte = |text: &str, chars: usize| {
        text.char_indices()
            .nth(chars)
            .map_or(text.len(), |(at, _)| at)
    };
    let rest = &text[byte(text, skip)..];
    &rest[..byte(rest, count)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_left_as_it_is() {
        for text in ["", "short", &"é".repeat(RESULT_CHARS)] {
            let content: Arc<str> = text.into();
            assert!(Arc::ptr_eq(&content, &bounded(&content, "c")));
        }
    }

    #[test]
    fn what_is_left_out_can_be_read_page_by_page() {
        let whole: String = (0..240_000)
            .map(|n| char::from(b'a' + (n % 26) as u8))
            .collect();
        let whole = format!("🙏{whole}é");
        let content: Arc<str> = whole.as_str().into();
        let shown = bounded(&content, "call_1");
        assert!(shown.chars().count() < RESULT_CHARS);
        assert!(shown.starts_with("🙏ab") && shown.ends_with('é'));
        assert!(
            shown.contains("result_id \"call_1\", cursor 80000"),
            "{}",
            &shown[80_000..80_300]
        );
        let mut read = String::new();
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let page = page(&whole, at);
            assert_eq!(page.total, 240_002);
            read.push_str(&page.content);
            cursor = page.next;
        }
        assert_eq!(read, whole);
        assert_eq!(page(&whole, u64::MAX).content, "");
    }
}
