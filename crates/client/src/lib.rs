//! A viewer's connection: reach a host (and start one on demand), ask, and hear its streams. What a
//! viewer makes of them is in `protocol`; nothing of the daemon is in here.

mod client;
mod daemon;
mod elsewhere;
mod viewer;

pub use attache_protocol as protocol;
pub use attache_protocol::{Heard, Mirror, Seen, TreeMirror};
pub use client::{Client, ClientError, Streams};
pub use daemon::{ConnectError, HostPlace, Place, open_door};
pub use elsewhere::Elsewhere;
pub use viewer::{Event, Viewer, look};
