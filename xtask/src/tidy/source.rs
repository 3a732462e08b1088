//! A Rust file as the rules see it: comments and the insides of literals are blanked, so that a word in a sentence is
//! never taken for a call, and the lines that only tests compile are marked. It is a scanner, not a parser: it knows just
//! enough of the syntax to find where text and test code end.

/// One file with its blanked text.
pub(super) struct Source {
    pub(super) path: String,
    /// As long as the file, line for line: comments are spaces, the insides of literals are `~`.
    pub(super) code: String,
    /// For each line, whether only tests compile it.
    test_lines: Vec<bool>,
}

impl Source {
    /// Scans a file.
    pub(super) fn new(path: &str, text: &str) -> Self {
        let code = blank(text);
        let lines = code.lines().count();
        let test_lines = if is_test_file(path) {
            vec![true; lines]
        } else {
            mark_test_items(&code, lines)
        };
        Self {
            path: path.to_owned(),
            code,
            test_lines,
        }
    }

    /// Line numbers from 1, the blanked line, and whether it is test code.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str, bool)> {
        self.code
            .lines()
            .zip(&self.test_lines)
            .enumerate()
            .map(|(index, (line, test))| (index + 1, line, *test))
    }

    /// Whether the whole file is test code.
    pub(super) fn is_test_file(&self) -> bool {
        is_test_file(&self.path)
    }
}

/// Files that are compiled for tests and measurements only.
fn is_test_file(path: &str) -> bool {
    path.split('/')
        .any(|part| matches!(part, "tests" | "benches" | "tests.rs"))
        || path.ends_with("_tests.rs")
}

/// Whether `needle` stands in `line` as whole words.
pub(super) fn has_word(line: &str, needle: &str) -> bool {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + needle.len()..].chars().next();
        let left = !needle.starts_with(is_word) || !before.is_some_and(is_word);
        let right = !needle.ends_with(is_word) || !after.is_some_and(is_word);
        left && right
    })
}

/// Blanks comments and the insides of literals; every line keeps its number.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => line_end(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => comment_end(&chars, at),
            '"' => string_end(&chars, at + 1),
            '\'' => char_end(&chars, at).unwrap_or(at + 1),
            'r' if !follows_word(&chars, at) => raw_end(&chars, at).unwrap_or(at + 1),
            _ => at + 1,
        };
        let filler = if chars[at] == '/' { ' ' } else { '~' };
        if end == at + 1 {
            out.push(chars[at]);
        } else {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|c| if *c == '\n' { '\n' } else { filler }),
            );
        }
        at = end;
    }
    out
}

fn line_end(chars: &[char], at: usize) -> usize {
    (at..chars.len())
        .find(|i| chars[*i] == '\n')
        .unwrap_or(chars.len())
}

fn comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => {
                depth += 1;
                at += 2;
            }
            ('*', '/') => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    chars.len()
}

fn string_end(chars: &[char], start: usize) -> usize {
    let mut at = start;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// The end of a character literal, or none when the quote begins a lifetime.
fn char_end(chars: &[char], at: usize) -> Option<usize> {
    match chars.get(at + 1)? {
        '\\' => (at + 3..chars.len())
            .find(|i| chars[*i] == '\'')
            .map(|i| i + 1),
        _ if chars.get(at + 2) == Some(&'\'') => Some(at + 3),
        _ => None,
    }
}

/// The end of a raw string whose `r` stands at `at`, or none when it is a word or a raw identifier.
fn raw_end(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let closes = |i: usize| {
        chars[i] == '"'
            && chars[i + 1..]
                .iter()
                .take(hashes)
                .filter(|c| **c == '#')
                .count()
                == hashes
    };
    let close = (open + 1..chars.len()).find(|i| closes(*i));
    Some(close.map_or(chars.len(), |i| i + 1 + hashes))
}

/// Whether the `r` at `at` is the end of a longer word; `br` and `cr` begin raw strings too.
fn follows_word(chars: &[char], at: usize) -> bool {
    let word = |i: usize| chars[i] == '_' || chars[i].is_alphanumeric();
    match at {
        0 => false,
        _ if !word(at - 1) => false,
        _ if matches!(chars[at - 1], 'b' | 'c') => at >= 2 && word(at - 2),
        _ => true,
    }
}

/// Marks each item that stands under `#[cfg(test)]`, from its attribute to its last brace or semicolon.
fn mark_test_items(code: &str, lines: usize) -> Vec<bool> {
    let mut marks = vec![false; lines];
    let mut from = 0;
    while let Some(at) = next_test_attribute(code, from) {
        let end = item_end(code, at);
        let first = code[..at].matches('\n').count();
        let last = code[..end].matches('\n').count();
        for mark in marks.iter_mut().take(last + 1).skip(first) {
            *mark = true;
        }
        from = end.max(at + 1);
    }
    marks
}

fn next_test_attribute(code: &str, from: usize) -> Option<usize> {
    ["#[cfg(test)]", "#[cfg(all(test"]
        .iter()
        .filter_map(|attribute| code[from..].find(attribute).map(|at| from + at))
        .min()
}

fn item_end(code: &str, attribute: usize) -> usize {
    let mut round = 0_i32;
    let mut curly = 0_i32;
    for (offset, c) in code[attribute..].char_indices() {
        match c {
            '(' | '[' => round += 1,
            ')' | ']' => round -= 1,
            '{' => curly += 1,
            '}' => curly -= 1,
            _ => {}
        }
        let done = match c {
            '}' => curly <= 0,
            ';' => curly == 0 && round == 0,
            _ => false,
        };
        if done {
            return attribute + offset + c.len_utf8();
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        let text = "let a = \"todo!()\"; // todo!()\n/* x /* y */ z */ let b = 'x';\n";
        let code = Source::new("crates/a/src/lib.rs", text).code;
        assert!(!code.contains("todo"));
        assert!(code.starts_with("let a = ~~~~~~~~~; "));
        assert!(code.contains("let b = ~~~;"));
        assert_eq!(code.len(), text.len());
    }

    #[test]
    fn escapes_raw_strings_and_lifetimes_keep_the_scanner_in_step() {
        for (text, left) in [
            (r#"f("a\"b", x)"#, "f(~~~~~~, x)"),
            ("f(r#\"a\"b\"#, x)", "f(~~~~~~~~, x)"),
            ("f(br\"\\\", x)", "f(b~~~~, x)"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            (
                "match c { '\\'' => 1, '\"' => 2 }",
                "match c { ~~~~ => 1, ~~~ => 2 }",
            ),
            (
                "let r#type = 1; for x in r {}",
                "let r#type = 1; for x in r {}",
            ),
            ("'\\u{1F600}'; x", "~~~~~~~~~~~; x"),
        ] {
            assert_eq!(blank(text), left, "{text}");
        }
    }

    #[test]
    fn only_the_test_item_is_marked() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nmod more;\nfn d() {}\n";
        let file = Source::new("crates/a/src/lib.rs", text);
        let marks: Vec<bool> = file.lines().map(|(_, _, test)| test).collect();
        assert_eq!(
            marks,
            [false, true, true, true, true, false, true, true, false]
        );
    }

    #[test]
    fn files_of_tests_are_marked_whole() {
        for path in [
            "crates/a/tests/x.rs",
            "crates/a/src/b/tests.rs",
            "crates/a/src/b_tests.rs",
        ] {
            let file = Source::new(path, "fn a() {}\n");
            assert!(file.lines().all(|(_, _, test)| test), "{path}");
        }
        assert!(!Source::new("crates/testkit/src/lib.rs", "").is_test_file());
    }

    #[test]
    fn words_have_edges() {
        assert!(has_word("x.sleep(1)", "sleep"));
        assert!(!has_word("sleepy(1)", "sleep"));
        assert!(!has_word("my_todo!()", "todo!"));
        assert!(has_word("a.unwrap()", ".unwrap()"));
    }
}
