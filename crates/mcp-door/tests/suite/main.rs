//! The door with the library's own client, in both lifecycles of the protocol, over an engine in
//! memory with a puppet for a model.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod desk;
mod http;
mod lifecycle;
mod notices;
mod resources;
mod waits;
