//! Values for the cases: sessions by number, and an author who writes one log.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Thread, current, park};

use attache_session::{
    CallResult, Created, Epoch, Event, Generation, Json, NewCall, Origin, Picture, Position,
    QueueId, QueuedItem, ResultOrigin, SessionId, Stamped, State, StepText, Summary, Timestamp,
    TurnId,
};
use uuid::Uuid;

use crate::append::{Append, Born};
use crate::read::Store;
use crate::refused::Refused;

/// An id by number.
#[must_use]
pub fn uuid(number: u128) -> Uuid {
    Uuid::from_u128(0x0193_0000_0000_7000_8000_0000_0000_0000 + number)
}

/// A session by number.
#[must_use]
pub fn session(number: u128) -> SessionId {
    SessionId(uuid(number))
}

/// A time in microseconds.
#[must_use]
pub fn at(micros: i64) -> Timestamp {
    Timestamp(micros)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a write on this thread.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => park(),
        }
    }
}

/// Somebody who writes the log of one session.
#[derive(Clone, Debug)]
pub struct Author {
    /// Its generation.
    pub generation: Generation,
    /// What the log folds to.
    pub state: State,
    /// The wall clock that it goes by.
    pub now: i64,
}

impl Author {
    /// The author of a session that is not born.
    #[must_use]
    pub fn new(number: u128) -> Self {
        Self {
            generation: Generation(1),
            state: State::empty(session(number)),
            now: 1_000_000,
        }
    }

    /// A root session that is born and started.
    pub fn root(store: &dyn Store, number: u128) -> Self {
        let mut author = Self::new(number);
        let events = author.birth(None);
        let append = author.append(events);
        author.commit(store, append).expect("a birth");
        author
    }

    /// A child that is born by this session.
    pub fn child(&mut self, store: &dyn Store, number: u128) -> Self {
        let mut child = Self::new(number);
        let events = child.birth(Some(self));
        let born = child.born(events);
        let mut append = self.append(vec![held(number)]);
        append.births.push(born);
        append.links.push(session(number));
        self.commit(store, append).expect("a child");
        child
    }

    /// The session.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.state.id
    }

    /// The first events of this session.
    #[must_use]
    pub fn birth(&self, parent: Option<&Author>) -> Vec<Event> {
        let created = Created {
            name: "name".into(),
            agent: "agent".into(),
            definition: Json::from_checked("{\"name\": \"agent\"}"),
            model: "echo/echo".into(),
            working_directory: "/srv/project".into(),
            root: parent.map_or(self.id(), Author::root_id),
            parents: parent.map(Author::id).into_iter().collect(),
            takes_input: true,
            runs_turns: true,
            owning_profile: uuid(9_000),
            executor_bindings: Json::empty_object(),
            trust: Some((uuid(9_001), 3)),
            continue_in_background: false,
            budget: attache_session::Budget::of_a_root(),
        };
        vec![
            Event::Created(Arc::new(created)),
            Event::Started {
                epoch: self.epoch(),
            },
        ]
    }

    fn root_id(&self) -> SessionId {
        let created = self.state.created.as_ref();
        created.map_or(self.id(), |created| created.root)
    }

    /// The epoch that its birth starts.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        Epoch(Uuid::from_u128(self.id().0.as_u128() + 1_000_000))
    }

    /// Gives times to events and folds them.
    pub fn stamp(&mut self, events: Vec<Event>) -> Vec<Stamped> {
        let mut clock = attache_session::Clock::new(at(self.now), self.state.last_at);
        let mut stamped = Vec::with_capacity(events.len());
        for event in events {
            let (at, observed) = clock.stamp();
            let event = Stamped {
                at,
                observed,
                event,
            };
            self.state.apply(&event);
            stamped.push(event);
        }
        stamped
    }

    /// A birth by another session.
    pub fn born(&mut self, events: Vec<Event>) -> Born {
        Born {
            session: self.id(),
            generation: self.generation,
            events: self.stamp(events),
            summary: self.summary(),
        }
    }

    /// The summary of its state.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary::of(&self.state).expect("a session that is born")
    }

    /// An append of these events.
    pub fn append(&mut self, events: Vec<Event>) -> Append {
        let expected = self.state.position;
        let events = self.stamp(events);
        Append {
            session: self.id(),
            generation: self.generation,
            expected,
            events,
            summary: self.summary(),
            mail: Vec::new(),
            taken: Vec::new(),
            charges: Vec::new(),
            births: Vec::new(),
            links: Vec::new(),
            command: None,
            expects: Vec::new(),
        }
    }

    /// Appends and waits. After a refusal the author is where it was.
    pub fn commit(&mut self, store: &dyn Store, append: Append) -> Result<Position, Refused> {
        let before = append.expected;
        let answer = wait(store.commit(append));
        if answer.is_err() && before < self.state.position {
            let mut state = State::empty(self.id());
            let log = store.events(self.id(), Position(0), usize::MAX);
            for item in log.expect("a readable log") {
                state.apply(&item.event);
            }
            self.state = state;
        }
        answer
    }

    /// Appends these events.
    pub fn write(&mut self, store: &dyn Store, events: Vec<Event>) -> Position {
        let append = self.append(events);
        self.commit(store, append).expect("an append")
    }
}

/// The event of a parent that holds a session.
pub(super) fn held(number: u128) -> Event {
    Event::ChildHeld {
        child: session(number),
        call: None,
    }
}

/// Text of the model.
#[must_use]
pub fn said(text: &str) -> Event {
    Event::Said {
        turn: TurnId(1),
        step: StepText {
            text: text.into(),
            model: "echo/echo".into(),
            ..StepText::default()
        },
    }
}

/// Input that a turn took.
pub(super) fn consumed(number: u128, text: &str, origin: Origin) -> Event {
    Event::Consumed {
        turn: TurnId(1),
        queue: QueueId::Default,
        item: Arc::new(QueuedItem {
            id: attache_session::ItemId(uuid(number)),
            revision: 1,
            text: text.into(),
            origin,
        }),
    }
}

/// A tool call.
pub(super) fn called(id: &str, name: &str, arguments: &str) -> Event {
    Event::CallStarted {
        turn: TurnId(1),
        call: NewCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            changes_state: false,
        },
    }
}

/// A tool's result.
pub(super) fn answered(id: &str, content: &str) -> Event {
    Event::CallEnded {
        turn: TurnId(1),
        result: CallResult {
            call: id.into(),
            content: content.into(),
            is_error: false,
            spawned: None,
            origin: ResultOrigin::Tool,
            images: Vec::new(),
            took_micros: None,
            report: None,
        },
    }
}

/// A tool's result with a picture that lies apart from the log for its size, and a small one.
pub(super) fn pictured(id: &str) -> Event {
    let mut event = answered(id, "two pictures");
    if let Event::CallEnded { result, .. } = &mut event {
        result.images = vec![
            Picture::of_bytes("image/png", &[7; 100_000]),
            Picture::of_bytes("image/webp", b"webp"),
        ];
    }
    event
}

/// A note.
pub(crate) fn noted(text: &str) -> Event {
    Event::Noted {
        code: "note".into(),
        text: text.into(),
    }
}
