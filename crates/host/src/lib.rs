//! The doors over an engine: connections and what they attach to, the conversions between values
//! and frames, settings and definitions of a host, and the life of the daemon.
//!
//! No rule stands here, and no SQL: what a session does is decided by `session`, what is stored
//! goes through the engine.

mod attachments;
mod catalog;
mod checkup;
mod clock;
mod connection;
mod daemon;
mod doors;
mod from_wire;
mod grant;
mod host;
mod incoming;
mod key_command;
mod ledger;
mod modals;
mod outgoing;
mod outside;
mod questions;
mod repeats;
mod settings;
mod slash;
mod streams;
mod to_wire;
mod tokens;
pub mod web;

pub use attache_engine::EngineHandle;
pub use attache_engine::parts::Finding;
pub use attache_protocol::OpenDoor;
pub use catalog::FolderCatalog;
pub use checkup::check_model;
pub use daemon::{Daemon, DaemonError, Idle};
pub use doors::{Channel, Door, DoorFuture, Doors, Service};
pub use host::{
    Host, HostConfig, HostError, Storage, check_store, environment, fresh_id, identity,
};
pub use outside::OutsideRoot;
pub use settings::{
    ConfiguredListener, ConfiguredProvider, Effective, Settings, SettingsError, Source,
};
pub use tokens::TokensError;
