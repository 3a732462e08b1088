//! Mail as it is stored, and the class by which unread mail is counted.

use std::sync::Arc;

use attache_session::{EndReason, ItemId, MailBody, Notice, Outcome, StopReason, Unread, WatchId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::parts::ToldRecord;
use super::{Opened, seal};

/// What a mail would set off, as its row says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Class {
    Input = 0,
    Notice = 1,
    Other = 2,
}

impl Class {
    pub(crate) fn of(body: &MailBody) -> Self {
        match body {
            MailBody::Input { .. } => Self::Input,
            MailBody::Notice(_) | MailBody::Report { .. } => Self::Notice,
            MailBody::Watch { .. }
            | MailBody::Unwatch { .. }
            | MailBody::Hold
            | MailBody::Release { .. } => Self::Other,
        }
    }

    /// Adds rows of a class, as it is stored, to what lies unread.
    pub(crate) fn add(unread: &mut Unread, class: u8, rows: u32) {
        let place = match class {
            0 => &mut unread.inputs,
            1 => &mut unread.notices,
            _ => &mut unread.other,
        };
        *place = place.saturating_add(rows);
    }
}

#[derive(Serialize, Deserialize)]
struct InputRecord {
    item: Uuid,
    #[serde(default)]
    text: Arc<str>,
    #[serde(default)]
    immediate: bool,
}

#[derive(Serialize, Deserialize)]
struct WatchRecord {
    watch: Uuid,
    #[serde(default)]
    message: Option<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
struct UnwatchRecord {
    watch: Uuid,
}

#[derive(Serialize, Deserialize)]
struct NoticeRecord {
    watch: Uuid,
    #[serde(default)]
    message: Option<Arc<str>>,
    #[serde(default)]
    outcome: Option<String>,
    #[serde(default)]
    end_reason: Option<String>,
    #[serde(default)]
    stopped: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<ToldRecord>,
}

#[derive(Serialize, Deserialize)]
struct ReportRecord {
    watch: Uuid,
    #[serde(default)]
    text: Arc<str>,
}

#[derive(Serialize, Deserialize)]
struct HoldRecord {}

#[derive(Serialize, Deserialize)]
struct ReleaseRecord {
    reason: String,
}

/// The body of a mail as it is written.
pub(crate) fn encode_mail(body: &MailBody) -> String {
    match body {
        MailBody::Input {
            item,
            text,
            immediate,
        } => {
            let record = InputRecord {
                item: item.0,
                text: Arc::clone(text),
                immediate: *immediate,
            };
            seal("input", None, record)
        }
        MailBody::Watch { watch, message } => {
            let record = WatchRecord {
                watch: watch.0,
                message: message.clone(),
            };
            seal("watch", None, record)
        }
        MailBody::Unwatch { watch } => seal("unwatch", None, UnwatchRecord { watch: watch.0 }),
        MailBody::Notice(Notice {
            watch,
            message,
            outcome,
            end_reason,
            stopped,
            told,
        }) => {
            let record = NoticeRecord {
                watch: watch.0,
                message: message.clone(),
                outcome: outcome.map(|outcome| outcome.as_str().to_owned()),
                end_reason: end_reason.map(|reason| reason.as_str().to_owned()),
                stopped: *stopped,
                told: told.as_ref().map(ToldRecord::of),
            };
            seal("notice", None, record)
        }
        MailBody::Report { watch, text } => {
            let record = ReportRecord {
                watch: watch.0,
                text: Arc::clone(text),
            };
            seal("report", None, record)
        }
        MailBody::Hold => seal("hold", None, HoldRecord {}),
        MailBody::Release { reason } => {
            let reason = reason.as_str().to_owned();
            seal("release", None, ReleaseRecord { reason })
        }
    }
}

/// The body of a stored mail; none when it cannot be understood, and then it stays unread.
pub(crate) fn decode_mail(body: &str) -> Option<MailBody> {
    let opened = Opened::of(body).ok()?;
    let fields = opened.fields();
    Some(match opened.kind.as_ref() {
        "input" => {
            let InputRecord {
                item,
                text,
                immediate,
            } = read(fields)?;
            MailBody::Input {
                item: ItemId(item),
                text,
                immediate,
            }
        }
        "watch" => {
            let WatchRecord { watch, message } = read(fields)?;
            MailBody::Watch {
                watch: WatchId(watch),
                message,
            }
        }
        "unwatch" => {
            let UnwatchRecord { watch } = read(fields)?;
            MailBody::Unwatch {
                watch: WatchId(watch),
            }
        }
        "notice" => {
            let NoticeRecord {
                watch,
                message,
                outcome,
                end_reason,
                stopped,
                told,
            } = read(fields)?;
            MailBody::Notice(Notice {
                watch: WatchId(watch),
                message,
                outcome: outcome.as_deref().and_then(Outcome::parse),
                end_reason: end_reason.as_deref().and_then(EndReason::parse),
                stopped,
                told: told.map(ToldRecord::value),
            })
        }
        "report" => {
            let ReportRecord { watch, text } = read(fields)?;
            MailBody::Report {
                watch: WatchId(watch),
                text,
            }
        }
        "hold" => MailBody::Hold,
        "release" => {
            let ReleaseRecord { reason } = read(fields)?;
            MailBody::Release {
                reason: StopReason::parse(&reason)?,
            }
        }
        _ => return None,
    })
}

fn read<'a, T: Deserialize<'a>>(fields: &'a str) -> Option<T> {
    serde_json::from_str(fields).ok()
}
