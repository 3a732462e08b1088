//! Models behind one interface: a request goes in, deltas of a reply come out.
//!
//! Inside: one pure decoder a dialect over one reader of server-sent events, request encoders, provider differences as
//! data, limits and prices of models, the line before a provider, a thin HTTP shell, and two models without a network
//! (`scripted`, `echo`). Not inside: retries, timers of silence and progress, tools' code, sessions.

mod assemble;
mod checkup;
mod clock;
mod delta;
pub mod dialect;
mod echo;
mod encode;
mod error;
mod facts;
mod fault;
mod gate;
mod http;
mod json;
mod message;
mod model;
mod overflow;
mod pictures;
mod profile;
mod provider;
mod quirks;
mod request;
pub mod scripted;
mod small_file;
pub mod sse;
mod terms;
mod text;
mod text_calls;
mod usage;

pub use assemble::{Assembler, Completion};
pub use checkup::{Finding, checkup};
pub use delta::{Delta, Deltas, StopReason};
pub use dialect::Dialect;
pub use echo::Echo;
pub use error::{ErrorKind, MESSAGE_LIMIT, ModelError};
pub use facts::{ModelFacts, OwnFacts, OwnRow, Prices, version as facts_version};
pub use gate::{Gate, GateClosed, GateLimits, Pass, Standing, Verdict};
pub use http::HttpClient;
pub use json::{Json, NotJson};
pub use message::{BadArguments, Image, Message, Part, ToolCall, ToolResult};
pub use model::{BoxFuture, Model, ModelStream, StreamStep};
pub use overflow::stated_limit;
pub use provider::{ProviderConfig, Providers, ResolveError, Secret};
pub use quirks::{Address, QuirkError, Quirks, ReasoningBack, Thinking};
pub use request::{Options, OutputSchema, Request, ToolSet, ToolSpec};
pub use scripted::Scripted;
pub use small_file::read_small;
pub use terms::{Patience, ProviderTerms, Retries, Terms};
pub use usage::Usage;
