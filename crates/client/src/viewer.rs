//! A viewer of one session that comes back by itself: over as many connections as it takes, with the commands that have no
//! answer yet said again under their ids. What is said and what is made of it is decided by the protocol's end.

use std::collections::VecDeque;
use std::time::Duration;

use attache_protocol::{Command, FromHost, FromViewer, Heard, Mirror, Stream, ViewerAttach};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::client::{Client, Streams};
use crate::daemon::{ConnectError, HostPlace};

/// How often a host that is gone is looked for: for about half a minute altogether.
const PATIENCE: u32 = 12;

/// The first pause between two tries; each later one is twice as long, up to the longest.
const PAUSE: Duration = Duration::from_millis(50);

/// The longest pause between two tries.
const LONGEST: Duration = Duration::from_secs(5);

/// See the module.
pub struct Viewer {
    place: HostPlace,
    end: ViewerAttach,
    line: Line,
    /// What is to be said on the connection that stands.
    outbox: VecDeque<FromViewer>,
    heard: VecDeque<Event>,
    /// The host said that it ends: whoever starts it again is somebody else.
    was_told: bool,
}

enum Line {
    Up(Client, Streams),
    Coming(JoinHandle<Result<(Client, Streams), ConnectError>>),
    Gone,
}

/// What a viewer hears.
#[derive(Debug)]
pub enum Event {
    /// Something of the session, or an answer.
    Heard(Heard),
    /// A frame of another stream that this connection follows.
    Other(Box<FromHost>),
    /// The connection is lost; the host is looked for.
    Lost(String),
    /// A connection stands again.
    Back,
    /// The host cannot be reached any more. Nothing follows.
    Gone(ConnectError),
}

impl Viewer {
    /// Attaches to a session, to work with it or to look only. A daemon is started when there is none.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] when the host cannot be reached.
    pub async fn attach(
        place: HostPlace,
        session_id: &str,
        read_only: bool,
    ) -> Result<Self, ConnectError> {
        let (client, streams) = place.connect_or_start().await?;
        let end = ViewerAttach::new(session_id, place.program(), place.run(), read_only);
        let mut viewer = Self {
            place,
            end,
            line: Line::Gone,
            outbox: VecDeque::new(),
            heard: VecDeque::new(),
            was_told: false,
        };
        viewer.up(client, streams);
        Ok(viewer)
    }

    fn up(&mut self, client: Client, streams: Streams) {
        self.line = Line::Up(client, streams);
        // The greeting has been said already.
        let said = self.end.connected().into_iter();
        let is_greeting = |frame: &FromViewer| matches!(frame, FromViewer::Hello { .. });
        self.outbox = said.filter(|frame| !is_greeting(frame)).collect();
        self.was_told = false;
    }

    /// What is known of the session.
    #[must_use]
    pub fn mirror(&self) -> &Mirror {
        self.end.mirror()
    }

    /// Gives a command, to be sent as soon as a connection stands; the answer is its id.
    pub fn command(&mut self, body: Command) -> String {
        let (id, frame) = self.end.command(body);
        self.outbox.extend(frame);
        id
    }

    /// Attaches once more: to what comes after the end of an epoch.
    pub fn again(&mut self) {
        let frame = self.end.again();
        self.outbox.push_back(frame);
    }

    /// What comes next. The future may be dropped: nothing is lost then.
    pub async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.heard.pop_front() {
                return event;
            }
            match &mut self.line {
                Line::Up(client, streams) => {
                    while let Some(frame) = self.outbox.front() {
                        // One that cannot be said any more is said again on the next connection.
                        let _said = client.say(frame).await;
                        self.outbox.pop_front();
                    }
                    match streams.next().await {
                        Some(frame) => self.hear(frame),
                        None => {
                            let reason = client.why_gone();
                            self.end.lost();
                            let look = look(self.place.clone(), !self.was_told);
                            self.line = Line::Coming(tokio::spawn(look));
                            return Event::Lost(reason);
                        }
                    }
                }
                Line::Coming(coming) => match coming.await {
                    Ok(Ok((client, streams))) => {
                        self.up(client, streams);
                        return Event::Back;
                    }
                    Ok(Err(error)) => {
                        self.line = Line::Gone;
                        return Event::Gone(error);
                    }
                    Err(fault) => {
                        self.line = Line::Gone;
                        return Event::Gone(ConnectError::Start(fault.to_string()));
                    }
                },
                Line::Gone => std::future::pending().await,
            }
        }
    }

    fn hear(&mut self, frame: FromHost) {
        self.was_told |= matches!(frame, FromHost::GoingAway { .. });
        let is_other = match &frame {
            FromHost::Snapshot(snapshot) => snapshot.stream == Stream::Tree,
            FromHost::Delta(delta) => delta.stream == Stream::Tree,
            _ => false,
        };
        if is_other {
            self.heard.push_back(Event::Other(Box::new(frame)));
            return;
        }
        let (heard, said) = self.end.handle(frame);
        self.heard.extend(heard.into_iter().map(Event::Heard));
        self.outbox.extend(said);
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        if let Line::Coming(coming) = &self.line {
            coming.abort();
        }
    }
}

/// Looks for a host whose connection was lost, again and again for about half a minute, and starts one where that is ours to
/// do.
///
/// # Errors
///
/// [`ConnectError`] of the last try.
pub async fn look(place: HostPlace, may_start: bool) -> Result<(Client, Streams), ConnectError> {
    let mut pause = PAUSE;
    let mut tries = 1;
    loop {
        let reached = if may_start {
            place.connect_or_start().await
        } else {
            place.connect().await
        };
        match reached {
            Err(
                ConnectError::None(_)
                | ConnectError::Start(_)
                | ConnectError::Io(_)
                | ConnectError::Unreachable { .. },
            ) if tries < PATIENCE => {
                sleep(pause).await;
                pause = LONGEST.min(pause * 2);
                tries += 1;
            }
            other => return other,
        }
    }
}
