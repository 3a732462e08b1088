//! What is in files: read page by page, written whole, edited in place.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use attache_session::Picture;
use attache_testkit::{Puppet, call, text};
use serde_json::json;

use super::Desk;

#[tokio::test]
async fn a_long_file_is_read_page_by_page() {
    let desk = Desk::new().await;
    let text: String = (1..=5_001).map(|n| format!("line {n} é\n")).collect();
    desk.put("long", &text);
    let mut offset = json!(1);
    let mut whole = String::new();
    let mut pages = Vec::new();
    while !offset.is_null() {
        let page = desk
            .ask("read_file", json!({ "path": "long", "offset": offset }))
            .await;
        whole.push_str(page["content"].as_str().unwrap());
        assert_eq!(page["total_lines"], 5_001);
        assert_eq!(page["start_line"], offset);
        pages.push((page["lines"].clone(), page["truncated"].clone()));
        offset = page["next_offset"].clone();
    }
    assert_eq!(whole, text);
    assert_eq!(
        pages,
        [
            (json!(2_000), json!(true)),
            (json!(2_000), json!(true)),
            (json!(1_001), json!(false))
        ]
    );
    let page = desk
        .ask(
            "read_file",
            json!({ "path": "long", "offset": 5_001, "limit": 9_999 }),
        )
        .await;
    assert_eq!(
        page,
        json!({
            "path": "long", "content": "line 5001 é\n", "start_line": 5_001, "lines": 1,
            "total_lines": 5_001, "truncated": false, "next_offset": null,
            "adjusted": { "limit": 2_000 },
        })
    );
    let behind = desk
        .ask("read_file", json!({ "path": "long", "offset": 6_000 }))
        .await;
    assert_eq!(behind["content"], "");
    assert_eq!(behind["lines"], 0);
    assert_eq!(behind["next_offset"], json!(null));
    assert_eq!(behind["note"], "The offset lies behind the last line.");
}

#[tokio::test]
async fn pages_are_bounded_in_bytes_and_cut_between_characters() {
    let desk = Desk::new().await;
    // Twenty lines of 20 KB do not fit one page; none of them is torn.
    let text: String = (0..20).map(|_| "é".repeat(10_000) + "\n").collect();
    desk.put("wide", &text);
    let mut offset = json!(1);
    let mut whole = String::new();
    while !offset.is_null() {
        let page = desk
            .ask("read_file", json!({ "path": "wide", "offset": offset }))
            .await;
        let content = page["content"].as_str().unwrap();
        assert!(content.len() <= 64 * 1024 && content.ends_with('\n'));
        whole.push_str(content);
        offset = page["next_offset"].clone();
    }
    assert_eq!(whole, text);
    // A line that no page can hold is cut, at each alignment, and the next line can be read.
    for before in 0..4 {
        let text = "a".repeat(before) + &"🙏".repeat(70_000) + "\nnext";
        desk.put("line", &text);
        let page = desk.ask("read_file", json!({ "path": "line" })).await;
        let content = page["content"].as_str().unwrap();
        assert!(text.starts_with(content));
        assert!(content.len() > 64 * 1024 - 4 && content.len() <= 64 * 1024);
        assert_eq!(page["truncated"], true);
        assert_eq!(page["total_lines"], 2);
        assert_eq!(page["next_offset"], 2);
        let page = desk
            .ask("read_file", json!({ "path": "line", "offset": 2 }))
            .await;
        assert_eq!(page["content"], "next");
        assert_eq!(page["truncated"], false);
    }
}

#[tokio::test]
async fn a_picture_is_shown_by_its_first_bytes_and_not_by_its_name() {
    let desk = Desk::new().await;
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    let most = 3_932_160;
    let of = |begins: &[u8], size: usize| {
        let mut bytes = begins.to_vec();
        bytes.resize(size, 0);
        bytes
    };
    for (name, bytes, kind) in [
        ("a.txt", of(png, 16), "image/png"),
        ("b", of(b"\xff\xd8\xff\xe0\0\x10JFIF", 999), "image/jpeg"),
        ("c.png", of(b"GIF89a\x01\0\x01\0", 12), "image/gif"),
        ("d.webp", of(b"RIFF\x24\0\0\0WEBPVP8 ", most), "image/webp"),
    ] {
        desk.put(name, &bytes);
        let asked = json!({ "path": name, "offset": 7, "limit": 1 });
        let outcome = desk.world.call(desk.session, "read_file", asked).await;
        assert_eq!(
            attache_testkit::json_of(&outcome),
            json!({ "path": name, "picture": { "media_type": kind, "bytes": bytes.len() } })
        );
        assert_eq!(outcome.images, [Picture::of_bytes(kind, &bytes)]);
        assert!(!outcome.is_error);
    }
    // One byte more is too many; other files are what they were, whatever they are called.
    desk.put("large.png", of(png, most + 1));
    desk.put("page.png", "<html></html>");
    desk.put("spec.gif", "GIF89a is the name of a format.\n");
    desk.put("scan.pdf", b"%PDF-1.7\0\0");
    let large = json!({ "path": "large.png" });
    let outcome = desk.world.call(desk.session, "read_file", large).await;
    let answer = attache_testkit::json_of(&outcome);
    assert!(outcome.images.is_empty());
    assert_eq!(answer["size"], most + 1);
    assert_eq!(answer["media_type"], "image/png");
    let note = answer["note"].as_str().unwrap();
    assert!(
        note.contains("at most 3932160 bytes") && note.contains("smaller copy"),
        "{note}"
    );
    for (name, member) in [
        ("page.png", "content"),
        ("spec.gif", "content"),
        ("scan.pdf", "binary"),
    ] {
        let asked = json!({ "path": name });
        let outcome = desk.world.call(desk.session, "read_file", asked).await;
        assert!(outcome.images.is_empty(), "{name}");
        assert!(
            !attache_testkit::json_of(&outcome)[member].is_null(),
            "{name}"
        );
    }
}

#[tokio::test]
async fn what_is_no_text_is_told_and_odd_bytes_are_noted() {
    let desk = Desk::new().await;
    desk.put("empty", "");
    desk.put("binary", [0x7f, b'E', b'L', b'F', 0, 0, 1]);
    desk.put("odd", b"caf\xe9 and a longer text around it\n");
    let answer = desk.ask("read_file", json!({ "path": "empty" })).await;
    assert_eq!(
        answer,
        json!({
            "path": "empty", "content": "", "start_line": 1, "lines": 0, "total_lines": 0,
            "truncated": false, "next_offset": null,
        })
    );
    let answer = desk.ask("read_file", json!({ "path": "binary" })).await;
    assert_eq!(
        answer,
        json!({
            "path": "binary", "binary": true, "size": 7,
            "note": "This is no UTF-8 text, so it is not shown.",
        })
    );
    let answer = desk.ask("read_file", json!({ "path": "odd" })).await;
    assert_eq!(
        answer["content"],
        "caf\u{fffd} and a longer text around it\n"
    );
    assert_eq!(
        answer["note"],
        "Bytes that are no UTF-8 are shown as U+FFFD."
    );
    // An edit leaves the odd byte as it is.
    let edit = json!({ "path": "odd", "old_string": "longer", "new_string": "shorter" });
    assert_eq!(
        desk.ask("edit_file", edit).await,
        json!({ "path": "odd", "replacements": 1 })
    );
    assert_eq!(
        fs::read(desk.top.path().join("ws/odd")).unwrap(),
        b"caf\xe9 and a shorter text around it\n"
    );
}

#[tokio::test]
async fn edits_need_one_place_or_all() {
    let desk = Desk::new().await;
    let text = "один 🙏\r\nдва 🙏\r\n";
    desk.put("file", text);
    let rows = [
        (json!({ "old_string": "🙏", "new_string": "x" }), "2 times"),
        (
            json!({ "old_string": "три", "new_string": "x" }),
            "is not in",
        ),
        (json!({ "old_string": "", "new_string": "x" }), "is empty"),
        (
            json!({ "old_string": "два", "new_string": "два" }),
            "the same",
        ),
        (json!({ "old_string": "два" }), "`new_string` is missing"),
    ];
    for (mut arguments, why) in rows {
        arguments["path"] = json!("file");
        let (code, message) = desk.refused("edit_file", arguments).await;
        assert_eq!(code, "invalid-arguments");
        assert!(message.contains(why), "{message}");
        assert_eq!(desk.read("file"), text);
    }
    let edit = json!({ "path": "file", "old_string": "🙏\r\nдва", "new_string": "" });
    assert_eq!(desk.ask("edit_file", edit).await["replacements"], 1);
    assert_eq!(desk.read("file"), "один  🙏\r\n");
    let edit = json!({
        "path": "file", "old_string": " ", "new_string": "\n", "replace_all": true
    });
    assert_eq!(desk.ask("edit_file", edit).await["replacements"], 2);
    assert_eq!(desk.read("file"), "один\n\n🙏\r\n");
}

#[tokio::test]
async fn a_write_keeps_the_mode_and_leaves_nothing_beside() {
    let desk = Desk::new().await;
    desk.put("tool.sh", "old");
    let path = desk.top.path().join("ws/tool.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let write = json!({ "path": "tool.sh", "content": "new" });
    assert_eq!(
        desk.ask("write_file", write).await,
        json!({ "path": "tool.sh", "created": false, "bytes": 3 })
    );
    let edit = json!({ "path": "tool.sh", "old_string": "new", "new_string": "newer" });
    desk.ask("edit_file", edit).await;
    assert_eq!(desk.read("tool.sh"), "newer");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o751);
    let names = fs::read_dir(desk.top.path().join("ws")).unwrap().count();
    assert_eq!(names, 1);
    let large = json!({ "path": "large", "content": "x".repeat(1024 * 1024 + 1) });
    let (code, _) = desk.refused("write_file", large).await;
    assert_eq!(code, "text-too-large");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_of_one_step_follow_each_other() {
    let desk = Desk::new().await;
    desk.world.puppet.teach(|request| {
        if Puppet::after_tools(request) {
            return text("edited");
        }
        let write = json!({ "path": "file", "content": "0." });
        let mut pieces = call("write_file", &write);
        for n in 0..20 {
            // Each finds its text only when the one before it is done.
            let edit = json!({
                "path": "file", "old_string": format!("{n}."),
                "new_string": format!("{n},{}.", n + 1),
            });
            pieces.extend(call("edit_file", &edit));
        }
        pieces
    });
    let send = json!({ "session_id": ".", "text": "go" });
    desk.ask("agent_session_send", send).await;
    desk.world.quiet(desk.session).await;
    let all: Vec<String> = (0..=20).map(|n| n.to_string()).collect();
    assert_eq!(desk.read("file"), all.join(",") + ".");
}
