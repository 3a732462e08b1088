//! Named points at which the program kills itself, for tests of the true binary:
//! `ATTACHE_FAULT=kind:before|after|before-effect:n` names the n-th append that holds an event of
//! that stored kind, and the place. The kind `append` is any append. With `:path` behind it, appends count
//! from the moment at which a file stands at that path. Only compiled with the feature `fault`.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::append::Append;

/// Where in the life of an append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Before its group is committed.
    Before,
    /// After its group is committed, before anybody has an answer.
    After,
    /// After the answer, before any effect of it.
    BeforeEffect,
}

struct Plan {
    kind: String,
    place: Place,
    left: AtomicU64,
    from: Option<PathBuf>,
}

/// The kind that every append has.
const ANY: &str = "append";

static PLAN: OnceLock<Option<Plan>> = OnceLock::new();

/// Says that an append with an event of this kind has come to a place; if it is the named one,
/// the process ends here, as if it were killed.
pub fn reached(kind: &str, place: Place) {
    let plan = PLAN.get_or_init(|| parse(&std::env::var("ATTACHE_FAULT").ok()?));
    if let Some(plan) = plan
        && plan.kind == kind
        && plan.place == place
        && plan.from.as_ref().is_none_or(|path| path.exists())
        && plan.left.fetch_sub(1, Ordering::Relaxed) == 1
    {
        std::process::abort();
    }
}

/// The stored kinds of an append's events, births included, each once, and the kind of any append.
#[must_use]
pub fn kinds(append: &Append) -> Vec<String> {
    let births = append.births.iter().flat_map(|birth| &birth.events);
    let mut kinds: Vec<String> = vec![ANY.to_owned()];
    for stamped in append.events.iter().chain(births) {
        let kind = stamped.event.kind();
        if !kinds.iter().any(|other| other == kind) {
            kinds.push(kind.to_owned());
        }
    }
    kinds
}

fn parse(text: &str) -> Option<Plan> {
    let mut parts = text.splitn(4, ':');
    let kind = parts.next()?.to_owned();
    let place = match parts.next()? {
        "before" => Place::Before,
        "after" => Place::After,
        "before-effect" => Place::BeforeEffect,
        _ => return None,
    };
    let number: u64 = parts.next()?.parse().ok()?;
    Some(Plan {
        kind,
        place,
        left: AtomicU64::new(number),
        from: parts.next().map(PathBuf::from),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_named_by_kind_place_and_number() {
        let plan = parse("turn-ended:after:3").unwrap();
        assert_eq!(
            (plan.kind.as_str(), plan.place),
            ("turn-ended", Place::After)
        );
        assert_eq!((plan.left.into_inner(), plan.from), (3, None));
        let armed = parse("append:before:1:/a/file").unwrap();
        assert_eq!(armed.from, Some(PathBuf::from("/a/file")));
        let effect = parse("said:before-effect:1").unwrap();
        assert_eq!(effect.place, Place::BeforeEffect);
        for bad in ["", "said", "said:before", "said:later:1", "said:before:x"] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }
}
