//! The main job without a key: a parent, at least three sub-agents, real reads, one joined answer.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;

use serde_json::Value;

use crate::house::{House, ended};

fn children(house: &House) -> Vec<Value> {
    let trees = house.run(&["tree", "--json"]).well().json();
    let roots = trees.as_array().unwrap();
    roots.last().unwrap()["children"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn the_answer_is_built_from_what_the_tools_returned() {
    let house = House::new();
    house.file("first.txt", "alpha line\nsecond\n");
    let ended = house.run(&["demo"]).well();
    assert!(
        ended
            .out
            .contains("first.txt (lines: 2) begins with “alpha line”"),
        "{}",
        ended.out
    );
    assert!(children(&house).len() >= 3);
    assert!(
        children(&house)
            .iter()
            .all(|child| child["outcome"] == "succeeded")
    );

    house.file("added.md", "# Added later\n");
    house.file("first.txt", "changed line\n");
    let ended = house.run(&["demo"]).well();
    assert!(
        ended
            .out
            .contains("added.md (lines: 1) begins with “# Added later”"),
        "{}",
        ended.out
    );
    assert!(
        ended
            .out
            .contains("first.txt (lines: 1) begins with “changed line”"),
        "{}",
        ended.out
    );
    // What was only for a moment may be skipped; where each of them stands at the end is told.
    for told in ["read first.txt: idle (succeeded)", "demo: idle (succeeded)"] {
        assert!(ended.err.contains(told), "{told}: {}", ended.err);
    }
}

#[test]
fn odd_folders_end_well() {
    let house = House::new();
    let ended = house.run(&["demo"]).well();
    assert!(
        ended.out.contains("Files that are not ignored: 0 "),
        "{}",
        ended.out
    );
    assert_eq!(children(&house).len(), 3);

    let missing = house.run(&["demo", "no-such-folder"]);
    assert_eq!(missing.code, 3);
    assert!(
        missing.err.contains("no-such-folder") && missing.err.contains("exists"),
        "{missing:?}"
    );
    let file = house.file("file.txt", "x");
    assert_eq!(house.run(&["demo", file.to_str().unwrap()]).code, 3);
}

/// What the file system forbids is forbidden to a superuser only after it has stepped down; the
/// program is copied to where the lesser user can reach it.
#[test]
fn unreadable_folders_end_well() {
    const NOBODY: u32 = 65_534;
    let house = House::new();
    house.file("top.txt", "above\n");
    house.file("closed/inner.txt", "below\n");
    let superuser = rustix::process::geteuid().is_root();
    let program = house.state().join("program");
    // Copied by another process: a descriptor for writing that a fork inherits would make it busy.
    let copying = [env!("CARGO_BIN_EXE_attache"), program.to_str().unwrap()];
    ended(
        house
            .command_of(Path::new("cp"), &copying)
            .output()
            .unwrap(),
    )
    .well();
    let root = house.work().parent().unwrap().to_owned();
    let mode = |path: &Path, bits| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    if superuser {
        for path in [root.clone(), house.state(), house.work()] {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let closed = house.work().join("closed");
        chown(&closed, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let demo = || {
        let mut command = house.command_of(&program, &["demo", house.work().to_str().unwrap()]);
        command.current_dir(&root);
        if superuser {
            command.uid(NOBODY).gid(NOBODY);
        }
        ended(command.output().unwrap())
    };

    mode(&house.work().join("closed"), 0o000);
    let partly = demo().well();
    assert!(
        partly
            .out
            .contains("top.txt (lines: 1) begins with “above”"),
        "{partly:?}"
    );
    assert!(!partly.out.contains("inner.txt"), "{partly:?}");

    for (bits, named, code) in [
        (0o000, "work", 3),
        (0o300, "work", 3),
        (0o600, "config.toml", 2),
    ] {
        mode(&house.work(), bits);
        let refused = demo();
        assert_eq!(refused.code, code, "{bits:o}: {refused:?}");
        assert!(
            refused.err.contains(named) && refused.err.contains("Permission denied"),
            "{bits:o}: {refused:?}"
        );
    }
    mode(&house.work(), 0o755);
    mode(&house.work().join("closed"), 0o755);
}

#[test]
fn a_folder_of_a_hundred_thousand_files_ends_well() {
    let house = House::new();
    let many = house.work().join("many");
    std::fs::create_dir(&many).unwrap();
    for number in 0..100_000 {
        std::fs::File::create(many.join(format!("f{number}"))).unwrap();
    }
    let ended = house.run(&["demo", "many"]).well();
    assert!(ended.out.contains("f0 (lines: 0) begins"), "{}", ended.out);
}

/// The third append that holds results comes when the children are at work: they read `stopped` and
/// `interrupted` afterwards, unless they had ended.
#[cfg(feature = "fault")]
#[test]
fn after_a_kill_the_tree_says_what_was_interrupted() {
    let house = House::new();
    house.file("a.txt", "a\n");
    let house = house.with("ATTACHE_FAULT", "call-ended:after:3");
    let demo = house.run(&["demo"]);
    assert_ne!(demo.code, 0, "{demo:?}");
    let house = house.with("ATTACHE_FAULT", "");
    let trees = house.run(&["tree", "--json"]).well().json();
    let root = &trees[0];
    let children = root["children"].as_array().unwrap();
    assert!(children.len() >= 3, "{root}");
    for row in children.iter().chain([root]) {
        assert_eq!(row["status"], "stopped", "{row}");
        if row["outcome"] != "succeeded" {
            assert_eq!(row["outcome"], "interrupted", "{row}");
            assert_eq!(row["end_reason"], "host-restart", "{row}");
        }
    }
    assert_eq!(root["outcome"], "interrupted");
    assert!(
        children.iter().any(|row| row["outcome"] == "interrupted"),
        "{root}"
    );
}
