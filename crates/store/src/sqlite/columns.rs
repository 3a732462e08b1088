//! Values from and to the columns of the tables.

use attache_session::{Json, Position, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use crate::entity::{Entity, EntityKind};
use crate::read::KnownCommand;

/// A number as SQLite holds it; our counters never come near its end.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that counts; a negative one in a damaged row reads as none.
pub(super) fn number(row: &Row<'_>, column: usize) -> Result<u64, rusqlite::Error> {
    let number: i64 = row.get(column)?;
    Ok(u64::try_from(number).unwrap_or(0))
}

/// A time.
pub(super) fn time(row: &Row<'_>, column: usize) -> Result<Timestamp, rusqlite::Error> {
    Ok(Timestamp(row.get(column)?))
}

/// An id.
pub(super) fn id(row: &Row<'_>, column: usize) -> Result<Uuid, rusqlite::Error> {
    Ok(Uuid::from_bytes(row.get(column)?))
}

/// A kind of entity as its column says it; the numbers never change.
pub(super) fn kind_number(kind: EntityKind) -> u8 {
    match kind {
        EntityKind::Definition => 1,
        EntityKind::TrustProfile => 2,
        EntityKind::User => 3,
        EntityKind::Computer => 4,
        EntityKind::Profile => 5,
        EntityKind::AgentSession => 6,
    }
}

fn kind_of(number: u8) -> Option<EntityKind> {
    Some(match number {
        1 => EntityKind::Definition,
        2 => EntityKind::TrustProfile,
        3 => EntityKind::User,
        4 => EntityKind::Computer,
        5 => EntityKind::Profile,
        6 => EntityKind::AgentSession,
        _ => return None,
    })
}

/// The columns of an entity, in the order in which [`entity`] reads them.
pub(super) const ENTITY: &str = "id, kind, name, tag, modified_at, change, data";

/// An entity; none when a newer version knows its kind.
pub(super) fn entity(row: &Row<'_>) -> Result<Option<Entity>, rusqlite::Error> {
    let Some(kind) = kind_of(row.get(1)?) else {
        return Ok(None);
    };
    Ok(Some(Entity {
        id: id(row, 0)?,
        kind,
        name: row.get(2)?,
        tag: number(row, 3)?,
        modified_at: time(row, 4)?,
        change: id(row, 5)?,
        data: json(row, 6)?,
    }))
}

/// JSON.
fn json(row: &Row<'_>, column: usize) -> Result<Json, rusqlite::Error> {
    Ok(Json::from_checked(row.get_ref(column)?.as_str()?))
}

/// A command that a session has carried out.
pub(super) fn known_command(
    db: &Connection,
    sid: i64,
    id: Uuid,
) -> Result<Option<KnownCommand>, rusqlite::Error> {
    db.prepare_cached("SELECT digest, position, answer FROM command WHERE sid = ?1 AND id = ?2")?
        .query_row(params![sid, id.as_bytes()], |row| {
            Ok(KnownCommand {
                digest: row.get(0)?,
                position: Position(number(row, 1)?),
                answer: json(row, 2)?,
            })
        })
        .optional()
}
