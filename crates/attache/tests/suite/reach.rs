//! How a daemon is found: one for a state folder, however that is spelled and wherever its socket
//! lies; and what is told when it cannot be reached.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::house::{House, ended, signal, until};
use crate::stub::{Reply, Stub, chat_piece};

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_state_folder_has_one_daemon_whatever_leads_to_it() {
    let house = House::new();
    let runtime = house.state().with_file_name("runtime");
    std::fs::create_dir(&runtime).unwrap();
    symlink(house.state(), house.state().with_file_name("link")).unwrap();
    let state = house.state().display().to_string();
    let spellings = [
        state.clone(),
        format!("{state}/"),
        format!("{state}/../state"),
        format!("{state}/../link"),
    ];
    // A daemon with a runtime folder is found without one, and the other way round.
    for starts_with_runtime in [true, false] {
        let asked = |home: &str, with_runtime: bool| {
            let mut command = house.command(&["doctor", "--json"]);
            command.env("ATTACHE_HOME", home);
            if with_runtime {
                command.env("XDG_RUNTIME_DIR", &runtime);
            }
            ended(command.output().unwrap())
        };
        let mut first = house.command(&["ls"]);
        if starts_with_runtime {
            first.env("XDG_RUNTIME_DIR", &runtime);
        }
        ended(first.output().unwrap()).well();
        let daemon = house.daemon().unwrap();
        for home in &spellings {
            for with_runtime in [true, false] {
                let found = asked(home, with_runtime).well().out;
                assert!(
                    found.contains(&format!("process {daemon},")),
                    "{home}: {found}"
                );
            }
        }
        signal(daemon, "TERM");
        until("the daemon has left", || house.daemon().is_none());
        assert!(!house.state().join("attache.sock").is_symlink());
    }
}

#[test]
fn folders_and_files_of_the_state_are_for_their_owner_alone() {
    let house = House::new();
    let state = house.state().join("new/state");
    let mut list = house.command(&["ls"]);
    list.env("ATTACHE_HOME", &state);
    ended(list.output().unwrap()).well();
    assert_eq!(mode(&state), 0o700);
    for file in ["attache.db", "daemon.log", "daemon.lock", "attache.sock"] {
        assert_eq!(mode(&state.join(file)), 0o600, "{file}");
    }
    let process = std::fs::read_to_string(state.join("daemon.lock")).unwrap();
    signal(process.trim().parse().unwrap(), "TERM");
}

#[test]
fn who_cannot_reach_a_daemon_is_told_why() {
    let stub = Stub::new(|_| Reply::Silence(vec![chat_piece("thinking")]));
    let house = stub.house();
    let mut run = house.spawn(&["run", "--in-process", "--model", "openai/m", "go"]);
    until("it runs", || !stub.requests().is_empty());
    let refused = house.run(&["ls"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    let holder = format!("in use by process {}", run.id());
    assert!(refused.err.contains(&holder), "{refused:?}");
    let report = house.run(&["doctor"]);
    assert_eq!(report.code, 1, "{report:?}");
    assert!(report.out.contains(&holder), "{report:?}");
    run.kill().unwrap();
    run.wait().unwrap();
    std::fs::write(
        house.state().join("attache.db"),
        "no database at all, but long enough",
    )
    .unwrap();
    for name in ["attache.db-wal", "attache.db-shm"] {
        std::fs::remove_file(house.state().join(name)).unwrap();
    }
    let refused = house.run(&["ls"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    let report = house.run(&["doctor"]);
    assert_eq!(report.code, 1, "{report:?}");
    assert!(report.out.contains("FAIL  store"), "{report:?}");
    assert!(refused.err.contains("not a database"), "{refused:?}");
}
