//! `cargo xtask tidy`: the rules of the repository that no compiler checks. This file gathers the tree and chooses the
//! rules; each rule lives in a file of its own, takes text and gives findings, and touches nothing else.

mod banned;
mod coverage;
mod decisions;
mod edges;
mod finding;
mod heads;
mod length;
mod purity;
mod source;
mod tree;
mod whitespace;

use finding::Finding;
use source::Source;
use tree::Tree;

use crate::failure::Failure;

/// A rule: its name on the command line, and what it says about the tree.
struct Rule {
    name: &'static str,
    check: fn(&Tree) -> Result<Vec<Finding>, Failure>,
}

const COVERAGE: &str = "coverage";

const RULES: &[Rule] = &[
    Rule {
        name: "whitespace",
        check: |tree| {
            Ok(tree
                .texts(&["rs", "md", "toml"])
                .flat_map(|(path, text)| whitespace::check(path, text))
                .collect())
        },
    },
    Rule {
        name: "heads",
        check: |tree| {
            Ok(tree
                .rust()
                .flat_map(|(path, text)| heads::check(path, text))
                .collect())
        },
    },
    Rule {
        name: "length",
        check: |tree| {
            Ok(sources(tree)
                .filter_map(|file| length::check(&file))
                .collect())
        },
    },
    Rule {
        name: "banned",
        check: |tree| {
            Ok(sources(tree)
                .flat_map(|file| banned::check(&file))
                .collect())
        },
    },
    Rule {
        name: "edges",
        check: |_| edges::run(),
    },
    Rule {
        name: "purity",
        check: |_| purity::run(),
    },
    Rule {
        name: "decisions",
        check: |tree| Ok(decisions::check(&tree.under("docs/decisions/"))),
    },
    Rule {
        name: COVERAGE,
        check: |tree| {
            let code: Vec<Source> = sources(tree).collect();
            Ok(coverage::check(tree.text(coverage::PAGE), &code))
        },
    },
];

fn sources(tree: &Tree) -> impl Iterator<Item = Source> {
    tree.rust().map(|(path, text)| Source::new(path, text))
}

/// Runs the command: the named rules, or all.
pub(crate) fn run(names: &[String]) -> Result<(), Failure> {
    if let Some(unknown) = names
        .iter()
        .find(|name| RULES.iter().all(|rule| rule.name != name.as_str()))
    {
        let known: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        return Err(Failure::Usage {
            why: format!("no rule `{unknown}`; the rules are: {}", known.join(", ")),
        });
    }
    hold(|rule| names.is_empty() || names.iter().any(|name| name == rule))
}

/// All rules but the coverage page.
pub(crate) fn all_but_coverage() -> Result<(), Failure> {
    hold(|rule| rule != COVERAGE)
}

/// The coverage page alone.
pub(crate) fn only_coverage() -> Result<(), Failure> {
    hold(|rule| rule == COVERAGE)
}

fn hold(wanted: impl Fn(&str) -> bool) -> Result<(), Failure> {
    let tree = Tree::read()?;
    let mut errors = 0;
    let mut ran = Vec::new();
    for rule in RULES.iter().filter(|rule| wanted(rule.name)) {
        ran.push(rule.name);
        for finding in (rule.check)(&tree)? {
            println!("{}", finding.line(rule.name));
            errors += usize::from(finding.is_error());
        }
    }
    if errors > 0 {
        return Err(Failure::Findings { count: errors });
    }
    println!("tidy: {} hold", ran.join(", "));
    Ok(())
}
