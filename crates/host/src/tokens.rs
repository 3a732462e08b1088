//! The tokens of viewers elsewhere: made, listed, revoked, and known again by what is brought. Secrets are kept nowhere, only
//! their digests, in a file of the state folder that nobody else reads. What a token allows is decided in `grant`.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use attache_engine::{EngineError, SystemTime, Time};
use attache_protocol::{TokenScope, TokenView};
use attache_session::{ErrorCode, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};
use tokio::sync::watch;

use crate::grant::Grant;
use crate::to_wire;

/// The file in the state folder.
const FILE: &str = "tokens.json";

/// The version of its form.
const VERSION: u32 = 1;

/// Most tokens at once.
const MOST: usize = 1_000;

/// Longest name, in characters.
const NAME_CHARS: usize = 100;

/// What every secret begins with, so that whoever finds one knows what it is.
const PREFIX: &str = "attache_";

/// Bytes of chance in a secret.
const CHANCE: usize = 32;

/// Longest file that is read.
const LONGEST: u64 = 1024 * 1024;

/// Why the tokens of a state folder cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {why}; mend it, or remove it to revoke all tokens", .path.display())]
pub struct TokensError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// Who comes with a token that is known.
pub(crate) struct Bearer {
    /// What it may do.
    pub(crate) grant: Grant,
    /// The other end is gone when the token is revoked.
    pub(crate) revoked: watch::Receiver<()>,
}

/// See the module.
pub(crate) struct Tokens {
    /// Where they are kept; none is with the process.
    file: Option<PathBuf>,
    known: Mutex<Vec<Token>>,
}

struct Token {
    kept: Kept,
    /// Goes with the token.
    valid: watch::Sender<()>,
}

/// A token in the file.
#[derive(Clone, Serialize, Deserialize)]
struct Kept {
    id: String,
    name: String,
    scope: TokenScope,
    session: Option<SessionText>,
    created_at: i64,
    /// The digest of its secret, in hexadecimal.
    sha256: Hex,
}

/// The file.
#[derive(Serialize, Deserialize)]
struct Whole {
    version: u32,
    tokens: Vec<Kept>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct SessionText(SessionId);

impl TryFrom<String> for SessionText {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let id = text.parse().map_err(|_no_id| "no session id".to_owned());
        id.map(Self)
    }
}

impl From<SessionText> for String {
    fn from(SessionText(id): SessionText) -> Self {
        id.to_string()
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Hex([u8; 32]);

impl TryFrom<String> for Hex {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let mut bytes = [0; 32];
        let digits = text.as_bytes();
        let is_whole = digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit);
        if !is_whole {
            return Err("no digest of 64 hexadecimal digits".to_owned());
        }
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|fault| fault.to_string())?;
        }
        Ok(Self(bytes))
    }
}

impl From<Hex> for String {
    fn from(Hex(bytes): Hex) -> Self {
        hex(&bytes)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Tokens {
    /// Those that go with the process.
    pub(crate) fn in_memory() -> Self {
        Self {
            file: None,
            known: Mutex::default(),
        }
    }

    /// Those of a state folder, which this process holds.
    pub(crate) fn of(state_folder: &Path) -> Result<Self, TokensError> {
        let path = state_folder.join(FILE);
        let known = read(&path).map_err(|why| TokensError {
            path: path.clone(),
            why,
        })?;
        Ok(Self {
            file: Some(path),
            known: Mutex::new(known.into_iter().map(Token::new).collect()),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Token>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// All of them, oldest first.
    pub(crate) fn list(&self) -> Vec<TokenView> {
        self.lock().iter().map(|token| token.kept.view()).collect()
    }

    /// Makes one, and gives its secret.
    pub(crate) fn create(
        &self,
        name: Option<String>,
        grant: Grant,
    ) -> Result<(TokenView, String), EngineError> {
        let invalid = |text: &str| EngineError::new(ErrorCode::InvalidArguments, text);
        let mut known = self.lock();
        if known.len() >= MOST {
            let text = format!("there are {MOST} tokens already; revoke one first");
            return Err(EngineError::new(ErrorCode::LimitReached, text));
        }
        let is_taken = |name: &str| known.iter().any(|token| token.is_called(name));
        let name = match name {
            Some(name) if is_taken(&name) => {
                return Err(invalid("there is a token of this name already"));
            }
            Some(name) => name,
            None => (1..)
                .map(|number| format!("token-{number}"))
                .find(|name| !is_taken(name))
                .unwrap_or_default(),
        };
        let length = name.chars().count();
        if name.trim().is_empty() || length > NAME_CHARS || name.chars().any(char::is_control) {
            return Err(invalid(
                "a token's name has 1 to 100 characters, and no control characters",
            ));
        }
        let mut chance = [0; CHANCE];
        getrandom::fill(&mut chance).map_err(|fault| {
            EngineError::new(
                ErrorCode::Internal,
                format!("there is no chance to be had: {fault}"),
            )
        })?;
        let secret = format!("{PREFIX}{}", hex(&chance));
        let Grant { scope, subtree } = grant;
        let kept = Kept {
            id: SystemTime.fresh().to_string(),
            name,
            scope,
            session: subtree.map(SessionText),
            created_at: SystemTime.now().0,
            sha256: Hex(digest(secret.as_bytes())),
        };
        let view = kept.view();
        known.push(Token::new(kept));
        if let Err(error) = self.write(&known) {
            known.pop();
            return Err(error);
        }
        Ok((view, secret))
    }

    /// Takes one back, by its name or its id; false when there is none. Whoever came with it is cut off.
    pub(crate) fn revoke(&self, token: &str) -> Result<bool, EngineError> {
        let mut known = self.lock();
        let Some(at) = known.iter().position(|it| it.is_called(token)) else {
            return Ok(false);
        };
        let gone = known.remove(at);
        if let Err(error) = self.write(&known) {
            known.insert(at, gone);
            return Err(error);
        }
        Ok(true)
    }

    /// Who brings this secret. All digests are compared, each to its end: how long that takes says nothing.
    pub(crate) fn bearer(&self, secret: &[u8]) -> Option<Bearer> {
        let brought = digest(secret);
        let known = self.lock();
        let mut found = None;
        for token in known.iter() {
            let same: Choice = token.kept.sha256.0.ct_eq(&brought);
            if same.into() {
                found = Some(token);
            }
        }
        found.map(|token| Bearer {
            grant: Grant {
                scope: token.kept.scope,
                subtree: token.kept.session.map(|SessionText(id)| id),
            },
            revoked: token.valid.subscribe(),
        })
    }

    /// Replaces the file. This is seldom, and small; whoever asked waits for the disk.
    fn write(&self, known: &[Token]) -> Result<(), EngineError> {
        let Some(path) = &self.file else {
            return Ok(());
        };
        let whole = Whole {
            version: VERSION,
            tokens: known.iter().map(|token| token.kept.clone()).collect(),
        };
        let text = serde_json::to_vec_pretty(&whole).map_err(io::Error::from);
        let written = text.and_then(|text| replace(path, &text));
        written.map_err(|fault| {
            let text = format!("the tokens cannot be stored: {}", fault.kind());
            let full = fault.kind() == io::ErrorKind::StorageFull;
            let code = if full {
                ErrorCode::StorageFull
            } else {
                ErrorCode::Internal
            };
            EngineError::new(code, text)
        })
    }
}

fn digest(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

fn read(path: &Path) -> Result<Vec<Kept>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(none) if none.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(fault) => return Err(fault.to_string()),
    };
    let limited = io::Read::take(file, LONGEST);
    let whole: Whole = serde_json::from_reader(limited).map_err(|fault| fault.to_string())?;
    if whole.version > VERSION {
        return Err("a newer program has written it".to_owned());
    }
    Ok(whole.tokens)
}

/// Under another name first: a half of it must never be read.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let half = path.with_extension("json.new");
    // One of an earlier life; it may not be there.
    let _removed = std::fs::remove_file(&half);
    let mut options = File::options();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&half)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(&half, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

impl Token {
    fn new(kept: Kept) -> Self {
        Self {
            kept,
            valid: watch::channel(()).0,
        }
    }

    fn is_called(&self, name_or_id: &str) -> bool {
        self.kept.name == name_or_id || self.kept.id == name_or_id
    }
}

impl Kept {
    fn view(&self) -> TokenView {
        let Self {
            id,
            name,
            scope,
            session,
            created_at,
            sha256: _,
        } = self;
        TokenView {
            token_id: id.clone(),
            name: name.clone(),
            scope: *scope,
            session_id: session.map(String::from),
            created_at: to_wire::time(Timestamp(*created_at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const READS: Grant = Grant {
        scope: TokenScope::Read,
        subtree: None,
    };

    #[test]
    fn a_token_is_known_by_its_secret_in_the_next_life_too_and_the_file_does_not_hold_it() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::of(folder.path()).unwrap();
        assert!(tokens.is_empty());
        let subtree = "01931f2e-0000-7000-8000-000000000001".parse().unwrap();
        let grant = Grant {
            scope: TokenScope::Write,
            subtree: Some(subtree),
        };
        let (made, secret) = tokens.create(Some("phone".to_owned()), grant).unwrap();
        assert_eq!(secret.len(), PREFIX.len() + 2 * CHANCE);
        let file = folder.path().join(FILE);
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains(&secret[PREFIX.len()..]), "{text}");
        drop(tokens);
        let tokens = Tokens::of(folder.path()).unwrap();
        assert_eq!(tokens.list(), [made]);
        assert_eq!(tokens.bearer(secret.as_bytes()).unwrap().grant, grant);
        for wrong in [
            "",
            PREFIX,
            &secret[..secret.len() - 1],
            &secret.to_uppercase(),
        ] {
            assert!(tokens.bearer(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }

    #[test]
    fn revoking_by_name_or_id_tells_who_came_with_it() {
        let tokens = Tokens::in_memory();
        for by_id in [false, true] {
            let (made, secret) = tokens.create(None, READS).unwrap();
            let (_, other) = tokens.create(None, READS).unwrap();
            let bearer = tokens.bearer(secret.as_bytes()).unwrap();
            let kept = tokens.bearer(other.as_bytes()).unwrap();
            let called = if by_id { &made.token_id } else { &made.name };
            assert_eq!(tokens.revoke(called), Ok(true));
            assert_eq!(tokens.revoke(called), Ok(false));
            assert!(bearer.revoked.has_changed().is_err(), "it is told");
            assert!(kept.revoked.has_changed().is_ok(), "and nobody else");
            assert!(tokens.bearer(secret.as_bytes()).is_none());
        }
    }

    #[test]
    fn names_are_there_once_and_plain() {
        let tokens = Tokens::in_memory();
        let create = |name: Option<&str>| tokens.create(name.map(str::to_owned), READS);
        assert_eq!(create(None).unwrap().0.name, "token-1");
        assert_eq!(create(Some("token-2")).unwrap().0.name, "token-2");
        assert_eq!(create(None).unwrap().0.name, "token-3");
        for bad in ["token-1", "", " ", "a\nb", "\u{1b}[2J", &"n".repeat(101)] {
            let refused = create(Some(bad)).unwrap_err();
            assert_eq!(refused.code, ErrorCode::InvalidArguments, "{bad:?}");
        }
        assert_eq!(tokens.list().len(), 3);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_and_not_passed_over() {
        for text in [
            "",
            "{",
            r#"{"version":2,"tokens":[]}"#,
            r#"{"version":1,"tokens":[{}]}"#,
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(FILE), text).unwrap();
            let refused = Tokens::of(folder.path()).map(drop).unwrap_err();
            assert!(refused.to_string().contains(FILE), "{text:?}: {refused}");
        }
    }
}
