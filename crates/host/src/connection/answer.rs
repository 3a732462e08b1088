//! What each command of a viewer does, and what it is answered.

use std::sync::Arc;

use attache_engine::EngineError;
use attache_protocol::{Answer, Command, FromHost};
use attache_session::{Answer as Decided, Command as Rule, ErrorCode, Origin, Setting};

use super::{Connection, key_of, queues};
use crate::repeats::Claim;
use crate::{from_wire, ledger, modals, questions, slash, streams, to_wire};

impl Connection {
    /// Carries a command out; none when the answer comes later, or was sent already. Whoever answers later takes the claim.
    pub(super) async fn answer(
        &mut self,
        id: &str,
        command: Command,
        claim: &mut Option<Claim>,
    ) -> Result<Option<Answer>, EngineError> {
        if let Some(session) = command.changes() {
            self.may_change(from_wire::session(session)?)?;
        }
        let engine = self.host.engine().clone();
        let key = (key_of(id), from_wire::digest(&command));
        let done = |changed| Ok(Some(Answer::Done { changed }));
        match command {
            Command::CreateSession(new) => {
                let detached = new.detached;
                let session = from_wire::session(&new.session_id)?;
                if is_unknown(engine.row(session))? {
                    self.host.create(*new).await?;
                    if !detached {
                        engine.opened(session);
                        self.own.insert(session, engine.view(session).await?);
                    }
                }
                questions::session(&engine, session).map(Some)
            }
            Command::Enqueue {
                session_id,
                queue,
                text,
                start,
                environment,
            } => {
                from_wire::text(&text)?;
                let session = from_wire::session(&session_id)?;
                // A repeat makes no queue and starts no epoch either, whatever has become of those.
                let decided = if let Some(first) = engine.first_answer(session, key)? {
                    first
                } else {
                    let queue = questions::queue(&engine, session, queue).await?;
                    if start {
                        let environment = self.host.environment_of(environment);
                        engine.start(session, Some(environment)).await?;
                    }
                    let rule = Rule::Enqueue {
                        item: None,
                        queue,
                        text: text.into(),
                        origin: Origin::Viewer,
                    };
                    engine.command(session, rule, Some(key)).await?
                };
                match decided {
                    Decided::Accepted { item } => Ok(Some(Answer::Accepted {
                        item_id: item.to_string(),
                        status: to_wire::status(engine.row(session)?.status),
                    })),
                    _ => Err(EngineError::new(
                        ErrorCode::Internal,
                        "input without a receipt",
                    )),
                }
            }
            Command::EditItem { .. }
            | Command::RemoveItem { .. }
            | Command::MoveItem { .. }
            | Command::CreateQueue { .. }
            | Command::ConfigureQueue { .. }
            | Command::DeleteQueue { .. } => queues::change(&engine, command, key).await.map(Some),
            Command::StartSession {
                session_id,
                environment,
            } => {
                let session = from_wire::session(&session_id)?;
                let environment = self.host.environment_of(environment);
                let filled = engine.provide(session, environment)?;
                let answer = engine.start(session, None).await?;
                done(filled || answer != Decided::Unchanged)
            }
            Command::Compact {
                session_id,
                environment,
            } => {
                let session = from_wire::session(&session_id)?;
                let environment = self.host.environment_of(environment);
                engine.provide(session, environment)?;
                self.compact(id.to_owned(), session, claim.take());
                Ok(None)
            }
            Command::Interrupt { session_id, tree } => done(
                engine
                    .interrupt(from_wire::session(&session_id)?, tree)
                    .await?,
            ),
            Command::GetBudget { session_id } => questions::budget(&engine, &session_id).map(Some),
            Command::GetReceipts { session_id } => {
                questions::receipts(&engine, &session_id).map(Some)
            }
            Command::SetBudget {
                session_id,
                budget,
                paused,
            } => {
                let session = from_wire::session(&session_id)?;
                let change = from_wire::budget(Some(&budget))?;
                done(engine.set_budget(session, change, paused).await?)
            }
            Command::Terminate { session_id } => {
                done(engine.terminate(from_wire::session(&session_id)?).await?)
            }
            Command::Delete { session_id } => {
                engine.delete(from_wire::session(&session_id)?).await?;
                done(true)
            }
            Command::Resolve { text } => {
                questions::resolve(&engine, &text, self.grant.subtree).map(Some)
            }
            Command::ListSessions {
                root_session_id,
                after_session_id,
            } => {
                let root = root_session_id
                    .as_deref()
                    .map(from_wire::session)
                    .transpose()?;
                let after = after_session_id
                    .as_deref()
                    .map(from_wire::session)
                    .transpose()?;
                questions::list(&engine, root, after, self.grant.subtree).map(Some)
            }
            Command::GetSession { session_id } => {
                questions::session(&engine, from_wire::session(&session_id)?).map(Some)
            }
            Command::GetLedger { session_id } => {
                let calls = engine.ledger(from_wire::session(&session_id)?)?;
                Ok(Some(Answer::Ledger {
                    ledger: calls.as_ref().map(ledger::to_wire),
                }))
            }
            Command::ReadText {
                session_id,
                position,
                offset,
            } => {
                let session = from_wire::session(&session_id)?;
                questions::text(&engine, session, position, offset).map(Some)
            }
            Command::PageHistory { session_id, query } => {
                let session = from_wire::session(&session_id)?;
                Ok(Some(Answer::History {
                    page: questions::page(&engine, session, query)?,
                }))
            }
            Command::Wait {
                session_id,
                reach,
                timeout_seconds,
            } => {
                let session = from_wire::session(&session_id)?;
                engine.row(session)?;
                self.wait(id.to_owned(), session, reach, timeout_seconds);
                Ok(None)
            }
            Command::Attach {
                session_id,
                resume,
                read_only,
            } => {
                let session = from_wire::session(&session_id)?;
                self.attach(id, session, resume, read_only).await?;
                Ok(None)
            }
            Command::Detach { session_id } => {
                let session = from_wire::session(&session_id)?;
                done(self.detach(session))
            }
            Command::StartOrAttach {
                session_id,
                resume,
                environment,
            } => {
                let session = from_wire::session(&session_id)?;
                let environment = self.host.environment_of(environment);
                engine.provide(session, environment)?;
                engine.start(session, None).await?;
                self.attach(id, session, resume, false).await?;
                Ok(None)
            }
            Command::QueryStatus { session_id } => {
                Ok(Some(questions::runtime(&engine, &session_id)))
            }
            Command::SlashCommand { session_id, text } => {
                let session = from_wire::session(&session_id)?;
                let desk = slash::Desk {
                    engine: &engine,
                    attachments: &self.host.0.attachments,
                    session,
                    key,
                };
                match desk.carry_out(&text).await? {
                    slash::Done::Answer(answer) => Ok(Some(answer)),
                    slash::Done::Compacts => {
                        self.compact(id.to_owned(), session, claim.take());
                        Ok(None)
                    }
                }
            }
            Command::RespondModal {
                session_id,
                modal_id,
                answer,
            } => {
                let session = from_wire::session(&session_id)?;
                let modal = modals::id(&modal_id)?;
                let answer = modals::answer(answer);
                let by = Arc::clone(&self.program);
                let answered = engine.answer_modal(session, modal, answer, &by, Some(key));
                done(answered.await? == Decided::Done)
            }
            Command::SetRetention {
                session_id,
                continue_in_background,
            } => {
                let session = from_wire::session(&session_id)?;
                let setting = Setting::ContinueInBackground(continue_in_background);
                done(engine.set(session, setting, Some(key)).await? == Decided::Done)
            }
            Command::SetToolEnabled {
                session_id,
                tool,
                enabled,
            } => {
                let session = from_wire::session(&session_id)?;
                let setting = Setting::Tool {
                    name: tool.into(),
                    offered: enabled,
                };
                done(engine.set(session, setting, Some(key)).await? == Decided::Done)
            }
            Command::WatchTree { root_session_id } => {
                let root = root_session_id
                    .as_deref()
                    .map(from_wire::session)
                    .transpose()?;
                let (frames, stream) = streams::watch_tree(&engine, root, self.grant.subtree)?;
                self.send(FromHost::answer(id, Answer::Done { changed: true }))
                    .await;
                for frame in frames {
                    self.send(frame).await;
                }
                self.tree = Some(streams::follow_tree(stream, self.outgoing.clone()));
                Ok(None)
            }
            Command::ListAgents { working_directory } => {
                let entries = engine
                    .catalog()
                    .list(std::path::Path::new(&working_directory));
                Ok(Some(Answer::Agents {
                    agents: entries.into_iter().map(questions::agent).collect(),
                }))
            }
            Command::HostStatus {} => Ok(Some(Answer::Host {
                host: self.host.view(),
            })),
            Command::CreateToken { .. } | Command::ListTokens {} | Command::RevokeToken { .. } => {
                self.tokens(command).map(Some)
            }
        }
    }
}

/// Whether a session is not there; that it could not be looked for is another matter.
fn is_unknown(row: Result<attache_engine::SessionRow, EngineError>) -> Result<bool, EngineError> {
    match row {
        Ok(_) => Ok(false),
        Err(error) if error.code == ErrorCode::UnknownSession => Ok(true),
        Err(error) => Err(error),
    }
}
