//! Rule `whitespace`: no tab, no space at the end of a line, and one newline at the end of a file. How the rest is laid
//! out is the formatter's affair.

use super::finding::Finding;

/// Looks at one text file.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        if line.contains('\t') {
            found.push(Finding::error(path, index + 1, "a tab"));
        }
        if line.ends_with([' ', '\t', '\r']) {
            found.push(Finding::error(
                path,
                index + 1,
                "white space at the end of the line",
            ));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        let last = text.split('\n').count();
        found.push(Finding::error(
            path,
            last,
            "no newline at the end of the file",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_found_at_its_line() {
        let found = check("a.md", "fine\nsome \n\tx\nend");
        let brief: Vec<_> = found.iter().map(Finding::brief).collect();
        assert_eq!(
            brief,
            [
                (2, "white space at the end of the line"),
                (3, "a tab"),
                (4, "no newline at the end of the file"),
            ]
        );
        assert!(check("a.md", "fine\n").is_empty());
        assert!(check("a.md", "").is_empty());
    }
}
