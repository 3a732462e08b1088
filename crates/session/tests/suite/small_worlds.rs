//! Small worlds, searched to their ends: up to three sessions, up to four commands, mail that is
//! read at any later time, and a crash at any edge. What must hold is checked in every state.
//!
//! A world is decided as an actor decides: recovery at the first look of a new life, the box once
//! more where the store found mail in between, one append for all of it. Free steps (a look into
//! the box, a result, the end of a turn, recovery) need no command; commands and crashes come out
//! of a budget. States are compared with their ids renamed in the order of their appearance.

mod checks;
mod planted;
mod search;
mod steps;
mod world;

use search::search;
use steps::Do::{
    self, Acquire, Call, Input, Interrupt, InterruptTree, Release, Send, Shutdown, Start, Stop,
    Watch,
};
use world::World;

#[expect(
    clippy::print_stdout,
    reason = "how much was searched is what the run is for"
)]
fn walk(name: &str, parents: &[usize], commands: u8, crashes: u8, alphabet: &[Do]) {
    let found = search(World::new(parents, commands, crashes), alphabet);
    let search::Found {
        states,
        edges,
        ends,
        done,
    } = found.unwrap_or_else(|why| panic!("{name}: {why}"));
    println!("small world {name}: {states} states, {edges} edges, {ends} at rest");
    assert!(states > 1_000, "the world is too small to find anything");
    let idle = alphabet.iter().filter(|letter| !done.contains(letter));
    let idle: Vec<_> = idle.collect();
    assert!(idle.is_empty(), "{name}: {idle:?} never changed anything");
}

#[test]
fn a_chain_of_watches() {
    let alphabet = [
        Input(1),
        Input(2),
        Watch(0, 1),
        Watch(1, 2),
        Watch(0, 2),
        Stop(1),
    ];
    walk("chain of watches", &[0, 1], 4, 1, &alphabet);
}

#[test]
fn watches_on_itself_and_on_two_levels() {
    let alphabet = [
        Input(0),
        Watch(0, 0),
        Watch(0, 1),
        Input(1),
        Start(0),
        Shutdown(0),
    ];
    walk("watches on itself", &[0], 4, 2, &alphabet);
}

#[test]
fn several_parents() {
    let alphabet = [
        Acquire(0, 1),
        Release(0, 1),
        Acquire(1, 2),
        Release(0, 2),
        Release(1, 2),
        Stop(1),
        Start(0),
    ];
    walk("several parents", &[0, 0], 4, 2, &alphabet);
}

#[test]
fn sending_and_stopping() {
    let alphabet = [
        Send(0, 1),
        Call(1),
        Send(1, 2),
        Stop(1),
        Start(1),
        Watch(0, 1),
    ];
    walk("sending and stopping", &[0, 1], 4, 1, &alphabet);
}

#[test]
fn two_crashes() {
    let alphabet = [Input(1), Watch(0, 1), Watch(1, 2), Start(0), Start(1)];
    walk("two crashes", &[0, 1], 4, 2, &alphabet);
}

#[test]
fn disposing_one_that_is_watched() {
    let alphabet = [
        Input(1),
        Watch(0, 1),
        Release(0, 1),
        Acquire(0, 1),
        Send(0, 1),
    ];
    walk("disposing", &[0], 4, 2, &alphabet);
}

/// A chain of three, and all that can be done to it.
const PARENTS: &[usize] = &[0, 1];
const CRASHES: u8 = 1;
const EVERYTHING: &[Do] = &[
    Input(0),
    Input(2),
    Call(1),
    Watch(0, 1),
    Watch(1, 2),
    Watch(1, 1),
    Send(0, 1),
    Acquire(0, 2),
    Release(1, 2),
    Stop(0),
    Start(0),
    Start(2),
];

#[test]
fn everything_at_once() {
    walk("everything", PARENTS, 3, CRASHES, EVERYTHING);
    walk("everything without a crash", PARENTS, 4, 0, EVERYTHING);
}

#[test]
fn interrupts_of_one_and_of_a_tree() {
    let alphabet = [
        Input(1),
        Input(2),
        Call(1),
        Watch(0, 1),
        Watch(1, 2),
        Interrupt(1),
        InterruptTree(0),
    ];
    walk("interrupts", &[0, 1], 4, 1, &alphabet);
}

#[test]
fn an_interrupted_tree_that_goes_on() {
    let alphabet = [
        Input(0),
        Watch(0, 0),
        Watch(0, 1),
        Input(1),
        InterruptTree(0),
        InterruptTree(1),
        Release(0, 1),
        Start(1),
        Shutdown(0),
    ];
    walk("interrupted trees", &[0], 4, 1, &alphabet);
}
