//! `cargo xtask bench`: what the goals of `docs/performance.md` come to on this machine. It builds what it needs, runs
//! the true program against a model server of its own, and prints one line a figure. It judges nothing but the figure
//! against its goal; continuous integration never runs it, because its machines share their disks and cores.

mod attach;
mod crates;
mod disk;
mod fan;
mod house;
mod idle;
mod list;
mod probe;
mod process;
mod replies;
mod report;
mod server;
mod socket;
mod start;
mod stream;
mod wire;

use crate::failure::Failure;
use crate::shell;

use house::Program;

struct Target {
    name: &'static str,
    what: &'static str,
    run: fn(&Program) -> Result<(), Failure>,
}

const TARGETS: &[Target] = &[
    Target {
        name: "start",
        what: "process start to the first delta",
        run: start::run,
    },
    Target {
        name: "fan",
        what: "a parent with 1 to 1,000 sub-agents",
        run: fan::run,
    },
    Target {
        name: "idle",
        what: "memory of a daemon and of an idle live session",
        run: idle::run,
    },
    Target {
        name: "stream",
        what: "deltas from a model's socket to the record and to 0 to 100 viewers",
        run: stream::run,
    },
    Target {
        name: "attach",
        what: "a viewer that comes back, one of a long session, and the memory of a viewer",
        run: attach::run,
    },
    Target {
        name: "decode",
        what: "deltas in the decoders alone, by dialect",
        run: crates::decode,
    },
    Target {
        name: "list",
        what: "a daemon's start to a list and a page of a history",
        run: list::run,
    },
    Target {
        name: "probe",
        what: "a session that may not be seen against one that does not exist, by a token",
        run: probe::run,
    },
    Target {
        name: "store",
        what: "the store alone: appends, pages, opening",
        run: crates::store,
    },
    Target {
        name: "engine",
        what: "durable events a second through the engine's commands",
        run: crates::engine,
    },
    Target {
        name: "notices",
        what: "notices a second to a parent, and what one takes beside the commit that raises it",
        run: crates::notices,
    },
];

/// Runs the command; `args` name targets, none is all.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    if args.iter().any(|arg| arg == "--list") {
        print!("{}", list_of_targets());
        return Ok(());
    }
    let mut chosen = Vec::new();
    for arg in args {
        let target = TARGETS.iter().find(|target| target.name == arg);
        chosen.push(target.ok_or_else(|| Failure::Usage {
            why: format!(
                "no target `{arg}` of bench; there are\n{}",
                list_of_targets()
            ),
        })?);
    }
    if chosen.is_empty() {
        chosen.extend(TARGETS);
    }
    shell::cargo(&["build", "--release", "--quiet", "-p", "attache"]).run()?;
    let program = Program::find()?;
    for target in chosen {
        println!("{}: {}", target.name, target.what);
        (target.run)(&program)?;
    }
    Ok(())
}

fn list_of_targets() -> String {
    TARGETS
        .iter()
        .map(|target| format!("  {:8} {}\n", target.name, target.what))
        .collect()
}
