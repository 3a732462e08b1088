//! Commands that leave no record of their own, by the id that their viewer gave them: one that comes again gets the answer of
//! the first time. Those that are stored with what they caused are known to the store, over a restart too; after one, nothing
//! runs that these could hit twice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_engine::EngineError;
use attache_protocol::{Answer, Command};
use attache_session::{ErrorCode, SessionId};
use tokio::sync::watch;
use tokio::time::{Duration, Instant};
use uuid::Uuid;

use crate::clock;

/// How long an answer is remembered.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);

/// Most answers that are remembered; the oldest go first.
const MOST: usize = 16_384;

type Key = (SessionId, Uuid);

/// See the module.
#[derive(Default)]
pub(crate) struct Repeats(Mutex<Known>);

#[derive(Default)]
struct Known {
    entries: HashMap<Key, Entry>,
    /// Those that were answered, in the order in which they were.
    answered: VecDeque<(Key, Instant)>,
}

struct Entry {
    digest: [u8; 32],
    answer: watch::Receiver<Option<Answer>>,
}

/// What is known of a command.
pub(crate) enum Before {
    /// Nothing: it is to be carried out.
    New(Claim),
    /// It was carried out.
    Answered(Answer),
}

/// The right to carry a command out. Dropped without an answer, the next one that comes is the first.
pub(crate) struct Claim {
    repeats: Arc<Repeats>,
    key: Key,
    answer: watch::Sender<Option<Answer>>,
}

/// Whether a command is known here: it changes something, and is not stored with what it causes.
pub(crate) fn is_for(command: &Command) -> bool {
    matches!(
        command,
        Command::Interrupt { .. }
            | Command::Terminate { .. }
            | Command::StartSession { .. }
            | Command::SetBudget { .. }
            | Command::Compact { .. }
            | Command::Delete { .. }
            | Command::SlashCommand { .. }
            // The input itself is known to the store; that it starts the session is not.
            | Command::Enqueue { start: true, .. }
    )
}

impl Repeats {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks a command up; waits while it is being carried out.
    ///
    /// # Errors
    ///
    /// `command-id-reused` when another command had this id.
    pub(crate) async fn look(
        self: &Arc<Self>,
        session: SessionId,
        (id, digest): (Uuid, [u8; 32]),
    ) -> Result<Before, EngineError> {
        let key = (session, id);
        loop {
            let mut answer = {
                let mut known = self.lock();
                known.forget(clock::instant());
                match known.entries.get(&key) {
                    None => {
                        let (sender, answer) = watch::channel(None);
                        known.entries.insert(key, Entry { digest, answer });
                        return Ok(Before::New(Claim {
                            repeats: Arc::clone(self),
                            key,
                            answer: sender,
                        }));
                    }
                    Some(entry) if entry.digest != digest => {
                        let text = "this command id was given to another command before";
                        return Err(EngineError::new(ErrorCode::CommandIdReused, text));
                    }
                    Some(entry) => entry.answer.clone(),
                }
            };
            // Whoever gave up without an answer has left the place to the next.
            if let Ok(answered) = answer.wait_for(Option::is_some).await
                && let Some(answer) = answered.clone()
            {
                return Ok(Before::Answered(answer));
            }
        }
    }
}

impl Known {
    fn forget(&mut self, now: Instant) {
        while let Some((key, at)) = self.answered.front()
            && (self.answered.len() > MOST || now - *at > REMEMBERED)
        {
            self.entries.remove(key);
            self.answered.pop_front();
        }
    }
}

impl Claim {
    /// The command was carried out, and this is its answer.
    pub(crate) fn done(self, answer: &Answer) {
        self.answer.send_replace(Some(answer.clone()));
        let mut known = self.repeats.lock();
        known.answered.push_back((self.key, clock::instant()));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.answer.borrow().is_none() {
            self.repeats.lock().entries.remove(&self.key);
        }
    }
}
