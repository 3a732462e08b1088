//! Where in a definition's file something stands that was found wrong, and under which field: the
//! library knows lines and columns, the rules know fields, and a person wants both.

/// A library's message without the place that it ends with.
pub(super) fn bare(message: &str) -> String {
    let cut = message.rfind(" at line ").unwrap_or(message.len());
    message[..cut].to_owned()
}

/// A message of a library about a place, with the field that is being read there. Line and column
/// count from 1.
pub(super) fn with_field(text: &str, line: usize, column: usize, message: &str) -> String {
    let row = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let before: String = row.chars().take(column.saturating_sub(1)).collect();
    match field_before(&before) {
        // The library names it itself.
        Some(field) if !message.contains(&format!("`{field}`")) => format!("{field}: {message}"),
        _ => message.to_owned(),
    }
}

/// The key whose value begins behind a piece of a line.
fn field_before(before: &str) -> Option<&str> {
    let (key, _) = before.rsplit_once(':')?;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let key = key.trim_end().trim_end_matches('"');
    let start = key.rfind(|c| !word(c)).map_or(0, |at| at + 1);
    Some(&key[start..]).filter(|key| !key.is_empty())
}

/// The line of the field with which a message of ours begins, as in `limits.iteration-limit: must …`.
pub(super) fn line_of(text: &str, message: &str) -> Option<usize> {
    let (path, _) = message.split_once(':')?;
    let mut lines = text.lines().enumerate();
    let mut found = None;
    for part in path.split('.') {
        let quoted = format!("\"{part}\"");
        let plain = format!("{part}:");
        let has = |line: &str| {
            line.contains(&quoted) || line.trim_start_matches([' ', '-']).starts_with(&plain)
        };
        // Several may stand on one line.
        let same = found.is_some_and(|at| text.lines().nth(at).is_some_and(has));
        if !same {
            found = lines
                .find(|(_, line)| has(line))
                .map(|(at, _)| at)
                .or(found);
        }
    }
    found.map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_in_either_form() {
        let yaml = "---\nname: a\nlimits:\n  iteration-limit: 0\nparameters:\n  - name: b\n---\n";
        let json =
            "{\n \"name\": \"a\",\n \"limits\": { \"iteration-limit\": 0 },\n \"model\": 7\n}";
        for (text, message, line) in [
            (yaml, "name: is odd", Some(2)),
            (yaml, "limits.iteration-limit: must be at least 1", Some(4)),
            (yaml, "parameters: are odd", Some(5)),
            (yaml, "model: is odd", None),
            (json, "limits.iteration-limit: must be at least 1", Some(3)),
            (json, "model: is odd", Some(4)),
            (json, "no field", None),
        ] {
            assert_eq!(line_of(text, message), line, "{message}");
        }
        let fault = "invalid type at line 4, column 11";
        assert_eq!(bare(fault), "invalid type");
        assert_eq!(
            with_field(json, 4, 11, "invalid type"),
            "model: invalid type"
        );
        assert_eq!(
            with_field(yaml, 4, 20, "invalid"),
            "iteration-limit: invalid"
        );
        assert_eq!(
            with_field(yaml, 2, 1, "unknown field `x`"),
            "unknown field `x`"
        );
        assert_eq!(with_field(yaml, 2, 7, "odd `name`"), "odd `name`");
    }
}
