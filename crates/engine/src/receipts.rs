//! Where input has got to, looked up when somebody asks; and word to those whose input will never be read.

use attache_session::{Command, MailBody, Origin, Receipt, SessionId, receipts};
use attache_store::{Kind, PageQuery};
use sha2::{Digest, Sha256};

use crate::actor::MAIL_AT_ONCE;
use crate::ask::Shared;
use crate::error::EngineError;
use crate::handle::EngineHandle;
use crate::view::SessionRow;

/// Receipts that are given at most: those of the newest items.
pub const RECEIPTS: usize = 20;

/// Events at the end of the receiver's record that are looked at. What was taken before them is long known.
const LOOKED_AT: usize = 600;

impl Shared {
    /// Receipts of the newest input of a session, as of its row; `from` asks for what one other session has sent.
    pub(crate) fn receipts(
        &self,
        row: &SessionRow,
        from: Option<SessionId>,
    ) -> Result<Vec<Receipt>, EngineError> {
        let query = PageQuery {
            after: None,
            up_to: None,
            kinds: vec![Kind::Other, Kind::User, Kind::Diagnostic],
            search: None,
            limit: LOOKED_AT,
            newest: true,
        };
        let store = &self.config.store;
        // Mail first: what is taken between the two readings is then seen twice, and the record wins.
        let unread = match row.view.unread.inputs {
            0 => Vec::new(),
            _ => store.mail(row.session, MAIL_AT_ONCE)?,
        };
        let page = store.page(row.session, &query)?;
        let events = page.items.iter().map(|item| (item.position, &item.event));
        let mut found = receipts(events, row.view.is_live(), &unread, from, usize::MAX);
        let mut seen = std::collections::HashSet::new();
        found.retain(|receipt| seen.insert(receipt.item));
        let surplus = found.len().saturating_sub(RECEIPTS);
        found.drain(..surplus);
        Ok(found)
    }

    /// Tells other sessions that what they sent to one that is to be deleted will not be read. A repeat tells nobody twice.
    pub(crate) async fn tell_undeliverable(
        self: &std::sync::Arc<Self>,
        session: SessionId,
    ) -> Result<(), EngineError> {
        let store = &self.config.store;
        let mut lost = Vec::new();
        for mail in store.mail(session, MAIL_AT_ONCE)? {
            if let MailBody::Input { item, text, .. } = mail.body {
                lost.push((mail.from, item, text));
            }
        }
        for receipt in self.receipts(&self.known_row(session)?, None)? {
            if let (Origin::Session(from), true) = (&receipt.origin, receipt.queue.is_some()) {
                lost.push((*from, receipt.item, receipt.text));
            }
        }
        for (from, item, text) in lost {
            if from == session || self.row(from)?.is_none() {
                continue;
            }
            let digest = Sha256::digest(item.0.as_bytes()).into();
            let command = Command::Undeliverable {
                item,
                to: session,
                text,
            };
            let told = self.post(from, command, Some((item.0, digest)));
            crate::ask::answered(told).await?;
        }
        Ok(())
    }
}

impl EngineHandle {
    /// Receipts of the newest input of a session, oldest first, at most [`RECEIPTS`].
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the session is unknown or the store cannot be read.
    pub fn receipts(&self, session: SessionId) -> Result<Vec<Receipt>, EngineError> {
        let shared = self.shared();
        shared.receipts(&shared.known_row(session)?, None)
    }
}
