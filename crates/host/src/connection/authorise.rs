//! Whether a connection may give a command: looked at for each one, before anything is done or told. A session that it may
//! not see is answered here like one that does not exist. Neither is looked for: what is read is the tree that may be seen,
//! so that the time of an answer tells as little as its text.

use std::collections::HashSet;

use attache_engine::parts::RowFilter;
use attache_engine::{EngineError, EngineHandle};
use attache_protocol::{Answer, Command, Runtime, TokenScope};
use attache_session::{ErrorCode, SessionId};

use super::Connection;
use crate::from_wire;
use crate::grant::{self, Demand};

/// Rows of one reading of a tree.
const ROWS: usize = 256;

impl Connection {
    /// Refuses what this connection may not do. The answer is what is told of a session that is not there by a command that
    /// is not refused for that.
    pub(super) fn authorise(
        &mut self,
        command: &mut Command,
    ) -> Result<Option<Answer>, EngineError> {
        let demand = grant::demand(command);
        self.grant.covers(&demand)?;
        let seen = self.sees(&demand);
        match (seen, command) {
            (Err(unknown), Command::QueryStatus { .. })
                if unknown.code == ErrorCode::UnknownSession =>
            {
                let runtime = Runtime::Unavailable;
                Ok(Some(Answer::Runtime { runtime }))
            }
            (Err(error), _) => Err(error),
            (Ok(()), Command::Attach { read_only, .. }) => {
                // Others are told of it as one that can only look.
                *read_only |= self.grant.scope == TokenScope::Read;
                Ok(None)
            }
            (Ok(()), _) => Ok(None),
        }
    }

    /// Whether this connection may see the sessions that are named.
    fn sees(&mut self, demand: &Demand<'_>) -> Result<(), EngineError> {
        let Some(below) = &mut self.below else {
            return Ok(());
        };
        let engine = self.host.engine();
        for named in demand.sessions() {
            let session = from_wire::session(named)?;
            if !below.holds(engine, session)? {
                return Err(EngineError::unknown(session));
            }
        }
        Ok(())
    }
}

/// A session with all that was spawned below it, as far as it was read. Who spawned whom never changes.
pub(super) struct Below {
    top: SessionId,
    /// Where its tree begins; none before that was read.
    root: Option<SessionId>,
    /// The youngest of its tree that was read.
    last: Option<SessionId>,
    known: HashSet<SessionId>,
}

impl Below {
    pub(super) fn new(top: SessionId) -> Self {
        Self {
            top,
            root: None,
            last: None,
            known: HashSet::from([top]),
        }
    }

    /// Whether a session is in it.
    fn holds(&mut self, engine: &EngineHandle, session: SessionId) -> Result<bool, EngineError> {
        if !self.known.contains(&session) {
            self.read_on(engine)?;
        }
        Ok(self.known.contains(&session) && self.is_below(engine, session)?)
    }

    /// Reads what was born since the last time.
    fn read_on(&mut self, engine: &EngineHandle) -> Result<(), EngineError> {
        if let Some(last) = self.last
            && is_gone(engine, last)?
        {
            // What follows on one that was deleted cannot be asked for.
            self.last = None;
        }
        let root = match self.root {
            Some(root) => root,
            None if is_gone(engine, self.top)? => return Ok(()),
            None => engine.row(self.top)?.root,
        };
        self.root = Some(root);
        loop {
            let rows = engine.rows_after(RowFilter::Tree(root), self.last, ROWS)?;
            for row in &rows {
                // A parent was born before its children.
                if row.spawner.is_some_and(|it| self.known.contains(&it)) {
                    self.known.insert(row.session);
                }
                self.last = Some(row.session);
            }
            if rows.len() < ROWS {
                return Ok(());
            }
        }
    }

    /// Whether one that was found is still there, and where it was: an id that was deleted may be given to another one.
    fn is_below(&self, engine: &EngineHandle, session: SessionId) -> Result<bool, EngineError> {
        let mut at = Some(session);
        while let Some(session) = at {
            let row = match engine.row(session) {
                Ok(row) => row,
                Err(gone) if gone.code == ErrorCode::UnknownSession => return Ok(false),
                Err(error) => return Err(error),
            };
            if session == self.top {
                return Ok(true);
            }
            at = row.spawner;
        }
        Ok(false)
    }
}

/// Whether a session is not there any more.
fn is_gone(engine: &EngineHandle, session: SessionId) -> Result<bool, EngineError> {
    match engine.row(session) {
        Ok(_) => Ok(false),
        Err(gone) if gone.code == ErrorCode::UnknownSession => Ok(true),
        Err(error) => Err(error),
    }
}
