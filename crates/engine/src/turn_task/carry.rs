//! Carries out what the machine asks for: requests, records, calls, the end.

use std::sync::Arc;

use attache_agent::{Input, Output};
use attache_session::{Command, EndReason};

use super::{Driver, MAKING_ROOM, Record};
use crate::asking::Asking;
use crate::compaction;
use crate::error::EngineError;
use crate::live::Note;

impl Driver<'_> {
    pub(super) fn carry_out(&mut self, input: Input) -> Result<(), EngineError> {
        let outputs = self.machine.handle(input);
        outputs
            .into_iter()
            .try_for_each(|output| self.carry(output))
    }

    pub(super) fn carry(&mut self, output: Output) -> Result<(), EngineError> {
        let turn = self.turn;
        match output {
            Output::Ask(_) | Output::Summarise(_) if self.is_told_to_end() => Ok(()),
            Output::Ask(_) | Output::Summarise(_) if self.is_out_of_budget()? => {
                self.carry_out(Input::Cancel(EndReason::Budget))
            }
            Output::Summarise(request) => {
                self.shows = false;
                self.note(Some(Note::Text(MAKING_ROOM.into())));
                let model = Arc::clone(&self.prepared.model);
                self.asking = Some(Asking::new(model, *request, self.shared.spread()));
                Ok(())
            }
            Output::RecordCompaction {
                cut,
                step,
                request,
                before,
            } => {
                self.asking = None;
                let step = self.prepared.priced(step);
                let restated = compaction::restated(self.shared, self.session, &request);
                let command = Command::Compact {
                    turn: Some(turn),
                    cut,
                    step,
                    restated: Arc::clone(&restated),
                    before,
                };
                self.record(Record::Cut(restated), command)
            }
            Output::Ask(request) => {
                if !std::mem::replace(&mut self.shows, true) {
                    self.note(None);
                }
                self.mailbox.live.step_begins(turn);
                self.checkpointed_at = self.shared.now();
                let model = Arc::clone(&self.prepared.model);
                self.asking = Some(Asking::new(model, *request, self.shared.spread()));
                Ok(())
            }
            Output::RecordStep { step, calls } => {
                self.asking = None;
                let step = self.prepared.priced(step);
                self.record(Record::Step, Command::RecordStep { turn, step, calls })
            }
            Output::RecordResults(results) => {
                self.record(Record::Results, Command::RecordResults { turn, results })
            }
            Output::Note { code, text } => {
                let code = code.into();
                self.record(Record::Note, Command::Note { turn, code, text })
            }
            Output::Start(start) => {
                self.starting.push_back(start);
                Ok(())
            }
            Output::End {
                reason,
                step,
                error,
            } => {
                self.asking = None;
                // Nobody may be listening any more.
                let _heard = self.set_cancel.send(true);
                self.tools.abort_all();
                self.calls.clear();
                let step = step.map(|step| self.prepared.priced(step));
                let error = error.or_else(|| self.refusal.take());
                self.record(
                    Record::End,
                    Command::EndTurn {
                        turn,
                        reason,
                        step,
                        error,
                    },
                )
            }
        }
    }

    pub(super) fn record(&mut self, record: Record, command: Command) -> Result<(), EngineError> {
        let reply = self.shared.post(self.session, command, None)?;
        self.records.push_back((record, reply));
        Ok(())
    }
}
