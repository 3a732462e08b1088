//! Doors of other protocols: a connection that says in its first frame which one it is for, and is
//! handed over to it then. Which doors there are is decided where the host is put together; no word
//! of theirs is known here.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use attache_engine::EngineError;
use attache_protocol::{FromHost, OpenDoor, VERSION, encode};
use attache_session::ErrorCode;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::connection::{leaving, log, spoken};
use crate::host::Host;
use crate::to_wire;

/// The bytes of a connection, both ways.
pub trait Channel: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Channel for S {}

/// An answer of a door under way.
pub type DoorFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Serves one connection until its other end is gone. When the host ends it is dropped.
pub type Service = Box<dyn FnOnce(Box<dyn Channel>) -> DoorFuture<'static, ()> + Send>;

/// A door of another protocol.
pub trait Door: Send + Sync {
    /// Looks at what a connection is opened with. The answer serves it.
    fn open<'a>(
        &'a self,
        host: &'a Host,
        open: OpenDoor,
    ) -> DoorFuture<'a, Result<Service, EngineError>>;
}

/// Doors by their names.
pub type Doors = HashMap<&'static str, Arc<dyn Door>>;

/// Hands a connection over to its door.
pub(crate) async fn open<S>(host: &Host, open: OpenDoor, mut stream: S)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let served = match spoken(open.version) {
        Err(error) => Err(error),
        Ok(()) => match host.0.doors.get(open.door.as_str()) {
            Some(door) => door.open(host, open).await,
            None => Err(EngineError::new(
                ErrorCode::HostIncompatible,
                "this host has no such door; `attache restart` starts the newer program",
            )),
        },
    };
    let frame = match &served {
        Ok(_) => FromHost::Hello {
            version: VERSION,
            features: Vec::new(),
            program: host.0.program.clone(),
        },
        Err(error) => {
            let error = to_wire::error(error);
            log(&error);
            FromHost::OperationError {
                command_id: None,
                error,
            }
        }
    };
    let mut bytes = encode(&frame);
    bytes.push(b'\n');
    if stream.write_all(&bytes).await.is_err() {
        return;
    }
    match served {
        Ok(service) => {
            let mut going_away = host.going_away();
            tokio::select! {
                () = service(Box::new(stream)) => {}
                _reason = leaving(&mut going_away) => {}
            }
        }
        // The other end may be gone already.
        Err(_told) => drop(stream.shutdown().await),
    }
}
