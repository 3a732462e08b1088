//! Bad input on every command: a clear error, the right exit code, nothing changed. The table is
//! made from the commands that the binary itself names, so a new one cannot be forgotten.

use crate::house::House;

/// The subcommands that help names.
fn commands(house: &House) -> Vec<String> {
    let help = house.run(&["--help"]).well().out;
    let list = help
        .split("Commands:")
        .nth(1)
        .unwrap()
        .split("Options:")
        .next()
        .unwrap();
    list.lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// What each command is given to name a session, apart from the id: a command that is not in this
/// table fails the test below.
fn with_id<'a>(command: &str, id: &'a str) -> Option<Vec<&'a str>> {
    match command {
        "chat" | "tree" | "show" | "wait" | "events" | "start" | "interrupt" | "terminate" => {
            Some(vec![id])
        }
        "send" => Some(vec![id, "text"]),
        "rm" => Some(vec![id, "--yes"]),
        "demo" | "run" | "serve" | "restart" | "ls" | "agents" | "doctor" | "completions" => None,
        other => panic!("`{other}` is new: say here what it takes"),
    }
}

#[test]
fn ids_that_name_nothing_are_not_found_on_every_command() {
    let house = House::new();
    house
        .run(&["run", "--detach", "--model", "echo/any", "x"])
        .well();
    let before = house.ls();
    let long = "f".repeat(10_000);
    let random = "01931f2e-0000-7000-8000-0123456789ab";
    let bad = [
        "nothing",
        "../../etc/passwd",
        "/tmp/victim",
        "a/b",
        "..",
        "%2e%2e",
        "abc",
        &long,
        random,
    ];
    for command in commands(&house) {
        for id in bad {
            let Some(arguments) = with_id(&command, id) else {
                continue;
            };
            let mut line = vec![command.as_str()];
            line.extend(arguments);
            let ended = house.run(&line);
            let shown = &id[..id.len().min(20)];
            assert_eq!(ended.code, 3, "{command} {shown}: {ended:?}");
            assert!(
                ended.err.contains("there is no session"),
                "{command} {shown}: {ended:?}"
            );
            assert_eq!(ended.out, "", "{command} {shown}");
        }
        if let Some(arguments) = with_id(&command, "") {
            let mut line = vec![command.as_str()];
            line.extend(arguments);
            assert_eq!(house.run(&line).code, 3, "{command} with an empty id");
        }
    }
    assert_eq!(house.ls(), before, "nothing has changed");
}

#[test]
fn unknown_flags_and_missing_arguments_are_usage_errors_on_every_command() {
    let house = House::new();
    for command in commands(&house) {
        let ended = house.run(&[&command, "--no-such-flag"]);
        assert_eq!(ended.code, 2, "{command}: {ended:?}");
        assert!(ended.err.contains("--no-such-flag"), "{command}: {ended:?}");
        if with_id(&command, "x").is_some() && !matches!(command.as_str(), "chat" | "tree") {
            assert_eq!(
                house.run(&[&command]).code,
                2,
                "{command} without its session"
            );
        }
        let help = house.run(&[&command, "--help"]).well();
        assert!(help.out.contains("Example"), "{command} has no example");
    }
    assert_eq!(house.run(&["no-such-command"]).code, 2);
    assert_eq!(house.run(&["run"]).code, 2);
    assert_eq!(house.run(&["events", "x", "--limit", "0"]).code, 2);
    assert_eq!(house.run(&["events", "x", "--limit", "201"]).code, 2);
    assert_eq!(house.run(&["events", "x", "--type", "poem"]).code, 2);
    assert_eq!(house.run(&["run", "--param", "novalue", "x"]).code, 2);
    assert_eq!(house.daemon(), None, "a usage error starts no daemon");
}

#[test]
fn text_that_cannot_be_sent_is_refused_and_nothing_changes() {
    let house = House::new();
    let id = house
        .run(&["run", "--detach", "--model", "echo/any", "x"])
        .well()
        .out;
    let id = id.trim();
    house.run(&["wait", id]).well();
    let before = house.ls();
    let ten = vec![b'a'; 10 * 1024 * 1024];
    let table: [(&[u8], &str); 4] = [
        (b"", "empty"),
        (b"  \n\t", "empty"),
        (&ten, "at most"),
        (b"caf\xff", "UTF-8"),
    ];
    for (input, wanted) in table {
        for line in [
            vec!["send", id, "-"],
            vec!["run", "--model", "echo/any", "-"],
        ] {
            let ended = house.run_with(&line, input);
            assert_eq!(ended.code, 2, "{line:?}: {ended:?}");
            assert!(ended.err.contains(wanted), "{line:?}: {ended:?}");
        }
    }
    assert_eq!(house.ls(), before, "nothing has changed");
    // A NUL is a character like any other once it is in a text.
    house.run_with(&["send", id, "-"], b"a\0b").well();
    house.run(&["wait", id]).well();
    let page = house.run(&["events", id, "--json"]).well().json();
    let last = page["events"].as_array().unwrap().last().unwrap();
    assert_eq!(last["text"], "a\0b");
}

#[test]
fn broken_files_are_named_with_their_place() {
    let house = House::new();
    std::fs::create_dir_all(house.config()).unwrap();
    let settings = house.config().join("config.toml");
    for (text, wanted) in [
        ("model = ", "config.toml:1"),
        ("\nmodle = \"a/b\"", "nearest is `model`"),
        ("model = \"nothing\"", "PROVIDER/MODEL"),
    ] {
        std::fs::write(&settings, text).unwrap();
        let ended = house.run(&["serve"]);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.err.contains(wanted), "{text}: {ended:?}");
        let report = house.run(&["doctor"]);
        assert_eq!(report.code, 1, "{report:?}");
        assert!(report.out.contains(wanted), "{text}: {report:?}");
    }
    std::fs::remove_file(&settings).unwrap();
    house.file(
        ".attache/config.toml",
        "[providers.x]\ndialect = \"anthropic\"\nbase_url = \"http://h\"\n",
    );
    let ended = house.run(&["run", "--model", "echo/any", "x"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(
        ended.err.contains("a project's file may not set providers"),
        "{ended:?}"
    );
    std::fs::remove_file(house.work().join(".attache/config.toml")).unwrap();
    house.file(".attache/agents/torn.md", "---\nname: torn\n");
    house.file(".attache/agents/odd.md", "---\nname: odd\ntools: 7\n---\nx");
    for name in ["torn", "odd"] {
        let ended = house.run(&["run", "--agent", name, "--model", "echo/any", "x"]);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.err.contains(&format!("{name}.md:")), "{ended:?}");
    }
    let missing = house.run(&["run", "--model", "scripted/none.yaml", "x"]);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert!(missing.err.contains("none.yaml"), "{missing:?}");
    house.file("broken.yaml", "rules:\n  - wenn: {}\n");
    let broken = house.run(&["run", "--model", "scripted/broken.yaml", "x"]);
    assert_eq!(broken.code, 1, "{broken:?}");
    assert!(broken.err.contains("line 2"), "{broken:?}");
}

#[test]
fn an_ambiguous_end_of_an_id_lists_its_candidates() {
    let house = House::new();
    let new = |house: &House| {
        house
            .run(&["run", "--detach", "--model", "echo/any", "x"])
            .well()
            .out
            .trim()
            .to_owned()
    };
    let id = new(&house);
    // Six characters are rarely shared by chance, so the rule is tried with what is too short.
    let short = &id[id.len() - 5..];
    assert_eq!(house.run(&["show", short]).code, 3);
    house.run(&["show", &id[id.len() - 6..]]).well();
    house.run(&["show", &id.to_uppercase()]).well();
}
