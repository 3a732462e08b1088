//! Rule `banned`: calls and words that have no place in this code, each with what to use instead. Clippy bans the same
//! calls by their resolved path where it can; this rule also sees macros, attributes and where a file stands.

use super::finding::Finding;
use super::source::{Source, has_word};

/// Where a ban does not hold.
enum Except {
    /// In every file below this folder.
    Under(&'static str),
    /// In this one file.
    File(&'static str),
    /// In every file of this name.
    Named(&'static str),
    /// In code that only tests compile.
    Tests,
    /// In code that the product ships.
    Product,
}

impl Except {
    fn holds(&self, path: &str, test: bool) -> bool {
        match self {
            Self::Under(folder) => path.starts_with(folder),
            Self::File(file) => path == *file,
            Self::Named(name) => path.rsplit('/').next() == Some(name),
            Self::Tests => test,
            Self::Product => !test,
        }
    }
}

/// All of `words` on one line.
struct Ban {
    words: &'static [&'static str],
    instead: &'static str,
    except: &'static [Except],
}

/// The shell's clocks; everybody else is given the time.
const CLOCKS: &[Except] = &[Except::Named("clock.rs"), Except::Under("xtask/")];

/// Who may start a process.
const LAUNCHERS: &[Except] = &[
    Except::Under("crates/sandbox/"),
    Except::File("crates/client/src/daemon.rs"),
    Except::File("crates/host/src/key_command.rs"),
    Except::Under("xtask/"),
    Except::Tests,
];

const TIME: &str = "take the time as an argument; only a `clock.rs` reads it";
const WAIT: &str = "wait for the event itself";

const BANS: &[Ban] = &[
    Ban {
        words: &["todo!"],
        instead: "leave the thing out until it works",
        except: &[],
    },
    Ban {
        words: &["unimplemented!"],
        instead: "leave the thing out until it works",
        except: &[],
    },
    Ban {
        words: &["unbounded_channel"],
        instead: "use a bounded channel and say what happens when it is full",
        except: &[],
    },
    Ban {
        words: &["mpsc::channel()"],
        instead: "use a bounded channel and say what happens when it is full",
        except: &[],
    },
    Ban {
        words: &["thread::sleep"],
        instead: WAIT,
        except: &[],
    },
    Ban {
        words: &["time::", "sleep"],
        instead: "a test never sleeps: pause the time and advance it, or wait for the event itself",
        except: &[Except::Product],
    },
    Ban {
        words: &["allow(", "dead_code"],
        instead: "delete what nobody calls",
        except: &[],
    },
    Ban {
        words: &["SystemTime::now"],
        instead: TIME,
        except: CLOCKS,
    },
    Ban {
        words: &["Instant::now"],
        instead: TIME,
        except: CLOCKS,
    },
    Ban {
        words: &["Timestamp::now"],
        instead: TIME,
        except: CLOCKS,
    },
    Ban {
        words: &["Zoned::now"],
        instead: TIME,
        except: CLOCKS,
    },
    Ban {
        words: &["Command::new"],
        instead: "start processes through the sandbox's launcher",
        except: LAUNCHERS,
    },
    Ban {
        words: &[".unwrap()"],
        instead: "return the error, or `expect` with the proof that it cannot happen",
        except: &[Except::Tests],
    },
];

/// Looks at one Rust file.
pub(super) fn check(file: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line, test) in file.lines() {
        for ban in BANS {
            let here = ban.words.iter().all(|word| has_word(line, word));
            if here
                && !ban
                    .except
                    .iter()
                    .any(|except| except.holds(&file.path, test))
            {
                let text = format!("`{}`: {}", ban.words.join("…"), ban.instead);
                found.push(Finding::error(&file.path, number, text));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Source::new(path, text)).len()
    }

    #[test]
    fn every_ban_is_found_in_product_code() {
        for line in [
            "todo!()",
            "unimplemented!(\"x\")",
            "let (a, b) = mpsc::unbounded_channel();",
            "let (a, b) = mpsc::channel();",
            "std::thread::sleep(d);",
            "#[allow(unused, dead_code)]",
            "let t = SystemTime::now();",
            "let t = std::time::Instant::now();",
            "let t = Timestamp::now();",
            "let t = Zoned::now();",
            "let c = tokio::process::Command::new(\"ls\");",
            "let x = y.unwrap();",
        ] {
            assert_eq!(count("crates/a/src/lib.rs", line), 1, "{line}");
        }
    }

    #[test]
    fn sentences_and_strings_are_not_calls() {
        let text = "// todo!() is banned\nlet a = \"x.unwrap()\";\n/// `Instant::now` is not called\nfn f() {}\n";
        assert_eq!(count("crates/a/src/lib.rs", text), 0);
    }

    #[test]
    fn each_exception_holds_only_in_its_place() {
        let now = "let t = Instant::now();";
        assert_eq!(count("crates/engine/src/clock.rs", now), 0);
        assert_eq!(count("xtask/src/shell.rs", now), 0);
        assert_eq!(count("crates/engine/src/alarm_clock.rs", now), 1);
        let start = "Command::new(\"sh\");";
        assert_eq!(count("crates/sandbox/src/launch.rs", start), 0);
        assert_eq!(count("crates/client/src/daemon.rs", start), 0);
        assert_eq!(count("crates/client/src/lib.rs", start), 1);
        assert_eq!(count("crates/client/tests/walk.rs", start), 0);
        assert_eq!(count("crates/a/tests/walk.rs", "x.unwrap();"), 0);
        assert_eq!(
            count(
                "crates/a/src/lib.rs",
                "#[cfg(test)]\nmod tests {\n x.unwrap();\n}\n"
            ),
            0
        );
    }

    #[test]
    fn tests_do_not_sleep_and_the_product_may() {
        let sleep = "tokio::time::sleep(d).await;";
        assert_eq!(count("crates/a/tests/walk.rs", sleep), 1);
        assert_eq!(
            count(
                "crates/a/tests/walk.rs",
                "use tokio::time::{Duration, sleep};"
            ),
            1
        );
        assert_eq!(count("crates/a/src/retry.rs", sleep), 0);
    }
}
