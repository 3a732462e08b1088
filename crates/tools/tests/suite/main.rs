//! The toolsets on whole engines in memory: what a model sees of sessions.

mod walk;
