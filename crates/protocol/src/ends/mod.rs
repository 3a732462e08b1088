//! The two ends of a stream, without a wire: what a host keeps for its viewers, and what a viewer makes of what it hears.

mod attachment;
mod host_stream;
mod mirror;
mod notifications;
mod tree;
mod viewer_attach;
mod window;

pub use attachment::{Attachment, GRACE_MILLIS};
pub use host_stream::HostStream;
pub use mirror::{Mirror, Seen};
pub use notifications::{NotificationKind, Notifications};
pub use tree::TreeMirror;
pub use viewer_attach::{Heard, ViewerAttach};
pub use window::{CHUNK_LIMIT, Taken, WINDOW_LIMIT};
