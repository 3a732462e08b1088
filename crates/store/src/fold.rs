//! Looking for text without case. The common case, plain ASCII, needs no copy of what is searched.

/// What is looked for.
pub(crate) struct Needle {
    /// In lower case.
    text: String,
    ascii: bool,
    /// Whether a character beyond ASCII may become one of its characters in lower case.
    odd: bool,
}

impl Needle {
    /// Prepares a search.
    pub(crate) fn new(text: &str) -> Self {
        let text = text.to_lowercase();
        let ascii = text.is_ascii();
        // The Kelvin sign and the capital i with a dot are the only ones.
        let odd = text.contains(['k', 'i']);
        Self { text, ascii, odd }
    }

    /// Whether `hay` contains it, without case.
    pub(crate) fn is_in(&self, hay: &str) -> bool {
        if self.ascii {
            if contains_ascii(hay.as_bytes(), self.text.as_bytes()) {
                return true;
            }
            if !self.odd || hay.is_ascii() {
                return false;
            }
        } else if hay.is_ascii() {
            return false;
        }
        hay.to_lowercase().contains(&self.text)
    }
}

fn contains_ascii(hay: &[u8], needle: &[u8]) -> bool {
    let Some((&first, rest)) = needle.split_first() else {
        return true;
    };
    if hay.len() < needle.len() {
        return false;
    }
    let starts = hay.len() - needle.len() + 1;
    let upper = first.to_ascii_uppercase();
    let mut from = 0;
    while let Some(step) = hay[from..starts]
        .iter()
        .position(|byte| *byte == first || *byte == upper)
    {
        let at = from + step + 1;
        if hay[at..at + rest.len()].eq_ignore_ascii_case(rest) {
            return true;
        }
        from = at;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn finds_without_case_in_any_script() {
        for (needle, hay, found) in [
            ("", "", true),
            ("abc", "xxABC", true),
            ("abc", "ab", false),
            ("ABC", "aabcc", true),
            ("k", "\u{212a}", true),
            ("é", "CAFÉ", true),
            ("É", "cafe", false),
            ("straße", "STRAßE 1", true),
            ("ende", "é und das ENDE", true),
        ] {
            assert_eq!(Needle::new(needle).is_in(hay), found, "{needle} in {hay}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_plain_definition(
            hay in "[aAbBkKiIéÉİ\u{212a} ]{0,12}",
            needle in "[aAbBkKiIéÉ ]{0,3}",
        ) {
            let plain = hay.to_lowercase().contains(&needle.to_lowercase());
            prop_assert_eq!(Needle::new(&needle).is_in(&hay), plain);
        }
    }
}
