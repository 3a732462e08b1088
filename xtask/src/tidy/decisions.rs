//! Rule `decisions`: the records under `docs/decisions` are numbered from 1 without holes and have the same three parts.
//! What they decide is not judged here.

use super::finding::Finding;

const FOLDER: &str = "docs/decisions/";
const PARTS: &[&str] = &["Context", "Decision", "Consequences"];

/// Looks at all records, as paths with their text.
pub(super) fn check(files: &[(&str, &str)]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut numbers = Vec::new();
    for (path, text) in files {
        match number(path) {
            Some(number) => numbers.push((number, *path)),
            None => found.push(Finding::error(path, 0, "the name is not `NNNN-title.md`")),
        }
        for part in PARTS {
            let heading = format!("## {part}");
            if !text.lines().any(|line| line == heading) {
                found.push(Finding::error(path, 0, format!("no heading `{heading}`")));
            }
        }
    }
    numbers.sort_unstable();
    for (expected, (number, path)) in (1_u32..).zip(&numbers) {
        if *number != expected {
            let text = format!("number {number:04} where {expected:04} is next");
            found.push(Finding::error(path, 0, text));
            break;
        }
    }
    found
}

fn number(path: &str) -> Option<u32> {
    let (digits, title) = path
        .strip_prefix(FOLDER)?
        .strip_suffix(".md")?
        .split_once('-')?;
    let plain = |c: char| c == '-' || c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = digits.len() == 4 && !title.is_empty() && title.chars().all(plain);
    good.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "# T\n\n## Context\n\nx\n\n## Decision\n\nx\n\n## Consequences\n\nx\n";

    fn sentences(files: &[(&str, &str)]) -> Vec<String> {
        check(files)
            .iter()
            .map(|finding| finding.brief().1.to_owned())
            .collect()
    }

    #[test]
    fn whole_records_in_a_row_pass() {
        let files = [
            ("docs/decisions/0001-a.md", WHOLE),
            ("docs/decisions/0002-b-2.md", WHOLE),
        ];
        assert!(check(&files).is_empty());
        assert!(check(&[]).is_empty());
    }

    #[test]
    fn holes_doubles_names_and_missing_parts_are_found() {
        let hole = [
            ("docs/decisions/0001-a.md", WHOLE),
            ("docs/decisions/0003-c.md", WHOLE),
        ];
        assert_eq!(sentences(&hole), ["number 0003 where 0002 is next"]);
        let double = [
            ("docs/decisions/0001-a.md", WHOLE),
            ("docs/decisions/0001-b.md", WHOLE),
        ];
        assert_eq!(sentences(&double), ["number 0001 where 0002 is next"]);
        assert_eq!(
            sentences(&[("docs/decisions/notes.md", WHOLE)]),
            ["the name is not `NNNN-title.md`"]
        );
        assert_eq!(
            sentences(&[("docs/decisions/0001-a.md", "## Context\n## Decision\n")]),
            ["no heading `## Consequences`"]
        );
    }
}
