//! What a rule reports: a place, a sentence, and whether it fails the check or only warns.

/// One remark about one place of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    path: String,
    /// Counted from 1; 0 speaks of the whole file.
    line: usize,
    text: String,
    warning: bool,
}

impl Finding {
    /// A finding that fails the check.
    pub(super) fn error(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            text: text.into(),
            warning: false,
        }
    }

    /// A finding that is printed and fails nothing.
    pub(super) fn warning(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self {
            warning: true,
            ..Self::error(path, line, text)
        }
    }

    pub(super) fn is_error(&self) -> bool {
        !self.warning
    }

    /// The line to print; editors and terminals jump to `path:line`.
    pub(super) fn line(&self, rule: &str) -> String {
        let level = if self.warning { "warning: " } else { "" };
        let line = self.line.max(1);
        format!("{}:{line}: {level}{rule}: {}", self.path, self.text)
    }

    /// Place and sentence, for comparing in tests.
    #[cfg(test)]
    pub(super) fn brief(&self) -> (usize, &str) {
        (self.line, &self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_says_so_and_a_whole_file_is_its_first_line() {
        let error = Finding::error("a.rs", 3, "bad");
        assert_eq!(error.line("rule"), "a.rs:3: rule: bad");
        let warning = Finding::warning("a.rs", 0, "long");
        assert_eq!(warning.line("rule"), "a.rs:1: warning: rule: long");
        assert!(error.is_error() && !warning.is_error());
    }
}
