//! The rules of an agent session as pure values.
