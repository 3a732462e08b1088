//! Writes to the tables, inside the transaction of a group. Everything is checked before the first
//! write, so a refusal leaves nothing behind and undoes nothing of others.

use attache_session::{Generation, MailId, NewMail, Position, SessionId, Stamped, Summary};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::columns::{id, int, kind_number, number};
use super::heads::{Counts, Entry, Heads, pack};
use super::job::Ready;
use crate::append::{Born, CommandRecord};
use crate::check::{self, Checked, Head, Lookup};
use crate::entity::{Entity, EntityPut};
use crate::kind::searchable;
use crate::read::{Kind, Partial};
use crate::record::{Class, Fixed, encode_fixed, encode_mail, encode_partial};
use crate::refused::Refused;

/// Longer texts and bodies lie apart, each content once.
const APART: usize = 64 * 1024;

/// Rows of a deleted session that one group removes.
const REMOVED_ROWS: i64 = 1_000;

/// Why a write did not happen.
#[derive(Debug)]
pub(super) enum Failure {
    /// By the rules.
    Refused(Refused),
    /// The database failed: the whole group is in doubt.
    Broken(rusqlite::Error),
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Broken(error)
    }
}

/// The tables as their writer sees them.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) db: Connection,
    pub(super) heads: Heads,
    /// Row number of the newest event.
    pub(super) last_pos: i64,
    /// Groups without events.
    pub(super) mark: i64,
    last_sid: i64,
    /// Deleted sessions whose rows are still there.
    pub(super) removals: Vec<i64>,
}

impl Tables {
    pub(super) fn new(db: Connection) -> Result<Self, rusqlite::Error> {
        let mut tables = Self {
            db,
            heads: Heads::new(),
            last_pos: 0,
            mark: 0,
            last_sid: 0,
            removals: Vec::new(),
        };
        tables.look()?;
        Ok(tables)
    }

    /// Forgets everything and looks again at what is stored.
    pub(super) fn look(&mut self) -> Result<(), rusqlite::Error> {
        self.heads.clear();
        let number = |sql: &str| self.db.query_row(sql, [], |row| row.get::<_, i64>(0));
        self.last_pos = number("SELECT coalesce(max(pos), 0) FROM event")?;
        self.last_sid = number("SELECT coalesce(max(sid), 0) FROM session")?;
        self.mark = number("SELECT groups FROM mark")?;
        let mut gone = self
            .db
            .prepare("SELECT sid FROM session WHERE uuid IS NULL")?;
        self.removals = gone
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    pub(super) fn append(&mut self, ready: &Ready) -> Result<Position, Failure> {
        let append = &ready.append;
        let Checked {
            born,
            position,
            last_at,
            counters,
            links,
        } = check::check(self, append)?;
        let session = append.session;
        let min_reader = ready.min_reader;
        if born {
            let newborn = Newborn {
                session,
                generation: append.generation,
                events: &append.events,
                summary: &append.summary,
                min_reader,
            };
            self.bear(&newborn, &ready.bodies, &ready.summary)?;
        } else {
            self.extend(ready, position)?;
        }
        for (birth, (bodies, encoded)) in append.births.iter().zip(&ready.births) {
            let Born {
                session,
                generation,
                events,
                summary,
            } = birth;
            let newborn = Newborn {
                session: *session,
                generation: *generation,
                events,
                summary,
                min_reader,
            };
            self.bear(&newborn, bodies, encoded)?;
        }
        for (parent, child) in links {
            self.link(parent, child)?;
        }
        if !append.taken.is_empty() {
            self.take(session, &append.taken)?;
        }
        for mail in &append.mail {
            self.post(session, mail)?;
        }
        for (session, key, used) in &counters {
            let sid = self.sid(*session)?;
            self.db
                .prepare_cached("INSERT OR REPLACE INTO quota VALUES (?1, ?2, ?3)")?
                .execute(params![sid, key, used])?;
        }
        if let Some(command) = &append.command {
            let CommandRecord { id, digest, answer } = command;
            let sid = self.sid(session)?;
            self.db
                .prepare_cached("INSERT INTO command VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
                .execute(params![
                    sid,
                    id.as_bytes(),
                    last_at.0,
                    digest,
                    int(position.0),
                    answer.as_str()
                ])?;
        }
        if ready.settles_stream {
            let Self { db, heads, .. } = self;
            if let Some(entry) = heads.get(session).filter(|entry| entry.partial) {
                db.prepare_cached("DELETE FROM partial WHERE sid = ?1")?
                    .execute([entry.sid])?;
                entry.partial = false;
            }
        }
        Ok(position)
    }

    fn bear(
        &mut self,
        newborn: &Newborn<'_>,
        bodies: &[String],
        summary: &str,
    ) -> Result<(), Failure> {
        let Newborn {
            session,
            generation,
            events,
            summary: value,
            min_reader,
        } = *newborn;
        self.last_sid += 1;
        let sid = self.last_sid;
        let mut counts = [0; 6];
        self.write_events(sid, 0, events, bodies, &mut counts)?;
        let created = check::created(events);
        let root = created.map_or(session, |created| created.root);
        let spawner = created.and_then(|created| created.parents.first());
        let fixed = Fixed::of(value);
        let head = Head {
            generation,
            head: Position(0).plus(events.len()),
            last_at: events.last().map(|last| last.at).unwrap_or_default(),
            epoch: value.epoch,
            min_reader,
        };
        self.db
            .prepare_cached(
                "INSERT INTO session VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?
            .execute(params![
                sid,
                session.0.as_bytes(),
                int(generation.0),
                int(head.head.0),
                head.last_at.0,
                root.0.as_bytes(),
                spawner.map(|spawner| spawner.0.as_bytes()),
                head.epoch.as_ref().map(|epoch| epoch.0.as_bytes()),
                min_reader,
                pack(&counts),
                encode_fixed(&fixed),
                summary,
            ])?;
        let entry = Entry {
            sid,
            head,
            counts,
            fixed,
            unread: Some(0),
            partial: false,
        };
        self.heads.insert(session, entry);
        Ok(())
    }

    fn extend(&mut self, ready: &Ready, position: Position) -> Result<(), Failure> {
        let append = &ready.append;
        let session = append.session;
        let (sid, mut counts) = match self.entry(session)? {
            Some(entry) => (entry.sid, entry.counts),
            None => return Err(Refused::Unknown { session }.into()),
        };
        let from = append.expected;
        self.write_events(sid, from.0, &append.events, &ready.bodies, &mut counts)?;
        let Self { db, heads, .. } = self;
        let Some(entry) = heads.get(session) else {
            return Err(Refused::Unknown { session }.into());
        };
        entry.counts = counts;
        entry.head.head = position;
        entry.head.epoch = append.summary.epoch;
        entry.head.min_reader = entry.head.min_reader.max(ready.min_reader);
        if let Some(last) = append.events.last() {
            entry.head.last_at = last.at;
        }
        db.prepare_cached(
            "UPDATE session SET head = ?2, last_at = ?3, epoch = ?4, min_reader = ?5, counts = ?6, \
             summary = ?7 WHERE sid = ?1",
        )?
        .execute(params![
            sid,
            int(position.0),
            entry.head.last_at.0,
            entry.head.epoch.as_ref().map(|epoch| epoch.0.as_bytes()),
            entry.head.min_reader,
            pack(&counts),
            ready.summary,
        ])?;
        if !entry.fixed.is_of(&append.summary) {
            entry.fixed = Fixed::of(&append.summary);
            db.prepare_cached("UPDATE session SET fixed = ?2 WHERE sid = ?1")?
                .execute(params![sid, encode_fixed(&entry.fixed)])?;
        }
        Ok(())
    }

    fn write_events(
        &mut self,
        sid: i64,
        from: u64,
        events: &[Stamped],
        bodies: &[String],
        counts: &mut Counts,
    ) -> Result<(), rusqlite::Error> {
        let mut seq = int(from);
        for (stamped, body) in events.iter().zip(bodies) {
            seq += 1;
            self.last_pos += 1;
            let kind = Kind::of(&stamped.event);
            let nth = &mut counts[kind as usize];
            *nth += 1;
            let text = searchable(&stamped.event);
            let text = text.as_deref().map(|text| self.place(text)).transpose()?;
            let body = self.place(body)?;
            self.db
                .prepare_cached("INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?
                .execute(params![
                    self.last_pos,
                    sid,
                    seq,
                    stamped.at.0,
                    kind as u8,
                    int(*nth),
                    text,
                    body
                ])?;
        }
        Ok(())
    }

    /// What stands in the column of a text: itself, or the digest of what lies apart.
    fn place<'a>(&self, text: &'a str) -> Result<ToSqlOutput<'a>, rusqlite::Error> {
        if text.len() <= APART {
            return Ok(ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())));
        }
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        self.db
            .prepare_cached(
                "INSERT INTO blob VALUES (?1, 1, ?2) \
                 ON CONFLICT (digest) DO UPDATE SET refs = refs + 1",
            )?
            .execute(params![digest, text])?;
        Ok(ToSqlOutput::Owned(digest.to_vec().into()))
    }

    fn link(&mut self, parent: SessionId, child: SessionId) -> Result<(), Failure> {
        let parent = self.sid(parent)?;
        let child = self.sid(child)?;
        self.db
            .prepare_cached(
                "INSERT INTO link \
                 SELECT ?1, (SELECT coalesce(max(ord), 0) + 1 FROM link WHERE parent = ?1), ?2 \
                 WHERE NOT EXISTS (SELECT 1 FROM link WHERE parent = ?1 AND child = ?2)",
            )?
            .execute([parent, child])?;
        Ok(())
    }

    fn take(&mut self, session: SessionId, taken: &[MailId]) -> Result<(), Failure> {
        for mail in taken {
            self.db
                .prepare_cached("DELETE FROM mail WHERE id = ?1")?
                .execute([int(mail.0)])?;
        }
        if let Some(entry) = self.heads.get(session) {
            entry.unread = entry.unread.map(|rows| rows.saturating_sub(taken.len()));
        }
        Ok(())
    }

    fn post(&mut self, from: SessionId, mail: &NewMail) -> Result<(), Failure> {
        let NewMail { to, body } = mail;
        let sid = self.sid(*to)?;
        self.db
            .prepare_cached("INSERT INTO mail (sid, class, sender, body) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![
                sid,
                Class::of(body) as u8,
                from.0.as_bytes(),
                encode_mail(body)
            ])?;
        if let Some(entry) = self.heads.get(*to) {
            entry.unread = entry.unread.map(|rows| rows + 1);
        }
        Ok(())
    }

    pub(super) fn put_entity(&mut self, put: EntityPut) -> Result<Entity, Failure> {
        let by_id = self.entity_tag(put.id)?;
        let by_name = self
            .db
            .prepare_cached("SELECT id, tag FROM entity WHERE kind = ?1 AND name = ?2")?
            .query_row(params![kind_number(put.kind), put.name], |row| {
                Ok((id(row, 0)?, number(row, 1)?))
            })
            .optional()?;
        let entity = check::entity(put, by_id, by_name)?;
        let Entity {
            id,
            kind,
            name,
            tag,
            modified_at,
            change,
            data,
        } = &entity;
        self.db
            .prepare_cached("INSERT OR REPLACE INTO entity VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
            .execute(params![
                id.as_bytes(),
                kind_number(*kind),
                name,
                int(*tag),
                modified_at.0,
                change.as_bytes(),
                data.as_str()
            ])?;
        Ok(entity)
    }

    pub(super) fn claim(
        &mut self,
        session: SessionId,
        from: Generation,
    ) -> Result<Generation, Failure> {
        let head = self.head(session)?;
        let generation = check::claim(session, head.as_ref(), from)?;
        let sid = self.sid(session)?;
        self.db
            .prepare_cached("UPDATE session SET generation = ?2 WHERE sid = ?1")?
            .execute([sid, int(generation.0)])?;
        if let Some(entry) = self.heads.get(session) {
            entry.head.generation = generation;
        }
        Ok(generation)
    }

    pub(super) fn put_partial(
        &mut self,
        session: SessionId,
        partial: &Partial,
    ) -> Result<(), Failure> {
        let Some(entry) = self.entry(session)? else {
            return Ok(());
        };
        entry.partial = true;
        let sid = entry.sid;
        self.db
            .prepare_cached("INSERT OR REPLACE INTO partial VALUES (?1, ?2)")?
            .execute(params![sid, encode_partial(partial)])?;
        Ok(())
    }

    pub(super) fn delete(&mut self, session: SessionId) -> Result<(), Failure> {
        let sid = self.sid(session)?;
        for sql in [
            "UPDATE session SET uuid = NULL WHERE sid = ?1",
            "DELETE FROM link WHERE parent = ?1",
            "DELETE FROM link WHERE child = ?1",
            "DELETE FROM mail WHERE sid = ?1",
            "DELETE FROM quota WHERE sid = ?1",
            "DELETE FROM command WHERE sid = ?1",
            "DELETE FROM partial WHERE sid = ?1",
        ] {
            self.db.prepare_cached(sql)?.execute([sid])?;
        }
        self.heads.forget(session);
        self.removals.push(sid);
        Ok(())
    }

    /// Removes some rows of a deleted session; whether any are left to remove.
    pub(super) fn remove_some(&mut self) -> Result<(), rusqlite::Error> {
        let Some(sid) = self.removals.last().copied() else {
            return Ok(());
        };
        let digests: Vec<Vec<u8>> = self
            .db
            .prepare_cached(
                "WITH gone AS (SELECT text, body FROM event WHERE sid = ?1 ORDER BY seq LIMIT ?2) \
                 SELECT text FROM gone WHERE typeof(text) = 'blob' \
                 UNION ALL SELECT body FROM gone WHERE typeof(body) = 'blob'",
            )?
            .query_map([sid, REMOVED_ROWS], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        for digest in digests {
            self.db
                .prepare_cached("UPDATE blob SET refs = refs - 1 WHERE digest = ?1")?
                .execute([&digest])?;
            self.db
                .prepare_cached("DELETE FROM blob WHERE digest = ?1 AND refs <= 0")?
                .execute([&digest])?;
        }
        let removed = self
            .db
            .prepare_cached(
                "DELETE FROM event WHERE pos IN \
                 (SELECT pos FROM event WHERE sid = ?1 ORDER BY seq LIMIT ?2)",
            )?
            .execute([sid, REMOVED_ROWS])?;
        if int(removed as u64) < REMOVED_ROWS {
            self.db
                .prepare_cached("DELETE FROM session WHERE sid = ?1")?
                .execute([sid])?;
            self.removals.pop();
        }
        Ok(())
    }

    pub(super) fn sweep(&mut self, before: i64) -> Result<u64, Failure> {
        let swept = self
            .db
            .prepare_cached("DELETE FROM command WHERE at < ?1")?
            .execute([before])?;
        Ok(swept as u64)
    }
}

/// A session that is to be written for the first time.
struct Newborn<'a> {
    session: SessionId,
    generation: Generation,
    events: &'a [Stamped],
    summary: &'a Summary,
    min_reader: u32,
}
