//! Bad input on every command: a clear error, the right exit code, nothing changed. The table is
//! made from the commands that the binary itself names, so a new one cannot be forgotten.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use crate::door::Door;
use crate::house::House;

/// The subcommands that help names; of one that has subcommands of its own, those.
fn commands(house: &House) -> Vec<String> {
    let mut commands = Vec::new();
    for command in commands_of(house, &[]) {
        match command.as_str() {
            "token" => {
                let below = commands_of(house, &["token"]);
                commands.extend(below.iter().map(|name| format!("token {name}")));
            }
            _ => commands.push(command),
        }
    }
    commands
}

fn commands_of(house: &House, above: &[&str]) -> Vec<String> {
    let help = house.run(&[above, &["--help"]].concat()).well().out;
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

/// A command as it is typed.
fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}

/// What each command is given to name a session, apart from the id: a command that is not in this
/// table fails the test below.
fn with_id<'a>(command: &str, id: &'a str) -> Option<Vec<&'a str>> {
    match command {
        "chat" | "attach" | "tree" | "show" | "wait" | "events" | "start" | "interrupt"
        | "terminate" | "compact" | "budget" | "pause" | "resume" => Some(vec![id]),
        "send" => Some(vec![id, "text"]),
        "background" => Some(vec![id, "on"]),
        "rm" => Some(vec![id, "--yes"]),
        "mcp" => Some(vec!["--root", id]),
        "token create" => Some(vec!["--session", id]),
        "demo" | "run" | "serve" | "restart" | "ls" | "agents" | "doctor" | "completions"
        | "token list" | "token revoke" => None,
        other => panic!("`{other}` is new: say here what it takes"),
    }
}

/// A session that has nothing to do.
fn idle(house: &House) -> String {
    let line = ["run", "--detach", "--model", "echo/any", "x"];
    let id = house.run(&line).well().out.trim().to_owned();
    house.run(&["wait", &id]).well();
    id
}

#[test]
fn ids_that_name_nothing_are_not_found_on_every_command() {
    let house = House::new();
    idle(&house);
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
            let mut line = words(&command);
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
            let mut line = words(&command);
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
        let ended = house.run(&[&words(&command)[..], &["--no-such-flag"]].concat());
        assert_eq!(ended.code, 2, "{command}: {ended:?}");
        assert!(ended.err.contains("--no-such-flag"), "{command}: {ended:?}");
        let alone = ["chat", "tree", "mcp", "token create"];
        if with_id(&command, "x").is_some() && !alone.contains(&command.as_str()) {
            assert_eq!(
                house.run(&words(&command)).code,
                2,
                "{command} without its session"
            );
        }
        let help = house
            .run(&[&words(&command)[..], &["--help"]].concat())
            .well();
        assert!(help.out.contains("Example"), "{command} has no example");
    }
    assert_eq!(house.run(&["no-such-command"]).code, 2);
    assert_eq!(house.run(&["run"]).code, 2);
    assert_eq!(house.run(&["events", "x", "--limit", "0"]).code, 2);
    assert_eq!(house.run(&["events", "x", "--limit", "201"]).code, 2);
    assert_eq!(house.run(&["events", "x", "--type", "poem"]).code, 2);
    for line in [
        vec!["chat"],
        vec!["attach", "x"],
        vec!["serve"],
        vec!["completions", "bash"],
        vec![],
    ] {
        let ended = house.run(&[&line[..], &["--json"]].concat());
        assert_eq!(ended.code, 2, "{line:?} has no data to print: {ended:?}");
    }
    let model = ["chat", "x", "--model", "echo/any"];
    assert_eq!(house.run(&model).code, 2, "a session has its model already");
    assert_eq!(house.daemon(), None, "a usage error starts no daemon");
}

/// Arguments of a command that take a value, as its help names them: `<ID>`, `[DIR]`, `--limit`.
fn arguments(house: &House, command: &str) -> Vec<String> {
    let help = house
        .run(&[&words(command)[..], &["-h"]].concat())
        .well()
        .out;
    let (_, list) = help.split_once("\n\nUsage:").unwrap();
    let (list, _) = list.split_once("\nExample").unwrap();
    let lines = list.lines().filter_map(|line| line.strip_prefix("  "));
    lines
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().take(2).collect();
            match words[..] {
                [name, ..] if name.starts_with(['<', '[']) => Some(name.to_owned()),
                [name, value] if name.starts_with("--") && value.starts_with('<') => {
                    Some(name.to_owned())
                }
                _ => None,
            }
        })
        .collect()
}

/// What is no good as the value of an argument, with the exit code and a part of the message. An
/// argument that is not in this table fails the test below.
fn bad_values(command: &str, argument: &str) -> Vec<(String, i32, &'static str)> {
    let rows: &[(&str, i32, &'static str)] = match (command, argument) {
        (_, "<ID>" | "[ID]") => &[("", 3, "there is no session")],
        (_, "--host") => &[
            ("", 2, "a value is required"),
            ("box", 2, "wss://NAME"),
            ("https://box.example", 2, "wss://NAME"),
        ],
        (_, "--token-file" | "--host-cert") => &[
            ("", 2, "a value is required"),
            ("none", 2, "is for a --host elsewhere"),
        ],
        ("run" | "chat", "--dir") => &[
            ("", 2, "a value is required"),
            ("nowhere", 2, "cannot be used"),
        ],
        ("demo", "[DIR]") => &[("nowhere", 3, "nowhere"), ("", 2, "a value is required")],
        ("run", "<PROMPT>") | ("send", "<TEXT>") => &[("", 2, "is empty"), (" \n", 2, "is empty")],
        ("run" | "chat" | "mcp", "--agent") => &[
            ("none", 3, "there is no agent definition"),
            ("", 3, "there is no agent definition"),
            ("../../etc/passwd", 3, "there is no agent definition"),
        ],
        ("run" | "chat", "--model") => &[
            ("none", 1, "write PROVIDER/MODEL"),
            ("", 1, "write PROVIDER/MODEL"),
            ("echo/", 1, "write PROVIDER/MODEL"),
            ("none/x", 1, "there is no provider \"none\""),
            ("openai/x", 1, "set OPENAI_API_KEY"),
            ("scripted/none.yaml", 1, "none.yaml"),
        ],
        // What is missing is told when a session is created: the server must start without it.
        ("mcp", "--model") => &[
            ("none", 1, "write PROVIDER/MODEL"),
            ("", 1, "write PROVIDER/MODEL"),
            ("none/x", 1, "there is no provider \"none\""),
            ("scripted/none.yaml", 1, "none.yaml"),
        ],
        ("mcp", "--root") => &[
            ("", 3, "there is no session"),
            ("none", 3, "there is no session"),
        ],
        ("run" | "chat", "--budget") | ("budget", "[CHANGE]") => &[
            ("tokens", 2, "tokens takes a number"),
            ("money=1", 2, "there is no limit \"money\""),
            ("depth=1,depth=2", 2, "depth is there twice"),
        ],
        ("run" | "chat", "--param") => &[
            ("novalue", 2, "NAME=VALUE"),
            ("=1", 2, "NAME=VALUE"),
            ("a=1", 2, "has no parameter `a`"),
        ],
        ("serve", "--store") => &[
            ("nothing", 2, "sqlite:FOLDER"),
            ("sqlite:", 2, "sqlite:FOLDER"),
            ("postgres://localhost/a", 2, "sqlite:FOLDER"),
        ],
        ("serve", "--profile") => &[("", 2, "a value is required")],
        ("serve", "--tls-cert" | "--tls-key") => {
            &[("", 2, "a value is required"), ("none.pem", 2, "none.pem")]
        }
        ("serve", "--allow-host") => &[
            ("", 2, "the name of a host"),
            ("box.example:1", 2, "the name of a host"),
            ("https://box.example", 2, "the name of a host"),
        ],
        ("token create", "--name") => &[
            ("", 2, "1 to 100 characters"),
            ("LONG", 2, "1 to 100 characters"),
            ("a\nb", 2, "no control characters"),
        ],
        ("token create", "--scope") => &[("none", 2, "possible values"), ("", 2, "a value is")],
        ("token create", "--session") => &[
            ("", 3, "there is no session"),
            ("none", 3, "there is no session"),
        ],
        ("token revoke", "<TOKEN>") => &[
            ("none", 3, "there is no token"),
            ("", 3, "there is no token"),
        ],
        ("ls", "--status") | ("events", "--type") => &[("poem", 2, "possible values")],
        ("events", "--after") => &[("yesterday", 2, "is no time"), ("", 2, "is no time")],
        // Any text may be looked for, and an empty one is in all.
        ("events", "--search") => &[],
        ("events", "--limit") => &[
            ("0", 2, "1..=200"),
            ("201", 2, "1..=200"),
            ("x", 2, "invalid"),
        ],
        ("wait", "--timeout") => &[
            ("x", 2, "invalid"),
            ("-1", 2, "unexpected"),
            ("99999999999999999999", 2, "too large"),
        ],
        ("send", "--queue") => &[
            ("", 2, "1 to 100 characters"),
            ("LONG", 2, "1 to 100 characters"),
        ],
        // It is what doctor looks at: it tells of any.
        ("doctor", "--model") => &[],
        ("background", "<SWITCH>") => {
            &[("maybe", 2, "possible values"), ("", 2, "possible values")]
        }
        ("completions", "<SHELL>") => &[("ksh", 2, "possible values")],
        other => panic!("{other:?} is new: say here what is no good for it"),
    };
    let long = |value: &str| value.replace("LONG", &"q".repeat(101));
    let rows = rows.iter();
    rows.map(|(value, code, text)| (long(value), *code, *text))
        .collect()
}

/// A command line that would do well, but for the value of one argument.
fn line_with<'a>(
    command: &'a str,
    argument: &'a str,
    value: &'a OsStr,
    id: &'a str,
) -> Vec<&'a OsStr> {
    let with = |name: &str, good: &'a str| {
        if name == argument {
            value
        } else {
            good.as_ref()
        }
    };
    let mut line: Vec<&OsStr> = words(command).into_iter().map(OsStr::new).collect();
    match command {
        "token revoke" => line.push(with("<TOKEN>", "x")),
        // One is nothing without the others.
        "serve" if argument.starts_with("--tls") => {
            let other = if argument == "--tls-key" {
                "--tls-cert"
            } else {
                "--tls-key"
            };
            line.extend(["--listen", "127.0.0.1:0", other, "none.pem"].map(OsStr::new));
        }
        "serve" if argument == "--allow-host" => {
            line.extend(["--listen", "127.0.0.1:0"].map(OsStr::new));
        }
        "run" => line.push(with("<PROMPT>", "x")),
        "send" => line.extend([with("<ID>", id), with("<TEXT>", "x")]),
        "background" => line.extend([with("<ID>", id), with("<SWITCH>", "on")]),
        "completions" => line.push(with("<SHELL>", "bash")),
        "show" | "attach" | "wait" | "events" | "start" | "interrupt" | "terminate" | "rm"
        | "compact" | "pause" | "resume" => {
            line.push(with("<ID>", id));
        }
        "budget" if argument == "[CHANGE]" => line.extend([id.as_ref(), value]),
        "budget" => line.push(with("<ID>", id)),
        _ if argument.starts_with('[') => line.push(value),
        _ => {}
    }
    if ["run", "chat"].contains(&command) && !["--model", "[ID]"].contains(&argument) {
        line.extend([OsStr::new("--model"), OsStr::new("echo/any")]);
    }
    if argument.starts_with("--") {
        line.extend([OsStr::new(argument), value]);
    }
    line
}

#[test]
fn a_bad_value_of_any_argument_is_refused_and_nothing_changes() {
    let house = House::new();
    let id = &idle(&house);
    let before = house.run(&["show", id, "--json"]).well().json();
    let mut tried = 0;
    for command in commands(&house) {
        for argument in arguments(&house, &command) {
            let not_text = OsStr::from_bytes(b"caf\xff");
            let line = line_with(&command, &argument, not_text, id);
            let ended = house.run(&line);
            // A folder's name is bytes; this one is not there.
            let code = if argument == "[DIR]" { 3 } else { 2 };
            assert_eq!(ended.code, code, "{line:?}: {ended:?}");
            for (value, code, wanted) in bad_values(&command, &argument) {
                let line = line_with(&command, &argument, OsStr::new(&value), id);
                let ended = house.run(&line);
                assert_eq!(ended.code, code, "{line:?}: {ended:?}");
                assert!(ended.err.contains(wanted), "{line:?}: {ended:?}");
                assert_eq!(ended.out, "", "{line:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 40, "{tried}");
    assert_eq!(house.ls().len(), 1, "no session was made");
    assert_eq!(house.run(&["show", id, "--json"]).well().json(), before);
}

#[test]
fn text_that_cannot_be_sent_is_refused_and_nothing_changes() {
    let house = House::new();
    let id = &idle(&house);
    let before = house.ls();
    let ten = vec![b'a'; 10 * 1024 * 1024];
    let table: [(&[u8], &str); 5] = [
        (b"", "empty"),
        (b"  \n\t", "empty"),
        (&ten, "at most"),
        (b"caf\xff", "UTF-8"),
        (b"a\0b", "NUL"),
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
fn an_id_that_names_no_one_session_lists_up_to_five_that_it_may_mean() {
    let house = House::new();
    let mut door = Door::greeted(&house);
    let ids: Vec<String> = (1..=6)
        .map(|number| format!("01931f2e-000{number}-7000-8000-0000000{number}abcd"))
        .collect();
    for id in &ids {
        door.create(id, Value::Null, true, &house);
    }
    let same = "01931f2e-0007-7000-8000-0000aaa6abcd";
    door.create(same, Value::Null, true, &house);
    let listed = |ids: &[&str], more: bool| {
        let lines = ids.iter().map(|id| format!("  {id}  attache\n"));
        let more = if more { "  and more\n" } else { "" };
        format!("{}{more}", lines.collect::<String>())
    };
    let is_listed = |line: &str| line.starts_with("  0") || line == "  and more";
    let newest: Vec<&str> = ids[2..].iter().rev().map(String::as_str).collect();
    let five = [&[same][..], &newest].concat();
    for (typed, wanted) in [
        // Too short, mistyped before the last four, the beginning, the name.
        ("6ABCD", listed(&[same, &ids[5]], false)),
        ("abcd", listed(&five[..5], true)),
        ("ffffabcd", listed(&five[..5], true)),
        ("01931f2e-0003", listed(&[&ids[2]], false)),
        ("Attache", listed(&five[..5], true)),
        ("nothing-like-it", String::new()),
    ] {
        for command in commands(&house) {
            let Some(arguments) = with_id(&command, typed) else {
                continue;
            };
            let line = [&words(&command)[..], &arguments].concat();
            let ended = house.run(&line);
            assert_eq!(ended.code, 3, "{command} {typed}: {ended:?}");
            let lines = ended.err.lines().filter(|line| is_listed(line));
            let shown: String = lines.map(|line| format!("{line}\n")).collect();
            assert_eq!(shown, wanted, "{command} {typed}");
        }
    }
    // Six characters that several share are refused as well.
    let twin = "01931f2e-0008-7000-8000-0000bba6abcd";
    door.create(twin, Value::Null, true, &house);
    let ended = house.run(&["show", "a6abcd"]);
    assert_eq!(ended.code, 3, "{ended:?}");
    let both = listed(&[same, twin], false);
    let wanted = format!("\"a6abcd\" is the end of several session ids:\n{both}");
    assert!(ended.err.contains(&wanted), "{ended:?}");
    house.run(&["show", &same[26..].to_uppercase()]).well();
}

#[test]
fn what_only_a_new_session_takes_is_refused_for_one_that_exists() {
    let house = House::new();
    let id = &idle(&house);
    for (flag, value) in [
        ("--agent", "attache"),
        ("--model", "echo/any"),
        ("--param", "a=1"),
        ("--budget", "tokens=1"),
    ] {
        let ended = house.run(&["chat", id, flag, value]);
        assert_eq!(ended.code, 2, "{flag}: {ended:?}");
        assert!(
            ended.err.contains("cannot be used with"),
            "{flag}: {ended:?}"
        );
    }
}
