//! Answers that are no answers: nothing at all, an announcement, a claim of something that was not done. The model is
//! reminded once of each. Where the rules come from: systems that met these answers again and again with smaller models.

/// What an empty answer is answered with.
pub(super) const EMPTY: &str = "Your last message was empty. Give your answer now, with what you know by now; if there is nothing to say, say that.";

/// What an announcement is answered with.
pub(super) const ANNOUNCED: &str = "You have announced something and then stopped. Do it now: call the tool that it \
    needs, or give the whole answer if it needs none.";

/// What a claim is answered with.
pub(super) const CLAIMED: &str = "You say that something was done, but no tool was called, so nothing was done. Call the \
    tool that does it now. If it needs no tool, or cannot be done, say so plainly.";

/// What the model is to be reminded of after a last text with which no tool ran.
pub(super) fn reminder(text: &str) -> Option<&'static str> {
    let text = text.trim();
    if text.is_empty() {
        None
    } else if is_announcement(text) {
        Some(ANNOUNCED)
    } else if is_claim(text) {
        Some(CLAIMED)
    } else {
        None
    }
}

/// A text that only leads up to something.
fn is_announcement(text: &str) -> bool {
    text.ends_with(':') || text.ends_with("...") || text.ends_with('…') || promises(text)
}

/// A last sentence that promises to act at once.
fn promises(text: &str) -> bool {
    let last = text
        .trim_end_matches(['.', '!'])
        .rsplit(['.', '!', '?', '\n'])
        .next()
        .unwrap_or_default()
        .trim()
        .to_lowercase();
    let begins = [
        "i'll ",
        "i’ll ",
        "i will ",
        "let me ",
        "i'm going to ",
        "i am going to ",
    ];
    let now = [" now", "right away", "let me "];
    // "Let me know" asks; it promises nothing.
    !last.contains("let me know")
        && begins.iter().any(|begin| last.starts_with(begin))
        && now.iter().any(|word| last.contains(word))
}

/// Verbs of a change that only a tool can have made.
const DONE: [&str; 10] = [
    "saved",
    "added",
    "created",
    "updated",
    "deleted",
    "removed",
    "completed",
    "scheduled",
    "rescheduled",
    "cancelled",
];

/// A text that says of itself that it changed something, or that gives the id of a task that nobody started.
fn is_claim(text: &str) -> bool {
    let lower = text.to_lowercase().replace('’', "'");
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .collect();
    let did = (0..words.len()).any(|at| {
        let rest = match &words[at..] {
            ["i've", rest @ ..] | ["i", "have", rest @ ..] => rest,
            _ => return false,
        };
        match rest {
            [verb, ..] if DONE.contains(verb) => true,
            // "I have successfully saved it" is one too.
            [adverb, verb, ..] => adverb.ends_with("ly") && DONE.contains(verb),
            _ => false,
        }
    });
    let dispatched = lower.contains("has been dispatched");
    let running = words.windows(4).any(|four| {
        matches!(four[0], "subagent" | "sub-agent" | "agent") && four[2..] == ["is", "now"]
    }) && lower.contains("is now running");
    did || dispatched || running || has_made_up_id(&lower)
}

/// `task id: 1a2b3c4d` and its like.
fn has_made_up_id(lower: &str) -> bool {
    ["task id", "subagent id", "agent id"].iter().any(|name| {
        lower.match_indices(name).any(|(at, name)| {
            let rest = lower[at + name.len()..].trim_start_matches([':', ' ', '*', '`', '"']);
            let id: String = rest
                .chars()
                .take_while(char::is_ascii_alphanumeric)
                .collect();
            id.len() >= 8 && id.chars().any(|c| c.is_ascii_digit())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_and_claims_are_told_from_answers() {
        for (text, want) in [
            ("Let me look at the file:", Some(ANNOUNCED)),
            ("I will check that...", Some(ANNOUNCED)),
            ("One moment…", Some(ANNOUNCED)),
            ("Good. I'll read the file now.", Some(ANNOUNCED)),
            ("Let me check the logs.", Some(ANNOUNCED)),
            ("Let me know if you need more.", None),
            ("I'll be glad to help whenever you like.", None),
            ("I've saved the file.", Some(CLAIMED)),
            ("I’ve created it", Some(CLAIMED)),
            ("I have updated both entries.", Some(CLAIMED)),
            ("I have successfully added the row.", Some(CLAIMED)),
            ("Done. Task ID: **a1b2c3d4e5**", Some(CLAIMED)),
            ("The agent id is unknown.", None),
            ("Subagent scout is now running.", Some(CLAIMED)),
            ("The request has been dispatched.", Some(CLAIMED)),
            ("I have three apples.", None),
            ("The file was created in 2019.", None),
            ("The answer is 42.", None),
            ("", None),
        ] {
            assert_eq!(reminder(text), want, "{text}");
        }
    }
}
