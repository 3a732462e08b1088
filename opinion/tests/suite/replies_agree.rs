//! The comparison: what differs must be listed, as it is, and what is listed must differ.

use std::collections::BTreeMap;

use attache_model::Dialect;

use crate::differences::{Difference, EXPECTED};
use crate::reading::Reading;
use crate::{cases, ours, server, theirs};

/// By case and field: what we say, what they say.
type Found = BTreeMap<(String, &'static str), (String, String)>;

/// Everything of replies that both read to their end. Of one that fails on both sides, how it fails and what people have
/// seen of it: its calls are not carried out, and the other library tells no usage then. Of one that fails on one side
/// alone, only that.
fn compare(case: &str, ours: &Reading, theirs: &Reading, found: &mut Found) {
    let compared: &[&str] = match (ours.failed, theirs.failed) {
        (false, false) => &Reading::FIELDS,
        (true, true) => &["end", "text", "reasoning"],
        _ => &["end"],
    };
    for ((field, ours), (_, theirs)) in ours.fields().into_iter().zip(theirs.fields()) {
        if ours != theirs && compared.contains(&field) {
            found.insert((case.to_owned(), field), (ours, theirs));
        }
    }
}

#[tokio::test]
async fn both_read_the_same_but_for_what_is_listed() {
    let mut found = Found::new();
    for case in cases::all() {
        let (address, served) = server::play(case.answer.clone());
        let own = ours::read(case.dialect, &base(case.dialect, &address)).await;
        served.join().expect("the server ends");
        let (address, served) = server::play(case.answer);
        let other = theirs::read(case.dialect, &address).await;
        served.join().expect("the server ends");
        compare(&case.name, &own, &other, &mut found);
    }
    let complaints = complaints(found, EXPECTED);
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// What is found and not listed, or listed and not found so.
fn complaints(mut found: Found, listed: &[Difference]) -> Vec<String> {
    let mut complaints = Vec::new();
    for row in listed {
        let say = |what: &str| {
            let Difference {
                case, field, why, ..
            } = row;
            format!("{case}, {field}: {what} (why it was listed: {why})")
        };
        match found.remove(&(row.case.to_owned(), row.field)) {
            None => complaints.push(say("listed, and there is no difference any more")),
            Some((ours, theirs)) if (&*ours, &*theirs) != (row.ours, row.theirs) => {
                let now = format!("listed, and now it is {ours:?} here and {theirs:?} there");
                complaints.push(say(&now));
            }
            Some(_) => {}
        }
    }
    for ((case, field), (ours, theirs)) in found {
        complaints.push(format!(
            "{case}, {field}: {ours:?} here and {theirs:?} there, and it is not listed"
        ));
    }
    complaints
}

#[test]
fn what_is_not_listed_and_what_is_gone_are_both_complained_of() {
    let found = |ours: &str| {
        let reading = |text: &str| Reading {
            text: text.to_owned(),
            ..Reading::default()
        };
        let mut found = Found::new();
        compare("c", &reading(ours), &reading("theirs"), &mut found);
        found
    };
    let listed = [Difference {
        case: "c",
        field: "text",
        ours: "ours",
        theirs: "theirs",
        why: "so",
    }];
    assert!(complaints(found("ours"), &listed).is_empty());
    assert!(complaints(found("theirs"), &[]).is_empty());
    for (found, listed, what) in [
        (found("ours"), &[][..], "not listed"),
        (found("theirs"), &listed[..], "no difference any more"),
        (found("other"), &listed[..], "now it is \"other\""),
    ] {
        let all = complaints(found, listed);
        assert!(all.len() == 1 && all[0].contains(what), "{all:?}");
    }
}

/// What our settings take as the address of the OpenAI dialects ends with the version.
fn base(dialect: Dialect, address: &str) -> String {
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiResponses => format!("{address}/v1"),
        Dialect::Anthropic | Dialect::Gemini => address.to_owned(),
    }
}
