//! Pages of a history. A place in time is found by halving; what matches is counted by the number
//! that each event has among those of its kind, so that no page counts what it does not show.
//! Only a search reads all texts.

use attache_session::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::columns::{int, number, time};
use super::read::{EVENT, Place, item, with_text};
use crate::fold::Needle;
use crate::kind::asked;
use crate::read::{Kind, LogItem, Page, PageQuery, ReadError};
use crate::record::show_event;

/// A page that ends this near to the end of the log has what lies beyond it counted: the page of a
/// viewer ends where its session is, a few events behind.
const TAIL: u64 = 1_000;

/// The part of a log that a query is about: positions after `after`, up to `last`.
struct Range {
    sid: i64,
    after: u64,
    last: u64,
    kinds: u8,
}

impl Range {
    /// The kinds as a condition that the index alone answers. The simplest that says it: a rare
    /// kind is looked for in the whole index of a session.
    fn condition(&self) -> String {
        let kinds = Kind::ALL.map(|kind| (kind, self.kinds & kind.bit() != 0));
        let asked = kinds.iter().filter(|(_, asked)| *asked);
        let numbers: Vec<String> = asked.map(|(kind, _)| (*kind as u8).to_string()).collect();
        match numbers.as_slice() {
            [one] => format!("kind = {one}"),
            all if all.len() == Kind::ALL.len() - 1 && self.kinds & Kind::Other.bit() == 0 => {
                "kind BETWEEN 1 AND 5".to_owned()
            }
            all => format!("kind IN ({})", all.join(", ")),
        }
    }
}

/// A found event with its kind and its number among those of its kind.
struct Found {
    item: LogItem,
    kind: u8,
    nth: u64,
}

pub(super) fn page(db: &Connection, place: &Place, query: &PageQuery) -> Result<Page, ReadError> {
    let after = match query.after {
        Some(after) => up_to_time(db, place, after)?,
        None => 0,
    };
    let range = Range {
        sid: place.sid,
        after,
        last: query
            .up_to
            .map_or(place.head, |last| last.0.min(place.head)),
        kinds: asked(&query.kinds),
    };
    match &query.search {
        Some(text) => searched(db, &range, query, &Needle::new(text)),
        None => listed(db, place, &range, query),
    }
}

/// How many events are not later than a time. Times strictly increase with the position.
fn up_to_time(db: &Connection, place: &Place, limit: Timestamp) -> Result<u64, ReadError> {
    let mut at = db.prepare_cached("SELECT at FROM event WHERE sid = ?1 AND seq = ?2")?;
    let (mut low, mut high) = (0, place.head);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let found = at
            .query_row([place.sid, int(middle)], |row| time(row, 0))
            .optional()?;
        match found {
            Some(found) if found <= limit => low = middle,
            Some(_) => high = middle - 1,
            None => return Err(ReadError::Corrupt("an event is missing".to_owned())),
        }
    }
    Ok(low)
}

fn listed(
    db: &Connection,
    place: &Place,
    range: &Range,
    query: &PageQuery,
) -> Result<Page, ReadError> {
    // One more than asked for tells whether there is more; a look for more than there are would
    // read the rest of the log in vain.
    let asked = Kind::ALL
        .into_iter()
        .filter(|kind| range.kinds & kind.bit() != 0);
    let most: u64 = asked.map(|kind| place.counts[kind as usize]).sum();
    let limit = int((query.limit as u64).saturating_add(1).min(most));
    let order = if query.newest { "DESC" } else { "ASC" };
    let kinds = range.condition();
    let mut events = db.prepare_cached(&format!(
        "SELECT {EVENT} FROM event WHERE sid = ?1 AND seq > ?2 AND seq <= ?3 \
         AND {kinds} ORDER BY seq {order} LIMIT ?4"
    ))?;
    let (after, last) = (int(range.after), int(range.last));
    let mut rows = events.query(params![range.sid, after, last, limit])?;
    let mut found = Vec::new();
    let mut more = false;
    while let Some(row) = rows.next()? {
        if found.len() == query.limit {
            more = true;
            break;
        }
        found.push(Found {
            item: item(db, row, show_event)?,
            kind: row.get(4)?,
            nth: number(row, 5)?,
        });
    }
    if query.newest {
        found.reverse();
    }
    let total_matching = if more {
        total(db, place, range, query, &found)?
    } else {
        found.len() as u64
    };
    Ok(Page {
        items: found.into_iter().map(|found| found.item).collect(),
        total_matching,
        more,
    })
}

fn total(
    db: &Connection,
    place: &Place,
    range: &Range,
    query: &PageQuery,
    found: &[Found],
) -> Result<u64, ReadError> {
    let mut total = 0;
    for kind in Kind::ALL {
        let all = place.counts[kind as usize];
        if range.kinds & kind.bit() == 0 || all == 0 {
            continue;
        }
        let mut here = found.iter().filter(|found| found.kind == kind as u8);
        let upper = if range.last == place.head {
            all
        } else {
            match here.clone().next_back() {
                Some(last) if query.newest => last.nth,
                _ if place.head - range.last <= TAIL => {
                    all.saturating_sub(beyond(db, range.sid, range.last, kind)?)
                }
                _ => count(db, range.sid, range.last, kind)?,
            }
        };
        let lower = if range.after == 0 {
            0
        } else {
            match here.next() {
                Some(first) if !query.newest => first.nth.saturating_sub(1),
                _ => count(db, range.sid, range.after, kind)?,
            }
        };
        total += upper.saturating_sub(lower);
    }
    Ok(total)
}

/// How many events of a kind there are after a position.
fn beyond(db: &Connection, sid: i64, last: u64, kind: Kind) -> Result<u64, ReadError> {
    let count = db
        .prepare_cached("SELECT count(*) FROM event WHERE sid = ?1 AND seq > ?2 AND kind = ?3")?
        .query_row(params![sid, int(last), kind as u8], |row| number(row, 0))?;
    Ok(count)
}

/// How many events of a kind there are up to a position.
fn count(db: &Connection, sid: i64, last: u64, kind: Kind) -> Result<u64, ReadError> {
    let nth = db
        .prepare_cached(
            "SELECT nth FROM event WHERE sid = ?1 AND seq <= ?2 AND kind = ?3 \
             ORDER BY seq DESC LIMIT 1",
        )?
        .query_row(params![sid, int(last), kind as u8], |row| number(row, 0))
        .optional()?;
    Ok(nth.unwrap_or(0))
}

fn searched(
    db: &Connection,
    range: &Range,
    query: &PageQuery,
    needle: &Needle,
) -> Result<Page, ReadError> {
    let kinds = range.condition();
    let mut texts = db.prepare_cached(&format!(
        "SELECT seq, text FROM event WHERE sid = ?1 AND seq > ?2 AND seq <= ?3 \
         AND {kinds} ORDER BY seq"
    ))?;
    let (after, last) = (int(range.after), int(range.last));
    let mut rows = texts.query(params![range.sid, after, last])?;
    let mut places = std::collections::VecDeque::new();
    let mut total = 0_u64;
    while let Some(row) = rows.next()? {
        let is_in = with_text(db, row.get_ref(1)?, |text| {
            text.is_some_and(|text| needle.is_in(text))
        })?;
        if !is_in {
            continue;
        }
        total += 1;
        if places.len() < query.limit {
            places.push_back(row.get::<_, i64>(0)?);
        } else if query.newest && query.limit > 0 {
            places.pop_front();
            places.push_back(row.get::<_, i64>(0)?);
        }
    }
    let mut events = db.prepare_cached(&format!(
        "SELECT {EVENT} FROM event WHERE sid = ?1 AND seq = ?2"
    ))?;
    let mut items = Vec::with_capacity(places.len());
    for seq in places {
        let mut rows = events.query([range.sid, seq])?;
        if let Some(row) = rows.next()? {
            items.push(item(db, row, show_event)?);
        }
    }
    Ok(Page {
        more: (items.len() as u64) < total,
        total_matching: total,
        items,
    })
}
