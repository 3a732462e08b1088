//! Questions to a person in a terminal without cursor tricks: how one is shown, and what a typed line answers. What fits a
//! question is decided by the host; here is only what a line means.

use attache_client::protocol::{ModalAnswer, ModalEnd, ModalKind, ModalView};

use crate::safe::in_line;
use crate::tree_view::short;

/// A question as it is shown, with how to answer it.
pub(crate) fn asked(modal: &ModalView) -> String {
    let who: Vec<String> = modal
        .path
        .iter()
        .map(|step| in_line(&step.name).into_owned())
        .collect();
    let mut text = format!(
        "? {} ({}) asks: {}",
        who.join(" / "),
        short(&modal.session_id),
        in_line(&modal.text)
    );
    if let Some(body) = &modal.body {
        text.extend(body.lines().map(|line| format!("\n  {}", in_line(line))));
    }
    for (number, choice) in modal.choices.iter().enumerate() {
        text.push_str(&format!("\n  {}) {}", number + 1, in_line(choice)));
    }
    if let Some(schema) = &modal.schema {
        text.push_str(&format!(
            "\n  values that fit {}",
            in_line(&schema.to_string())
        ));
    }
    text.push_str("\n  ");
    text.push_str(match modal.kind {
        ModalKind::Permission => "yes or no, with a remark if you like",
        ModalKind::Question if modal.choices.is_empty() => "type the answer, or /no",
        ModalKind::Question if modal.free => "type a number or another answer, or /no",
        ModalKind::Question => "type a number, or /no",
        ModalKind::Form => "type the values as JSON, or /no",
        ModalKind::Plan if modal.choices.is_empty() => "yes or no, with a remark if you like",
        ModalKind::Plan => "type a number, or no with a remark",
        ModalKind::SignIn => "yes when it is done, or no",
    });
    text
}

/// How a question ended, for those who did not answer it.
pub(crate) fn settled(modal: &ModalView, end: &ModalEnd) -> String {
    let question = in_line(&modal.text);
    match end {
        ModalEnd::Answered { answer, by } if answer.accepted => {
            let text = answer.text.as_deref().map(in_line);
            let text = text.map(|text| format!(": {text}")).unwrap_or_default();
            format!("  answered by {}{text} ({question})", in_line(by))
        }
        ModalEnd::Answered { by, .. } => format!("  declined by {} ({question})", in_line(by)),
        ModalEnd::Expired {} => format!("  not answered in time ({question})"),
        ModalEnd::Withdrawn {} => format!("  not asked any more ({question})"),
    }
}

/// What a typed line answers.
///
/// # Errors
///
/// What is wrong with it, in words for whoever typed it.
pub(crate) fn answer(modal: &ModalView, line: &str) -> Result<ModalAnswer, String> {
    let line = line.trim();
    let with = |accepted, text: Option<&str>| ModalAnswer {
        accepted,
        text: text.filter(|text| !text.is_empty()).map(str::to_owned),
        content: None,
    };
    if let Some(remark) = line.strip_prefix("/no") {
        return Ok(with(false, Some(remark.trim())));
    }
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let word = match first
        .trim_end_matches([',', '.', ':'])
        .to_ascii_lowercase()
        .as_str()
    {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    };
    let choice = line
        .parse::<usize>()
        .ok()
        .and_then(|number| modal.choices.get(number.checked_sub(1)?));
    match modal.kind {
        ModalKind::Permission | ModalKind::SignIn => match word {
            Some(accepted) => Ok(with(accepted, Some(rest.trim()))),
            None => Err("answer yes or no".to_owned()),
        },
        ModalKind::Plan => match (choice, word) {
            (Some(choice), _) => Ok(with(true, Some(choice))),
            (None, Some(true)) if modal.choices.is_empty() => Ok(with(true, Some(rest.trim()))),
            (None, Some(false)) => Ok(with(false, Some(rest.trim()))),
            _ if modal.choices.is_empty() => Err("answer yes or no".to_owned()),
            _ => Err("answer with the number of a choice, or no".to_owned()),
        },
        ModalKind::Question => match choice {
            Some(choice) => Ok(with(true, Some(choice))),
            None if line.is_empty() => Err("type an answer, or /no".to_owned()),
            None => Ok(with(true, Some(line))),
        },
        ModalKind::Form => match serde_json::from_str(line) {
            Ok(content) => Ok(ModalAnswer {
                accepted: true,
                text: None,
                content: Some(content),
            }),
            Err(fault) => Err(format!("that is no JSON: {fault}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modal(kind: &str, choices: &[&str]) -> ModalView {
        serde_json::from_value(serde_json::json!({
            "modal-id": "m", "session-id": "01931f2e-0000-7000-8000-0000aaaaaaaa",
            "path": [{ "session-id": "r", "name": "root" }, { "session-id": "a", "name": "asker\u{1b}[2J" }],
            "kind": kind, "text": "Which?", "body": "line one\nline two", "choices": choices, "free": true,
            "schema": null, "tool": "ask_user", "call-id": "c", "arguments-digest": "d",
            "raised-at": "t", "seconds": 60,
        }))
        .unwrap()
    }

    #[test]
    fn a_question_is_shown_with_its_way_and_its_choices_and_nothing_that_steers_a_terminal() {
        let shown = asked(&modal("question", &["this", "that"]));
        assert!(shown.starts_with("? root / asker"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
        for part in [
            "(aaaaaaaa) asks: Which?",
            "\n  line two",
            "\n  2) that",
            "another answer",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }

    #[test]
    fn what_a_line_answers() {
        // Kind, choices, line; accepted and text, or what is wrong.
        type Row<'a> = (
            &'a str,
            &'a [&'a str],
            &'a str,
            Result<(bool, Option<&'a str>), &'a str>,
        );
        let table: [Row<'_>; 15] = [
            ("permission", &[], "yes", Ok((true, None))),
            (
                "permission",
                &[],
                "No, too risky",
                Ok((false, Some("too risky"))),
            ),
            ("permission", &[], "perhaps", Err("yes or no")),
            ("sign-in", &[], "y", Ok((true, None))),
            ("question", &["a", "b"], "2", Ok((true, Some("b")))),
            ("question", &["a", "b"], "3", Ok((true, Some("3")))),
            ("question", &[], "no idea", Ok((true, Some("no idea")))),
            ("question", &[], "", Err("type an answer")),
            ("question", &[], "/no not now", Ok((false, Some("not now")))),
            ("plan", &[], "yes go", Ok((true, Some("go")))),
            ("plan", &["slow"], "1", Ok((true, Some("slow")))),
            ("plan", &["slow"], "yes", Err("number")),
            ("plan", &["slow"], "no, wait", Ok((false, Some("wait")))),
            ("form", &[], "count=3", Err("no JSON")),
            ("form", &[], "/no", Ok((false, None))),
        ];
        for (kind, choices, line, wanted) in table {
            let given = answer(&modal(kind, choices), line);
            match (given, wanted) {
                (Ok(given), Ok((accepted, text))) => {
                    assert_eq!(
                        (given.accepted, given.text.as_deref()),
                        (accepted, text),
                        "{line}"
                    );
                }
                (Err(given), Err(wanted)) => assert!(given.contains(wanted), "{given}"),
                (given, wanted) => panic!("{kind} {line}: {given:?}, not {wanted:?}"),
            }
        }
        let filled = answer(&modal("form", &[]), r#"{"count": 3}"#).unwrap();
        assert_eq!(filled.content.unwrap()["count"], 3);
    }
}
