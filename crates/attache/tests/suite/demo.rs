//! The main job without a key: a parent, at least three sub-agents, real reads, one joined answer.

use serde_json::Value;

use crate::house::House;

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
            .contains("first.txt: 2 lines, begins with “alpha line”"),
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
            .contains("added.md: 1 lines, begins with “# Added later”"),
        "{}",
        ended.out
    );
    assert!(
        ended
            .out
            .contains("first.txt: 1 lines, begins with “changed line”"),
        "{}",
        ended.out
    );
    assert!(
        ended.err.contains("read first.txt: read_file"),
        "{}",
        ended.err
    );
}

#[test]
fn odd_folders_end_well() {
    let house = House::new();
    let ended = house.run(&["demo"]).well();
    assert!(
        ended.out.contains("0 files that are not ignored"),
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

#[test]
fn a_folder_of_a_hundred_thousand_files_ends_well() {
    let house = House::new();
    let many = house.work().join("many");
    std::fs::create_dir(&many).unwrap();
    for number in 0..100_000 {
        std::fs::File::create(many.join(format!("f{number}"))).unwrap();
    }
    let ended = house.run(&["demo", "many"]).well();
    assert!(ended.out.contains("f0: "), "{}", ended.out);
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
