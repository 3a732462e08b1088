//! A batch in the making: commands that wait together, decided one after the other on a scratch copy,
//! and all that one append will hold of them. Nothing is committed here.

use attache_session::{
    Answer, Command, Decision, Due, Effect, Event, Expect, Json, Mail, MailBody, SessionId, State,
    decide_within,
};
use attache_store::{CommandRecord, Refused};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::ask::{FreshIds, Shared};
use crate::error::EngineError;
use crate::mailbox::Ask;

/// A command in a batch. It stays until the batch is durable, because the store may ask for
/// another try.
pub(crate) struct Work {
    pub(crate) command: Command,
    pub(crate) key: Option<(Uuid, [u8; 32])>,
    pub(crate) reply: Option<oneshot::Sender<Result<Answer, EngineError>>>,
    /// It was answered without the store: another try of the batch must not carry it out.
    answered: bool,
}

impl Work {
    pub(crate) fn own(command: Command) -> Self {
        Self {
            command,
            key: None,
            reply: None,
            answered: false,
        }
    }

    /// Answers for good, without anything being stored.
    fn settle(&mut self, answer: Result<Answer, EngineError>) {
        self.answer(answer);
        self.answered = true;
    }

    /// Whether it takes word that a parent gave the session up.
    pub(crate) fn releases(&self) -> bool {
        let gives_up = |letter: &Mail| matches!(letter.body, MailBody::Release { .. });
        matches!(&self.command, Command::Take { mail, .. } if mail.iter().any(gives_up))
    }

    pub(crate) fn answer(&mut self, answer: Result<Answer, EngineError>) {
        if let Some(reply) = self.reply.take() {
            // A caller that has gone needs no answer.
            drop(reply.send(answer));
        }
    }
}

impl From<Box<Ask>> for Work {
    fn from(ask: Box<Ask>) -> Self {
        let Ask {
            command,
            key,
            reply,
        } = *ask;
        Self {
            command,
            key,
            reply: Some(reply),
            answered: false,
        }
    }
}

/// What a batch of decisions comes to.
pub(crate) struct Plan {
    pub(crate) scratch: State,
    pub(crate) events: Vec<attache_session::Stamped>,
    pub(crate) mail: Vec<attache_session::NewMail>,
    pub(crate) taken: Vec<attache_session::MailId>,
    pub(crate) births: Vec<attache_session::Birth>,
    pub(crate) links: Vec<SessionId>,
    pub(crate) command: Option<CommandRecord>,
    pub(crate) expects: Vec<Expect>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) answers: Vec<Option<Answer>>,
    /// Other sessions whose rows this append changes.
    pub(crate) touched: Vec<SessionId>,
    /// What it was charged with.
    pub(crate) dues: Vec<Due>,
    /// Stored kinds of this append's events, for the fault points.
    #[cfg(feature = "fault")]
    pub(crate) kinds: Vec<String>,
}

impl Plan {
    pub(crate) fn new(scratch: State) -> Self {
        Self {
            scratch,
            events: Vec::new(),
            mail: Vec::new(),
            taken: Vec::new(),
            births: Vec::new(),
            links: Vec::new(),
            command: None,
            expects: Vec::new(),
            effects: Vec::new(),
            answers: Vec::new(),
            touched: Vec::new(),
            dues: Vec::new(),
            #[cfg(feature = "fault")]
            kinds: Vec::new(),
        }
    }

    /// Decides one more command on the scratch copy. A refusal is answered at once: it changes
    /// nothing that would have to be durable first.
    pub(crate) fn add(&mut self, shared: &Shared, work: &mut Work) {
        if work.answered {
            self.answers.push(None);
            return;
        }
        if let Some(key) = work.key
            && let Some(answer) = first_answer(shared, self.scratch.id, key).transpose()
        {
            work.settle(answer);
            self.answers.push(None);
            return;
        }
        if matches!(work.command, Command::Spawn { .. })
            && shared.ending_of(self.scratch.id).is_some()
        {
            work.settle(Err(EngineError::ending(self.scratch.id)));
            self.answers.push(None);
            return;
        }
        match decide_within(
            &self.scratch,
            &work.command,
            shared.starts(self.scratch.id),
            shared.now(),
            &mut FreshIds(shared),
        ) {
            Err(rejected) => {
                work.settle(Err(rejected.into()));
                self.answers.push(None);
            }
            Ok(decision) => {
                let Decision {
                    events,
                    mail,
                    taken,
                    births,
                    links,
                    expects,
                    effects,
                    answer,
                } = decision;
                for stamped in &events {
                    self.scratch.apply(stamped);
                }
                self.events.extend(events);
                self.mail.extend(mail);
                self.taken.extend(taken);
                self.births.extend(births);
                self.links.extend(links);
                for expect in expects {
                    if !self.expects.contains(&expect) {
                        self.expects.push(expect);
                    }
                }
                for effect in effects {
                    if !self.effects.contains(&effect) {
                        self.effects.push(effect);
                    }
                }
                if let Some((id, digest)) = work.key {
                    self.command = Some(CommandRecord {
                        id,
                        digest,
                        answer: write_answer(&answer),
                    });
                }
                self.answers.push(Some(answer));
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.mail.is_empty()
            && self.taken.is_empty()
            && self.births.is_empty()
            && self.links.is_empty()
            && self.command.is_none()
    }

    /// Epochs that this append starts.
    pub(crate) fn starts(&self) -> Vec<(SessionId, attache_session::Epoch)> {
        let own = self
            .events
            .iter()
            .filter_map(|stamped| match stamped.event {
                Event::Started { epoch } => Some((self.scratch.id, epoch)),
                _ => None,
            });
        let born = self
            .births
            .iter()
            .filter_map(|birth| Some((birth.session, birth.state.epoch?)));
        own.chain(born).collect()
    }
}

/// What a session answered a viewer's command when it carried it out; none when it has not.
pub(crate) fn first_answer(
    shared: &Shared,
    session: SessionId,
    (id, digest): (Uuid, [u8; 32]),
) -> Result<Option<Answer>, EngineError> {
    match shared.config.store.command(session, id)? {
        None => Ok(None),
        Some(known) if known.digest == digest => Ok(Some(read_answer(&known.answer))),
        Some(_) => Err(Refused::CommandReused.into()),
    }
}

/// An answer as it is remembered with its command.
fn write_answer(answer: &Answer) -> Json {
    let value = match answer {
        Answer::Accepted { item } => serde_json::json!({ "accepted": item.to_string() }),
        Answer::QueueMade {
            queue: attache_session::QueueId::Custom(number),
        } => {
            serde_json::json!({ "queue": number })
        }
        Answer::Child { child } => serde_json::json!({ "child": child.to_string() }),
        Answer::Unchanged => serde_json::json!({ "unchanged": true }),
        Answer::FiredAtOnce => serde_json::json!({ "fired": true }),
        Answer::Done | Answer::Steered { .. } | Answer::QueueMade { .. } => serde_json::json!({}),
    };
    Json::from_checked(value.to_string())
}

pub(crate) fn read_answer(json: &Json) -> Answer {
    let value: serde_json::Value = serde_json::from_str(json.as_str()).unwrap_or_default();
    if let Some(item) = value["accepted"]
        .as_str()
        .and_then(|text| text.parse().ok())
    {
        return Answer::Accepted { item };
    }
    if let Some(child) = value["child"].as_str().and_then(|text| text.parse().ok()) {
        return Answer::Child { child };
    }
    if let Some(number) = value["queue"]
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
    {
        return Answer::QueueMade {
            queue: attache_session::QueueId::Custom(number),
        };
    }
    if value["unchanged"] == true {
        return Answer::Unchanged;
    }
    if value["fired"] == true {
        Answer::FiredAtOnce
    } else {
        Answer::Done
    }
}
