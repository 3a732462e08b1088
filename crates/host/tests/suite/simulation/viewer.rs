//! A viewer at the near end of a wire: the pure end of the protocol, driven by what arrives, and beside it what a stream may say
//! and when, written down a second time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_host::Host;
use attache_protocol::{
    Answer, Command, FRAME_LIMIT, FromHost, FromViewer, HistoryItem, Mirror, Seen, StreamPlace,
    ViewerAttach, WireError, decode, encode,
};
use attache_testkit::{Break, Dice, NearEnd, Wire, instant};
use tokio::time::Instant;

use super::book::{Book, Given, takes_effect_once, told};
use super::shown::Shown;

/// As long as an attachment is certainly kept for a viewer.
const KEPT: Duration = Duration::from_millis(4_900);

/// Bytes of a connection that nobody has read yet.
const PIPE: usize = 8 * 1024;

/// What the stream may say next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Nothing,
    Snapshot,
    /// The frame of this number; or a snapshot, for a viewer that is too slow.
    Frame(u64),
}

struct Link {
    number: u64,
    wire: Wire,
    /// When the host hears that it is lost, once that is certain.
    noticed: Option<Instant>,
}

impl Link {
    fn cut(&mut self, how: Break) {
        self.wire.cut(how);
        // Of two breaks the earlier ends it.
        let at = instant() + how.unnoticed;
        self.noticed = self.noticed.into_iter().chain([at]).min();
    }
}

/// See the module.
pub(crate) struct Viewer {
    name: String,
    pub(crate) session: String,
    pub(crate) read_only: bool,
    pub(crate) end: ViewerAttach,
    /// How often its program began.
    run: u32,
    host: Host,
    book: Arc<Mutex<Book>>,
    dice: Dice,
    link: Option<Link>,
    links: u64,
    /// The beginning of a line.
    line: Vec<u8>,
    next: Next,
    /// Commands that attach and are on their way, with what they say of the place.
    attaching: Vec<(String, Option<StreamPlace>)>,
    /// The attachment's name.
    attachment: Option<String>,
    /// When the host first heard that a connection was lost, since the viewer was attached.
    noticed: Option<Instant>,
    /// Commands that may be said again.
    said: Vec<(String, Command)>,
    pub(crate) shown: Shown,
    newest: u64,
    /// Whether what is mirrored reaches back to the beginning.
    pub(crate) is_whole: bool,
    /// Whether there may be more than a window holds.
    pub(crate) floods: bool,
}

/// A viewer that wires and the plan share.
pub(crate) type Shared = Arc<Mutex<Viewer>>;

/// The near end of one connection.
struct Ear {
    viewer: Shared,
    number: u64,
}

impl NearEnd for Ear {
    fn wrote(&mut self, line: Vec<u8>) -> Vec<u8> {
        let viewer = self.viewer.lock().unwrap();
        let mut book = viewer.book.lock().unwrap();
        match book.bug.take() {
            Some(mut bug) => {
                let line = bug.host_wrote(self.number, &viewer.name, line);
                book.bug = Some(bug);
                for line in line.split_inclusive(|byte| *byte == b'\n') {
                    book.host_wrote(line);
                }
                line
            }
            None => {
                book.host_wrote(&line);
                line
            }
        }
    }

    fn arrived(&mut self, bytes: &[u8]) {
        self.viewer.lock().unwrap().arrived(self.number, bytes);
    }

    fn broken_off(&mut self) {
        self.viewer
            .lock()
            .unwrap()
            .count("a cut within a viewer's frame");
    }

    fn gone(&mut self) {
        self.viewer.lock().unwrap().gone(self.number);
    }
}

impl Viewer {
    pub(crate) fn new(
        name: String,
        session: String,
        read_only: bool,
        host: Host,
        book: Arc<Mutex<Book>>,
        dice: Dice,
    ) -> Self {
        let end = ViewerAttach::new(&session, "sim", &format!("{name}-0"), read_only);
        Self {
            name,
            session,
            read_only,
            end,
            run: 0,
            host,
            book,
            dice,
            link: None,
            links: 0,
            line: Vec::new(),
            next: Next::Nothing,
            attaching: Vec::new(),
            attachment: None,
            noticed: None,
            said: Vec::new(),
            shown: Shown::default(),
            newest: 0,
            is_whole: false,
            floods: false,
        }
    }

    fn count(&self, what: &str) {
        self.book.lock().unwrap().count(what);
    }

    fn wrong(&self, what: &str) {
        let name = &self.name;
        let mut book = self.book.lock().unwrap();
        book.wrong(format!("{name}: {what}"));
    }

    pub(crate) fn mirror(&self) -> &Mirror {
        self.end.mirror()
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// Whether it is attached and has heard where the stream begins.
    pub(crate) fn follows(&self) -> bool {
        self.attaching.is_empty() && matches!(self.next, Next::Frame(_))
    }

    pub(crate) fn stall(&self, stalls: bool) {
        if let Some(link) = &self.link {
            link.wire.stall(stalls);
            if stalls {
                self.count("a viewer that stops reading");
            }
        }
    }

    /// The connection breaks.
    pub(crate) fn cut(&mut self, how: Break) {
        if let Some(link) = &mut self.link {
            link.cut(how);
            self.count("a cut");
        }
    }

    /// Connects; a connection that stands is left behind.
    pub(crate) fn connect(shared: &Shared, unnoticed: Duration) {
        let mut viewer = shared.lock().unwrap();
        if let Some(link) = &mut viewer.link {
            // What is on its way there still reaches the host.
            link.cut(Break {
                up: usize::MAX,
                down: 0,
                unnoticed,
            });
            viewer.count("a connection left behind");
            viewer.is_lost();
        }
        viewer.links += 1;
        let number = viewer.links;
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let host = viewer.host.clone();
        tokio::spawn(async move { host.serve(theirs).await });
        let ear = Ear {
            viewer: Arc::clone(shared),
            number,
        };
        let wire = Wire::new(ours, Arc::new(Mutex::new(ear)), viewer.dice.fork());
        viewer.link = Some(Link {
            number,
            wire,
            noticed: None,
        });
        let frames = viewer.end.connected();
        for _ in frames.iter().skip(2) {
            viewer.count("a command said again after a loss");
        }
        viewer.say(frames);
    }

    /// The viewer's program begins anew, and knows nothing.
    pub(crate) fn restart(shared: &Shared) {
        {
            let mut viewer = shared.lock().unwrap();
            if let Some(link) = &mut viewer.link {
                link.cut(Break {
                    up: usize::MAX,
                    down: 0,
                    unnoticed: Duration::ZERO,
                });
                viewer.is_lost();
            }
            viewer.run += 1;
            let run = format!("{}-{}", viewer.name, viewer.run);
            viewer.end = ViewerAttach::new(&viewer.session, "sim", &run, viewer.read_only);
            viewer.attachment = None;
            viewer.noticed = None;
            viewer.newest = 0;
            viewer.said.clear();
            viewer.count("a viewer that begins anew");
        }
        Self::connect(shared, Duration::ZERO);
    }

    /// Attaches once more over the connection that stands.
    pub(crate) fn again(&mut self) {
        if self.link.is_some() {
            let frame = self.end.again();
            self.say(vec![frame]);
        }
    }

    /// Gives a command.
    pub(crate) fn command(&mut self, command: Command) {
        let (id, frame) = self.end.command(command.clone());
        let given = Given {
            command: command.clone(),
            read_only: self.read_only,
            heard: None,
            said: Vec::new(),
        };
        if takes_effect_once(&command) {
            self.said.push((id.clone(), command));
        }
        self.book.lock().unwrap().given.insert(id, given);
        self.say(frame.into_iter().collect());
    }

    /// Says one of its newest commands once more.
    pub(crate) fn repeat(&mut self, back: usize) {
        let at = self.said.len().checked_sub(1 + back);
        if let (Some(at), true) = (at, self.link.is_some()) {
            let (id, command) = self.said[at].clone();
            self.count("a command said twice");
            self.say(vec![FromViewer::command(id, command)]);
        }
    }

    fn say(&mut self, frames: Vec<FromViewer>) {
        let Some(link) = &self.link else {
            return;
        };
        let mut answers = Vec::new();
        for frame in frames {
            if let FromViewer::Command {
                command_id,
                body: Command::Attach { resume, .. },
            } = &frame
            {
                let place = resume.as_ref().and_then(|resume| resume.place.clone());
                self.attaching.push((command_id.clone(), place));
            }
            let mut book = self.book.lock().unwrap();
            let frame = match &mut book.bug {
                Some(bug) => bug.viewer_says(frame, &mut answers),
                None => Some(frame),
            };
            if let Some(frame) = frame {
                let mut bytes = encode(&frame);
                bytes.push(b'\n');
                link.wire.say(&bytes);
            }
        }
        for answer in answers {
            self.hear(answer);
        }
    }

    fn gone(&mut self, number: u64) {
        if self.link.as_ref().is_some_and(|link| link.number == number) {
            self.is_lost();
        }
    }

    fn is_lost(&mut self) {
        let link = self.link.take();
        let noticed = link.and_then(|link| link.noticed);
        // Of several connections that were lost one after the other, the first counts: to be sure.
        self.noticed = self.noticed.into_iter().chain(noticed).min();
        if !self.line.is_empty() {
            self.line.clear();
            self.count("a cut within a host's frame");
        }
        {
            let mut book = self.book.lock().unwrap();
            for id in self.end.pending() {
                let said = book.given.get(id).is_some_and(|it| !it.said.is_empty());
                book.count(if said {
                    "an answer lost on its way"
                } else {
                    "a loss while a command is on its way"
                });
            }
        }
        self.attaching.clear();
        self.next = Next::Nothing;
        self.end.lost();
    }

    fn arrived(&mut self, number: u64, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            // What is heard may end the connection, or begin another.
            if self.link.as_ref().is_none_or(|link| link.number != number) {
                return;
            }
            self.line.extend_from_slice(part);
            if self.line.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                match decode(line.trim_ascii_end()) {
                    Ok(frame) => self.hear(frame),
                    Err(fault) => {
                        self.wrong(&format!("no frame of at most {FRAME_LIMIT} bytes: {fault}"))
                    }
                }
            }
        }
    }

    fn hear(&mut self, frame: FromHost) {
        self.follow(&frame);
        let granted = self.granted(&frame);
        let (heard, frames) = self.end.handle(frame);
        for heard in heard {
            self.heard(heard, granted.as_ref());
        }
        // What is not mirrored as running any more has been settled, or was given up.
        if self.end.mirror().running.is_none() {
            self.shown.forget();
        }
        self.say(frames);
    }

    /// Whether the stream may say this now.
    fn follow(&mut self, frame: &FromHost) {
        let number = match frame {
            FromHost::Snapshot(snapshot) => {
                match self.next {
                    Next::Nothing => self.wrong("a snapshot for whom is not attached"),
                    Next::Snapshot => self.count("a snapshot at the beginning"),
                    Next::Frame(_) if self.floods => self.count("a snapshot for who was too slow"),
                    Next::Frame(_) => self.wrong("a snapshot although the window reaches"),
                }
                let running = snapshot.running.as_ref();
                if running.is_some_and(|it| !it.calls.is_empty()) {
                    self.count("a snapshot while a tool runs");
                } else if running.is_some_and(|it| !it.text.is_empty()) {
                    self.count("a snapshot while text streams");
                }
                self.is_whole = !snapshot.more_history;
                self.next = Next::Frame(snapshot.sequence);
                return;
            }
            FromHost::Delta(delta) => {
                let place = self.end.mirror().place();
                if delta.epoch.is_some() && place.is_some_and(|at| at.epoch != delta.epoch) {
                    self.count("a start of an epoch while attached");
                }
                delta.sequence
            }
            FromHost::SessionTerminal { sequence, .. } => *sequence,
            _ => return,
        };
        let is_end = matches!(frame, FromHost::SessionTerminal { .. });
        if self.next != Next::Frame(number) {
            let next = self.next;
            self.wrong(&format!("frame {number} where {next:?} was to come"));
        }
        self.next = if is_end {
            Next::Nothing
        } else {
            Next::Frame(number + 1)
        };
    }

    /// The host attaches the viewer, by its newest command or by one before that: what follows is another stream from here.
    fn granted(&mut self, frame: &FromHost) -> Option<(String, Option<StreamPlace>)> {
        if let FromHost::OperationError {
            command_id: Some(id),
            ..
        } = frame
        {
            // What it would come back to is over.
            self.attaching.retain(|it| it.0 != *id);
        }
        let FromHost::Answer { command_id, body } = frame else {
            return None;
        };
        let Answer::Attached {
            attachment,
            replays,
        } = &**body
        else {
            return None;
        };
        let at = self.attaching.iter().position(|it| it.0 == *command_id)?;
        let (_, place) = self.attaching.remove(at);
        self.next = match (replays, &place) {
            (true, Some(place)) => Next::Frame(place.sequence),
            (true, None) => {
                self.wrong("a replay for who stands nowhere");
                Next::Nothing
            }
            (false, _) => Next::Snapshot,
        };
        Some((attachment.clone(), place))
    }

    fn heard(
        &mut self,
        heard: attache_protocol::Heard,
        granted: Option<&(String, Option<StreamPlace>)>,
    ) {
        use attache_protocol::Heard;
        match heard {
            Heard::Attached { replays } => match granted {
                Some((name, place)) => self.attached(replays, place.as_ref(), name),
                None => self.wrong("it is attached without an answer"),
            },
            Heard::Answered { command_id, answer } => self.answered(&command_id, answer),
            Heard::Refused(error) => self.wrong(&format!("refused: {error:?}")),
            Heard::GoingAway(reason) => self.wrong(&format!("the host goes away: {reason}")),
            Heard::Seen(seen) => self.seen(seen),
        }
    }

    fn attached(&mut self, replays: bool, place: Option<&StreamPlace>, name: &str) {
        let before = self.attachment.replace(name.to_owned());
        let noticed = self.noticed.take();
        let is_same = before.as_deref() == Some(name);
        let ended = noticed.is_some_and(|at| at <= instant());
        let (is_same_epoch, leaves) = {
            let book = self.book.lock().unwrap();
            let epoch = book.epoch(&self.session);
            let is_same = epoch.is_some() && place.is_some_and(|it| it.epoch == epoch);
            let mut pending = self.end.pending().filter_map(|id| book.given.get(id));
            let leaves = pending.any(|it| matches!(it.command, Command::Detach { .. }));
            (is_same, leaves)
        };
        let what = match (is_same, replays) {
            (true, _) if !ended && noticed.is_some() => "an attachment taken along",
            (true, true) => "a return within grace that goes on",
            (true, false) => "a return within grace with a snapshot",
            (false, _) if before.is_none() => "a first attach",
            (false, _) if is_same_epoch => "a return after grace",
            (false, _) => "a return after the end of an epoch",
        };
        self.count(what);
        if replays {
            self.count("a replay");
        }
        let is_kept = noticed.is_none_or(|at| instant() < at + KEPT);
        if before.is_some() && !is_same && is_kept && is_same_epoch && !leaves {
            self.wrong("its attachment was forgotten within grace");
        }
    }

    fn answered(&mut self, id: &str, answer: Result<Box<Answer>, Box<WireError>>) {
        let came = answer
            .map(|answer| *answer)
            .map_err(|error: Box<WireError>| told(&error));
        if came == Err("revision-conflict".to_owned()) {
            self.count("a conflict");
        }
        let mut book = self.book.lock().unwrap();
        let given = book.given.get_mut(id);
        let detaches = given
            .as_ref()
            .is_some_and(|it| matches!(it.command, Command::Detach { .. }));
        if let Some(given) = given
            && let Some(before) = given.heard.replace(came.clone())
        {
            book.wrong(format!("{id} was answered twice: {before:?}, {came:?}"));
        }
        drop(book);
        if detaches {
            // It leaves its attachment with it. One that was asked for behind it is another.
            self.attachment = None;
            self.next = Next::Nothing;
        }
    }

    fn seen(&mut self, seen: Seen) {
        match seen {
            Seen::Lost => self.wrong("a frame is missing"),
            Seen::Item { item, streamed } => self.item(&item, streamed),
            Seen::Text(text) => {
                let runs = self.end.mirror().running.as_ref();
                if let Err(why) = self.shown.piece(&text, runs) {
                    self.wrong(&why);
                }
            }
            Seen::Terminal(_) => {
                self.count("an end of an epoch while attached");
                self.attachment = None;
                self.again();
            }
            Seen::Gap => self.count("a gap after a snapshot"),
            Seen::Session(_)
            | Seen::Queues
            | Seen::Detail
            | Seen::Asked(_)
            | Seen::Settled { .. }
            | Seen::Fresh => {}
        }
    }

    /// An item joins the history: behind those before it, and it begins with what was shown of it.
    fn item(&mut self, item: &HistoryItem, streamed: usize) {
        if item.position <= self.newest {
            self.wrong(&format!("item {} comes again", item.position));
        }
        self.newest = item.position;
        match self.shown.item(item, streamed) {
            Ok(how) => how.into_iter().for_each(|how| self.count(how)),
            Err(why) => self.wrong(&why),
        }
    }
}
