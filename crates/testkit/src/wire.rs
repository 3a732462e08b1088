//! A wire that does to a connection what networks do: it delays, cuts what is said into pieces, breaks at any byte, and lets one
//! end hear of that later than the other. It knows bytes and lines, and nothing of what they say.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use crate::clock::pass;
use crate::dice::Dice;

/// Longest time that a piece is on its way, in virtual milliseconds.
const SLOWEST_MS: u64 = 12;

/// After so long the near end knows that the wire is broken, whether something came or not.
const NOTICED: Duration = Duration::from_millis(60);

/// Bytes that are on their way at once.
const ROOM: usize = 64 * 1024;

/// The near end of a wire, which is the test's.
pub trait NearEnd: Send {
    /// The far end wrote a line, its end included. What is answered goes on its way instead.
    fn wrote(&mut self, line: Vec<u8>) -> Vec<u8> {
        line
    }

    /// These bytes arrived.
    fn arrived(&mut self, bytes: &[u8]);

    /// The wire breaks, and of the last line the far end heard a part.
    fn broken_off(&mut self) {}

    /// Nothing arrives any more. Said once.
    fn gone(&mut self);
}

/// How a wire breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Break {
    /// Bytes that the far end still hears.
    pub up: usize,
    /// Bytes that the near end still hears.
    pub down: usize,
    /// How long the far end goes on believing in its connection.
    pub unnoticed: Duration,
}

/// See the module. Cheap to clone; it must live within a runtime whose time is paused.
#[derive(Clone)]
pub struct Wire(Arc<Shared>);

struct Shared {
    near: Arc<Mutex<dyn NearEnd>>,
    /// What the near end has said and is not on its way yet.
    up: Mutex<Vec<u8>>,
    bell: Notify,
    stalls: watch::Sender<bool>,
    left: Mutex<Left>,
    tasks: Mutex<Vec<AbortHandle>>,
}

/// What still gets through once the wire breaks; none is all.
#[derive(Default)]
struct Left {
    up: Option<usize>,
    down: Option<usize>,
    is_gone: bool,
}

impl Left {
    fn of(left: &mut Option<usize>, wanted: usize) -> usize {
        let Some(left) = left else {
            return wanted;
        };
        let granted = wanted.min(*left);
        *left -= granted;
        granted
    }
}

fn lock<T: ?Sized>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wire {
    /// A wire between the test's end and the stream that the far end is served by.
    pub fn new(far: DuplexStream, near: Arc<Mutex<dyn NearEnd>>, mut dice: Dice) -> Self {
        let shared = Arc::new(Shared {
            near,
            up: Mutex::default(),
            bell: Notify::new(),
            stalls: watch::channel(false).0,
            left: Mutex::default(),
            tasks: Mutex::default(),
        });
        let (read, write) = tokio::io::split(far);
        let up = tokio::spawn(up(Arc::clone(&shared), write, dice.fork()));
        let down = tokio::spawn(down(Arc::clone(&shared), read, dice));
        lock(&shared.tasks).extend([up.abort_handle(), down.abort_handle()]);
        Self(shared)
    }

    /// Says something at the near end.
    pub fn say(&self, bytes: &[u8]) {
        lock(&self.0.up).extend_from_slice(bytes);
        self.0.bell.notify_one();
    }

    /// The near end stops reading, or reads on.
    pub fn stall(&self, stalls: bool) {
        self.0.stalls.send_replace(stalls);
    }

    /// The wire breaks. What has not got through by then never does. The near end hears of it at its last byte, or a moment
    /// later.
    pub fn cut(&self, how: Break) {
        let Break {
            up,
            down,
            unnoticed,
        } = how;
        {
            let mut left = lock(&self.0.left);
            left.up.get_or_insert(up);
            left.down.get_or_insert(down);
        }
        let shared = Arc::clone(&self.0);
        tokio::spawn(async move {
            pass(NOTICED.min(unnoticed)).await;
            shared.gone();
            pass(unnoticed).await;
            // Dropping both halves is how the far end hears of it.
            for task in lock(&shared.tasks).drain(..) {
                task.abort();
            }
        });
    }
}

impl Shared {
    fn gone(&self) {
        let was_gone = std::mem::replace(&mut lock(&self.left).is_gone, true);
        if !was_gone {
            lock(&self.near).gone();
        }
    }

    fn arrived(&self, bytes: &[u8]) {
        let granted = {
            let mut left = lock(&self.left);
            if left.is_gone {
                return;
            }
            Left::of(&mut left.down, bytes.len())
        };
        if granted > 0 {
            lock(&self.near).arrived(&bytes[..granted]);
        }
        if lock(&self.left).down == Some(0) {
            self.gone();
        }
    }
}

/// A while on the way, or none: what comes at once is a case of its own.
async fn on_the_way(dice: &mut Dice) {
    if dice.chance(2) {
        pass(Duration::from_millis(dice.below(SLOWEST_MS))).await;
    }
}

/// Lengths of the pieces that something arrives in.
fn piece(dice: &mut Dice) -> usize {
    if dice.chance(3) {
        1 + usize::try_from(dice.below(400)).unwrap_or(0)
    } else {
        ROOM
    }
}

async fn up(shared: Arc<Shared>, mut write: WriteHalf<DuplexStream>, mut dice: Dice) {
    loop {
        let said = std::mem::take(&mut *lock(&shared.up));
        if said.is_empty() {
            shared.bell.notified().await;
            continue;
        }
        on_the_way(&mut dice).await;
        for bytes in said.chunks(piece(&mut dice)) {
            let granted = Left::of(&mut lock(&shared.left).up, bytes.len());
            if granted < bytes.len() && granted > 0 && bytes[granted - 1] != b'\n' {
                lock(&shared.near).broken_off();
            }
            if write.write_all(&bytes[..granted]).await.is_err() {
                return;
            }
        }
    }
}

async fn down(shared: Arc<Shared>, mut read: ReadHalf<DuplexStream>, mut dice: Dice) {
    let mut stalls = shared.stalls.subscribe();
    let mut buffer = vec![0; ROOM];
    let mut line = Vec::new();
    loop {
        // The other end lives in what is held here: it cannot be gone.
        let _reads = stalls.wait_for(|stalls| !*stalls).await.is_ok();
        let Ok(count @ 1..) = read.read(&mut buffer).await else {
            break;
        };
        let mut way = Vec::new();
        for part in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(part);
            if line.ends_with(b"\n") {
                way.extend(lock(&shared.near).wrote(std::mem::take(&mut line)));
            }
        }
        on_the_way(&mut dice).await;
        for bytes in way.chunks(piece(&mut dice)) {
            let _reads = stalls.wait_for(|stalls| !*stalls).await.is_ok();
            shared.arrived(bytes);
        }
    }
    shared.gone();
}
