//! Attaching to a session, coming back to it, and leaving it.

use std::sync::Arc;

use attache_engine::EngineError;
use attache_protocol::{Answer, FromHost, Resume};
use attache_session::{ErrorCode, SessionId};

use super::Connection;
use crate::attachments::Who;
use crate::host::fresh_id;
use crate::streams::{self, Viewer};

impl Connection {
    /// Answers, then sends a snapshot unless the viewer goes on where it stood, then what follows.
    pub(super) async fn attach(
        &mut self,
        id: &str,
        session: SessionId,
        resume: Option<Resume>,
        read_only: bool,
    ) -> Result<(), EngineError> {
        let shared = Arc::clone(&self.host.0);
        let attachments = &shared.attachments;
        // What does not exist is not remembered.
        shared.engine.row(session)?;
        if read_only {
            self.only_looks.insert(session);
        } else {
            self.only_looks.remove(&session);
        }
        let returns = resume.is_some();
        let back = resume.and_then(|Resume { attachment, place }| {
            let place = place.as_ref();
            let who = self.who(read_only);
            let follower = attachments.returns(&attachment, session, place, who)?;
            Some((attachment, follower))
        });
        if returns && back.is_none() && !shared.engine.row(session)?.view.is_live() {
            // What it would come back to is over, and coming back starts nothing.
            return Err(EngineError::unknown(session));
        }
        if !read_only {
            shared.engine.opened(session);
        }
        let (name, follower, snapshot) = match back {
            Some((name, Some(follower))) => (name, follower, None),
            other => {
                let known = other.map(|(name, _)| name);
                let attached = shared.streams.attach(session).await;
                let (snapshot, follower) = attached.inspect_err(|_gone| {
                    if let Some(name) = &known {
                        attachments.release(name, self.number);
                    }
                })?;
                let mut name = known.unwrap_or_else(|| fresh_id().to_string());
                if !attachments.reserve(name.clone(), self.who(read_only), &follower) {
                    name = fresh_id().to_string();
                    attachments.reserve(name.clone(), self.who(read_only), &follower);
                }
                (name, follower, Some(snapshot))
            }
        };
        // From here on the attachment counts, and no longer that it was created here.
        self.own.remove(&session);
        if let Some(before) = self.sessions.insert(session, name.clone())
            && before != name
        {
            attachments.release(&before, self.number);
        }
        let answer = Answer::Attached {
            attachment: name.clone(),
            replays: snapshot.is_none(),
        };
        self.send(FromHost::answer(id, answer)).await;
        if let Some(snapshot) = snapshot {
            // A socket that is gone is noticed by the reader.
            let _sent = self.outgoing.frames(&[snapshot]).await;
        }
        let viewer = Viewer {
            host: self.host.clone(),
            name: name.clone(),
            connection: self.number,
            outgoing: self.outgoing.clone(),
        };
        let pump = streams::follow_session(viewer, follower);
        attachments.sent(&name, self.number, pump);
        Ok(())
    }

    fn who(&self, read_only: bool) -> Who {
        Who {
            connection: self.number,
            program: Arc::clone(&self.program),
            read_only,
        }
    }

    /// Leaves a session at once; false when the viewer was not attached to it.
    pub(super) fn detach(&mut self, session: SessionId) -> bool {
        self.own.remove(&session);
        self.only_looks.remove(&session);
        let held = self.sessions.remove(&session);
        held.is_some_and(|name| self.host.0.attachments.release(&name, self.number))
    }

    /// Refuses a command that changes a session to which this viewer is attached for looking only.
    pub(super) fn may_change(&self, session: SessionId) -> Result<(), EngineError> {
        if self.only_looks.contains(&session) {
            let text = format!("this viewer is attached to session {session} for looking only");
            return Err(EngineError::new(ErrorCode::NotPermitted, text));
        }
        Ok(())
    }
}
