//! Reading a small file that somebody else may have put there: a script, a definition, settings. A
//! pipe that nobody writes to or a device without an end must not hold a host up.

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

/// The bytes of a regular file, links followed.
///
/// # Errors
///
/// As for any file; and when it is no regular file, or has more than `limit` bytes.
pub fn read_small(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let size = |bytes: u64| {
        let text = format!("it has {bytes} bytes; at most {limit} are allowed");
        Error::new(ErrorKind::FileTooLarge, text)
    };
    // Looked at before it is opened: opening a pipe waits for its other end.
    let known = std::fs::metadata(path)?;
    if !known.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is no regular file"));
    }
    if known.len() > limit {
        return Err(size(known.len()));
    }
    let mut bytes = Vec::new();
    // It may have grown since.
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(size(bytes.len() as u64));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_small_regular_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "12345").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for path in [&file, &link] {
            assert_eq!(read_small(path, 5).unwrap(), b"12345");
            let large = read_small(path, 4).unwrap_err();
            assert_eq!(large.to_string(), "it has 5 bytes; at most 4 are allowed");
        }
        let endless = folder.path().join("endless");
        std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [&endless, &socket, folder.path()] {
            let refused = read_small(path, 5).unwrap_err();
            assert_eq!(refused.to_string(), "it is no regular file");
        }
        let missing = read_small(&folder.path().join("none"), 5).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }
}
