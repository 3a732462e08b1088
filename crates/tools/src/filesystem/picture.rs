//! Pictures among files: told by their first bytes, never by their name.

/// The largest picture that is shown, in bytes: 5 MiB in base64, which is what every provider takes.
pub(super) const PICTURE_BYTES: u64 = 5 * 1024 * 1024 / 4 * 3;

/// The kind of picture that a file is which begins so; none when it is none that models are shown.
pub(super) fn media_type(begins: &[u8]) -> Option<&'static str> {
    match begins {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell() {
        for (begins, kind) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", Some("image/jpeg")),
            (b"GIF87a\x01\0", Some("image/gif")),
            (b"GIF89a\x01\0", Some("image/gif")),
            (b"RIFF\x24\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x24\0\0\0WAVEfmt ", None),
            (b"\x89PNG", None),
            (b"GIF88a", None),
            (b"BM\x36\0", None),
            (b"%PDF-1.7", None),
            (b"<svg xmlns", None),
            (b"", None),
        ] {
            assert_eq!(media_type(begins), kind, "{begins:?}");
        }
    }
}
