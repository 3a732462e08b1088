//! A small world: its sessions, the mail between them, and how a command is decided and stored in it, as
//! an actor and a store would. What can happen next is in `steps`, what must hold in `checks`.

use std::collections::{BTreeSet, VecDeque};

use attache_session::{
    Answer, Command, Decision, Effect, Event, Expect, ItemId, Mail, MailBody, MailId, Origin,
    Rejected, RowView, SessionId, Settled, State, Summary, Timestamp, Unread, decide, is_settled,
};
use uuid::Uuid;

use crate::desk::{child, created, eid, sid};

#[derive(Clone)]
pub(super) struct World {
    pub(super) sessions: Vec<State>,
    /// Whose epoch is of this life of the host.
    pub(super) known: Vec<bool>,
    /// Whose open turn was told to end.
    pub(super) cancelled: Vec<bool>,
    /// Sessions whose runs the end of a tree has still to end, in its order.
    pub(super) ending: VecDeque<usize>,
    pub(super) mail: Vec<Mail>,
    next_mail: u64,
    pub(super) next_id: u128,
    now: i64,
    pub(super) commands: u8,
    pub(super) crashes: u8,
    /// Input that was accepted and neither taken nor taken back.
    pub(super) open: BTreeSet<ItemId>,
    /// Whether somebody started a session that nobody holds.
    pub(super) started: bool,
    /// What is done to each decision: a bug that the search has to find.
    bend: Option<Bend>,
}

/// Makes a decision wrong.
pub(super) type Bend = fn(&State, &mut Decision);

/// What must not be, in words.
pub(super) type Broken = String;

/// Whether a command was carried out and changed something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Done {
    Yes,
    No,
}

impl World {
    /// Sessions with the number of their parent; the first is the root. All live, none at work.
    pub(super) fn new(parents: &[usize], commands: u8, crashes: u8) -> Self {
        let mut world = Self {
            sessions: Vec::new(),
            known: Vec::new(),
            cancelled: Vec::new(),
            ending: VecDeque::new(),
            mail: Vec::new(),
            next_mail: 0,
            next_id: 0x1_0000,
            now: 0,
            commands,
            crashes,
            open: BTreeSet::new(),
            started: false,
            bend: None,
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
            world.cancelled.push(false);
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

    /// The same world with a bug.
    pub(super) fn bent(mut self, bend: Bend) -> Self {
        self.bend = Some(bend);
        self
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

    pub(super) fn settled(&self, index: usize) -> bool {
        is_settled(self.sessions[index].id, &mut |id| self.row(id)) == Settled::Yes
    }

    /// Rows go with the letters: `index_of` of the receiver is in `mail_to`.
    pub(super) fn box_of(&self, index: usize) -> impl Iterator<Item = &Mail> {
        // The receiver is kept in the upper half of the number.
        self.mail
            .iter()
            .filter(move |mail| (mail.id.0 >> 32) as usize == index)
    }

    pub(super) fn index(&self, id: SessionId) -> usize {
        let found = self.sessions.iter().position(|state| state.id == id);
        found.expect("only sessions of this world are written to")
    }

    /// Asks as an actor would: load, and with it recovery; then the command.
    pub(super) fn ask(&mut self, index: usize, command: Command) -> Result<Done, Broken> {
        self.load(index)?;
        self.commit(index, command)
    }

    pub(super) fn load(&mut self, index: usize) -> Result<(), Broken> {
        if self.sessions[index].epoch.is_some() && !self.known[index] {
            self.commit(index, Command::Recover { partial: None })?;
            if self.sessions[index].is_live() {
                return Err(format!("session {index} was not recovered"));
            }
        }
        Ok(())
    }

    pub(super) fn take(&self, index: usize) -> Option<Command> {
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

    /// Decides a command, and before it the mail that must be read first; one append for both.
    pub(super) fn commit(&mut self, index: usize, command: Command) -> Result<Done, Broken> {
        self.now += 1;
        let now = Timestamp(self.now);
        let mut next = self.next_id;
        let mut batch: Vec<Command> = vec![command.clone()];
        for _try in 0..3 {
            let mut scratch = self.sessions[index].clone();
            let mut decisions: Vec<Decision> = Vec::new();
            let mut done = Done::No;
            for command in &batch {
                let decided = decide(&scratch, command, now, &mut || {
                    next += 1;
                    Uuid::from_u128(next)
                });
                match decided {
                    Ok(mut decision) => {
                        if let Some(bend) = self.bend {
                            bend(&scratch, &mut decision);
                        }
                        for stamped in &decision.events {
                            if stamped.at <= scratch.last_at {
                                return Err("time stands still".to_owned());
                            }
                            scratch.apply(stamped);
                        }
                        // The asked command is the last of its batch.
                        done = match decision.answer {
                            Answer::Unchanged => Done::No,
                            _ => Done::Yes,
                        };
                        decisions.push(decision);
                    }
                    Err(why) if is_due(&scratch, command, &why) => done = Done::No,
                    Err(why) => {
                        return Err(format!("session {index} refused {command:?}: {why:?}"));
                    }
                }
            }
            let taken: Vec<MailId> = decisions.iter().flat_map(|it| it.taken.clone()).collect();
            let waits = self.box_of(index).any(|mail| !taken.contains(&mail.id));
            let expects: Vec<&Expect> = decisions.iter().flat_map(|it| &it.expects).collect();
            if waits && expects.contains(&&Expect::NoOtherMail) {
                batch = self.take(index).into_iter().collect();
                batch.push(command.clone());
                continue;
            }
            for expect in expects {
                if let Expect::Epoch { session, epoch } = expect {
                    let there = self.index(*session);
                    let known = self.sessions[there].epoch.filter(|_| self.known[there]);
                    match known {
                        Some(known) if known == *epoch => {}
                        // The store refuses what is meant for an epoch that is over.
                        None => return Ok(Done::No),
                        Some(_) => return Err(format!("session {there} has another epoch")),
                    }
                }
            }
            self.next_id = next;
            self.write(index, scratch, decisions)?;
            return Ok(done);
        }
        Err(format!("session {index} waits for ever for an empty box"))
    }

    fn write(&mut self, index: usize, state: State, done: Vec<Decision>) -> Result<(), Broken> {
        self.known[index] &= state.is_live();
        let same_turn = state.turn.is_some() && state.last_turn == self.sessions[index].last_turn;
        self.cancelled[index] &= same_turn;
        let turn = state.turn.as_ref().map(|turn| turn.id);
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
                    Event::WatchEnded { watch } => self.ended(index, &decision, *watch)?,
                    Event::Sent { item, .. } => {
                        self.open.insert(*item);
                    }
                    _ => {}
                }
            }
            self.cancelled[index] |= decision
                .effects
                .iter()
                .any(|it| matches!(it, Effect::CancelTurn { turn: of, .. } if turn == Some(*of)));
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
}

/// Whether a command is refused for good reason: its moment is over, for a stop or for mail that is
/// read first. A rule that refuses more than that only makes the world smaller, and finds nothing.
fn is_due(state: &State, command: &Command, why: &Rejected) -> bool {
    match (why, command) {
        (
            Rejected::Stopped,
            Command::Watch { .. }
            | Command::Send { .. }
            | Command::Acquire { .. }
            | Command::Spawn { .. },
        ) => !state.is_live(),
        (Rejected::Disposed, Command::Send { to, .. }) => {
            state.child(*to).is_some_and(|child| !child.held)
        }
        (Rejected::NotAChild, Command::Release { child }) => state.child(*child).is_none(),
        (
            Rejected::StaleTurn { turn: named },
            Command::EndTurn { turn, .. }
            | Command::RecordStep { turn, .. }
            | Command::RecordResults { turn, .. },
        ) => turn == named && state.turn.as_ref().is_none_or(|open| open.id != *turn),
        _ => false,
    }
}
