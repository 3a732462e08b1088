//! Rule `heads`: every Rust file opens by saying what it is for and what it leaves to others. The rule can only see that
//! the words are there; whether they are true is read in review.

use super::finding::Finding;

/// Shorter than this, a head repeats the file's name and nothing else.
const SHORTEST: usize = 40;

/// Looks at one Rust file.
pub(super) fn check(path: &str, text: &str) -> Option<Finding> {
    let head: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .collect();
    if head.is_empty() {
        return Some(Finding::error(path, 1, "the file does not open with `//!`"));
    }
    let length = head.join(" ").trim().chars().count();
    (length < SHORTEST).then(|| {
        let text = format!(
            "the head has {length} characters: say what the file is for, {SHORTEST} at least"
        );
        Finding::error(path, 1, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_must_be_there_and_say_something() {
        let long = "//! Turns a stored record into an event, and nothing else.\nfn f() {}\n";
        assert_eq!(check("a.rs", long), None);
        let split = "//! Turns a stored record into\n//! an event, and nothing else.\n";
        assert_eq!(check("a.rs", split), None);
        assert!(check("a.rs", "//! Records.\n").is_some());
        assert!(check("a.rs", "use x;\n//! Turns a stored record into an event.\n").is_some());
        assert!(check("a.rs", "").is_some());
    }
}
