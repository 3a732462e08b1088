//! A second opinion on models: what another library holds of the same things. Here is its catalogue as the table of
//! `crates/model`; that it reads the same replies as we do is in the tests. Nothing of ours depends on this crate.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use rig_core::catalog::{Catalog, ModelSpec};

/// The head of the table. The month is that of the catalogue's data, which change only with the library's version.
const HEAD: &str = "\
# Limits in tokens and prices in US dollars a million tokens, of models as their providers sell them.
# Facts of the catalogue of models.dev as rig-core 0.44.0 carries it. Made by the second opinion; not edited by hand.
# version: models.dev 2026-10
# model\tcontext\toutput\tinput_usd\toutput_usd\tcache_read_usd\tcache_write_usd
";

/// Providers that are called otherwise here.
const NAMES: [(&str, &str); 3] = [
    ("aws_bedrock", "bedrock"),
    ("azure.openai", "azure"),
    ("gcp.gemini", "gemini"),
];

/// Providers whose models run on the user's own machine: what others take for them says nothing.
const WITHOUT_PRICES: [&str; 2] = ["llamacpp", "ollama"];

/// Providers that are left out: subscriptions, whose calls have no price, and another wire to models that are listed.
const LEFT_OUT: [&str; 3] = ["chatgpt", "copilot", "gemini-grpc"];

/// The table as text: the models of which something is known, by name.
#[must_use]
pub fn table() -> String {
    let rows: BTreeMap<String, String> = Catalog::builtin()
        .iter()
        .filter(|model| !LEFT_OUT.contains(&model.provider.vendor()))
        .map(row)
        .filter(|(_, cells)| !cells.is_empty())
        .collect();
    let mut text = HEAD.to_owned();
    for (name, cells) in rows {
        text.push_str(&format!("{name}{cells}\n"));
    }
    text
}

/// Where the table is kept.
#[must_use]
pub fn path() -> PathBuf {
    [
        env!("CARGO_MANIFEST_DIR"),
        "../crates/model/data/models.tsv",
    ]
    .iter()
    .collect()
}

/// A model's name and its cells, each with the tab before it; what is not known is empty, and left
/// out at the end.
fn row(model: &ModelSpec) -> (String, String) {
    let vendor = model.provider.vendor();
    let provider = NAMES
        .iter()
        .find_map(|(theirs, ours)| (*theirs == vendor).then_some(*ours))
        .unwrap_or(vendor);
    let prices = model
        .pricing
        .filter(|_| !WITHOUT_PRICES.contains(&provider));
    let counts = [model.context_window, model.max_output_tokens];
    let prices = [
        prices.map(|prices| prices.input),
        prices.map(|prices| prices.output),
        prices.and_then(|prices| prices.cache_read),
        prices.and_then(|prices| prices.cache_write),
    ];
    let mut cells = String::new();
    let known = counts
        .iter()
        .map(|count| count.map(|count| count.to_string()));
    let known = known.chain(prices.iter().map(|price| price.map(|usd| usd.to_string())));
    for cell in known {
        // Writing to a string does not fail.
        let _written = write!(cells, "\t{}", cell.unwrap_or_default());
    }
    cells.truncate(cells.trim_end_matches('\t').len());
    (format!("{provider}/{}", model.id), cells)
}
