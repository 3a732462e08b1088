//! How providers say that a prompt is too long, and what they say of the limit.

/// Providers have no common code for a prompt that is too long; these are the forms of their texts.
pub(crate) fn is_overflow(lower: &str, codes: &[String]) -> bool {
    const CODES: [&str; 3] = [
        "context_length_exceeded",
        "context_window_exceeded",
        "exceed_context_size",
    ];
    const TEXTS: [&str; 12] = [
        "maximum context length",
        "prompt is too long",
        "prompt contains at least",
        "exceeds the context window",
        "exceed context limit",
        "exceeds the available context size",
        "maximum prompt length",
        "reduce the length of the messages",
        "exceeds the maximum number of tokens allowed",
        "input token count exceeds",
        "input is too long for requested model",
        "context length exceeded",
    ];
    codes
        .iter()
        .any(|code| CODES.iter().any(|word| code.contains(word)))
        || TEXTS.iter().any(|text| lower.contains(text))
}

/// The smallest number that is taken for a limit: smaller ones are counts of something else.
const LEAST: u64 = 256;

/// Tokens of the model's context, where the text of an overflow names them.
#[must_use]
pub fn stated_limit(message: &str) -> Option<u64> {
    const BEFORE: [&str; 10] = [
        "maximum context length is",
        "maximum context length of",
        "context length is only",
        "maximum prompt length is",
        "tokens allowed",
        "context window of",
        "context limit of",
        "context size of",
        "context size (",
        ">",
    ];
    let lower = message.to_lowercase();
    let behind = |words: &&str| Some(lower.split_once(*words)?.1);
    BEFORE
        .iter()
        .filter_map(behind)
        .find_map(number)
        .filter(|limit| *limit >= LEAST)
}

/// The number that a text begins with, perhaps behind a bracket, written with or without commas.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_start_matches([' ', ':', '=', '(', '[']);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ',');
    let digits = text.get(..end.unwrap_or(text.len()))?.replace(',', "");
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_read_where_a_text_names_it() {
        for (text, want) in [
            (
                "This model's maximum context length is 131072 tokens, however you requested about 140000",
                Some(131_072),
            ),
            (
                "This model's maximum context length is 4,097 tokens. However, you requested 4500 tokens (3500 in the messages, 1000 in the completion)",
                Some(4_097),
            ),
            (
                "prompt is too long: 210000 tokens > 200000 maximum",
                Some(200_000),
            ),
            (
                "input length and `max_tokens` exceed context limit: 198000 + 8000 > 200000",
                Some(200_000),
            ),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
            ),
            (
                "The input token count exceeds the maximum number of tokens allowed 1048576.",
                Some(1_048_576),
            ),
            (
                "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
                Some(131_072),
            ),
            (
                "the request exceeds the available context size (4096 tokens), try increasing it",
                Some(4_096),
            ),
            ("The prompt contains at least 131073 input tokens", None),
            ("Your input exceeds the context window of this model.", None),
            ("maximum context length is 99999999999999999999999", None),
            ("a > b, 3 > 2", None),
            ("", None),
        ] {
            assert_eq!(stated_limit(text), want, "{text}");
        }
    }
}
