//! Toolset `filesystem`: each tool on a folder of its own, and the border around that folder.

mod search;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use attache_agent::Definition;
use attache_session::SessionId;
use attache_testkit::{Puppet, World, call, text};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A session in the folder `ws` of a fresh folder that also has an `outside`.
struct Desk {
    world: World,
    session: SessionId,
    top: TempDir,
}

impl Desk {
    async fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let ws = top.path().join("ws");
        fs::create_dir_all(&ws).unwrap();
        fs::create_dir_all(top.path().join("outside")).unwrap();
        fs::write(top.path().join("outside/secret"), "secret\n").unwrap();
        Self::at(&ws, top).await
    }

    async fn at(folder: &Path, top: TempDir) -> Self {
        let world = World::new().await;
        let session = world.root_at(folder, Definition::built_in(), None).await;
        Self {
            world,
            session,
            top,
        }
    }

    fn path(&self, name: &str) -> String {
        self.top.path().join(name).display().to_string()
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.top.path().join("ws").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.top.path().join("ws").join(name)).unwrap()
    }

    fn link(&self, target: &str, name: &str) {
        symlink(target, self.top.path().join("ws").join(name)).unwrap();
    }

    async fn ask(&self, tool: &str, arguments: Value) -> Value {
        let outcome = self.world.call(self.session, tool, arguments).await;
        let answer = attache_testkit::json_of(&outcome);
        assert_eq!(outcome.is_error, answer.get("error").is_some(), "{answer}");
        answer
    }

    async fn refused(&self, tool: &str, arguments: Value) -> (String, String) {
        let answer = self.ask(tool, arguments.clone()).await;
        let error = &answer["error"];
        let code = error["code"].as_str();
        let code = code.unwrap_or_else(|| panic!("{tool} {arguments}: {answer}"));
        assert!(!error["hint"].as_str().unwrap().is_empty(), "{answer}");
        (
            code.to_owned(),
            error["message"].as_str().unwrap().to_owned(),
        )
    }

    /// Names and contents of all that lies outside.
    fn outside(&self) -> Vec<(String, String)> {
        let entries = fs::read_dir(self.top.path().join("outside")).unwrap();
        let mut found: Vec<_> = entries
            .map(|entry| {
                let path = entry.unwrap().path();
                let content = fs::read_to_string(&path).unwrap();
                (path.file_name().unwrap().display().to_string(), content)
            })
            .collect();
        found.sort();
        found
    }
}

#[tokio::test]
async fn g55_no_path_leads_out_of_the_working_directory() {
    let desk = Desk::new().await;
    desk.put("sub/file", "inside\n");
    desk.link(&desk.path("outside"), "outbox");
    desk.link("../outside", "relative");
    desk.link(&desk.path("outside/secret"), "l.txt");
    desk.link(&desk.path("outside/new"), "dangling");
    desk.link("/proc/self/root", "proc");
    desk.link("..", "up");
    let secret = desk.path("outside/secret");
    let out = [
        "outbox/secret",
        "relative/secret",
        "l.txt",
        "dangling",
        "../outside/secret",
        "sub/../../outside/secret",
        "up/outside/secret",
        "proc/etc/hostname",
        secret.as_str(),
        "/etc/passwd",
    ];
    let spelled = desk.path("ws/../outside/secret");
    for path in out.into_iter().chain([spelled.as_str()]) {
        for (tool, arguments) in [
            ("read_file", json!({ "path": path })),
            ("write_file", json!({ "path": path, "content": "x" })),
            (
                "edit_file",
                json!({ "path": path, "old_string": "secret", "new_string": "x" }),
            ),
            ("grep", json!({ "pattern": "secret", "path": path })),
            ("list_directory", json!({ "path": path })),
            ("glob", json!({ "pattern": "*", "path": path })),
        ] {
            let (code, message) = desk.refused(tool, arguments).await;
            assert_eq!(code, "not-permitted", "{tool} {path}");
            assert!(message.ends_with("leads out of the working directory"));
        }
    }
    let (code, _) = desk
        .refused("write_file", json!({ "path": "outbox/x", "content": "x" }))
        .await;
    assert_eq!(code, "not-permitted");
    assert_eq!(
        desk.outside(),
        [("secret".to_owned(), "secret\n".to_owned())]
    );
    // Searches meet the links and go through none of them.
    let found = desk.ask("grep", json!({ "pattern": "secret" })).await;
    assert_eq!(found["matches"], json!([]));
    let found = desk.ask("glob", json!({ "pattern": "**/secret" })).await;
    assert_eq!(found["matches"], json!([]));
}

#[tokio::test]
async fn g55_a_link_that_stays_inside_works() {
    let desk = Desk::new().await;
    desk.put("sub/file", "inside\n");
    desk.link(&desk.path("ws/sub"), "absolute");
    desk.link("sub", "relative");
    desk.link("relative/../sub/./file", "chain");
    for path in ["absolute/file", "relative/file", "chain", "sub/../sub/file"] {
        let answer = desk.ask("read_file", json!({ "path": path })).await;
        assert_eq!(answer["content"], "inside\n", "{path}");
    }
    let absolute = desk.path("ws/sub/file");
    let answer = desk.ask("read_file", json!({ "path": absolute })).await;
    assert_eq!(answer["path"], "sub/file");
    let write = json!({ "path": "chain", "content": "changed\n" });
    assert_eq!(
        desk.ask("write_file", write).await,
        json!({ "path": "chain", "created": false, "bytes": 8 })
    );
    assert_eq!(desk.read("sub/file"), "changed\n");
    let link = desk.top.path().join("ws/chain");
    assert!(fs::symlink_metadata(link).unwrap().is_symlink());
    desk.link("loop", "loop");
    let (code, _) = desk.refused("read_file", json!({ "path": "loop" })).await;
    assert_eq!(code, "invalid-arguments");
}

#[tokio::test]
async fn g55_a_working_directory_that_is_a_link_works() {
    let top = tempfile::tempdir().unwrap();
    let real = top.path().join("ws");
    fs::create_dir(&real).unwrap();
    let link = top.path().join("link");
    symlink(&real, &link).unwrap();
    let desk = Desk::at(&link, top).await;
    desk.put("file", "inside\n");
    for path in [
        "file".to_owned(),
        desk.path("link/file"),
        desk.path("ws/file"),
    ] {
        let answer = desk.ask("read_file", json!({ "path": path })).await;
        assert_eq!(answer["content"], "inside\n", "{path}");
        assert_eq!(answer["path"], "file");
    }
    let write = json!({ "path": "a/b/new", "content": "" });
    assert_eq!(
        desk.ask("write_file", write).await,
        json!({ "path": "a/b/new", "created": true, "bytes": 0 })
    );
    assert_eq!(desk.read("a/b/new"), "");
}

#[tokio::test]
async fn g60_a_working_directory_that_is_gone_is_told() {
    let desk = Desk::new().await;
    fs::remove_dir_all(desk.top.path().join("ws")).unwrap();
    for (tool, arguments) in [
        ("read_file", json!({ "path": "x" })),
        ("write_file", json!({ "path": "x", "content": "x" })),
        ("list_directory", json!({})),
        ("glob", json!({ "pattern": "*" })),
        ("grep", json!({ "pattern": "x" })),
    ] {
        let (code, message) = desk.refused(tool, arguments).await;
        assert_eq!(code, "host-incompatible");
        assert_eq!(message, "the working directory of this session is gone");
    }
    assert!(!desk.top.path().join("ws").exists());
}

#[tokio::test]
async fn paths_that_name_nothing_usable_are_refused() {
    let desk = Desk::new().await;
    desk.put("file", "x");
    fs::create_dir(desk.top.path().join("ws/folder")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        desk.top.path().join("ws/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let long = "a/".repeat(5_000);
    let name = "n".repeat(300);
    let rows = [
        ("a\0b", "holds a NUL"),
        (long.as_str(), "longer than 4096 bytes"),
        (name.as_str(), "too long"),
        ("", "empty"),
        ("file/below", "is no folder"),
        ("pipe", "a device, a pipe or a socket"),
        ("folder", "is a folder"),
        (".", "is a folder"),
        ("missing", "there is no"),
        ("missing/below", "there is no"),
    ];
    for (path, why) in rows {
        for tool in ["read_file", "write_file", "edit_file"] {
            if tool == "write_file" && why == "there is no" {
                continue;
            }
            let arguments = match tool {
                "read_file" => json!({ "path": path }),
                "write_file" => json!({ "path": path, "content": "y" }),
                _ => json!({ "path": path, "old_string": "x", "new_string": "y" }),
            };
            let (code, message) = desk.refused(tool, arguments).await;
            assert_eq!(code, "invalid-arguments", "{tool} {path:?}");
            assert!(message.contains(why), "{tool} {path:?}: {message}");
        }
    }
    for tool in ["list_directory", "glob"] {
        let arguments = match tool {
            "glob" => json!({ "path": "file", "pattern": "*" }),
            _ => json!({ "path": "file" }),
        };
        let (code, message) = desk.refused(tool, arguments).await;
        assert_eq!(code, "invalid-arguments");
        assert!(message.contains("is no folder"), "{message}");
    }
    assert_eq!(desk.read("file"), "x");
}

#[tokio::test]
async fn a_file_that_may_not_be_read_or_written_says_so() {
    let desk = Desk::new().await;
    desk.put("closed", "x");
    let path = desk.top.path().join("ws/closed");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        // Whoever runs this may read everything.
        return;
    }
    let (code, _) = desk.refused("read_file", json!({ "path": "closed" })).await;
    assert_eq!(code, "not-permitted");
    let write = json!({ "path": "closed", "content": "y" });
    let (code, _) = desk.refused("write_file", write).await;
    assert_eq!(code, "not-permitted");
}

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
        assert!(content.len() <= 256 * 1024 && content.ends_with('\n'));
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
        assert!(content.len() > 256 * 1024 - 4 && content.len() <= 256 * 1024);
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

#[tokio::test]
async fn a_folder_that_becomes_a_link_meanwhile_leads_nowhere() {
    let desk = Desk::new().await;
    let ws = desk.top.path().join("ws");
    desk.put("d/secret", "inside\n");
    symlink(desk.top.path().join("outside"), ws.join("l")).unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let swapper = {
        let stop = std::sync::Arc::clone(&stop);
        std::thread::spawn(move || {
            let exchange = rustix::fs::RenameFlags::EXCHANGE;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let (here, d, l) = (rustix::fs::CWD, ws.join("d"), ws.join("l"));
                rustix::fs::renameat_with(here, d, here, l, exchange).unwrap();
            }
        })
    };
    for n in 0..300 {
        let read = desk.ask("read_file", json!({ "path": "d/secret" })).await;
        assert_ne!(read["content"], "secret\n");
        let found = desk.ask("grep", json!({ "pattern": "^secret" })).await;
        assert!(found.get("error").is_some() || found["matches"] == json!([]));
        let write = json!({ "path": format!("d/new{n}"), "content": "x" });
        desk.ask("write_file", write).await;
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(
        desk.outside(),
        [("secret".to_owned(), "secret\n".to_owned())]
    );
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
