//! A provider's key that a command prints: a password manager's, say. The command is run when the key is first needed,
//! with the host's own variables and no input, and what it printed is kept in memory only.

use std::fmt;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Most bytes of a key.
const LONGEST: u64 = 64 * 1024;

/// See the module. Clones share what was printed.
#[derive(Clone)]
pub(crate) struct KeyCommand {
    command: Arc<str>,
    known: Arc<Mutex<Option<String>>>,
}

impl PartialEq for KeyCommand {
    fn eq(&self, other: &Self) -> bool {
        self.command == other.command
    }
}

impl fmt::Debug for KeyCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyCommand")
    }
}

impl KeyCommand {
    pub(crate) fn new(command: &str) -> Self {
        Self {
            command: command.into(),
            known: Arc::default(),
        }
    }

    /// The first line that the command printed; none when it fails, prints nothing or takes too long. What was printed
    /// once is kept; a failure is tried again when the key is next needed.
    pub(crate) fn key(&self) -> Option<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            *known = run(&self.command);
        }
        known.clone()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "it is the user's own command, from the user's own settings"
)]
fn run(command: &str) -> Option<String> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let stdout = child.stdout.take()?;
    // Room for the one message that there is.
    let (done, printed) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = stdout.take(LONGEST).read_to_string(&mut text);
        // Nobody listens any more when it took too long.
        drop(done.send(read.ok().map(|_| text)));
    });
    let Ok(text) = printed.recv_timeout(LIMIT) else {
        // It is ended either way.
        drop(child.kill());
        drop(child.wait());
        return None;
    };
    let ended = child.wait().ok()?;
    let line = text?.lines().next()?.trim().to_owned();
    (ended.success() && !line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_key_and_a_failure_is_none() {
        for (command, key) in [
            ("echo key-1; echo more", Some("key-1")),
            ("printf '  key-2 '", Some("key-2")),
            ("echo key; exit 3", None),
            ("true", None),
            ("no-such-command-here", None),
        ] {
            assert_eq!(KeyCommand::new(command).key().as_deref(), key, "{command}");
        }
    }

    #[test]
    fn what_was_printed_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let command = format!("echo x >> {0}; wc -l < {0}", count.display());
        let command = KeyCommand::new(&command);
        assert_eq!(command.key().as_deref(), Some("1"));
        assert_eq!(command.clone().key().as_deref(), Some("1"));
    }
}
