//! Small worlds, searched to their ends: up to three sessions, up to four commands, mail that is
//! read at any later time, and a crash at any edge. What must hold is checked in every state.
//!
//! A world is decided as an actor decides: recovery at the first look of a new life, the box once
//! more where the store found mail in between, one append for all of it. Free steps (a look into
//! the box, a result, the end of a turn, recovery) need no command; commands and crashes come out
//! of a budget. States are compared with their ids renamed in the order of their appearance.
//!
//! That the search finds what it is for was checked by hand, with each of these planted for one
//! run: a watch answered without its removal (answered twice); `NoOtherMail` also for a stopped
//! session (an answer that never comes); holds read before releases whatever their order (a held
//! child that has ended); recovery of sessions with an open turn only (a watch never answered); a
//! target that owes an answer read as settled (settled, and then not); notices taken by a stopped
//! session without being queued (a lost registration); a stop that keeps its watches (an open
//! registration without anybody who knows of it).

use std::collections::{BTreeSet, HashMap, VecDeque};

use attache_session::{
    Command, Decision, EndReason, Event, Expect, ItemId, Mail, MailBody, MailId, Notice, Origin,
    QueueId, Rejected, RowView, SessionId, Settled, State, StopReason, Summary, Timestamp, Unread,
    WatchId, decide, is_settled,
};
use uuid::Uuid;

use crate::desk::{call, child, created, eid, enqueue, result, said, sid};

/// What a command of a scenario is, with sessions by their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Do {
    Input(usize),
    Call(usize),
    Watch(usize, usize),
    Send(usize, usize),
    Acquire(usize, usize),
    Release(usize, usize),
    Stop(usize),
    Shutdown(usize),
    Start(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Command(Do),
    /// The same watch, by somebody who has just seen that the target has settled.
    WatchSettled(usize, usize),
    Look(usize),
    Results(usize),
    End(usize),
    Crash,
}

#[derive(Clone)]
struct World {
    sessions: Vec<State>,
    /// Whose epoch is of this life of the host.
    known: Vec<bool>,
    mail: Vec<Mail>,
    next_mail: u64,
    next_id: u128,
    now: i64,
    commands: u8,
    crashes: u8,
    /// Input that was accepted and neither taken nor taken back.
    open: BTreeSet<ItemId>,
    /// Whether somebody started a session that nobody holds.
    started: bool,
}

type Broken = String;

impl World {
    /// Sessions with the number of their parent; the first is the root. All live, none at work.
    fn new(parents: &[usize], commands: u8, crashes: u8) -> Self {
        let mut world = Self {
            sessions: Vec::new(),
            known: Vec::new(),
            mail: Vec::new(),
            next_mail: 0,
            next_id: 0x1_0000,
            now: 0,
            commands,
            crashes,
            open: BTreeSet::new(),
            started: false,
        };
        let root = attache_session::NewSession {
            id: sid(0),
            epoch: eid(0),
            created: created(sid(0), &[]),
            first: None,
        };
        let mut births = vec![root];
        births.extend(
            parents
                .iter()
                .enumerate()
                .map(|(index, parent)| child(index as u128 + 1, sid(*parent as u128), None)),
        );
        for (index, new) in births.iter().enumerate() {
            let birth = attache_session::Birth::of(new, Timestamp(0), &mut Uuid::nil);
            world.sessions.push(birth.state);
            world.known.push(true);
            if index > 0 {
                let spawn = Command::Spawn {
                    call: None,
                    child: Box::new(new.clone()),
                };
                world
                    .ask(parents[index - 1], spawn)
                    .expect("a child is born");
            }
        }
        world
    }

    fn row(&self, id: SessionId) -> Option<RowView> {
        let index = self.sessions.iter().position(|state| state.id == id)?;
        let mut unread = Unread::default();
        for mail in self.box_of(index) {
            match &mail.body {
                MailBody::Input { .. } => unread.inputs += 1,
                MailBody::Notice(_) => unread.notices += 1,
                _ => unread.other += 1,
            }
        }
        Some(RowView {
            summary: Summary::of(&self.sessions[index])?.into(),
            live: self.known[index],
            unread,
        })
    }

    fn settled(&self, index: usize) -> bool {
        is_settled(self.sessions[index].id, &mut |id| self.row(id)) == Settled::Yes
    }

    /// Rows go with the letters: `index_of` of the receiver is in `mail_to`.
    fn box_of(&self, index: usize) -> impl Iterator<Item = &Mail> {
        // The receiver is kept in the upper half of the number.
        self.mail
            .iter()
            .filter(move |mail| (mail.id.0 >> 32) as usize == index)
    }

    fn index(&self, id: SessionId) -> usize {
        let found = self.sessions.iter().position(|state| state.id == id);
        found.expect("only sessions of this world are written to")
    }

    /// Asks as an actor would: load, and with it recovery; then the command.
    fn ask(&mut self, index: usize, command: Command) -> Result<(), Broken> {
        self.load(index)?;
        self.commit(index, &[command])
    }

    fn load(&mut self, index: usize) -> Result<(), Broken> {
        if self.sessions[index].epoch.is_some() && !self.known[index] {
            self.commit(index, &[Command::Recover { partial: None }])?;
            if self.sessions[index].is_live() {
                return Err(format!("session {index} was not recovered"));
            }
        }
        Ok(())
    }

    fn take(&self, index: usize) -> Option<Command> {
        let mail: Vec<Mail> = self.box_of(index).cloned().collect();
        let living = mail
            .iter()
            .map(|letter| letter.from)
            .filter(|from| self.known[self.index(*from)])
            .collect();
        (!mail.is_empty()).then_some(Command::Take {
            mail,
            viewed: false,
            living,
        })
    }

    fn commit(&mut self, index: usize, commands: &[Command]) -> Result<(), Broken> {
        self.now += 1;
        let now = Timestamp(self.now);
        let mut next = self.next_id;
        let mut batch: Vec<Command> = commands.to_vec();
        for _try in 0..3 {
            let mut scratch = self.sessions[index].clone();
            let mut done: Vec<Decision> = Vec::new();
            for command in &batch {
                let decided = decide(&scratch, command, now, &mut || {
                    next += 1;
                    Uuid::from_u128(next)
                });
                match decided {
                    Ok(decision) => {
                        for stamped in &decision.events {
                            if stamped.at <= scratch.last_at {
                                return Err("time stands still".to_owned());
                            }
                            scratch.apply(stamped);
                        }
                        done.push(decision);
                    }
                    // The turn may end with the mail that is read first: its holder has left.
                    Err(
                        Rejected::Stopped
                        | Rejected::Disposed
                        | Rejected::NotAChild
                        | Rejected::StaleTurn { .. },
                    ) => {}
                    Err(other) => return Err(format!("refused: {other:?}")),
                }
            }
            let taken: Vec<MailId> = done.iter().flat_map(|it| it.taken.clone()).collect();
            let waits = self.box_of(index).any(|mail| !taken.contains(&mail.id));
            let expects: Vec<&Expect> = done.iter().flat_map(|it| &it.expects).collect();
            if waits && expects.contains(&&Expect::NoOtherMail) {
                batch = self
                    .take(index)
                    .into_iter()
                    .chain(commands.to_vec())
                    .collect();
                continue;
            }
            let epochs_hold = expects.iter().all(|expect| match expect {
                Expect::Epoch { session, epoch } => {
                    self.sessions[self.index(*session)].epoch == Some(*epoch)
                }
                _ => true,
            });
            if !epochs_hold {
                return Ok(());
            }
            self.next_id = next;
            return self.write(index, scratch, done);
        }
        Err(format!("session {index} waits for ever for an empty box"))
    }

    fn write(&mut self, index: usize, state: State, done: Vec<Decision>) -> Result<(), Broken> {
        self.known[index] &= state.is_live();
        self.sessions[index] = state;
        for decision in done {
            for stamped in &decision.events {
                match &stamped.event {
                    Event::Started { .. } => self.known[index] = true,
                    // What came by mail was accepted when it was sent.
                    Event::Queued { item, .. }
                        if self.open.insert(item.id)
                            == matches!(item.origin, Origin::Session(_)) =>
                    {
                        return Err(format!("input {:?} came twice or from nowhere", item.id));
                    }
                    Event::Consumed { item, .. } if !self.open.remove(&item.id) => {
                        return Err(format!("input {:?} was taken twice", item.id));
                    }
                    Event::Sent { item, .. } => {
                        self.open.insert(*item);
                    }
                    _ => {}
                }
            }
            for mail in &decision.taken {
                self.mail.retain(|lies| lies.id != *mail);
            }
            for new in decision.mail {
                if let MailBody::Notice(notice) = &new.body {
                    self.told(index, notice)?;
                }
                self.next_mail += 1;
                let to = self.index(new.to) as u64;
                self.mail.push(Mail {
                    id: MailId(to << 32 | self.next_mail),
                    from: self.sessions[index].id,
                    body: new.body,
                });
            }
        }
        Ok(())
    }

    /// Who is told that a live session has settled can rely on it.
    fn told(&self, index: usize, notice: &Notice) -> Result<(), Broken> {
        let state = &self.sessions[index];
        let pending = state.turn.is_some() || state.deliverable() > 0 || {
            let me = state.id;
            state.watches.iter().any(|watch| watch.target != me)
        };
        if !notice.stopped && pending {
            return Err(format!(
                "session {index} told that it has settled, and had work"
            ));
        }
        if notice.stopped == state.is_live() {
            return Err(format!("session {index} told a wrong end: {notice:?}"));
        }
        Ok(())
    }

    fn step(&self, step: Step) -> Result<Self, Broken> {
        let mut world = self.clone();
        let watch = |world: &mut Self, a: usize, b: usize, settled: bool| {
            world.commands -= 1;
            world.next_id += 1;
            let watch = WatchId(Uuid::from_u128(world.next_id));
            let target = &world.sessions[b];
            let settled = settled.then(|| Notice {
                watch,
                message: None,
                outcome: target.outcome(),
                end_reason: target.end_reason,
                stopped: !target.is_live() || !world.known[b],
            });
            let target = target.id;
            world.ask(
                a,
                Command::Watch {
                    watch,
                    target,
                    message: None,
                    settled,
                },
            )
        };
        match step {
            Step::Crash => {
                world.crashes -= 1;
                world.known.fill(false);
            }
            Step::Look(index) => {
                world.load(index)?;
                let lives = world.sessions[index].is_live();
                let held = world.held_by_letter(index);
                if let Some(take) = world.take(index) {
                    world.commit(index, &[take])?;
                }
                let state = &world.sessions[index];
                let holds = state.parents.iter().any(|parent| parent.holds);
                if (lives || held) && holds && !state.is_live() {
                    return Err(format!("session {index} ended by its mail, and is held"));
                }
            }
            Step::Results(index) => {
                let turn = world.sessions[index].last_turn;
                let results = vec![result("call")];
                world.ask(index, Command::RecordResults { turn, results })?;
            }
            Step::End(index) => {
                let turn = world.sessions[index].last_turn;
                let end = Command::EndTurn {
                    turn,
                    reason: EndReason::Completed,
                    step: None,
                    error: None,
                };
                world.ask(index, end)?;
            }
            Step::WatchSettled(a, b) => watch(&mut world, a, b, true)?,
            Step::Command(Do::Watch(a, b)) => watch(&mut world, a, b, false)?,
            Step::Command(command) => {
                world.commands -= 1;
                world.carry_out(command)?;
            }
        }
        world.check()?;
        Ok(world)
    }

    fn carry_out(&mut self, command: Do) -> Result<(), Broken> {
        self.next_id += 1;
        let fresh = Uuid::from_u128(self.next_id);
        let id = |index: usize| sid(index as u128);
        match command {
            Do::Watch(..) => Ok(()),
            Do::Input(a) => self.ask(a, enqueue(Some(ItemId(fresh)), QueueId::Default, "go")),
            Do::Call(a) => {
                let turn = self.sessions[a].last_turn;
                let step = said("on it");
                let calls = vec![call("call")];
                self.ask(a, Command::RecordStep { turn, step, calls })
            }
            Do::Send(a, b) => {
                let seen = self.sessions[b].epoch.filter(|_| self.known[b]);
                let send = Command::Send {
                    to: id(b),
                    epoch: seen.unwrap_or(eid(999)),
                    item: ItemId(fresh),
                    text: "go".into(),
                    immediate: true,
                };
                self.ask(a, send)
            }
            Do::Acquire(a, b) => self.ask(a, Command::Acquire { child: id(b) }),
            Do::Release(a, b) => self.ask(a, Command::Release { child: id(b) }),
            Do::Stop(a) | Do::Shutdown(a) => {
                let reason = if matches!(command, Do::Stop(_)) {
                    StopReason::Terminated
                } else {
                    StopReason::HostShutdown
                };
                let partial = None;
                self.ask(a, Command::Stop { reason, partial })
            }
            Do::Start(a) => {
                self.started = true;
                let epoch = attache_session::Epoch(fresh);
                self.ask(a, Command::Start { epoch })
            }
        }
    }

    /// Steps that need nobody's command.
    fn free(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (index, state) in self.sessions.iter().enumerate() {
            let cut = state.epoch.is_some() && !self.known[index];
            let mut mail = self.box_of(index).peekable();
            let reads = mail.peek().is_some() && {
                // A stopped session leaves notices that answer an open watch.
                state.is_live() || mail.any(|mail| !self.stays(index, mail))
            };
            if reads || (cut && state.turn.is_some()) {
                steps.push(Step::Look(index));
            }
            if let Some(turn) = &state.turn
                && !cut
            {
                steps.push(if turn.calls.is_empty() {
                    Step::End(index)
                } else {
                    Step::Results(index)
                });
            }
        }
        steps
    }

    /// Whether a living session says in an unread letter that it holds this one.
    fn held_by_letter(&self, index: usize) -> bool {
        self.box_of(index)
            .any(|mail| mail.body == MailBody::Hold && self.known[self.index(mail.from)])
    }

    fn stays(&self, index: usize, mail: &Mail) -> bool {
        let state = &self.sessions[index];
        let MailBody::Notice(notice) = &mail.body else {
            return false;
        };
        state.watches.iter().any(|watch| watch.id == notice.watch)
    }

    fn bought(&self, alphabet: &[Do]) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.crashes > 0 && self.known.iter().any(|known| *known) {
            steps.push(Step::Crash);
        }
        if self.commands == 0 {
            return steps;
        }
        for command in alphabet {
            match *command {
                Do::Watch(a, b) if a != b && self.settled(b) => {
                    steps.push(Step::WatchSettled(a, b));
                }
                Do::Call(a) => {
                    let turn = self.sessions[a].turn.as_ref();
                    if !self.known[a] || turn.is_none_or(|turn| !turn.calls.is_empty()) {
                        continue;
                    }
                }
                _ => {}
            }
            steps.push(Step::Command(*command));
        }
        steps
    }

    /// What must hold in every state.
    fn check(&self) -> Result<(), Broken> {
        let mut lie: Vec<ItemId> = Vec::new();
        for (index, state) in self.sessions.iter().enumerate() {
            if !state.is_live() && state.turn.is_some() {
                return Err(format!("session {index} is stopped and has a turn"));
            }
            if state.is_live() && state.turn.is_none() && state.deliverable() > 0 {
                return Err(format!("session {index} has input and does nothing"));
            }
            lie.extend(
                state
                    .queues
                    .iter()
                    .flat_map(|queue| queue.items.iter().map(|it| it.id)),
            );
            lie.extend(self.box_of(index).filter_map(|mail| match &mail.body {
                MailBody::Input { item, .. } => Some(*item),
                _ => None,
            }));
            self.check_watches(index, state)?;
            self.check_holds(index, state)?;
        }
        lie.sort_unstable();
        if !lie.iter().eq(&self.open) {
            return Err(format!("accepted {:?}, but there lie {lie:?}", self.open));
        }
        Ok(())
    }

    /// Each open registration is known in one place, and nothing is known of any other.
    fn check_watches(&self, index: usize, state: &State) -> Result<(), Broken> {
        for watch in &state.watches {
            let target = self.index(watch.target);
            let there = &self.sessions[target].watchers;
            let asked = self.box_of(target).filter(
                |mail| matches!(&mail.body, MailBody::Watch { watch: id, .. } if *id == watch.id),
            );
            let kept = there.iter().filter(|watcher| watcher.watch == watch.id);
            let answered = self
                .box_of(index)
                .filter(|mail| matches!(&mail.body, MailBody::Notice(it) if it.watch == watch.id));
            let places = asked.count() + kept.count() + answered.count();
            if places != 1 {
                return Err(format!("a watch of session {index} is in {places} places"));
            }
        }
        for watcher in &state.watchers {
            let from = self.index(watcher.session);
            let open = self.sessions[from]
                .watches
                .iter()
                .any(|it| it.id == watcher.watch);
            let given_up = self.box_of(index).any(
                |mail| matches!(&mail.body, MailBody::Unwatch { watch } if *watch == watcher.watch),
            );
            if open == given_up {
                return Err(format!("session {index} keeps a watcher that is not there"));
            }
        }
        Ok(())
    }

    /// Both ends of a hold agree once the mail is read, and nobody lives that nobody holds.
    fn check_holds(&self, index: usize, state: &State) -> Result<(), Broken> {
        let words = |mail: &&Mail| matches!(mail.body, MailBody::Hold | MailBody::Release { .. });
        for (held, _) in state.children.iter() {
            let there = self.index(held.id);
            if self
                .box_of(there)
                .filter(words)
                .any(|mail| mail.from == state.id)
            {
                continue;
            }
            let parents = &self.sessions[there].parents;
            let holds = parents
                .iter()
                .any(|parent| parent.id == state.id && parent.holds);
            if holds != held.held {
                return Err(format!("session {index} and its child {there} disagree"));
            }
        }
        let orphan = !state.parents.is_empty() && state.parents.iter().all(|it| !it.holds);
        if orphan && state.is_live() && !self.started {
            return Err(format!("session {index} lives and nobody holds it"));
        }
        Ok(())
    }

    /// What must hold where nothing can happen by itself.
    fn check_rest(&self) -> Result<(), Broken> {
        for (index, state) in self.sessions.iter().enumerate() {
            if state.is_live() && self.known[index] && !self.settled(index) {
                return Err(format!("session {index} waits for ever"));
            }
            for watch in &state.watches {
                let lies = self
                    .box_of(index)
                    .any(|mail| matches!(&mail.body, MailBody::Notice(it) if it.watch == watch.id));
                // On itself it may wait for the end of the next run.
                if !lies || (state.is_live() && self.known[index]) {
                    return Err(format!("a watch of session {index} is never answered"));
                }
            }
            if let Some(mail) = self.box_of(index).find(|mail| !self.stays(index, mail)) {
                return Err(format!("session {index} never reads {mail:?}"));
            }
        }
        Ok(())
    }

    /// The state with its ids renamed in the order of their appearance.
    fn key(&self) -> Vec<u8> {
        let mut names: HashMap<Uuid, u8> = HashMap::new();
        let mut name = |id: Uuid| {
            let next = u8::try_from(names.len()).expect("few ids are open");
            *names.entry(id).or_insert(next)
        };
        let mut key = vec![self.commands, self.crashes, u8::from(self.started)];
        for (index, state) in self.sessions.iter().enumerate() {
            key.push(u8::from(state.is_live()) << 1 | u8::from(self.known[index]));
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

struct Found {
    states: usize,
    edges: usize,
    ends: usize,
}

/// Searches all that can come of a world; panics with the steps that lead to what must not be.
fn search(name: &str, world: World, alphabet: &[Do]) -> Found {
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
        panic!("{name}: {why}\nafter {steps:#?}")
    };
    while let Some(world) = queue.pop_front() {
        let steps = world.free();
        if steps.is_empty() {
            ends += 1;
            if let Err(why) = world.check_rest() {
                fail(&came, at, None, &why);
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
            let next = match world.step(step) {
                Ok(next) => next,
                Err(why) => fail(&came, at, Some(step), &why),
            };
            let by_itself = number < free_count;
            if by_itself
                && let Some(index) =
                    (0..settled.len()).find(|it| settled[*it] && !next.settled(*it))
            {
                let why = format!("session {index} had settled, and then had work");
                fail(&came, at, Some(step), &why);
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
        fail(&came, circle, None, "it can go on for ever by itself");
    }
    Found {
        states: came.len(),
        edges,
        ends,
    }
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

#[expect(
    clippy::print_stdout,
    reason = "how much was searched is what the run is for"
)]
fn walk(name: &str, parents: &[usize], commands: u8, crashes: u8, alphabet: &[Do]) {
    let found = search(name, World::new(parents, commands, crashes), alphabet);
    let Found {
        states,
        edges,
        ends,
    } = found;
    println!("small world {name}: {states} states, {edges} edges, {ends} at rest");
    assert!(states > 1_000, "the world is too small to find anything");
}

use Do::{Acquire, Call, Input, Release, Send, Shutdown, Start, Stop, Watch};

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

#[test]
fn everything_at_once() {
    let alphabet = [
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
    walk("everything", &[0, 1], 3, 1, &alphabet);
    walk("everything without a crash", &[0, 1], 4, 0, &alphabet);
}
