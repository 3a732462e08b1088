//! Target `stream`: a model that sends 20,000 deltas as fast as it can, or as many a second as a real one, to a daemon that
//! shows them to 0, 1, 10 and 100 viewers. CPU is the daemon's alone; its text on record is part of it.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::house::{House, Program};
use super::report::{Figure, middle};
use super::server::Reply;
use super::wire::Wire;
use super::{process, replies, server};
use crate::failure::Failure;
use crate::shell::Stopwatch;

/// Viewers, and how many runs each way.
const VIEWERS: [(usize, usize); 4] = [(0, 10), (1, 10), (10, 5), (100, 3)];

/// Viewers when the model is as slow as a real one.
const PACED: [usize; 3] = [1, 10, 100];

const DELTAS: usize = 20_000;

/// Bytes of text in a delta.
const SIZE: usize = 64;

/// Deltas a second of a fast real model, and for how long.
const PACE: f64 = 460.0;
const PACED_DELTAS: usize = 2_300;

/// What stands in every delta once and nowhere else; behind it the microsecond at which the delta was written.
const MARK: char = '#';

/// Microseconds of CPU a delivery: of one viewer, and of each of many.
const GOAL_ONE: f64 = 6.0;
const GOAL_MANY: f64 = 2.0;

/// Microseconds until a viewer has a delta.
const GOAL_MIDDLE: f64 = 200.0;
const GOAL_SLOW: f64 = 1_000.0;

/// What one run came to.
struct Ran {
    /// CPU of the daemon and elapsed time, in microseconds.
    cpu: f64,
    wall: f64,
    seen: Vec<Seen>,
}

/// What one viewer saw.
#[derive(Default)]
struct Seen {
    /// Frames with text.
    frames: usize,
    /// Microseconds from the writing of a delta to its reading.
    times: Vec<f64>,
}

/// Measures it.
pub(super) fn run(program: &Program) -> Result<(), Failure> {
    let clock = Arc::new(Stopwatch::start());
    // A model says nothing before all viewers are there.
    let (start, started) = sync_channel(1);
    let model = Model {
        clock: Arc::clone(&clock),
        started: Mutex::new(started),
    };
    let server = server::start_with(move |request, reply| model.say(request, reply))?;
    let ask = |deltas: usize, pace: f64, viewers: usize| -> Result<Ran, Failure> {
        let house = House::new(program, &server)?;
        let daemon = house.daemon()?;
        let mut wire = Wire::new(&daemon)?;
        let prompt = format!("[[stream@{deltas}@{pace}]]");
        let session = wire.create("openai/m", &house.work(), &prompt)?;
        let mut all = Vec::new();
        for _ in 0..viewers {
            let frames = Wire::new(&daemon)?.attach(&session)?;
            let clock = Arc::clone(&clock);
            all.push(std::thread::spawn(move || watch(frames, &clock)));
        }
        let before = process::cpu_of(daemon.process())?;
        let watch = Stopwatch::start();
        // The model takes it when it is asked.
        let _sent = start.send(());
        wire.settled(&session)?;
        let seen = all.into_iter().filter_map(|viewer| viewer.join().ok());
        let seen: Vec<Seen> = seen.collect();
        let wall = watch.elapsed().as_secs_f64() * 1e6;
        let cpu = (process::cpu_of(daemon.process())? - before) * 1e3;
        Ok(Ran { cpu, wall, seen })
    };
    for (viewers, runs) in VIEWERS {
        let ran = (0..runs).map(|_| ask(DELTAS, 0.0, viewers));
        fast(viewers, &ran.collect::<Result<Vec<_>, _>>()?);
    }
    for viewers in PACED {
        paced(viewers, &ask(PACED_DELTAS, PACE, viewers)?);
    }
    Ok(())
}

fn mean(values: impl Iterator<Item = f64>, count: usize) -> f64 {
    values.fold(0.0, |sum, value| sum + value) / count.max(1) as f64
}

fn fast(viewers: usize, ran: &[Ran]) {
    let deliveries = (DELTAS * viewers.max(1)) as f64;
    let cpu = mean(ran.iter().map(|ran| ran.cpu), ran.len());
    let wall = middle(ran.iter().map(|ran| ran.wall).collect());
    let frames = ran.iter().flat_map(|ran| &ran.seen).map(|seen| seen.frames);
    let frames = mean(frames.map(|frames| frames as f64), viewers * ran.len());
    let beside = format!(
        "{:.2} us a delta in all, {:.0} deltas/s, {frames:.0} frames a viewer",
        cpu / DELTAS as f64,
        DELTAS as f64 / wall * 1e6,
    );
    Figure {
        name: &format!("{DELTAS} deltas, {viewers} viewers, CPU a delivery"),
        value: cpu / deliveries,
        unit: "us",
        goal: match viewers {
            0 => None,
            1 => Some(GOAL_ONE),
            _ => Some(GOAL_MANY),
        },
        runs: ran.len(),
        beside: &beside,
    }
    .print();
}

fn paced(viewers: usize, ran: &Ran) {
    let mut times: Vec<f64> = ran
        .seen
        .iter()
        .flat_map(|seen| &seen.times)
        .copied()
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let index = (times.len() as f64 * share) as usize;
        times.get(index).copied().unwrap_or(f64::NAN)
    };
    let cpu = format!(
        "{:.1} us of CPU a delivery",
        ran.cpu / (PACED_DELTAS * viewers) as f64
    );
    // The goals are for ten viewers.
    let goal = |goal| (viewers <= 10).then_some(goal);
    let figures = [
        ("p50", at(0.5), goal(GOAL_MIDDLE)),
        ("p99", at(0.99), goal(GOAL_SLOW)),
    ];
    for (which, value, goal) in figures {
        Figure {
            name: &format!("{PACE} deltas/s, {viewers} viewers, delay {which}"),
            value,
            unit: "us",
            goal,
            runs: times.len(),
            beside: &cpu,
        }
        .print();
    }
}

/// What answers.
struct Model {
    clock: Arc<Stopwatch>,
    started: Mutex<Receiver<()>>,
}

impl Model {
    /// Says as many deltas as the prompt wants, at its pace; 0 is as fast as it can.
    fn say(&self, request: &str, reply: &mut Reply<'_>) -> std::io::Result<()> {
        let odd = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
        let (_, plan) = request.split_once("[[stream@").ok_or_else(odd)?;
        let (plan, _) = plan.split_once("]]").ok_or_else(odd)?;
        let (deltas, pace) = plan.split_once('@').ok_or_else(odd)?;
        let deltas: usize = deltas.parse().map_err(|_| odd())?;
        let pace: f64 = pace.parse().map_err(|_| odd())?;
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.recv().map_err(|_gone| odd())?;
        let watch = Stopwatch::start();
        for number in 0..deltas {
            if pace > 0.0 {
                let due = Duration::from_secs_f64(number as f64 / pace);
                while let Some(early) = due.checked_sub(watch.elapsed()).filter(|d| !d.is_zero()) {
                    std::thread::park_timeout(early);
                }
            }
            let text = format!("{MARK}{} ", self.clock.elapsed().as_micros());
            reply.write(&replies::text(&format!("{text:x<SIZE$}")))?;
        }
        reply.end(&replies::end())
    }
}

/// Reads until the answer is on record. What the record holds is not counted: some of it may never have been shown.
fn watch(mut frames: impl BufRead, clock: &Stopwatch) -> Seen {
    let mut seen = Seen::default();
    let mut line = String::new();
    loop {
        line.clear();
        // A daemon that is gone shows nothing more.
        if frames.read_line(&mut line).unwrap_or(0) == 0 {
            return seen;
        }
        let head = line.get(..300).unwrap_or(&line);
        if head.contains(r#""item-text""#) {
            let now = clock.elapsed().as_micros() as f64;
            seen.frames += 1;
            let stamps = line.split(MARK).skip(1);
            let stamps = stamps.filter_map(|rest| rest.split_once(' ')?.0.parse::<f64>().ok());
            seen.times.extend(stamps.map(|written| now - written));
        } else if head.contains(r#""item-put""#) && line.contains(MARK) {
            return seen;
        }
    }
}
