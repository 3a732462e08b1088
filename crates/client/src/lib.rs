//! A viewer's side of the protocol: connect to a host (and start one on demand), ask, attach, and
//! mirror what a stream says. Nothing of the daemon is in here; a mirror is never edited by hand.

mod client;
mod daemon;

pub use attache_protocol as protocol;
pub use attache_protocol::{Mirror, Seen, TreeMirror};
pub use client::{Client, ClientError, Streams};
pub use daemon::{ConnectError, Place, connect, connect_or_start, open_door};
