//! What the rules of an append look up, as the writer sees it: mostly what it remembers.

use attache_session::{Epoch, Generation, MailId, Position, SessionId};
use rusqlite::{OptionalExtension, Row, params};
use uuid::Uuid;

use super::columns::{id, int, known_command, number, time};
use super::heads::{Entry, unpack};
use super::tables::{Failure, Tables};
use crate::check::{Head, Lookup};
use crate::read::KnownCommand;
use crate::record::Fixed;
use crate::refused::Refused;

impl Tables {
    pub(super) fn sid(&mut self, session: SessionId) -> Result<i64, Failure> {
        match self.entry(session)? {
            Some(entry) => Ok(entry.sid),
            None => Err(Refused::Unknown { session }.into()),
        }
    }

    pub(super) fn entry(
        &mut self,
        session: SessionId,
    ) -> Result<Option<&mut Entry>, rusqlite::Error> {
        let Self { db, heads, .. } = self;
        if heads.get(session).is_none() {
            let stored = db
                .prepare_cached(
                    "SELECT sid, generation, head, last_at, epoch, min_reader, counts, fixed \
                     FROM session WHERE uuid = ?1",
                )?
                .query_row([session.0.as_bytes()], entry_of)
                .optional()?;
            let Some(entry) = stored else { return Ok(None) };
            heads.insert(session, entry);
        }
        Ok(heads.get(session))
    }
}

fn entry_of(row: &Row<'_>) -> Result<Entry, rusqlite::Error> {
    let epoch: Option<[u8; 16]> = row.get(4)?;
    let fixed = row.get_ref(7)?.as_str().unwrap_or_default();
    Ok(Entry {
        sid: row.get(0)?,
        head: Head {
            generation: Generation(number(row, 1)?),
            head: Position(number(row, 2)?),
            last_at: time(row, 3)?,
            epoch: epoch.map(|bytes| Epoch(Uuid::from_bytes(bytes))),
            min_reader: u32::try_from(number(row, 5)?).unwrap_or(u32::MAX),
        },
        counts: unpack(row.get_ref(6)?.as_blob().unwrap_or_default()),
        // An unreadable one is written anew.
        fixed: Fixed::read(fixed).unwrap_or_default(),
        unread: None,
        partial: true,
    })
}

impl Lookup for Tables {
    type Error = Failure;

    fn head(&mut self, session: SessionId) -> Result<Option<Head>, Failure> {
        Ok(self.entry(session)?.map(|entry| entry.head))
    }

    fn lies(&mut self, session: SessionId, mail: MailId) -> Result<bool, Failure> {
        let Some(entry) = self.entry(session)? else {
            return Ok(false);
        };
        let sid = entry.sid;
        let found = self
            .db
            .prepare_cached("SELECT 1 FROM mail WHERE id = ?1 AND sid = ?2")?
            .exists([int(mail.0), sid])?;
        Ok(found)
    }

    fn unread(&mut self, session: SessionId) -> Result<usize, Failure> {
        let Some(entry) = self.entry(session)? else {
            return Ok(0);
        };
        if let Some(rows) = entry.unread {
            return Ok(rows);
        }
        let sid = entry.sid;
        let rows = self
            .db
            .prepare_cached("SELECT count(*) FROM mail WHERE sid = ?1")?
            .query_row([sid], |row| number(row, 0))?;
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        if let Some(entry) = self.heads.get(session) {
            entry.unread = Some(rows);
        }
        Ok(rows)
    }

    fn command(&mut self, session: SessionId, id: Uuid) -> Result<Option<KnownCommand>, Failure> {
        let Some(entry) = self.entry(session)? else {
            return Ok(None);
        };
        let sid = entry.sid;
        Ok(known_command(&self.db, sid, id)?)
    }

    fn parents(&mut self, session: SessionId) -> Result<Vec<SessionId>, Failure> {
        let Some(entry) = self.entry(session)? else {
            return Ok(Vec::new());
        };
        let sid = entry.sid;
        let mut up = self.db.prepare_cached(
            "SELECT uuid FROM link JOIN session ON sid = parent WHERE child = ?1 AND uuid IS NOT NULL",
        )?;
        let parents = up.query_map([sid], |row| Ok(SessionId(id(row, 0)?)))?;
        Ok(parents.collect::<Result<_, _>>()?)
    }

    fn quota(&mut self, session: SessionId, key: &str) -> Result<i64, Failure> {
        let Some(entry) = self.entry(session)? else {
            return Ok(0);
        };
        let sid = entry.sid;
        let used = self
            .db
            .prepare_cached("SELECT used FROM quota WHERE sid = ?1 AND key = ?2")?
            .query_row(params![sid, key], |row| row.get(0))
            .optional()?;
        Ok(used.unwrap_or(0))
    }

    fn entity_tag(&mut self, id: Uuid) -> Result<Option<u64>, Failure> {
        let tag = self
            .db
            .prepare_cached("SELECT tag FROM entity WHERE id = ?1")?
            .query_row([id.as_bytes()], |row| number(row, 0))
            .optional()?;
        Ok(tag)
    }
}
