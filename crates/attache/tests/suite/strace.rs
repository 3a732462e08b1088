//! The daemon as the kernel sees it: a sync of the log comes between a command and its acknowledgement.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::house::{House, signal, until};

/// What is looked at: what comes in, what goes out, and what is written and synced between.
const CALLS: &str = "trace=read,recvfrom,write,writev,sendto,sendmsg,pwrite64,fsync,fdatasync";

/// The program that looks. Without it the test is passed over at a desk, and fails in continuous integration.
fn strace_is_there() -> bool {
    let there = ["/usr/local/bin", "/usr/bin", "/bin"]
        .iter()
        .any(|folder| Path::new(folder).join("strace").is_file());
    if !there {
        let text = "strace is missing; `cargo xtask test` installs it, or: apt-get install strace";
        assert!(std::env::var_os("CI").is_none(), "{text}");
        let mut err = std::io::stderr().lock();
        writeln!(err, "passed over: {text}").unwrap();
    }
    there
}

/// A command of the house, run under the program that looks.
#[expect(
    clippy::disallowed_methods,
    reason = "these tests walk the true binary"
)]
fn traced(house: &House, arguments: &[&str], trace: &Path) -> Command {
    let plain = house.command(arguments);
    let mut command = Command::new("strace");
    command
        .args([
            "-f",
            "-y",
            "-s",
            "400",
            "-e",
            CALLS,
            "-e",
            "signal=none",
            "-o",
        ])
        .arg(trace)
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(house.work())
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    for (name, value) in plain.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command
}

/// A call as the trace has it: where it began, where it returned, and its text with its file.
struct Call<'a> {
    began: usize,
    returned: usize,
    name: &'a str,
    text: String,
}

/// The calls of a trace. One that was under way when another thread's began stands in two lines.
fn calls(trace: &str) -> Vec<Call<'_>> {
    let lines: Vec<(&str, &str)> = trace
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(thread, rest)| (thread, rest.trim_start()))
        .collect();
    let mut all = Vec::new();
    for (began, (thread, text)) in lines.iter().enumerate() {
        let Some((name, _)) = text.split_once('(') else {
            continue;
        };
        if text.starts_with("<...") {
            continue;
        }
        let (mut returned, mut whole) = (began, (*text).to_owned());
        if text.ends_with("<unfinished ...>") {
            let mut later = lines.iter().enumerate().skip(began + 1);
            let Some((line, (_, rest))) =
                later.find(|(_, (other, rest))| other == thread && rest.starts_with("<..."))
            else {
                continue;
            };
            returned = line;
            whole.push_str(rest);
        }
        all.push(Call {
            began,
            returned,
            name,
            text: whole,
        });
    }
    all
}

#[test]
fn a_sync_of_the_log_comes_between_input_and_its_acknowledgement() {
    if !strace_is_there() {
        return;
    }
    let house = House::new();
    let trace = house.work().join("trace");
    let mut serve = traced(&house, &["serve"], &trace).spawn().unwrap();
    until("the daemon serves", || {
        house.state().join("attache.sock").exists()
    });
    let made = house
        .run(&["run", "--detach", "--json", "--model", "echo/any", "hello"])
        .well();
    let id = made.json()["session_id"].as_str().unwrap().to_owned();
    house.run(&["wait", &id]).well();
    house.run(&["send", &id, "keep these words"]).well();
    house.run(&["wait", &id]).well();
    signal(house.daemon().unwrap(), "TERM");
    serve.wait().unwrap();

    let trace = std::fs::read_to_string(&trace).unwrap();
    let calls = calls(&trace);
    let log = |call: &Call<'_>| call.text.contains("/attache.db-wal>");
    let find = |what: &str, fits: &dyn Fn(&Call<'_>) -> bool| {
        calls
            .iter()
            .find(|call| fits(call))
            .unwrap_or_else(|| panic!("{what} is not in the trace:\n{trace}"))
    };
    let input = find("the input", &|call| {
        matches!(call.name, "read" | "recvfrom")
            && call.text.contains(r#"\"kind\":\"enqueue\""#)
            && call.text.contains("keep these words")
    });
    let answer = find("the acknowledgement", &|call| {
        matches!(call.name, "write" | "writev" | "sendto" | "sendmsg")
            && call.text.contains("socket:[")
            && call.text.contains(r#"\"kind\":\"accepted\""#)
    });
    let written = find("a write of the log", &|call| {
        call.name == "pwrite64" && log(call) && call.began > input.returned
    });
    let synced = find("a sync of the log", &|call| {
        matches!(call.name, "fsync" | "fdatasync") && log(call) && call.began > written.returned
    });
    assert!(synced.text.ends_with("= 0"), "{}", synced.text);
    assert!(
        synced.returned < answer.began,
        "{}\nreturned after\n{}\nhad begun:\n{trace}",
        synced.text,
        answer.text
    );
}
