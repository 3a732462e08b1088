//! Reading logs and rows. Each read takes a connection of its own and gives it back; what belongs
//! together is read in one transaction.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use attache_session::{
    Epoch, Generation, Mail, MailId, Position, SessionId, Stamped, Timestamp, Unread,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Params, params};
use uuid::Uuid;

use super::columns::{ENTITY, entity, id, int, kind_number, known_command, number, time};
use super::heads::{Counts, unpack};
use super::writer::lock;
use super::{SqliteStore, page, schema};
use crate::check;
use crate::entity::{Entity, EntityKind};
use crate::read::{
    KnownCommand, Log, LogItem, Page, PageQuery, Partial, ReadError, Row, RowFilter, Rows, Search,
};
use crate::record::{Class, Unusable, decode_event, decode_mail, decode_partial, decode_summary};

/// Connections that are kept when nobody reads.
const IDLE: usize = 8;

/// The connections of the readers.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            idle: Mutex::default(),
        }
    }

    pub(super) fn close(&self) {
        lock(&self.idle).clear();
    }

    /// Reads from one moment.
    fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let idle = lock(&self.idle).pop();
        let db = match idle {
            Some(db) => db,
            None => schema::reader(&self.path)?,
        };
        let say = |words: &str| db.prepare_cached(words)?.execute([]);
        say("BEGIN")?;
        let result = read(&db);
        // Nothing was written: this only leaves the moment. A connection that stays in it is closed.
        if say("COMMIT").is_ok() {
            let mut idle = lock(&self.idle);
            if idle.len() < IDLE {
                idle.push(db);
            }
        }
        result
    }
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        if schema::is_damage(&error) {
            Self::Corrupt(error.to_string())
        } else {
            Self::Failed(error.to_string())
        }
    }
}

impl From<rusqlite::types::FromSqlError> for ReadError {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Self::Corrupt(error.to_string())
    }
}

impl From<Unusable> for ReadError {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::TooNew(needs) => Self::TooNew { needs },
            Unusable::Broken(text) => Self::Corrupt(text),
        }
    }
}

/// What a reader of a log needs to know of its session.
pub(super) struct Place {
    pub(super) sid: i64,
    pub(super) head: u64,
    pub(super) counts: Counts,
}

pub(super) fn place(db: &Connection, session: SessionId) -> Result<Option<Place>, ReadError> {
    let place = db
        .prepare_cached("SELECT sid, head, counts FROM session WHERE uuid = ?1")?
        .query_row([session.0.as_bytes()], |row| {
            Ok(Place {
                sid: row.get(0)?,
                head: number(row, 1)?,
                counts: unpack(row.get_ref(2)?.as_blob().unwrap_or_default()),
            })
        })
        .optional()?;
    Ok(place)
}

/// Calls `with` with a text that stands in its column or lies apart.
pub(super) fn with_text<T>(
    db: &Connection,
    column: ValueRef<'_>,
    with: impl FnOnce(Option<&str>) -> T,
) -> Result<T, ReadError> {
    match column {
        ValueRef::Null => Ok(with(None)),
        ValueRef::Blob(digest) => {
            let text: Option<String> = db
                .prepare_cached("SELECT data FROM blob WHERE digest = ?1")?
                .query_row([digest], |row| row.get(0))
                .optional()?;
            let text = text.ok_or_else(|| ReadError::Corrupt("a text is missing".to_owned()))?;
            Ok(with(Some(&text)))
        }
        other => Ok(with(Some(other.as_str()?))),
    }
}

/// How a record becomes an event.
type Decode = fn(Timestamp, &str, Option<&str>) -> Result<Stamped, Unusable>;

/// The columns of an event, in the order in which [`item`] reads them.
pub(super) const EVENT: &str = "seq, at, text, body, kind, nth";

/// A stored event. Who folds the log needs all of it; who shows it can pass over what is for a
/// newer reader.
pub(super) fn item(
    db: &Connection,
    row: &rusqlite::Row<'_>,
    decode: Decode,
) -> Result<LogItem, ReadError> {
    let at: Timestamp = time(row, 1)?;
    let body = row.get_ref(3)?;
    let event: Stamped = with_text(db, row.get_ref(2)?, |text| {
        with_text(db, body, |body| decode(at, body.unwrap_or_default(), text))
    })???;
    Ok(LogItem {
        position: Position(number(row, 0)?),
        event,
    })
}

impl Log for SqliteStore {
    fn events(
        &self,
        session: SessionId,
        after: Position,
        limit: usize,
    ) -> Result<Vec<LogItem>, ReadError> {
        self.readers.read(|db| {
            let Some(Place { sid, .. }) = place(db, session)? else {
                return Ok(Vec::new());
            };
            let mut events = db.prepare_cached(&format!(
                "SELECT {EVENT} FROM event WHERE sid = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
            ))?;
            let mut rows = events.query(params![sid, int(after.0), int(limit as u64)])?;
            let mut items = Vec::new();
            while let Some(row) = rows.next()? {
                items.push(item(db, row, decode_event)?);
            }
            Ok(items)
        })
    }

    fn partial(&self, session: SessionId) -> Result<Option<Partial>, ReadError> {
        self.readers.read(|db| {
            let body: Option<String> = db
                .prepare_cached(
                    "SELECT body FROM partial WHERE sid = \
                     (SELECT sid FROM session WHERE uuid = ?1)",
                )?
                .query_row([session.0.as_bytes()], |row| row.get(0))
                .optional()?;
            Ok(body.as_deref().map(decode_partial).transpose()?)
        })
    }
}

/// The columns of a row, in the order in which [`row`] reads them.
const ROW: &str = "sid, uuid, generation, head, last_at, root, spawner, epoch, fixed, summary";

fn row(
    db: &Connection,
    columns: &rusqlite::Row<'_>,
    unread: &mut UnreadRows,
) -> Result<Row, ReadError> {
    let sid: i64 = columns.get(0)?;
    let spawner: Option<[u8; 16]> = columns.get(6)?;
    let epoch: Option<[u8; 16]> = columns.get(7)?;
    let fixed = columns.get_ref(8)?.as_str()?;
    let changing = columns.get_ref(9)?.as_str()?;
    let epoch = epoch.map(|bytes| Epoch(Uuid::from_bytes(bytes)));
    Ok(Row {
        session: SessionId(id(columns, 1)?),
        generation: Generation(number(columns, 2)?),
        head: Position(number(columns, 3)?),
        last_at: time(columns, 4)?,
        root: SessionId(id(columns, 5)?),
        spawner: spawner.map(|bytes| SessionId(Uuid::from_bytes(bytes))),
        summary: Arc::new(decode_summary(fixed, changing, epoch)?),
        unread: unread.of(db, sid)?,
    })
}

/// Rows from which on a listing counts all unread mail at once.
const MANY_ROWS: u32 = 32;

/// What lies unread, for the rows of a listing: asked for row by row while they are few.
#[derive(Default)]
struct UnreadRows {
    asked: u32,
    all: Option<HashMap<i64, Unread>>,
}

impl UnreadRows {
    fn of(&mut self, db: &Connection, sid: i64) -> Result<Unread, ReadError> {
        if let Some(all) = &self.all {
            return Ok(all.get(&sid).copied().unwrap_or_default());
        }
        self.asked += 1;
        if self.asked > MANY_ROWS {
            let sql = "SELECT class, count(*), sid FROM mail GROUP BY sid, class";
            let all = counted(db, sql, [])?;
            let unread = all.get(&sid).copied().unwrap_or_default();
            self.all = Some(all);
            return Ok(unread);
        }
        let sql = "SELECT class, count(*), sid FROM mail WHERE sid = ?1 GROUP BY class";
        let one = counted(db, sql, [sid])?;
        Ok(one.get(&sid).copied().unwrap_or_default())
    }
}

fn counted(
    db: &Connection,
    sql: &str,
    values: impl Params,
) -> Result<HashMap<i64, Unread>, ReadError> {
    let mut unread: HashMap<i64, Unread> = HashMap::new();
    let mut classes = db.prepare_cached(sql)?;
    let mut rows = classes.query(values)?;
    while let Some(row) = rows.next()? {
        let count = u32::try_from(number(row, 1)?).unwrap_or(u32::MAX);
        Class::add(unread.entry(row.get(2)?).or_default(), row.get(0)?, count);
    }
    Ok(unread)
}

fn list(db: &Connection, from: &str, values: impl Params) -> Result<Vec<Row>, ReadError> {
    let mut listing = db.prepare_cached(&format!("SELECT {ROW} FROM {from}"))?;
    let mut found = listing.query(values)?;
    let mut rows = Vec::new();
    let mut unread = UnreadRows::default();
    while let Some(columns) = found.next()? {
        rows.push(row(db, columns, &mut unread)?);
    }
    Ok(rows)
}

fn sid(db: &Connection, session: SessionId) -> Result<Option<i64>, ReadError> {
    Ok(place(db, session)?.map(|place| place.sid))
}

fn parents(db: &Connection, sid: i64) -> Result<Vec<i64>, ReadError> {
    let mut up = db.prepare_cached("SELECT parent FROM link WHERE child = ?1")?;
    let parents = up.query_map([sid], |row| row.get(0))?;
    Ok(parents.collect::<Result<_, _>>()?)
}

impl Rows for SqliteStore {
    fn row(&self, session: SessionId) -> Result<Option<Row>, ReadError> {
        self.readers.read(|db| {
            let rows = list(db, "session WHERE uuid = ?1", [session.0.as_bytes()])?;
            Ok(rows.into_iter().next())
        })
    }

    fn rows(
        &self,
        filter: RowFilter,
        after: Option<SessionId>,
        limit: usize,
    ) -> Result<Vec<Row>, ReadError> {
        self.readers.read(|db| {
            let limit = int(limit as u64);
            let last = match after {
                None => 0,
                Some(after) => match sid(db, after)? {
                    Some(sid) => sid,
                    None => return Ok(Vec::new()),
                },
            };
            match filter {
                RowFilter::All => list(
                    db,
                    "session WHERE sid > ?1 AND uuid IS NOT NULL ORDER BY sid LIMIT ?2",
                    [last, limit],
                ),
                RowFilter::Roots => list(
                    db,
                    "session WHERE sid > ?1 AND uuid IS NOT NULL AND spawner IS NULL \
                     ORDER BY sid LIMIT ?2",
                    [last, limit],
                ),
                RowFilter::Tree(root) => list(
                    db,
                    "session WHERE root = ?3 AND sid > ?1 AND uuid IS NOT NULL \
                     ORDER BY sid LIMIT ?2",
                    params![last, limit, root.0.as_bytes()],
                ),
                RowFilter::Children(parent) => {
                    let Some(parent) = sid(db, parent)? else {
                        return Ok(Vec::new());
                    };
                    list(
                        db,
                        "link JOIN session ON sid = child WHERE parent = ?3 AND ord > \
                         (SELECT coalesce(max(ord), 0) FROM link WHERE parent = ?3 AND child = ?1) \
                         AND uuid IS NOT NULL ORDER BY ord LIMIT ?2",
                        [last, limit, parent],
                    )
                }
            }
        })
    }

    fn descends(&self, descendant: SessionId, ancestor: SessionId) -> Result<bool, ReadError> {
        self.readers.read(|db| {
            let (Some(below), Some(above)) = (sid(db, descendant)?, sid(db, ancestor)?) else {
                return Ok(false);
            };
            let first = parents(db, below)?;
            let all = check::ancestors(first, |next| parents(db, next))?;
            Ok(all.contains(&above))
        })
    }

    fn mail(&self, session: SessionId, limit: usize) -> Result<Vec<Mail>, ReadError> {
        self.readers.read(|db| {
            let Some(sid) = sid(db, session)? else {
                return Ok(Vec::new());
            };
            let mut unread = db.prepare_cached(
                "SELECT id, sender, body FROM mail WHERE sid = ?1 ORDER BY id LIMIT ?2",
            )?;
            let mut rows = unread.query([sid, int(limit as u64)])?;
            let mut mail = Vec::new();
            while let Some(row) = rows.next()? {
                // Mail of a newer version stays unread.
                if let Some(body) = decode_mail(row.get_ref(2)?.as_str()?) {
                    mail.push(Mail {
                        id: MailId(number(row, 0)?),
                        from: SessionId(id(row, 1)?),
                        body,
                    });
                }
            }
            Ok(mail)
        })
    }

    fn command(&self, session: SessionId, id: Uuid) -> Result<Option<KnownCommand>, ReadError> {
        self.readers.read(|db| match sid(db, session)? {
            Some(sid) => Ok(known_command(db, sid, id)?),
            None => Ok(None),
        })
    }

    fn quota(&self, session: SessionId, key: &str) -> Result<i64, ReadError> {
        self.readers.read(|db| {
            let used: Option<i64> = db
                .prepare_cached(
                    "SELECT used FROM quota WHERE key = ?2 AND sid = \
                     (SELECT sid FROM session WHERE uuid = ?1)",
                )?
                .query_row(params![session.0.as_bytes(), key], |row| row.get(0))
                .optional()?;
            Ok(used.unwrap_or(0))
        })
    }

    fn entity(&self, id: Uuid) -> Result<Option<Entity>, ReadError> {
        let found = self.entities_where("id = ?1", [id.as_bytes()])?;
        Ok(found.into_iter().next())
    }

    fn entity_named(&self, kind: EntityKind, name: &str) -> Result<Option<Entity>, ReadError> {
        let values = params![kind_number(kind), name];
        let found = self.entities_where("kind = ?1 AND name = ?2", values)?;
        Ok(found.into_iter().next())
    }

    fn entities(&self, kind: EntityKind) -> Result<Vec<Entity>, ReadError> {
        self.entities_where("kind = ?1 ORDER BY name", [kind_number(kind)])
    }
}

impl SqliteStore {
    fn entities_where(&self, which: &str, values: impl Params) -> Result<Vec<Entity>, ReadError> {
        self.readers.read(|db| {
            let sql = format!("SELECT {ENTITY} FROM entity WHERE {which}");
            let mut found = db.prepare_cached(&sql)?;
            let mut rows = found.query(values)?;
            let mut entities = Vec::new();
            while let Some(row) = rows.next()? {
                entities.extend(entity(row)?);
            }
            Ok(entities)
        })
    }
}

impl Search for SqliteStore {
    fn page(&self, session: SessionId, query: &PageQuery) -> Result<Page, ReadError> {
        self.readers.read(|db| match place(db, session)? {
            Some(place) => page::page(db, &place, query),
            None => Ok(Page {
                items: Vec::new(),
                total_matching: 0,
                more: false,
            }),
        })
    }

    fn ids_ending(&self, suffix: &str, limit: usize) -> Result<Vec<SessionId>, ReadError> {
        self.readers.read(|db| {
            let mut all =
                db.prepare_cached("SELECT uuid FROM session WHERE uuid IS NOT NULL ORDER BY sid")?;
            let mut rows = all.query([])?;
            let mut found = Vec::new();
            let mut text = Uuid::encode_buffer();
            while found.len() < limit
                && let Some(row) = rows.next()?
            {
                let uuid = id(row, 0)?;
                if uuid
                    .as_hyphenated()
                    .encode_lower(&mut text)
                    .ends_with(suffix)
                {
                    found.push(SessionId(uuid));
                }
            }
            Ok(found)
        })
    }
}
