//! The protocol as it is committed: frames byte for byte, the types of another language, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod corpus;
mod golden;
mod refused;
mod typescript;

/// Compares a committed file with what it is made from; with `UPDATE_SCHEMAS` in the environment it is written.
fn committed(file: &str, made: &str) {
    let path = format!("{}/../../schemas/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let differ = committed.lines().zip(made.lines()).find(|(a, b)| a != b);
    assert!(
        committed == made,
        "run the tests once with UPDATE_SCHEMAS=1 and commit schemas/{file}; they differ first in {differ:?}"
    );
}
