//! The border around the working directory: what leads out of it, what is not there, and what may
//! not be opened.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use super::Desk;

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
        ("a\0b", "holds the character NUL"),
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

/// Nothing is closed to a superuser before it has stepped down. This thread does, and with it the
/// threads that it starts from now on; the test's own thread ends with the test.
fn step_down() {
    const NOBODY: u32 = 65_534;
    if rustix::process::geteuid().is_root() {
        let nobody = rustix::process::Uid::from_raw(NOBODY);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
    }
}

#[tokio::test]
async fn a_file_that_may_not_be_read_or_written_says_so() {
    step_down();
    let desk = Desk::new().await;
    desk.put("closed", "x");
    desk.put("folder/inner", "x");
    desk.put("open", "x");
    let set = |name: &str, mode: u32| {
        let path = desk.top.path().join("ws").join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set("closed", 0o000);
    set("folder", 0o000);
    for path in ["closed", "folder/inner"] {
        for (tool, arguments) in [
            ("read_file", json!({ "path": path })),
            ("write_file", json!({ "path": path, "content": "y" })),
            (
                "edit_file",
                json!({ "path": path, "old_string": "x", "new_string": "y" }),
            ),
            ("grep", json!({ "pattern": "x", "path": path })),
        ] {
            let (code, _) = desk.refused(tool, arguments).await;
            assert_eq!(code, "not-permitted", "{tool} {path}");
        }
    }
    let (code, _) = desk
        .refused("list_directory", json!({ "path": "folder" }))
        .await;
    assert_eq!(code, "not-permitted");
    // A search of the whole goes on with what is open, and says what it has passed over.
    let found = desk.ask("grep", json!({ "pattern": "x" })).await;
    assert_eq!(
        found,
        json!({
            "matches": [{ "path": "open", "line": 1, "text": "x" }],
            "files_searched": 1, "files_skipped": 1, "truncated": false,
        })
    );
    set("closed", 0o600);
    set("folder", 0o700);
    assert_eq!(
        (desk.read("closed"), desk.read("folder/inner")),
        ("x".into(), "x".into())
    );
}

/// How often each tool was met by an exchange, and what it then did.
#[derive(Default, Debug)]
struct Met {
    /// The folder and the link were exchanged between the begin and the end of the call.
    within: usize,
    answered: usize,
    refused: usize,
}

impl Met {
    fn all(&self) -> bool {
        self.within > 0 && self.answered > 0 && self.refused > 0
    }
}

#[tokio::test]
async fn a_folder_that_becomes_a_link_meanwhile_leads_nowhere() {
    let desk = Desk::new().await;
    let ws = desk.top.path().join("ws");
    desk.put("d/secret", "inside\n");
    symlink(desk.top.path().join("outside"), ws.join("l")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swaps = Arc::new(AtomicUsize::new(0));
    let swapper = {
        let (stop, swaps) = (Arc::clone(&stop), Arc::clone(&swaps));
        std::thread::spawn(move || {
            let exchange = rustix::fs::RenameFlags::EXCHANGE;
            while !stop.load(Ordering::Relaxed) {
                let (here, d, l) = (rustix::fs::CWD, ws.join("d"), ws.join("l"));
                rustix::fs::renameat_with(here, d, here, l, exchange).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let mut met = [Met::default(), Met::default(), Met::default()];
    let mut rounds = 0;
    // On a busy machine the two may hardly overlap: it goes on until each tool has met the folder,
    // the link, and an exchange within its call.
    while rounds < 300 || !met.iter().all(Met::all) {
        rounds += 1;
        // A search of the whole meets the folder on its way.
        let found = desk.ask("grep", json!({ "pattern": "^secret" })).await;
        assert!(found.get("error").is_some() || found["matches"] == json!([]));
        let calls = [
            ("read_file", json!({ "path": "d/secret" })),
            ("grep", json!({ "pattern": "secret", "path": "d" })),
            (
                "write_file",
                json!({ "path": format!("d/new{rounds}"), "content": "x" }),
            ),
        ];
        for (met, (tool, arguments)) in met.iter_mut().zip(calls) {
            let before = swaps.load(Ordering::Relaxed);
            let answer = desk.ask(tool, arguments).await;
            met.within += usize::from(swaps.load(Ordering::Relaxed) != before);
            let Some(error) = answer.get("error") else {
                met.answered += 1;
                match tool {
                    "read_file" => assert_eq!(answer["content"], "inside\n"),
                    "grep" => assert_eq!(answer["matches"], json!([])),
                    _ => {}
                }
                continue;
            };
            met.refused += 1;
            let code = error["code"].as_str().unwrap();
            assert!(
                ["not-permitted", "invalid-arguments"].contains(&code),
                "{answer}"
            );
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    println!("{rounds} rounds: {met:?}");
    assert_eq!(
        desk.outside(),
        [("secret".to_owned(), "secret\n".to_owned())]
    );
}
