//! What a tool said of one of its calls for the ledger, as it is stored beside the call's result.

use std::sync::Arc;

use attache_session::{CallReport, NestedCall};
use serde::{Deserialize, Serialize};

use super::event::yes;
use super::parts::Count;

/// A report; what is not said is left out.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ReportRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<Arc<str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nested: Vec<NestedRecord>,
    #[serde(skip_serializing_if = "is_nothing")]
    nested_total: Count,
}

/// A nested call. Whether it changed state is unknown where it is not said, and unknown counts as changing.
#[derive(Serialize, Deserialize)]
struct NestedRecord {
    #[serde(default)]
    name: Arc<str>,
    #[serde(default)]
    arguments: Arc<str>,
    #[serde(default)]
    failed: bool,
    #[serde(default = "yes")]
    changes_state: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_nothing(count: &Count) -> bool {
    *count == Count(0)
}

impl ReportRecord {
    pub(super) fn of(report: &CallReport) -> Self {
        let CallReport {
            target,
            detail,
            failed,
            nested,
            nested_total,
        } = report;
        Self {
            target: target.clone(),
            detail: detail.clone(),
            failed: *failed,
            nested: nested.iter().map(NestedRecord::of).collect(),
            nested_total: Count(*nested_total),
        }
    }

    pub(super) fn value(self) -> CallReport {
        let Self {
            target,
            detail,
            failed,
            nested,
            nested_total,
        } = self;
        CallReport {
            target,
            detail,
            failed,
            nested: nested.into_iter().map(NestedRecord::value).collect(),
            nested_total: nested_total.0,
        }
    }
}

impl NestedRecord {
    fn of(call: &NestedCall) -> Self {
        let NestedCall {
            name,
            arguments,
            failed,
            changes_state,
        } = call;
        Self {
            name: Arc::clone(name),
            arguments: Arc::clone(arguments),
            failed: *failed,
            changes_state: *changes_state,
        }
    }

    fn value(self) -> NestedCall {
        let Self {
            name,
            arguments,
            failed,
            changes_state,
        } = self;
        NestedCall {
            name,
            arguments,
            failed,
            changes_state,
        }
    }
}
