//! Target `fan`: a parent that creates N sub-agents, each of which makes two requests and one call, waits for all and
//! answers. Wall time is that of the whole process; CPU is that of everything of ours.

use super::house::{House, Program, Ran};
use super::report::{Figure, middle, millis};
use super::{disk, process, replies, server};
use crate::failure::Failure;

/// Sub-agents, and how many runs each way.
const SIZES: [(usize, usize); 4] = [(1, 5), (10, 5), (100, 5), (1_000, 3)];

/// What one size came to, in medians; CPU is the mean, since the kernel tells it in hundredths of a second.
struct Fan {
    wall: f64,
    cpu: f64,
    peak: f64,
}

/// What a tree is bound by would be what is measured.
const UNBOUND: &str = "concurrent=none,agents=none";

/// Measures it.
pub(super) fn run(program: &Program) -> Result<(), Failure> {
    let server = server::start()?;
    for (children, runs) in SIZES {
        let house = House::new(program, &server)?;
        let prompt = replies::fan(children);
        let sync = disk::sync(&house.state())?;

        let arguments = [
            "run",
            "--in-process",
            "--budget",
            UNBOUND,
            "--model",
            "openai/m",
            &prompt,
        ];
        let alone = measure(runs, children, || house.run(&arguments), None)?;
        print("in-process", children, runs, &alone, &sync);

        let daemon = house.daemon()?;
        let arguments = ["run", "--budget", UNBOUND, "--model", "openai/m", &prompt];
        let served = measure(
            runs,
            children,
            || house.run(&arguments),
            Some(daemon.process()),
        )?;
        print("warm daemon", children, runs, &served, &sync);
    }
    Ok(())
}

fn measure(
    runs: usize,
    children: usize,
    run: impl Fn() -> Result<Ran, Failure>,
    daemon: Option<u32>,
) -> Result<Fan, Failure> {
    let cpu = || -> Result<f64, Failure> {
        let daemon = daemon.map_or(Ok(0.0), process::cpu_of)?;
        Ok(process::cpu_of_children()? + daemon)
    };
    let before = cpu()?;
    let (mut walls, mut peaks) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let ran = run()?;
        let wanted = replies::answer(children);
        if !ran.output.contains(&wanted) {
            return Err(Failure::Answer {
                program: "attache run".to_owned(),
                why: format!("{:?}, and not {wanted:?}", ran.output),
            });
        }
        walls.push(millis(ran.whole));
        let process = daemon.map_or(Ok(ran.memory), process::memory)?;
        peaks.push(process.peak / 1_024.0);
    }
    Ok(Fan {
        wall: middle(walls),
        cpu: (cpu()? - before) / runs as f64,
        peak: middle(peaks),
    })
}

fn print(way: &str, children: usize, runs: usize, fan: &Fan, sync: &str) {
    // A goal for the whole: 1.5 ms a child at 100, two seconds and 80 MB at 1,000.
    let (time, memory) = match children {
        100 => (Some(150.0), None),
        1_000 => (Some(2_000.0), Some(80.0)),
        _ => (None, None),
    };
    let name = |what: &str| format!("{children} sub-agents, {way}, {what}");
    let each = format!("{:.2} ms each, {sync}", fan.wall / children as f64);
    let figure = |name: &str, value, unit, goal, beside: &str| {
        Figure {
            name,
            value,
            unit,
            goal,
            runs,
            beside,
        }
        .print();
    };
    figure(&name("wall"), fan.wall, "ms", time, &each);
    let each = format!("{:.2} ms each, mean", fan.cpu / children as f64);
    figure(&name("CPU"), fan.cpu, "ms", time, &each);
    figure(&name("peak memory"), fan.peak, "MB", memory, "");
}
