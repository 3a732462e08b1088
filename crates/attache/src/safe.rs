//! Texts of models and files on a person's terminal: what would move the cursor, name the window or
//! forge a row is shown instead of obeyed.

use std::borrow::Cow;

/// The colours of our own, as they stand between `ESC [` and `m`.
const COLOURS: [&str; 5] = ["0", "31", "32", "33", "90"];

/// A text of several lines. Our own colours stay.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    shown(text, |c| c == '\n' || c == '\t')
}

/// A text within a line: a name, a title.
pub(crate) fn in_line(text: &str) -> Cow<'_, str> {
    shown(text, |_| false)
}

fn shown(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|c| c.is_control() && !stays(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(colour) = colour(rest) {
            out.push_str(colour);
            rest = &rest[colour.len()..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        out.push(match c {
            c if !c.is_control() || stays(c) => c,
            // Their pictures stand in the same order.
            '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
            '\u{7f}' => '\u{2421}',
            _ => '\u{fffd}',
        });
    }
    Cow::Owned(out)
}

/// The colour of ours with which a text begins.
fn colour(text: &str) -> Option<&str> {
    let code = text.strip_prefix("\u{1b}[")?;
    let end = code.find('m')?;
    COLOURS.contains(&&code[..end]).then(|| &text[..end + 3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_shown_and_not_obeyed() {
        for (given, lines, line) in [
            ("plain é\u{1f980}", "plain é\u{1f980}", "plain é\u{1f980}"),
            ("a\n\tb", "a\n\tb", "a␊␉b"),
            ("\u{1b}]0;title\u{7}x", "␛]0;title␇x", "␛]0;title␇x"),
            ("\u{1b}[2J\r\u{8}", "␛[2J␍␈", "␛[2J␍␈"),
            ("\u{9b}1A\u{7f}", "\u{fffd}1A␡", "\u{fffd}1A␡"),
            (
                "\u{1b}[33mon\u{1b}[0m",
                "\u{1b}[33mon\u{1b}[0m",
                "\u{1b}[33mon\u{1b}[0m",
            ),
            ("\u{1b}[8mhidden", "␛[8mhidden", "␛[8mhidden"),
            ("\u{1b}", "␛", "␛"),
            ("\u{1b}[", "␛[", "␛["),
        ] {
            assert_eq!(text(given), lines, "{given:?}");
            assert_eq!(in_line(given), line, "{given:?}");
        }
    }
}
