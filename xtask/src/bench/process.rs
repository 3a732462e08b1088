//! What the kernel says of a process: CPU time and memory, from `/proc`. It only reads.

use std::path::PathBuf;

use crate::failure::Failure;

/// Milliseconds of one clock tick: the kernel tells times in hundredths of a second on every machine that Linux runs on.
const TICK: f64 = 10.0;

/// Memory of a process in kilobytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Memory {
    /// What it holds now.
    pub(super) now: f64,
    /// The most it has held.
    pub(super) peak: f64,
}

/// CPU milliseconds of all children of this process that have ended and were waited for, with theirs.
pub(super) fn cpu_of_children() -> Result<f64, Failure> {
    cpu("self", [15, 16])
}

/// CPU milliseconds of a process that runs, its own and those of its children that have ended.
pub(super) fn cpu_of(process: u32) -> Result<f64, Failure> {
    let process = process.to_string();
    Ok(cpu(&process, [13, 14])? + cpu(&process, [15, 16])?)
}

fn cpu(process: &str, fields: [usize; 2]) -> Result<f64, Failure> {
    let path = PathBuf::from(format!("/proc/{process}/stat"));
    let text = read(&path)?;
    ticks(&text, fields)
        .map(|ticks| ticks * TICK)
        .ok_or_else(|| Failure::Answer {
            program: path.display().to_string(),
            why: "no CPU times".to_owned(),
        })
}

/// The sum of two fields of `stat`, counted from 0; the name in brackets may hold spaces.
fn ticks(text: &str, fields: [usize; 2]) -> Option<f64> {
    let rest = text.rsplit_once(") ")?.1;
    let all: Vec<&str> = rest.split(' ').collect();
    let field = |number: usize| all.get(number - 2)?.parse::<f64>().ok();
    Some(field(fields[0])? + field(fields[1])?)
}

/// Memory of a process.
pub(super) fn memory(process: u32) -> Result<Memory, Failure> {
    let text = read(&PathBuf::from(format!("/proc/{process}/status")))?;
    let line = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
    };
    match (line("VmRSS:"), line("VmHWM:")) {
        (Some(now), Some(peak)) => Ok(Memory { now, peak }),
        _ => Err(Failure::Answer {
            program: format!("/proc/{process}/status"),
            why: "no memory".to_owned(),
        }),
    }
}

fn read(path: &PathBuf) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|source| Failure::Read {
        path: path.clone(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_a_name_with_spaces() {
        let text = "7 (a b) c) S 1 7 7 0 -1 4194560 100 0 0 0 11 12 13 14 20 0 1 0 5 1 1";
        assert_eq!(ticks(text, [13, 14]), Some(23.0));
        assert_eq!(ticks(text, [15, 16]), Some(27.0));
        assert_eq!(ticks("7 (a", [13, 14]), None);
    }
}
