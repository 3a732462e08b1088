//! Commands about who may come from elsewhere.

use attache_engine::EngineError;
use attache_protocol::{Answer, Command, TokenScope};
use attache_session::ErrorCode;

use super::Connection;
use crate::from_wire;
use crate::grant::Grant;

impl Connection {
    /// Carries out a command about tokens.
    pub(super) fn tokens(&self, command: Command) -> Result<Answer, EngineError> {
        let tokens = &self.host.0.tokens;
        match command {
            Command::CreateToken {
                name,
                scope,
                session_id,
            } => {
                let session = session_id.as_deref().map(from_wire::session).transpose()?;
                if let Some(session) = session {
                    self.host.engine().row(session)?;
                }
                if session.is_some() && scope == TokenScope::Admin {
                    let text =
                        "a token of scope admin is for the whole host: leave the session out";
                    return Err(EngineError::new(ErrorCode::InvalidArguments, text));
                }
                let grant = Grant {
                    scope,
                    subtree: session,
                };
                let (token, secret) = tokens.create(name, grant)?;
                Ok(Answer::TokenMade { token, secret })
            }
            Command::ListTokens {} => Ok(Answer::Tokens {
                tokens: tokens.list(),
            }),
            Command::RevokeToken { token } => Ok(Answer::Done {
                changed: tokens.revoke(&token)?,
            }),
            _ => Err(EngineError::new(
                ErrorCode::Internal,
                "no command about tokens",
            )),
        }
    }
}
