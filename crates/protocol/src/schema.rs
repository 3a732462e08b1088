//! The protocol's schema, made from the types. It is a committed file; a test compares the two.

use serde_json::{Value, json};

use crate::frame::{FromHost, FromViewer, VERSION};

/// JSON Schema of both directions.
#[must_use]
pub fn schema() -> Value {
    json!({
        "protocol": "attach-agent-session",
        "version": VERSION,
        "from-viewer": schemars::schema_for!(FromViewer),
        "from-host": schemars::schema_for!(FromHost),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../schemas/attach-agent-session.v1.json"
    );

    #[test]
    fn the_committed_schema_is_that_of_the_types() {
        let made = format!("{:#}\n", schema());
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(FILE, &made).unwrap();
        }
        let committed = std::fs::read_to_string(FILE).unwrap_or_default();
        let differ = committed.lines().zip(made.lines()).find(|(a, b)| a != b);
        assert!(
            committed == made,
            "run the tests once with UPDATE_SCHEMAS=1 and commit the file; they differ first in {differ:?}"
        );
    }
}
