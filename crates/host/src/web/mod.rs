//! The door for viewers elsewhere: one listener for HTTP, what guards it, and what it serves. Who may do what is decided in
//! `grant`; what else is served by other protocols comes as routes, and no word of theirs is known here.

mod attach;
mod guard;
mod listener;
mod pulse;
mod site;
mod socket;
mod tls;

pub use http::{Request, Response, header::HeaderMap};
pub use listener::{Listen, Listener, WebError, host_name, listen_address, may_listen};
pub use site::{Body, Incoming, Route, Site};
pub use tls::Tls;
