//! Sessions at work: one actor for each session in use, the registry that finds and wakes them,
//! the turns that they run, and what others may ask of them.
//!
//! A command is decided by `session`, committed by `store`, applied, and published; effects run
//! after the commit. No business rule stands here, and no frame, socket or HTTP word either: doors
//! are built on [`EngineHandle`].

mod actor;
mod ask;
mod asking;
mod bounds;
mod busy;
mod catalog;
mod clock;
mod compaction;
mod compiled;
mod config;
mod context;
mod ending;
mod error;
mod folds;
mod handle;
mod ledger;
mod limits;
mod lineage;
mod live;
mod mailbox;
mod modals;
mod models;
mod observe;
mod outside;
mod places;
mod plan;
mod port;
mod prepare;
mod receipts;
mod recovery;
mod registry;
mod results;
mod settings;
mod stalls;
mod storage;
mod turn_task;
mod unviewed;
mod view;
mod waits;

pub use bounds::LimitUse;
pub use catalog::{Catalog, CatalogEntry, CatalogError};
pub use clock::{SystemTime, Time};
pub use config::{Config, Environment, Identity, Models};
pub use error::EngineError;
pub use handle::{Engine, EngineHandle, NewRoot};
pub use lineage::NO_MODEL;
pub use live::{LiveItem, Note};
pub use modals::{OpenModal, PathStep};
pub use models::ProviderModels;
pub use observe::{Change, Observed, Observer, Snapshot, TreeFeed};
pub use outside::{OutsideCall, OutsideTool, WaitingNotice};
pub use places::NoPlace;
pub use receipts::RECEIPTS;
pub use settings::ToolSwitch;
pub use storage::{check_store, open_store};
pub use unviewed::Viewing;
pub use view::{SessionRow, event_view};
pub use waits::Quiet;

/// What hosts need of the neighbouring crates, so that they need no edge to them.
pub mod parts {
    pub use attache_agent::{
        Cancel, Definition, DefinitionError, EventPage, EventView, MarkdownDialect, ParameterError,
        ToolError, ToolOutcome, Toolsets, field_line,
    };
    pub use attache_model::{
        Dialect, Finding, GateLimits, OwnFacts, OwnRow, Patience, ProviderConfig, ProviderTerms,
        Providers, Quirks, Retries, Secret, ToolSpec, checkup, read_small,
    };
    pub use attache_store::{Kind, LogItem, MemoryStore, PageQuery, RowFilter, Store};
}
