//! The rules of an append, once for all backends: whether it may be written, and what follows from
//! it. Nothing is written here; a backend lends its eyes through [`Lookup`].

use std::collections::HashSet;
use std::hash::Hash;

use attache_session::{
    Created, Epoch, Event, Expect, Generation, MailBody, MailId, Position, SessionId, Stamped,
    Timestamp,
};
use uuid::Uuid;

use crate::append::{Append, Born, CommandRecord};
use crate::entity::{Entity, EntityPut};
use crate::read::KnownCommand;
use crate::refused::Refused;

/// Rows that a mailbox holds; then only notices are taken.
pub(crate) const MAILBOX_ROWS: usize = 10_000;

/// The newest records that this program can write to and understand.
pub(crate) const READER: u32 = 1;

/// What the rules need to know of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    /// Its ownership generation.
    pub(crate) generation: Generation,
    /// Position of its newest event.
    pub(crate) head: Position,
    /// Time of its newest event.
    pub(crate) last_at: Timestamp,
    /// The epoch that it is in.
    pub(crate) epoch: Option<Epoch>,
    /// The reader that its records need.
    pub(crate) min_reader: u32,
}

/// What the rules look up.
pub(crate) trait Lookup {
    /// How looking goes wrong.
    type Error: From<Refused>;
    /// A session that exists.
    fn head(&mut self, session: SessionId) -> Result<Option<Head>, Self::Error>;
    /// Whether mail lies unread for a session.
    fn lies(&mut self, session: SessionId, mail: MailId) -> Result<bool, Self::Error>;
    /// How many rows a mailbox has.
    fn unread(&mut self, session: SessionId) -> Result<usize, Self::Error>;
    /// A command that a session has carried out.
    fn command(
        &mut self,
        session: SessionId,
        id: Uuid,
    ) -> Result<Option<KnownCommand>, Self::Error>;
    /// The parents of a session.
    fn parents(&mut self, session: SessionId) -> Result<Vec<SessionId>, Self::Error>;
    /// Used amount of a counter.
    fn quota(&mut self, session: SessionId, key: &str) -> Result<i64, Self::Error>;
    /// The tag of an entity.
    fn entity_tag(&mut self, id: Uuid) -> Result<Option<u64>, Self::Error>;
}

/// An append that may be written, and what follows from it.
#[derive(Debug)]
pub(crate) struct Checked {
    /// Whether the appending session is born by it.
    pub(crate) born: bool,
    /// The position of its last event.
    pub(crate) position: Position,
    /// The time of its last event.
    pub(crate) last_at: Timestamp,
    /// What the counters hold afterwards, in the order of the charges.
    pub(crate) counters: Vec<(SessionId, String, i64)>,
    /// Pairs of parent and child to link, in order; some may be linked already.
    pub(crate) links: Vec<(SessionId, SessionId)>,
}

/// Checks the whole of an append.
pub(crate) fn check<L: Lookup>(look: &mut L, append: &Append) -> Result<Checked, L::Error> {
    let session = append.session;
    let head = look.head(session)?;
    if let Some(head) = &head {
        fence(head, append.generation)?;
    }
    if let Some(command) = &append.command {
        known(look.command(session, command.id)?, command)?;
    }
    match &head {
        Some(head) if head.head != append.expected => {
            return Err(Refused::Moved { head: head.head }.into());
        }
        None if append.expected != Position(0) || created(&append.events).is_none() => {
            return Err(Refused::Unknown { session }.into());
        }
        _ => {}
    }
    increase(head.map(|head| head.last_at), &append.events)?;
    let names = Names::of(look, append, head.is_none())?;
    let links = names.links(look, append)?;
    mail(look, append, &names)?;
    expects(look, append)?;
    let counters = charges(look, append, &names)?;
    Ok(Checked {
        born: head.is_none(),
        position: append.expected.plus(append.events.len()),
        last_at: append
            .events
            .last()
            .map(|last| last.at)
            .or(head.map(|head| head.last_at))
            .unwrap_or_default(),
        counters,
        links,
    })
}

/// Whether an owner may write.
fn fence(head: &Head, generation: Generation) -> Result<(), Refused> {
    if head.generation != generation {
        return Err(Refused::Fenced {
            current: head.generation,
        });
    }
    readable(head.min_reader)
}

/// Whether this program may write to a session with such records.
pub(crate) fn readable(min_reader: u32) -> Result<(), Refused> {
    if min_reader > READER {
        return Err(Refused::Failed(format!(
            "the session was written by a newer version: it needs reader version {min_reader}, this is {READER}"
        )));
    }
    Ok(())
}

/// Whether a claim from a generation holds; the new generation.
pub(crate) fn claim(
    session: SessionId,
    head: Option<&Head>,
    from: Generation,
) -> Result<Generation, Refused> {
    let head = head.ok_or(Refused::Unknown { session })?;
    fence(head, from)?;
    Ok(Generation(from.0 + 1))
}

/// What an entity becomes, given the one of its id and the one of its name.
pub(crate) fn entity(
    put: EntityPut,
    by_id: Option<u64>,
    by_name: Option<(Uuid, u64)>,
) -> Result<Entity, Refused> {
    let EntityPut {
        id,
        kind,
        name,
        expected,
        at,
        change,
        data,
    } = put;
    if by_id != expected {
        return Err(Refused::EntityChanged {
            entity: id,
            current: by_id,
        });
    }
    if let Some((other, tag)) = by_name.filter(|(other, _)| *other != id) {
        return Err(Refused::EntityChanged {
            entity: other,
            current: Some(tag),
        });
    }
    Ok(Entity {
        id,
        kind,
        name,
        tag: expected.map_or(1, |tag| tag + 1),
        modified_at: at,
        change,
        data,
    })
}

fn known(known: Option<KnownCommand>, command: &CommandRecord) -> Result<(), Refused> {
    match known {
        None => Ok(()),
        Some(known) if known.digest == command.digest => Err(Refused::CommandKnown {
            position: known.position,
            answer: known.answer,
        }),
        Some(_) => Err(Refused::CommandReused),
    }
}

fn increase(last: Option<Timestamp>, events: &[Stamped]) -> Result<(), Refused> {
    let mut last = last;
    for event in events {
        if last.is_some_and(|last| event.at <= last) {
            return Err(Refused::TimeNotIncreasing);
        }
        last = Some(event.at);
    }
    Ok(())
}

/// What a log that begins with these events says of its session.
pub(crate) fn created(events: &[Stamped]) -> Option<&Created> {
    match &events.first()?.event {
        Event::Created(created) => Some(created),
        _ => None,
    }
}

/// The sessions that exist only by this append.
struct Names<'a> {
    own: Option<&'a Created>,
    born: HashSet<SessionId>,
}

impl<'a> Names<'a> {
    fn of<L: Lookup>(look: &mut L, append: &'a Append, born: bool) -> Result<Self, L::Error> {
        let own = if born { created(&append.events) } else { None };
        let mut names = Self {
            own,
            born: HashSet::new(),
        };
        if let Some(created) = own {
            for parent in &created.parents {
                names.exists(look, *parent)?;
            }
            names.born.insert(append.session);
        }
        for birth in &append.births {
            let Born {
                session,
                generation: _,
                events,
                summary: _,
            } = birth;
            if names.born.contains(session) || look.head(*session)?.is_some() {
                return Err(Refused::Exists { session: *session }.into());
            }
            let Some(created) = created(events) else {
                let text = format!("the first event of session {session} is not its creation");
                return Err(Refused::Failed(text).into());
            };
            increase(None, events)?;
            for parent in &created.parents {
                names.exists(look, *parent)?;
            }
            names.born.insert(*session);
        }
        Ok(names)
    }

    fn exists<L: Lookup>(&self, look: &mut L, session: SessionId) -> Result<(), L::Error> {
        if self.born.contains(&session) || look.head(session)?.is_some() {
            return Ok(());
        }
        Err(Refused::Unknown { session }.into())
    }

    fn links<L: Lookup>(
        &self,
        look: &mut L,
        append: &Append,
    ) -> Result<Vec<(SessionId, SessionId)>, L::Error> {
        let me = append.session;
        let mut links = Vec::with_capacity(append.links.len() + append.births.len());
        if let Some(created) = self.own {
            links.extend(created.parents.iter().map(|parent| (*parent, me)));
        }
        let mut above = None;
        for child in &append.links {
            let circle = Refused::Circle { child: *child };
            if *child == me {
                return Err(circle.into());
            }
            // A session that is just being born is nobody's ancestor.
            if !self.born.contains(child) {
                self.exists(look, *child)?;
                if above.is_none() {
                    above = Some(self.ancestors(look, me)?);
                }
                if above.as_ref().is_some_and(|above| above.contains(child)) {
                    return Err(circle.into());
                }
            }
            links.push((me, *child));
        }
        for birth in &append.births {
            let parents = created(&birth.events).map_or(&[][..], |created| &created.parents);
            links.extend(parents.iter().map(|parent| (*parent, birth.session)));
        }
        Ok(links)
    }

    fn ancestors<L: Lookup>(
        &self,
        look: &mut L,
        me: SessionId,
    ) -> Result<HashSet<SessionId>, L::Error> {
        let first = match self.own {
            Some(created) => created.parents.clone(),
            None => look.parents(me)?,
        };
        ancestors(first, |session| look.parents(session))
    }
}

/// These sessions and all above them.
pub(crate) fn ancestors<K: Copy + Eq + Hash, E>(
    first: Vec<K>,
    mut parents: impl FnMut(K) -> Result<Vec<K>, E>,
) -> Result<HashSet<K>, E> {
    let mut seen = HashSet::new();
    let mut next = first;
    while let Some(session) = next.pop() {
        if seen.insert(session) {
            next.extend(parents(session)?);
        }
    }
    Ok(seen)
}

fn mail<L: Lookup>(look: &mut L, append: &Append, names: &Names<'_>) -> Result<(), L::Error> {
    let mut taken = HashSet::new();
    for mail in &append.taken {
        if !taken.insert(*mail) || !look.lies(append.session, *mail)? {
            return Err(Refused::MailGone { mail: mail.0 }.into());
        }
    }
    let mut boxes: Vec<(SessionId, usize)> = Vec::new();
    for new in &append.mail {
        let place = boxes.iter().position(|(to, _)| *to == new.to);
        let place = match place {
            Some(place) => place,
            None => {
                names.exists(look, new.to)?;
                let mut rows = if names.born.contains(&new.to) {
                    0
                } else {
                    look.unread(new.to)?
                };
                if new.to == append.session {
                    rows -= taken.len();
                }
                boxes.push((new.to, rows));
                boxes.len() - 1
            }
        };
        let rows = &mut boxes[place].1;
        let notice = matches!(new.body, MailBody::Notice(_));
        if *rows >= MAILBOX_ROWS && !notice {
            return Err(Refused::MailboxFull { session: new.to }.into());
        }
        *rows += 1;
    }
    Ok(())
}

fn expects<L: Lookup>(look: &mut L, append: &Append) -> Result<(), L::Error> {
    for expect in &append.expects {
        match expect {
            Expect::NoOtherMail => {
                if look.unread(append.session)? > append.taken.len() {
                    return Err(Refused::MailWaiting.into());
                }
            }
            Expect::Epoch { session, epoch } => {
                let current = look.head(*session)?.and_then(|head| head.epoch);
                if current != Some(*epoch) {
                    return Err(Refused::OtherEpoch {
                        session: *session,
                        current,
                    }
                    .into());
                }
            }
            Expect::EntityTag { entity, tag } => {
                let current = look.entity_tag(*entity)?;
                if current != Some(*tag) {
                    return Err(Refused::EntityChanged {
                        entity: *entity,
                        current,
                    }
                    .into());
                }
            }
        }
    }
    Ok(())
}

fn charges<L: Lookup>(
    look: &mut L,
    append: &Append,
    names: &Names<'_>,
) -> Result<Vec<(SessionId, String, i64)>, L::Error> {
    let mut counters: Vec<(SessionId, String, i64)> = Vec::with_capacity(append.charges.len());
    for charge in &append.charges {
        let place = counters
            .iter()
            .position(|(session, key, _)| *session == charge.session && *key == charge.key);
        let place = match place {
            Some(place) => place,
            None => {
                names.exists(look, charge.session)?;
                let used = look.quota(charge.session, &charge.key)?;
                counters.push((charge.session, charge.key.clone(), used));
                counters.len() - 1
            }
        };
        let used = counters[place].2;
        let after = used.saturating_add(charge.amount);
        if let Some(limit) = charge.limit.filter(|limit| after > *limit)
            && charge.amount >= 0
        {
            return Err(Refused::LimitReached {
                session: charge.session,
                key: charge.key.clone(),
                used,
                limit,
            }
            .into());
        }
        counters[place].2 = after.max(0);
    }
    Ok(counters)
}
