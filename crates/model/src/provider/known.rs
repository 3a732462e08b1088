//! A model together with what is known of it.

use std::sync::Arc;

use crate::facts::ModelFacts;
use crate::model::{Model, ModelStream};
use crate::request::Request;
use crate::terms::Terms;

/// A model with what is known of it.
pub(super) struct Known {
    pub(super) model: Arc<dyn Model>,
    pub(super) facts: ModelFacts,
}

impl Model for Known {
    fn start(&self, request: Request) -> Box<dyn ModelStream> {
        self.model.start(request)
    }

    fn provider(&self) -> &str {
        self.model.provider()
    }

    fn id(&self) -> &str {
        self.model.id()
    }

    fn terms(&self) -> Terms {
        self.model.terms()
    }

    fn facts(&self) -> ModelFacts {
        self.facts.clone()
    }
}
