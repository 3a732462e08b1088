//! The toolsets on whole engines in memory: what a model sees of sessions and of files.
#![allow(clippy::unwrap_used)]

mod filesystem;
mod walk;
