//! What a reply amounts to, in words that both sides can be brought to. Ids of calls are not in it: the other library
//! makes its own where a provider gives none.

use serde_json::Value;

/// See the module.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    /// Name and arguments; arguments that are no JSON object are a string.
    pub(crate) calls: Vec<(String, Value)>,
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) cached: Option<u64>,
    pub(crate) reasoned: Option<u64>,
    /// Why the model stopped, or how the reply failed.
    pub(crate) end: String,
    pub(crate) failed: bool,
}

impl Reading {
    /// What is compared.
    pub(crate) const FIELDS: [&str; 8] = [
        "text",
        "reasoning",
        "calls",
        "input",
        "output",
        "cached",
        "reasoned",
        "end",
    ];

    /// Its fields by name, each as one text.
    pub(crate) fn fields(&self) -> [(&'static str, String); 8] {
        let count = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let calls: Vec<String> = self
            .calls
            .iter()
            .map(|(name, arguments)| format!("{name} {arguments}"))
            .collect();
        let values = [
            self.text.clone(),
            self.reasoning.clone(),
            calls.join(", "),
            count(self.input),
            count(self.output),
            count(self.cached),
            count(self.reasoned),
            self.end.clone(),
        ];
        let mut values = values.into_iter();
        Self::FIELDS.map(|field| (field, values.next().unwrap_or_default()))
    }
}
