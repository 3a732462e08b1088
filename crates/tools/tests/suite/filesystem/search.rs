//! Listing and searching: which files are met, in which order, and up to which bounds.

use serde_json::json;

use super::Desk;

#[tokio::test]
async fn a_listing_shows_kinds_and_sizes_in_order() {
    let desk = Desk::new().await;
    desk.put(".hidden", "abc");
    desk.put("a/b/c/file", "12345");
    desk.put("a/z", "");
    desk.link("a", "to-a");
    let entry = |path: &str, kind: &str, size: Option<u64>| json!({ "path": path, "kind": kind, "size": size });
    let flat = [
        entry(".hidden", "file", Some(3)),
        entry("a", "directory", None),
        entry("to-a", "link", None),
    ];
    assert_eq!(
        desk.ask("list_directory", json!({})).await,
        json!({ "path": ".", "entries": flat, "truncated": false })
    );
    let deep = [
        entry("a/b", "directory", None),
        entry("a/b/c", "directory", None),
        entry("a/b/c/file", "file", Some(5)),
        entry("a/z", "file", Some(0)),
    ];
    assert_eq!(
        desk.ask("list_directory", json!({ "path": "./a/", "depth": 99 }))
            .await,
        json!({
            "path": "a", "entries": deep, "truncated": false, "adjusted": { "depth": 8 }
        })
    );
    let through = desk.ask("list_directory", json!({ "path": "to-a" })).await;
    assert_eq!(through["entries"][0]["path"], "to-a/b");
}

#[tokio::test]
async fn a_large_folder_is_listed_up_to_its_bound() {
    let desk = Desk::new().await;
    for n in 0..2_100 {
        desk.put(&format!("f{n:04}"), "");
    }
    let listed = desk.ask("list_directory", json!({})).await;
    assert_eq!(listed["truncated"], true);
    let entries = listed["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2_000);
    assert_eq!(entries[1_999]["path"], "f1999");
    let found = desk.ask("glob", json!({ "pattern": "f*" })).await;
    assert_eq!(found["truncated"], true);
    assert_eq!(found["matches"].as_array().unwrap().len(), 2_000);
}

async fn sources() -> Desk {
    let desk = Desk::new().await;
    desk.put(".gitignore", "target/\n*.log\n");
    desk.put(".git/config", "needle\n");
    desk.put("target/out.rs", "needle\n");
    desk.put("src/main.rs", "fn main() {\r\n    needle();\r\n}\r\n");
    desk.put("src/deep/lib.rs", "// Needle\n");
    desk.put("src/deep/.gitignore", "!keep.log\n/private\n");
    desk.put("src/deep/keep.log", "needle\n");
    desk.put("src/deep/other.log", "needle\n");
    desk.put("src/deep/private/key.rs", "needle\n");
    desk.put(".github/ci.yml", "needle\n");
    desk.put("data.bin", b"needle\0");
    desk
}

#[tokio::test]
async fn glob_finds_sources_and_obeys_ignore_rules() {
    let desk = sources().await;
    let rows = [
        (
            json!({ "pattern": "*.rs" }),
            json!(["src/deep/lib.rs", "src/main.rs"]),
        ),
        (json!({ "pattern": "src/*.rs" }), json!(["src/main.rs"])),
        (
            json!({ "pattern": "**/*.log" }),
            json!(["src/deep/keep.log"]),
        ),
        (
            json!({ "pattern": "*.log", "path": "src/deep" }),
            json!(["src/deep/keep.log"]),
        ),
        (
            json!({ "pattern": "deep/*.{rs,log}", "path": "src" }),
            json!(["src/deep/keep.log", "src/deep/lib.rs"]),
        ),
        (json!({ "pattern": "ci.yml" }), json!([".github/ci.yml"])),
        (json!({ "pattern": "config" }), json!([])),
    ];
    for (arguments, found) in rows {
        let answer = desk.ask("glob", arguments.clone()).await;
        assert_eq!(
            answer,
            json!({ "matches": found, "truncated": false }),
            "{arguments}"
        );
    }
    let (code, message) = desk.refused("glob", json!({ "pattern": "a{b" })).await;
    assert_eq!(code, "invalid-arguments");
    assert!(message.starts_with("`pattern` is no pattern: "));
}

#[tokio::test]
async fn grep_finds_lines_and_passes_over_what_is_no_source() {
    let desk = sources().await;
    let answer = desk
        .ask("grep", json!({ "pattern": "needle", "ignore_case": true }))
        .await;
    let row =
        |path: &str, line: u64, text: &str| json!({ "path": path, "line": line, "text": text });
    assert_eq!(
        answer,
        json!({
            "matches": [
                row(".github/ci.yml", 1, "needle"),
                row("src/deep/keep.log", 1, "needle"),
                row("src/deep/lib.rs", 1, "// Needle"),
                row("src/main.rs", 2, "    needle();"),
            ],
            "files_searched": 6, "files_skipped": 1, "truncated": false,
        })
    );
    let answer = desk
        .ask(
            "grep",
            json!({ "pattern": r"^\s+needle\(\);$", "glob": "*.rs" }),
        )
        .await;
    assert_eq!(
        answer["matches"],
        json!([row("src/main.rs", 2, "    needle();")])
    );
    let one = desk
        .ask("grep", json!({ "pattern": "e", "limit": 1 }))
        .await;
    assert_eq!(one["matches"].as_array().unwrap().len(), 1);
    assert_eq!(one["truncated"], true);
    let file = desk
        .ask(
            "grep",
            json!({ "pattern": "main", "path": "src/main.rs", "limit": 0 }),
        )
        .await;
    assert_eq!(
        file["matches"],
        json!([row("src/main.rs", 1, "fn main() {")])
    );
    assert_eq!(file["adjusted"], json!({ "limit": 1 }));
    desk.put("wide", "x".to_owned() + &"é".repeat(600));
    let wide = desk
        .ask("grep", json!({ "pattern": "é$", "path": "wide" }))
        .await;
    let text = wide["matches"][0]["text"].as_str().unwrap();
    assert_eq!(text.chars().count(), 500);
}

#[tokio::test]
async fn patterns_that_are_wrong_or_huge_are_refused() {
    let desk = Desk::new().await;
    for pattern in ["(", r"\w{1000}{1000}", ""] {
        let (code, _) = desk.refused("grep", json!({ "pattern": pattern })).await;
        assert_eq!(code, "invalid-arguments", "{pattern}");
    }
}
