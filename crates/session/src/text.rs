//! Bounded text: cuts fall between characters, never inside one.

/// Longest preview of a run's result, in characters.
pub const RESULT_PREVIEW_CHARS: usize = 2_000;

/// The first `limit` characters, and whether more follow.
#[must_use]
pub fn preview(text: &str, limit: usize) -> (&str, bool) {
    // A character has at least one byte: the common short text needs no walk.
    if text.len() <= limit {
        return (text, false);
    }
    match text.char_indices().nth(limit) {
        Some((cut, _)) => (&text[..cut], true),
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_on_character_borders_and_more_means_more() {
        for limit in 0..12 {
            for text in [
                "",
                "aaaaaaaaaa",
                "aaaa€",
                "ééééé",
                "🙏🙏🙏🙏🙏🙏🙏",
                "ab🙏é",
            ] {
                let (cut, more) = preview(text, limit);
                assert!(text.starts_with(cut));
                assert_eq!(cut.chars().count(), text.chars().count().min(limit));
                assert_eq!(more, text.chars().count() > limit, "{text} at {limit}");
            }
        }
    }
}
