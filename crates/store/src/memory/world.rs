//! What a store in memory holds, and the plain way to write to it and read from it.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;

use attache_session::{
    Event, Generation, Mail, MailId, NewMail, Position, SessionId, Stamped, Summary, Timestamp,
    Unread,
};
use uuid::Uuid;

use crate::append::Append;
use crate::check::{self, Checked, Head, Lookup};
use crate::entity::{Entity, EntityPut};
use crate::fold::Needle;
use crate::kind::{asked, searchable};
use crate::read::{Kind, KnownCommand, LogItem, Page, PageQuery, Partial, Row, RowFilter};
use crate::record::told;
use crate::refused::Refused;

/// A session with its log.
#[derive(Clone, Debug)]
struct Cell {
    generation: Generation,
    log: Vec<Stamped>,
    summary: Arc<Summary>,
    root: SessionId,
    spawner: Option<SessionId>,
}

impl Cell {
    fn last_at(&self) -> Timestamp {
        self.log.last().map_or(Timestamp(0), |last| last.at)
    }

    fn items(&self, from: usize, to: usize) -> impl DoubleEndedIterator<Item = LogItem> + '_ {
        let to = to.min(self.log.len());
        let from = from.min(to);
        self.log[from..to]
            .iter()
            .enumerate()
            .map(move |(index, event)| LogItem {
                position: Position((from + index) as u64 + 1),
                event: event.clone(),
            })
    }
}

/// Everything that is stored.
#[derive(Clone, Default, Debug)]
pub(super) struct World {
    sessions: HashMap<SessionId, Cell>,
    births: Vec<SessionId>,
    links: Vec<(SessionId, SessionId)>,
    mail: BTreeMap<u64, (SessionId, Mail)>,
    next_mail: u64,
    quotas: BTreeMap<(SessionId, String), i64>,
    commands: HashMap<(SessionId, Uuid), (KnownCommand, Timestamp)>,
    entities: HashMap<Uuid, Entity>,
    partials: HashMap<SessionId, Partial>,
}

impl World {
    /// Checks an append and writes it.
    pub(super) fn append(&mut self, append: &Append) -> Result<Position, Refused> {
        let Checked {
            born,
            position,
            last_at,
            counters,
            links,
        } = check::check(self, append)?;
        let session = append.session;
        if born {
            self.bear(session, append.generation, &append.events, &append.summary);
        } else if let Some(cell) = self.sessions.get_mut(&session) {
            cell.log.extend(append.events.iter().cloned());
            cell.summary = Arc::new(append.summary.clone());
        }
        for birth in &append.births {
            self.bear(
                birth.session,
                birth.generation,
                &birth.events,
                &birth.summary,
            );
        }
        for pair in links {
            if !self.links.contains(&pair) {
                self.links.push(pair);
            }
        }
        for mail in &append.taken {
            self.mail.remove(&mail.0);
        }
        for NewMail { to, body } in &append.mail {
            self.next_mail += 1;
            let mail = Mail {
                id: MailId(self.next_mail),
                from: session,
                body: body.clone(),
            };
            self.mail.insert(self.next_mail, (*to, mail));
        }
        for (session, key, used) in counters {
            self.quotas.insert((session, key), used);
        }
        if let Some(command) = &append.command {
            let known = KnownCommand {
                digest: command.digest,
                position,
                answer: command.answer.clone(),
            };
            self.commands
                .insert((session, command.id), (known, last_at));
        }
        if append
            .events
            .iter()
            .any(|event| settles_stream(&event.event))
        {
            self.partials.remove(&session);
        }
        Ok(position)
    }

    fn bear(
        &mut self,
        session: SessionId,
        generation: Generation,
        events: &[Stamped],
        summary: &Summary,
    ) {
        // The rules have seen that the first event is the creation.
        let created = check::created(events);
        let cell = Cell {
            generation,
            log: events.to_vec(),
            summary: Arc::new(summary.clone()),
            root: created.map_or(session, |created| created.root),
            spawner: created.and_then(|created| created.parents.first().copied()),
        };
        self.sessions.insert(session, cell);
        self.births.push(session);
    }

    pub(super) fn put_entity(&mut self, put: EntityPut) -> Result<Entity, Refused> {
        let by_id = self.entities.get(&put.id).map(|entity| entity.tag);
        let by_name = self
            .entities
            .values()
            .find(|entity| entity.kind == put.kind && entity.name == put.name)
            .map(|entity| (entity.id, entity.tag));
        let entity = check::entity(put, by_id, by_name)?;
        self.entities.insert(entity.id, entity.clone());
        Ok(entity)
    }

    pub(super) fn claim(
        &mut self,
        session: SessionId,
        from: Generation,
    ) -> Result<Generation, Refused> {
        let head = self.head_of(session);
        let generation = check::claim(session, head.as_ref(), from)?;
        if let Some(cell) = self.sessions.get_mut(&session) {
            cell.generation = generation;
        }
        Ok(generation)
    }

    pub(super) fn put_partial(&mut self, session: SessionId, partial: Partial) {
        if self.sessions.contains_key(&session) {
            self.partials.insert(session, partial);
        }
    }

    pub(super) fn delete(&mut self, session: SessionId) -> Result<(), Refused> {
        self.sessions
            .remove(&session)
            .ok_or(Refused::Unknown { session })?;
        self.births.retain(|other| *other != session);
        self.links
            .retain(|(parent, child)| *parent != session && *child != session);
        self.mail.retain(|_, (to, _)| *to != session);
        self.quotas.retain(|(owner, _), _| *owner != session);
        self.commands.retain(|(owner, _), _| *owner != session);
        self.partials.remove(&session);
        Ok(())
    }

    pub(super) fn sweep(&mut self, before: i64) -> u64 {
        let all = self.commands.len();
        self.commands.retain(|_, (_, at)| at.0 >= before);
        (all - self.commands.len()) as u64
    }

    pub(super) fn events(&self, session: SessionId, after: Position, limit: usize) -> Vec<LogItem> {
        let Some(cell) = self.sessions.get(&session) else {
            return Vec::new();
        };
        let from = usize::try_from(after.0).unwrap_or(usize::MAX);
        cell.items(from, from.saturating_add(limit)).collect()
    }

    pub(super) fn partial(&self, session: SessionId) -> Option<Partial> {
        self.partials.get(&session).cloned()
    }

    fn head_of(&self, session: SessionId) -> Option<Head> {
        self.sessions.get(&session).map(|cell| Head {
            generation: cell.generation,
            head: Position(cell.log.len() as u64),
            last_at: cell.last_at(),
            epoch: cell.summary.epoch,
            min_reader: check::READER,
        })
    }

    pub(super) fn row(&self, session: SessionId) -> Option<Row> {
        let cell = self.sessions.get(&session)?;
        let mut unread = Unread::default();
        for (_, mail) in self.mail.values().filter(|(to, _)| *to == session) {
            if mail.body.is_input() {
                unread.inputs += 1;
            } else if mail.body.is_notice() {
                unread.notices += 1;
            } else {
                unread.other += 1;
            }
        }
        Some(Row {
            session,
            generation: cell.generation,
            head: Position(cell.log.len() as u64),
            last_at: cell.last_at(),
            root: cell.root,
            spawner: cell.spawner,
            summary: Arc::clone(&cell.summary),
            unread,
        })
    }

    pub(super) fn rows(
        &self,
        filter: RowFilter,
        after: Option<SessionId>,
        limit: usize,
    ) -> Vec<Row> {
        let listed: Vec<SessionId> = match filter {
            RowFilter::Children(parent) => self
                .links
                .iter()
                .filter(|(holder, _)| *holder == parent)
                .map(|(_, child)| *child)
                .collect(),
            RowFilter::All => self.births.clone(),
            RowFilter::Roots => self.born_with(|cell| cell.spawner.is_none()),
            RowFilter::Tree(root) => self.born_with(|cell| cell.root == root),
        };
        let from = match after {
            None => 0,
            Some(after) => listed
                .iter()
                .position(|session| *session == after)
                .map_or(listed.len(), |place| place + 1),
        };
        let rows = listed[from..].iter().take(limit);
        rows.filter_map(|session| self.row(*session)).collect()
    }

    fn born_with(&self, keep: impl Fn(&Cell) -> bool) -> Vec<SessionId> {
        let kept = |session: &&SessionId| self.sessions.get(session).is_some_and(&keep);
        self.births.iter().filter(kept).copied().collect()
    }

    fn parents_of(&self, session: SessionId) -> Vec<SessionId> {
        let links = self.links.iter().filter(|(_, child)| *child == session);
        links.map(|(parent, _)| *parent).collect()
    }

    pub(super) fn descends(&self, descendant: SessionId, ancestor: SessionId) -> bool {
        let first = self.parents_of(descendant);
        let Ok(above) = check::ancestors::<_, Infallible>(first, |next| Ok(self.parents_of(next)));
        above.contains(&ancestor)
    }

    pub(super) fn mail(&self, session: SessionId, limit: usize) -> Vec<Mail> {
        let mine = self.mail.values().filter(|(to, _)| *to == session);
        mine.map(|(_, mail)| mail.clone()).take(limit).collect()
    }

    pub(super) fn known_command(&self, session: SessionId, id: Uuid) -> Option<KnownCommand> {
        let (known, _) = self.commands.get(&(session, id))?;
        Some(known.clone())
    }

    pub(super) fn used(&self, session: SessionId, key: &str) -> i64 {
        let counter = self.quotas.get(&(session, key.to_owned()));
        counter.copied().unwrap_or(0)
    }

    pub(super) fn entity(&self, id: Uuid) -> Option<Entity> {
        self.entities.get(&id).cloned()
    }

    pub(super) fn entities(&self, kind: crate::EntityKind) -> Vec<Entity> {
        let of_kind = self.entities.values().filter(|entity| entity.kind == kind);
        let mut all: Vec<Entity> = of_kind.cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    pub(super) fn page(&self, session: SessionId, query: &PageQuery) -> Page {
        let Some(cell) = self.sessions.get(&session) else {
            return Page {
                items: Vec::new(),
                total_matching: 0,
                more: false,
            };
        };
        let from = query.after.map_or(0, |after| {
            cell.log.partition_point(|event| event.at <= after)
        });
        let to = query.up_to.map_or(cell.log.len(), |last| {
            usize::try_from(last.0).unwrap_or(usize::MAX)
        });
        let kinds = asked(&query.kinds);
        let needle = query.search.as_deref().map(Needle::new);
        let matching = |item: &LogItem| {
            let event = &item.event.event;
            kinds & Kind::of(event).bit() != 0
                && needle
                    .as_ref()
                    .is_none_or(|needle| searchable(event).is_some_and(|text| needle.is_in(&text)))
        };
        let mut items: Vec<LogItem> = cell.items(from, to).filter(matching).collect();
        let total = items.len();
        if query.newest {
            items.drain(..total.saturating_sub(query.limit));
        } else {
            items.truncate(query.limit);
        }
        Page {
            more: items.len() < total,
            total_matching: total as u64,
            items: items
                .into_iter()
                .map(|LogItem { position, event }| LogItem {
                    position,
                    event: told(event),
                })
                .collect(),
        }
    }

    pub(super) fn ids_ending(&self, suffix: &str, limit: usize) -> Vec<SessionId> {
        let ends = |session: &&SessionId| session.to_string().ends_with(suffix);
        self.births
            .iter()
            .filter(ends)
            .copied()
            .take(limit)
            .collect()
    }
}

/// Whether what was streamed for a turn is settled by an event.
fn settles_stream(event: &Event) -> bool {
    matches!(
        event,
        Event::Said { .. } | Event::TurnEnded { .. } | Event::Stopped { .. }
    )
}

impl Lookup for World {
    type Error = Refused;

    fn head(&mut self, session: SessionId) -> Result<Option<Head>, Refused> {
        Ok(self.head_of(session))
    }

    fn lies(&mut self, session: SessionId, mail: MailId) -> Result<bool, Refused> {
        let row = self.mail.get(&mail.0);
        Ok(row.is_some_and(|(to, _)| *to == session))
    }

    fn unread(&mut self, session: SessionId) -> Result<usize, Refused> {
        let mine = self.mail.values().filter(|(to, _)| *to == session);
        Ok(mine.count())
    }

    fn command(&mut self, session: SessionId, id: Uuid) -> Result<Option<KnownCommand>, Refused> {
        Ok(self.known_command(session, id))
    }

    fn parents(&mut self, session: SessionId) -> Result<Vec<SessionId>, Refused> {
        Ok(self.parents_of(session))
    }

    fn quota(&mut self, session: SessionId, key: &str) -> Result<i64, Refused> {
        Ok(self.used(session, key))
    }

    fn entity_tag(&mut self, id: Uuid) -> Result<Option<u64>, Refused> {
        Ok(self.entities.get(&id).map(|entity| entity.tag))
    }
}
