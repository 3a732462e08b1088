//! The secret that a client over HTTP has to bring. It lies in a file that only its owner can read,
//! and is made when it is needed first.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file in the state folder.
const FILE: &str = "mcp-token";

/// Shortest secret that is taken from a file: half of what is made.
const SHORTEST: usize = 32;

/// Longest file that is read.
const LONGEST: u64 = 4_096;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The operating system said no.
    #[error("{}: {fault}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        fault: io::Error,
    },
    /// The file holds something that is no secret.
    #[error("{} holds no token: remove it, and a new one is made", .0.display())]
    Unusable(PathBuf),
}

/// The secret.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The token of a state folder, made from `fresh` bytes of chance when there is none.
    ///
    /// # Errors
    ///
    /// [`TokenError`] when the file cannot be read or made.
    pub fn of(state_folder: &Path, fresh: &[u8; 32]) -> Result<Self, TokenError> {
        let path = state_folder.join(FILE);
        let fault = |fault| TokenError::Io {
            path: path.clone(),
            fault,
        };
        match File::open(&path) {
            Ok(file) => {
                let mut text = String::new();
                file.take(LONGEST)
                    .read_to_string(&mut text)
                    .map_err(fault)?;
                let text = text.trim();
                let sound = text.len() >= SHORTEST && text.bytes().all(|it| it.is_ascii_graphic());
                if sound {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(TokenError::Unusable(path))
                }
            }
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                let text: String = fresh.iter().map(|byte| format!("{byte:02x}")).collect();
                // Under another name first: a half of it must never be read.
                let half = path.with_extension("new");
                let _of_an_earlier_life = std::fs::remove_file(&half);
                let made = File::options()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&half);
                let mut file = made.map_err(fault)?;
                writeln!(file, "{text}").map_err(fault)?;
                file.sync_all().map_err(fault)?;
                std::fs::rename(&half, &path).map_err(fault)?;
                Ok(Self(text))
            }
            Err(other) => Err(fault(other)),
        }
    }

    /// Whether a header's value brings this token. How long the look takes tells nothing about where
    /// the first difference is.
    pub(crate) fn is_brought_by(&self, header: &[u8]) -> bool {
        let Some((scheme, brought)) = header.split_at_checked(7) else {
            return false;
        };
        if !scheme.eq_ignore_ascii_case(b"bearer ") {
            return false;
        }
        let own = self.0.as_bytes();
        if brought.len() != own.len() {
            return false;
        }
        let differences = own.iter().zip(brought).fold(0, |sum, (one, other)| {
            sum | std::hint::black_box(one ^ other)
        });
        differences == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let made = Token::of(folder.path(), &[7; 32]).unwrap();
        let again = Token::of(folder.path(), &[8; 32]).unwrap();
        assert_eq!(made.0, again.0);
        assert_eq!(made.0, "07".repeat(32));
        let mode = folder.path().join(FILE).metadata().unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_holds_no_secret_is_refused() {
        for text in ["", "short", &"a b".repeat(40)] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(FILE), text).unwrap();
            let refused = Token::of(folder.path(), &[7; 32]);
            assert!(matches!(refused, Err(TokenError::Unusable(_))), "{text:?}");
        }
    }

    #[test]
    fn only_the_whole_token_is_right() {
        let token = Token("secret".to_owned());
        for right in ["Bearer secret", "bearer secret", "BEARER secret"] {
            assert!(token.is_brought_by(right.as_bytes()), "{right}");
        }
        for wrong in [
            "",
            "secret",
            "Bearer",
            "Bearer ",
            "Bearer secreT",
            "Bearer secret ",
            "Basic secret",
            "Bearer secre",
            "Bearer  secret",
        ] {
            assert!(!token.is_brought_by(wrong.as_bytes()), "{wrong}");
        }
    }
}
