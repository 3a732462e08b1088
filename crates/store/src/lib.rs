//! Durable sessions: one fenced append, and three ways to read (log, rows, search).
//!
//! The traits say nothing of SQL or paths. Two backends implement them: `memory` and
//! `sqlite`; both pass the same `conformance` suite. What is stored is converted from and to the
//! values of `session` in `record` and nowhere else.

mod append;
mod check;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod entity;
#[cfg(feature = "fault")]
pub mod fault;
mod fold;
mod kind;
pub mod memory;
mod read;
mod record;
mod refused;
pub mod sqlite;

pub use append::{Append, Born, Charge, CommandRecord, Pending, Writes};
pub use entity::{Entity, EntityKind, EntityPut};
pub use memory::MemoryStore;
pub use read::{
    Kind, KnownCommand, Log, LogItem, Page, PageQuery, Partial, ReadError, Row, RowFilter, Rows,
    Search, Store,
};
pub use refused::Refused;
pub use sqlite::SqliteStore;
