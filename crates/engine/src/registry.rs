//! The slots: which sessions have an epoch in this life of the host, and which are in use.
//!
//! An entry is small and stays while its session has an epoch; a mailbox exists only while the
//! session is in use. Waking is a flag on the mailbox, never a message.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_session::{Epoch, SessionId};
use tokio::sync::watch;

use crate::live::Note;
use crate::mailbox::{Mailbox, SharedMailbox};

#[derive(Default)]
struct Entry {
    epoch: Option<Epoch>,
    mailbox: Option<SharedMailbox>,
    /// Rung at each change; exists only while somebody waits.
    changes: Option<watch::Sender<u64>>,
    /// Why it cannot be loaded, as far as that was tried.
    fault: Option<Arc<str>>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Registry {
    entries: Mutex<HashMap<SessionId, Entry>>,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mailbox of a session, made when there is none.
    pub(crate) fn mailbox(&self, session: SessionId) -> SharedMailbox {
        let mut entries = self.lock();
        let entry = entries.entry(session).or_default();
        Arc::clone(
            entry
                .mailbox
                .get_or_insert_with(|| Arc::new(Mailbox::default())),
        )
    }

    /// The mailbox of a session, if it is in use.
    pub(crate) fn in_use(&self, session: SessionId) -> Option<SharedMailbox> {
        self.lock().get(&session)?.mailbox.clone()
    }

    /// What a session's running turn waits for.
    pub(crate) fn note(&self, session: SessionId) -> Option<Note> {
        let entries = self.lock();
        let mailbox = entries.get(&session)?.mailbox.as_ref()?;
        mailbox.live.read(|live| live.note.clone())
    }

    /// Why a session cannot be loaded.
    pub(crate) fn fault(&self, session: SessionId) -> Option<Arc<str>> {
        self.lock().get(&session)?.fault.clone()
    }

    /// Remembers why a session cannot be loaded, or that it can.
    pub(crate) fn set_fault(&self, session: SessionId, fault: Option<Arc<str>>) {
        let mut entries = self.lock();
        match entries.get_mut(&session) {
            Some(entry) => entry.fault = fault,
            None if fault.is_some() => entries.entry(session).or_default().fault = fault,
            None => {}
        }
    }

    /// All sessions in use.
    pub(crate) fn all_in_use(&self) -> Vec<(SessionId, SharedMailbox)> {
        self.lock()
            .iter()
            .filter_map(|(id, entry)| {
                entry
                    .mailbox
                    .as_ref()
                    .map(|mailbox| (*id, Arc::clone(mailbox)))
            })
            .collect()
    }

    /// Drops what an unused session does not need.
    pub(crate) fn tidy(&self, session: SessionId) {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(&session) else {
            return;
        };
        if entry.mailbox.as_ref().is_some_and(|mailbox| {
            // One count is the map's own: nobody else can put anything in.
            Arc::strong_count(mailbox) == 1 && mailbox.is_unused()
        }) {
            entry.mailbox = None;
        }
        if entry
            .changes
            .as_ref()
            .is_some_and(|changes| changes.receiver_count() == 0)
        {
            entry.changes = None;
        }
        let is_known = entry.epoch.is_some() || entry.fault.is_some();
        if !is_known && entry.mailbox.is_none() && entry.changes.is_none() {
            entries.remove(&session);
        }
    }

    /// The epoch that a session has in this life of the host.
    pub(crate) fn epoch(&self, session: SessionId) -> Option<Epoch> {
        self.lock().get(&session)?.epoch
    }

    /// How many sessions have an epoch.
    pub(crate) fn live_count(&self) -> usize {
        self.lock()
            .values()
            .filter(|entry| entry.epoch.is_some())
            .count()
    }

    /// Registers an epoch before the append that starts it; the answer is what was there.
    pub(crate) fn set_epoch(&self, session: SessionId, epoch: Option<Epoch>) -> Option<Epoch> {
        let mut entries = self.lock();
        let entry = entries.entry(session).or_default();
        std::mem::replace(&mut entry.epoch, epoch)
    }

    /// A receiver that changes whenever the session does.
    pub(crate) fn changes(&self, session: SessionId) -> watch::Receiver<u64> {
        let mut entries = self.lock();
        let entry = entries.entry(session).or_default();
        entry
            .changes
            .get_or_insert_with(|| watch::channel(0).0)
            .subscribe()
    }

    /// Says that a session, or what lies unread for it, has changed.
    pub(crate) fn changed(&self, session: SessionId) {
        let entries = self.lock();
        if let Some(changes) = entries
            .get(&session)
            .and_then(|entry| entry.changes.as_ref())
        {
            changes.send_modify(|count| *count += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn an_entry_goes_when_nothing_needs_it() {
        let registry = Registry::default();
        let id = SessionId(Uuid::from_u128(1));
        let held = registry.mailbox(id);
        registry.tidy(id);
        assert!(registry.in_use(id).is_some(), "somebody holds the mailbox");
        drop(held);
        registry.tidy(id);
        assert!(registry.in_use(id).is_none());
        registry.set_epoch(id, Some(Epoch(Uuid::from_u128(2))));
        let waiter = registry.changes(id);
        registry.tidy(id);
        drop(waiter);
        registry.tidy(id);
        assert_eq!(registry.epoch(id), Some(Epoch(Uuid::from_u128(2))));
        registry.set_epoch(id, None);
        registry.tidy(id);
        assert!(registry.lock().is_empty());
    }
}
