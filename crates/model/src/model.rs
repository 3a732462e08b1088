//! The interface between a turn and a model. What stands behind it (a provider, a script) is not known here.

use std::future::Future;
use std::pin::Pin;

use crate::delta::Deltas;
use crate::error::ModelError;
use crate::facts::ModelFacts;
use crate::request::Request;
use crate::terms::Terms;

/// A future that is boxed and may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A model that can be asked.
pub trait Model: Send + Sync {
    /// Begins a request. Nothing is sent before the first [`ModelStream::next`].
    fn start(&self, request: Request) -> Box<dyn ModelStream>;

    /// Name of the provider, as in `PROVIDER/MODEL`.
    fn provider(&self) -> &str;

    /// The model's id at the provider.
    fn id(&self) -> &str;

    /// How it is to be asked.
    fn terms(&self) -> Terms {
        Terms::default()
    }

    /// What is known of it.
    fn facts(&self) -> ModelFacts {
        ModelFacts::default()
    }
}

/// A reply on its way. Dropping it cancels the request and closes its connection at once.
pub trait ModelStream: Send {
    /// Waits until something comes, and puts what it means (perhaps nothing) behind what `out` holds already.
    ///
    /// The future may be dropped and `next` called again: nothing is lost. After [`StreamStep::End`] or
    /// [`StreamStep::Failed`] the same answer is given again.
    fn next<'a>(&'a mut self, out: &'a mut Deltas) -> BoxFuture<'a, StreamStep>;
}

/// What a wait ended with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamStep {
    /// Something came; without deltas it was only a sign of life (the answer's head, a ping).
    Bytes,
    /// The reply is finished; `out` may hold its last deltas.
    End,
    /// The reply will not be finished; `out` may hold deltas that came before the failure.
    Failed(ModelError),
}
