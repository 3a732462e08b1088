//! The search through all that can come of a small world, breadth first, so that what it finds is reached
//! by as few steps as can be.

use std::collections::{HashMap, VecDeque};

use attache_session::MailBody;
use uuid::Uuid;

use super::steps::{Do, Step};
use super::world::{Broken, Done, World};

impl World {
    /// The state with its ids renamed in the order of their appearance.
    fn key(&self) -> Vec<u8> {
        let mut names: HashMap<Uuid, u8> = HashMap::new();
        let mut name = |id: Uuid| {
            let next = u8::try_from(names.len()).expect("few ids are open");
            *names.entry(id).or_insert(next)
        };
        let mut key = vec![self.commands, self.crashes, u8::from(self.started)];
        key.extend(self.ending.iter().map(|index| *index as u8));
        key.push(206);
        for (index, state) in self.sessions.iter().enumerate() {
            key.push(u8::from(state.is_live()) << 1 | u8::from(self.known[index]));
            key.push(u8::from(self.cancelled[index]));
            key.push(state.turn.as_ref().map_or(9, |turn| turn.calls.len() as u8));
            for queue in &state.queues {
                key.extend(queue.items.iter().map(|item| name(item.id.0)));
                key.push(200);
            }
            for watch in &state.watches {
                key.extend([name(watch.id.0), self.index(watch.target) as u8]);
            }
            key.push(201);
            for watcher in &state.watchers {
                key.extend([name(watcher.watch.0), self.index(watcher.session) as u8]);
            }
            key.push(202);
            for parent in &state.parents {
                key.push((self.index(parent.id) as u8) << 1 | u8::from(parent.holds));
            }
            key.push(203);
            for (held, _) in state.children.iter() {
                key.push((self.index(held.id) as u8) << 1 | u8::from(held.held));
            }
            key.push(204);
            for mail in self.box_of(index) {
                let (kind, id) = match &mail.body {
                    MailBody::Input { item, .. } => (0, item.0),
                    MailBody::Watch { watch, .. } => (1, watch.0),
                    MailBody::Unwatch { watch } => (2, watch.0),
                    MailBody::Notice(notice) => (3, notice.watch.0),
                    MailBody::Report { watch, .. } => (6, watch.0),
                    MailBody::Hold => (4, Uuid::nil()),
                    MailBody::Release { .. } => (5, Uuid::nil()),
                };
                key.extend([kind, self.index(mail.from) as u8, name(id)]);
            }
            key.push(205);
        }
        key
    }
}

/// How much was searched.
pub(super) struct Found {
    pub(super) states: usize,
    pub(super) edges: usize,
    pub(super) ends: usize,
    /// Letters of the alphabet that changed something somewhere.
    pub(super) done: Vec<Do>,
}

/// Searches all that can come of a world.
///
/// # Errors
///
/// What must not be, and the steps that lead to it.
pub(super) fn search(world: World, alphabet: &[Do]) -> Result<Found, Broken> {
    let mut seen: HashMap<Vec<u8>, usize> = HashMap::from([(world.key(), 0)]);
    // How each state was reached, and its free successors.
    let mut came: Vec<(usize, Option<Step>)> = vec![(0, None)];
    let mut free: Vec<Vec<usize>> = Vec::new();
    let mut queue = VecDeque::from([world]);
    let mut edges = 0;
    let mut ends = 0;
    let mut at = 0;
    let fail = |came: &[(usize, Option<Step>)], mut at: usize, last: Option<Step>, why: &str| {
        let mut steps: Vec<Step> = last.into_iter().collect();
        while let (before, Some(step)) = came[at] {
            steps.push(step);
            at = before;
        }
        steps.reverse();
        Err(format!("{why}\nafter {steps:#?}"))
    };
    let mut letters: Vec<Do> = Vec::new();
    while let Some(world) = queue.pop_front() {
        let steps = world.free();
        if steps.is_empty() {
            ends += 1;
            if let Err(why) = world.check_rest() {
                return fail(&came, at, None, &why);
            }
        }
        let settled: Vec<bool> = (0..world.sessions.len())
            .map(|index| {
                // A hold that is not read yet may start it: that is a command under way.
                world.settled(index) && !world.held_by_letter(index)
            })
            .collect();
        let mut successors = Vec::new();
        let free_count = steps.len();
        for (number, step) in steps.into_iter().chain(world.bought(alphabet)).enumerate() {
            edges += 1;
            let (next, done) = match world.step(step) {
                Ok(stepped) => stepped,
                Err(why) => return fail(&came, at, Some(step), &why),
            };
            if let Step::Command(letter) = step
                && done == Done::Yes
                && !letters.contains(&letter)
            {
                letters.push(letter);
            }
            let by_itself = number < free_count;
            if by_itself
                && let Some(index) =
                    (0..settled.len()).find(|it| settled[*it] && !next.settled(*it))
            {
                let why = format!("session {index} had settled, and then had work");
                return fail(&came, at, Some(step), &why);
            }
            let count = came.len();
            let place = *seen.entry(next.key()).or_insert(count);
            if place == count {
                came.push((at, Some(step)));
                queue.push_back(next);
            }
            if by_itself {
                successors.push(place);
            }
        }
        free.push(successors);
        at += 1;
    }
    if let Some(circle) = circle(&free) {
        return fail(&came, circle, None, "it can go on for ever by itself");
    }
    Ok(Found {
        states: came.len(),
        edges,
        ends,
        done: letters,
    })
}

/// A state from which free steps lead back to it: where there is none, every schedule comes to
/// rest.
fn circle(free: &[Vec<usize>]) -> Option<usize> {
    let mut into = vec![0_usize; free.len()];
    free.iter().flatten().for_each(|to| into[*to] += 1);
    let mut ready: Vec<usize> = (0..free.len()).filter(|it| into[*it] == 0).collect();
    let mut left = free.len();
    while let Some(from) = ready.pop() {
        left -= 1;
        for to in &free[from] {
            into[*to] -= 1;
            if into[*to] == 0 {
                ready.push(*to);
            }
        }
    }
    (left > 0).then(|| (0..free.len()).find(|it| into[*it] > 0))?
}
