//! The MCP door with clients and checks that others wrote: the official SDKs of Python and TypeScript, and the official
//! conformance suite. They are installed below the folder of the build, in the versions that are named here and beside
//! the walks; nothing of the system is changed.

use crate::failure::Failure;
use crate::foreign::{make, none, npm, python, text, walk, walks};
use crate::metadata;
use crate::shell::{cargo, program};

/// The suite, and the Node that it needs: the one of the system may be too old for it.
const SUITE: &[&str] = &[
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "node@22.23.3",
];

/// Agents, by the names of their programs, and the packages that they come in.
const AGENTS: [(&str, &str); 2] = [
    ("copilot", "@github/copilot@1.0.102"),
    ("codex", "@openai/codex@0.171.0"),
];

/// The versions of the protocol that the suite checks, each with its list of expected failures.
const VERSIONS: &[&str] = &["2025-11-25", "2026-07-28"];

/// Delegates by each SDK, over standard input and output and over HTTP.
pub(crate) fn clients(args: &[String]) -> Result<(), Failure> {
    none(args, "mcp-clients")?;
    println!("mcp-clients: the official SDKs, installed below the folder of the build");
    cargo(&["build", "--profile", "ci", "--package", "attache"]).run()?;
    let target = metadata::target()?;
    let binary = target.join("ci/attache");
    let folder = target.join("mcp-clients");
    let walks = walks();
    let python = python(&folder, &walks.join("python/requirements.txt"))?;
    let node = folder.join("typescript");
    make(&node)?;
    let manifest = node.join("package.json");
    std::fs::copy(walks.join("typescript/package.json"), &manifest).map_err(|source| {
        Failure::Read {
            path: manifest,
            source,
        }
    })?;
    npm(&node, &[])?;
    let house = folder.join("house");
    walk(&house, &walks, &python, "python/delegate.py", &binary).run()?;
    walk(&house, &walks, "node", "typescript/delegate.mjs", &binary)
        .within(&node)
        .run()
}

/// Drives agents that others wrote, with a model that is a stub: each creates a sub-agent, steers it, waits for it and
/// reads its result. They are large and have licences of their own, so this is no part of the tests.
pub(crate) fn agents(args: &[String]) -> Result<(), Failure> {
    none(args, "mcp-agents")?;
    println!(
        "mcp-agents: {}, installed below the folder of the build",
        AGENTS.map(|it| it.1).join(" and ")
    );
    cargo(&["build", "--profile", "ci", "--package", "attache"]).run()?;
    let target = metadata::target()?;
    let binary = target.join("ci/attache");
    let folder = target.join("mcp-agents");
    make(&folder)?;
    let walks = walks();
    for (name, package) in AGENTS {
        npm(&folder, &[package])?;
        let agent = folder.join("node_modules/.bin").join(name);
        let script = text(&walks.join("cli/delegate.py"));
        let call = ["-B", &script, name, &text(&agent), &text(&binary)];
        program("python3", &call).run()?;
    }
    Ok(())
}

/// Runs the conformance suite against the door for both versions of the protocol.
pub(crate) fn conformance(args: &[String]) -> Result<(), Failure> {
    none(args, "mcp-conformance")?;
    println!("mcp-conformance: the official suite, installed below the folder of the build");
    cargo(&[
        "build",
        "--profile",
        "ci",
        "--package",
        "attache-mcp-door",
        "--example",
        "conformance",
    ])
    .run()?;
    let target = metadata::target()?;
    let folder = target.join("mcp-conformance");
    make(&folder)?;
    npm(&folder, SUITE)?;
    let server = target.join("ci/examples/conformance");
    let (running, address) = program(&text(&server), &[]).start()?;
    let node = text(&folder.join("node_modules/.bin/node"));
    let suite = folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let lists = crate::shell::root().join("crates/mcp-door/tests/conformance_suite");
    for version in VERSIONS {
        let expected = lists.join(format!("expected-{version}.yaml"));
        let call = [
            &text(&suite),
            "server",
            "--url",
            &address,
            "--requirements",
            version,
            "--expected-failures",
            &text(&expected),
        ];
        program(&node, &call).within(&folder).run()?;
    }
    drop(running);
    Ok(())
}
