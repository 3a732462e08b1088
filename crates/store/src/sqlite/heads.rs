//! What the writer remembers of the sessions that wrote lately. It is the only writer, so what it
//! remembers is what is stored.

use std::collections::HashMap;

use attache_session::SessionId;

use crate::check::Head;
use crate::record::Fixed;

/// Sessions remembered at least; at most twice as many.
const SESSIONS: usize = 8_192;

/// How many events of each kind a session has.
pub(super) type Counts = [u64; 6];

/// What is remembered of a session.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) sid: i64,
    pub(super) head: Head,
    pub(super) counts: Counts,
    pub(super) fixed: Fixed,
    /// Rows of its mailbox, once somebody asked.
    pub(super) unread: Option<usize>,
    /// Whether it may have streamed text.
    pub(super) partial: bool,
}

/// Two halves: when the young one is full, the old one is forgotten.
#[derive(Debug)]
pub(super) struct Heads {
    young: HashMap<SessionId, Entry>,
    old: HashMap<SessionId, Entry>,
    limit: usize,
}

impl Heads {
    pub(super) fn new() -> Self {
        Self::of(SESSIONS)
    }

    fn of(limit: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            limit,
        }
    }

    pub(super) fn get(&mut self, session: SessionId) -> Option<&mut Entry> {
        if !self.young.contains_key(&session) {
            let entry = self.old.remove(&session)?;
            self.insert(session, entry);
        }
        self.young.get_mut(&session)
    }

    pub(super) fn insert(&mut self, session: SessionId, entry: Entry) {
        if self.young.len() >= self.limit {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(session, entry);
    }

    pub(super) fn forget(&mut self, session: SessionId) {
        self.young.remove(&session);
        self.old.remove(&session);
    }

    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

/// Counts as they are stored.
pub(super) fn pack(counts: &Counts) -> [u8; 48] {
    let mut bytes = [0; 48];
    for (place, count) in bytes.chunks_exact_mut(8).zip(counts) {
        place.copy_from_slice(&count.to_le_bytes());
    }
    bytes
}

/// Stored counts; what is missing is none.
pub(super) fn unpack(bytes: &[u8]) -> Counts {
    let mut counts = [0; 6];
    for (count, place) in counts.iter_mut().zip(bytes.chunks_exact(8)) {
        let mut number = [0; 8];
        number.copy_from_slice(place);
        *count = u64::from_le_bytes(number);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::session;
    use attache_session::{Generation, Position, Timestamp};

    fn entry(sid: i64) -> Entry {
        Entry {
            sid,
            head: Head {
                generation: Generation(1),
                head: Position(0),
                last_at: Timestamp(0),
                epoch: None,
                min_reader: 1,
            },
            counts: [0; 6],
            fixed: Fixed::default(),
            unread: None,
            partial: false,
        }
    }

    #[test]
    fn it_remembers_who_wrote_lately_and_never_more_than_twice_its_limit() {
        let mut heads = Heads::of(3);
        for number in 0..20 {
            heads.insert(session(number), entry(number as i64));
            assert!(heads.get(session(0)).is_some(), "{number}");
            assert!(heads.young.len() + heads.old.len() <= 6);
        }
        assert!(heads.get(session(5)).is_none());
        heads.forget(session(0));
        assert!(heads.get(session(0)).is_none());
    }

    #[test]
    fn an_entry_is_small() {
        // Sixteen thousand of them at most: 5 MB.
        assert!(size_of::<Entry>() <= 320, "{}", size_of::<Entry>());
    }

    #[test]
    fn counts_read_back_the_same() {
        let counts = [0, 1, 2, u64::MAX, 4, 5];
        assert_eq!(unpack(&pack(&counts)), counts);
        assert_eq!(unpack(&[]), [0; 6]);
    }
}
