//! `cargo xtask soak`: a simulation over more seeds than a test run has, in the profile of releases: that of the engine, or that
//! of both ends of the attach protocol. It judges nothing itself: a seed that fails is named by the simulation, with the command
//! that runs it again.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::failure::Failure;
use crate::shell::{self, Stopwatch};

/// Seeds where nothing is said: a few minutes.
const SEEDS: u64 = 20_000;

/// Seeds of one call of the simulation: how often somebody hears of it.
const AT_ONCE: u64 = 1_000;

/// A simulation that there is.
#[derive(PartialEq, Eq, Debug)]
struct Simulation {
    name: &'static str,
    package: &'static str,
    test: &'static str,
}

/// The first one runs where none is named.
const SIMULATIONS: [Simulation; 2] = [
    Simulation {
        name: "engine",
        package: "attache-engine",
        test: "simulation::seeded_worlds_come_to_rest_with_everything_accounted_for",
    },
    Simulation {
        name: "attach",
        package: "attache-host",
        test: "simulation::seeded_viewers_mirror_what_the_owner_has_and_commands_take_effect_once",
    },
];

#[derive(PartialEq, Eq, Debug)]
struct Asked {
    simulation: &'static Simulation,
    from: u64,
    /// None is no end but that of the time.
    seeds: Option<u64>,
    time: Option<Duration>,
}

/// Runs the command: which simulation, `--seeds N` from `--from N` on, or for `--minutes M`.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    let asked = asked(args)?;
    let simulation = build(asked.simulation.package)?;
    let watch = Stopwatch::start();
    let mut table = BTreeMap::new();
    let mut done = 0;
    while asked.seeds.is_none_or(|all| done < all)
        && asked.time.is_none_or(|time| watch.elapsed() < time)
    {
        let first = asked.from + done;
        let count = asked.seeds.map_or(AT_ONCE, |all| AT_ONCE.min(all - done));
        let output = shell::program(
            &simulation,
            &["--exact", asked.simulation.test, "--nocapture"],
        )
        .env("ATTACHE_FROM", &first.to_string())
        .env("ATTACHE_SEEDS", &count.to_string())
        .capture()?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            eprint!("{}", String::from_utf8_lossy(&output.stderr));
            print!("{said}");
            return Err(Failure::Exit {
                program: format!("the simulation of seeds {first} to {}", first + count - 1),
                code: output.status.code(),
            });
        }
        for (what, number) in said.lines().filter_map(counted) {
            *table.entry(what.to_owned()).or_insert(0) += number;
        }
        done += count;
        let seconds = watch.elapsed().as_secs_f64();
        println!(
            "seeds {first} to {} hold ({seconds:.0} s)",
            first + count - 1
        );
    }
    for (what, number) in &table {
        println!("{number:>10} {what}");
    }
    println!("{done} seeds hold");
    Ok(())
}

/// Builds the tests of a package, once; the answer is where they are. What is changed meanwhile disturbs no run.
fn build(package: &str) -> Result<String, Failure> {
    let call = ["test", "--release", "-p", package, "--test", "suite"];
    shell::cargo(&[&call[..], &["--no-run"]].concat()).run()?;
    let told = ["--no-run", "--message-format", "json"];
    let text = shell::cargo(&[&call[..], &told].concat()).read()?;
    let mut built = text.lines().filter_map(|line| {
        let told: Value = serde_json::from_str(line).ok()?;
        told["executable"].as_str().map(str::to_owned)
    });
    built.next_back().ok_or_else(|| Failure::Answer {
        program: "cargo test".to_owned(),
        why: "no program was built".to_owned(),
    })
}

/// A line of the simulation's table: how often something occurred.
fn counted(line: &str) -> Option<(&str, u64)> {
    let (number, what) = line.trim_start().split_once(' ')?;
    Some((what, number.parse().ok()?)).filter(|_| line.starts_with(' '))
}

fn asked(args: &[String]) -> Result<Asked, Failure> {
    let usage = |why: String| Failure::Usage { why };
    let named = args.first().filter(|first| !first.starts_with('-'));
    let simulation = match named {
        None => &SIMULATIONS[0],
        Some(name) => SIMULATIONS
            .iter()
            .find(|known| known.name == name)
            .ok_or_else(|| usage(format!("no simulation `{name}`: `engine` or `attach`")))?,
    };
    let args = &args[usize::from(named.is_some())..];
    let (mut from, mut seeds, mut minutes) = (1, None, None);
    for pair in args.chunks(2) {
        let number = pair.get(1).and_then(|text| text.parse::<u64>().ok());
        let number = number.filter(|number| *number > 0);
        let number = number.ok_or_else(|| usage(format!("`{}` takes a number", pair[0])))?;
        match pair[0].as_str() {
            "--from" => from = number,
            "--seeds" => seeds = Some(number),
            "--minutes" => minutes = Some(number),
            other => return Err(usage(format!("no option `{other}` of soak"))),
        }
    }
    let time = minutes.map(|minutes| Duration::from_secs(minutes * 60));
    let seeds = seeds.or(if time.is_some() { None } else { Some(SEEDS) });
    Ok(Asked {
        simulation,
        from,
        seeds,
        time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_and_minutes_are_read() {
        let asked = |list: &[&str]| {
            let args: Vec<String> = list.iter().map(|arg| (*arg).to_owned()).collect();
            super::asked(&args).ok()
        };
        let of = |from, seeds, minutes: Option<u64>| {
            let time = minutes.map(|minutes| Duration::from_secs(minutes * 60));
            Some(Asked {
                simulation: &SIMULATIONS[0],
                from,
                seeds,
                time,
            })
        };
        assert_eq!(asked(&[]), of(1, Some(SEEDS), None));
        assert_eq!(asked(&["--minutes", "5"]), of(1, None, Some(5)));
        let both = ["--from", "7", "--seeds", "3", "--minutes", "1"];
        assert_eq!(asked(&both), of(7, Some(3), Some(1)));
        let other = asked(&["attach", "--seeds", "3"]).expect("it is read");
        assert_eq!((other.simulation.name, other.seeds), ("attach", Some(3)));
        for bad in [
            &["--seeds"][..],
            &["--seeds", "many"],
            &["--from", "0"],
            &["x", "1"],
        ] {
            assert_eq!(asked(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn lines_of_the_table_are_read() {
        assert_eq!(
            counted("      12 a crash after an append"),
            Some(("a crash after an append", 12))
        );
        assert_eq!(counted("running 1 test"), None);
        assert_eq!(counted("test result: ok. 1 passed"), None);
    }
}
