//! The toolsets on whole engines in memory: what a model sees of sessions and of files.
#![allow(clippy::unwrap_used)]

mod acquire;
mod arguments;
mod circles;
mod create;
mod current_session;
mod end_to_end;
mod fault;
mod filesystem;
mod get;
mod kit;
mod list;
mod on_complete;
mod read_events;
mod receipts;
mod residence;
mod rows;
mod send;
mod status;
mod stop;
mod wait;
mod walk;
