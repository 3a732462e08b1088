//! What callers hand to the writer. Records are made by the caller, so that the writer only writes.

use attache_session::{Event, Generation, Position, SessionId, Stamped};
use tokio::sync::oneshot;

use crate::append::Append;
use crate::check::READER;
use crate::entity::{Entity, EntityPut};
use crate::record::{Unusable, encode_event, encode_summary, needs};
use crate::refused::Refused;

/// Where an answer goes; nobody may be there any more.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Refused>>;

/// Something to write.
pub(super) enum Job {
    Append(Box<Ready>, Reply<Position>),
    Entity(EntityPut, Reply<Entity>),
    Claim(SessionId, Generation, Reply<Generation>),
    Delete(SessionId, Reply<()>),
    Sweep(i64, Reply<u64>),
    #[cfg(test)]
    Hook(super::tests::Hook, Reply<()>),
}

/// An append with its records.
pub(super) struct Ready {
    pub(super) append: Append,
    pub(super) bodies: Vec<String>,
    pub(super) summary: String,
    /// Bodies and summary of each birth.
    pub(super) births: Vec<(Vec<String>, String)>,
    /// The reader that the records need.
    pub(super) min_reader: u32,
    /// Whether it settles what was streamed.
    pub(super) settles_stream: bool,
}

impl Ready {
    pub(super) fn of(append: Append) -> Result<Self, Refused> {
        let mut min_reader = READER;
        let bodies = encode(&append.events, &mut min_reader)?;
        let mut births = Vec::with_capacity(append.births.len());
        for birth in &append.births {
            let bodies = encode(&birth.events, &mut min_reader)?;
            births.push((bodies, encode_summary(&birth.summary)));
        }
        let mut ends = append.events.iter();
        Ok(Self {
            bodies,
            summary: encode_summary(&append.summary),
            births,
            min_reader,
            settles_stream: ends.any(|stamped| {
                matches!(
                    stamped.event,
                    Event::Said { .. } | Event::TurnEnded { .. } | Event::Stopped { .. }
                )
            }),
            append,
        })
    }
}

fn encode(events: &[Stamped], min_reader: &mut u32) -> Result<Vec<String>, Refused> {
    let mut bodies = Vec::with_capacity(events.len());
    for event in events {
        match encode_event(event) {
            Ok(body) => {
                if matches!(event.event, Event::Unknown { .. }) {
                    *min_reader = (*min_reader).max(needs(&body));
                }
                bodies.push(body.into_owned());
            }
            Err(Unusable::TooNew(needs)) => {
                let text = format!("the record needs reader version {needs}");
                return Err(Refused::Failed(text));
            }
            Err(Unusable::Broken(text)) => return Err(Refused::Failed(text)),
        }
    }
    Ok(bodies)
}
