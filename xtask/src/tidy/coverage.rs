//! Rule `coverage`: each requirement on the coverage page names a test, and that test exists. A row whose test column
//! begins with `later:` says which part brings it. That the test passes is the runner's affair.

use std::collections::HashSet;

use super::finding::Finding;
use super::source::Source;

/// Where the page is.
pub(super) const PAGE: &str = "docs/coverage.md";

/// Looks at the page, given the code in which its tests must be.
pub(super) fn check(page: Option<&str>, code: &[Source]) -> Vec<Finding> {
    let Some(page) = page else {
        return vec![Finding::error(PAGE, 0, "the page is missing")];
    };
    let tests: HashSet<&str> = code.iter().flat_map(|file| tests(&file.code)).collect();
    let mut found = Vec::new();
    let mut column = None;
    let mut tables = 0;
    for (index, line) in page.lines().enumerate() {
        let Some(cells) = cells(line) else {
            column = None;
            continue;
        };
        let Some(at) = column else {
            column = cells
                .iter()
                .position(|cell| cell.eq_ignore_ascii_case("test"));
            tables += usize::from(column.is_some());
            continue;
        };
        if cells.iter().all(|cell| is_rule(cell)) {
            continue;
        }
        let Some(cell) = cells.get(at) else {
            found.push(Finding::error(
                PAGE,
                index + 1,
                "the row has no test column",
            ));
            continue;
        };
        found.extend(faults(cell, &tests).map(|text| Finding::error(PAGE, index + 1, text)));
    }
    if tables == 0 {
        found.push(Finding::error(PAGE, 0, "no table with a column `Test`"));
    }
    found
}

/// What is wrong with one cell of the test column.
fn faults<'a>(cell: &'a str, tests: &'a HashSet<&str>) -> Box<dyn Iterator<Item = String> + 'a> {
    if let Some(part) = cell.strip_prefix("later:") {
        let fault = part
            .trim()
            .is_empty()
            .then(|| "`later:` without the part that brings it".to_owned());
        return Box::new(fault.into_iter());
    }
    let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
    if names.is_empty() {
        return Box::new(std::iter::once("the row names no test".to_owned()));
    }
    Box::new(names.into_iter().filter_map(|name| {
        let test = name.rsplit("::").next().unwrap_or(name).trim();
        (!tests.contains(test)).then(|| format!("no test function `{test}`"))
    }))
}

/// The cells of a table row, without the outer bars.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?;
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    Some(inner.split('|').map(str::trim).collect())
}

fn is_rule(cell: &str) -> bool {
    !cell.is_empty() && cell.chars().all(|c| c == '-' || c == ':')
}

/// The names of all tests in blanked code: functions under a test attribute that are not ignored.
fn tests(code: &str) -> impl Iterator<Item = &str> {
    let word = |c: char| c == '_' || c.is_alphanumeric();
    code.match_indices("fn ").filter_map(move |(at, found)| {
        let before = &code[..at];
        if before.chars().next_back().is_some_and(word) {
            return None;
        }
        // Between the item before and the name stand attributes and keywords.
        let head = before.rsplit(['{', '}', ';']).next().unwrap_or_default();
        let is_test = head.contains("#[test]") || head.contains("#[tokio::test");
        if !is_test || head.contains("#[ignore") {
            return None;
        }
        let rest = &code[at + found.len()..];
        let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
        (end > 0).then(|| &rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "# Coverage\n\n| Requirement | Source | Test |\n|---|---|---|\n";

    fn sentences(rows: &str) -> Vec<String> {
        let code = [Source::new(
            "crates/tools/tests/list.rs",
            "// #[test] fn in_a_comment\n#[test]\nfn list_filters() {}\nfn helper() {}\n#[test]\n#[ignore]\n\
             fn passed_over() {}\nmod a {\n#[expect(x)]\n#[tokio::test(flavor = \"\")]\nasync fn \
             list_is_bounded() {}\n}\n",
        )];
        check(Some(&format!("{HEADER}{rows}")), &code)
            .iter()
            .map(|finding| {
                let (line, text) = finding.brief();
                format!("{line} {text}")
            })
            .collect()
    }

    #[test]
    fn existing_tests_and_later_rows_pass() {
        let rows = "| a | 000 | `list_filters` |\n| b | 000 | test: `list::list_is_bounded`, `list_filters` |\n| c | 000 | later: trust |\n";
        assert!(sentences(rows).is_empty());
    }

    #[test]
    fn a_missing_test_is_found_at_its_row() {
        assert_eq!(
            sentences("| a | 000 | `list_filters` and `no_such` |\n"),
            ["5 no test function `no_such`"]
        );
        assert_eq!(
            sentences("| a | 000 | `list_filter` |\n| b | 000 | `in_a_comment` |\n"),
            [
                "5 no test function `list_filter`",
                "6 no test function `in_a_comment`",
            ]
        );
        assert_eq!(
            sentences("| a | 000 | `helper` |\n| b | 000 | `passed_over` |\n"),
            [
                "5 no test function `helper`",
                "6 no test function `passed_over`",
            ]
        );
    }

    #[test]
    fn a_row_without_a_name_proves_nothing() {
        assert_eq!(
            sentences("| a | 000 | soon |\n| b | 000 | later: |\n| c | 000 |\n"),
            [
                "5 the row names no test",
                "6 `later:` without the part that brings it",
                "7 the row has no test column",
            ]
        );
    }

    #[test]
    fn a_page_without_a_table_is_an_error() {
        for page in [None, Some("# Coverage\n"), Some("| a | b |\n|---|---|\n")] {
            assert_eq!(check(page, &[]).len(), 1);
        }
    }
}
