//! Rule `length`: a file is short enough to be read in one sitting. Lines of code are counted: blank lines and comments
//! are free, and so are unit tests that stand in the file which they test; a file of tests counts whole.

use super::finding::Finding;
use super::source::Source;

/// Above this a file is worth splitting.
const TARGET: usize = 500;
/// Above this it must be split.
const LIMIT: usize = 800;

/// Looks at one Rust file.
pub(super) fn check(file: &Source) -> Option<Finding> {
    let whole = file.is_test_file();
    let count = file
        .lines()
        .filter(|(_, line, test)| (whole || !test) && !line.trim().is_empty())
        .count();
    if count > LIMIT {
        let text = format!("{count} lines of code, and {LIMIT} is the limit");
        return Some(Finding::error(&file.path, 0, text));
    }
    (count > TARGET).then(|| {
        let text = format!("{count} lines of code, and {TARGET} is the target");
        Finding::warning(&file.path, 0, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, count: usize) -> Option<Finding> {
        check(&Source::new(path, &"f();\n".repeat(count)))
    }

    #[test]
    fn the_target_warns_and_the_limit_fails() {
        assert_eq!(lines("crates/a/src/lib.rs", TARGET), None);
        let warning = lines("crates/a/src/lib.rs", TARGET + 1).expect("over the target");
        assert!(!warning.is_error());
        let error = lines("crates/a/tests/b.rs", LIMIT + 1).expect("over the limit");
        assert!(error.is_error());
    }

    #[test]
    fn comments_and_inline_tests_are_free() {
        let comments = "// why\n\n".repeat(LIMIT);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "f();\n".repeat(LIMIT));
        let file = Source::new("crates/a/src/lib.rs", &format!("{comments}f();\n{tests}"));
        assert_eq!(check(&file), None);
    }
}
