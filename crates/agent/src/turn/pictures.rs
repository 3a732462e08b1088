//! A provider that refuses the pictures of a conversation is asked once more without them, so that the session lives
//! on. Once refused, the run sends none; the next one tries again, perhaps with another model.

use attache_model::{ModelError, Request};

use super::{Output, Turn};
use crate::history::ADAPTED;

/// What stands in the place of a picture.
const REFUSED: &str = "It could not be shown: the provider took no pictures with this request.";

#[derive(Default)]
pub(super) struct Pictures {
    /// They were refused in this run.
    refused: bool,
    /// The request that is under way, when it has any.
    sent: Option<Request>,
}

impl Pictures {
    /// A request as it may go out.
    pub(super) fn goes_out(&mut self, request: Request) -> Request {
        let request = if self.refused {
            request.without_pictures(REFUSED)
        } else {
            request
        };
        self.sent = request.has_pictures().then(|| request.clone());
        request
    }

    /// The request that failed without its pictures, when it may have failed for them.
    pub(super) fn refused(&mut self, error: &ModelError) -> Option<Request> {
        if !error.is_about_pictures() {
            return None;
        }
        let request = self.sent.take()?.without_pictures(REFUSED);
        self.refused = true;
        Some(request)
    }
}

impl Turn {
    /// Tells people, and asks again the way that `ask` says.
    pub(super) fn again_without_pictures(
        &mut self,
        request: Request,
        error: &ModelError,
        ask: fn(Box<Request>) -> Output,
    ) -> Vec<Output> {
        let text = format!(
            "the provider refused the pictures of this conversation, so that this run goes on without them; with \
             the quirk `images = false` none is sent: {}",
            error.message
        );
        self.room.asked(request.text_len());
        let note = self.tell(ADAPTED, text);
        note.into_iter().chain([ask(Box::new(request))]).collect()
    }
}
