//! Definitions in JSON and Markdown: what is read, what is refused and where, what is filled in.

use std::collections::BTreeMap;

use attache_agent::{Definition, MarkdownDialect};

const WHOLE: &str = r#"{
  "name": "reviewer",
  "display-name": "Reviewer",
  "description": "Reviews ${path}.",
  "model": "openai/gpt",
  "options": { "temperature": 0.5, "max-output-tokens": 100, "extra": { "seed": 7 } },
  "instructions": "Review ${path} for ${who}. ${unknown} stays.",
  "tools": ["filesystem", { "kind": "agent-session" }, "read_file"],
  "sub-agents": [{ "name": "helper", "definition": { "name": "helper", "tools": [] } }],
  "parameters": [
    { "name": "path", "description": "The file.", "required": true },
    { "name": "who", "default": "Ada", "enum": ["Ada", "Grace"] }
  ],
  "limits": { "iteration-limit": 9 },
  "working-directory": "src"
}"#;

fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn a_definition_reads_back_as_it_was_written() {
    let definition = Definition::from_json(WHOLE, "reviewer.json").unwrap();
    assert_eq!(
        definition.tools,
        ["filesystem", "agent-session", "read_file"]
    );
    assert_eq!(definition.limits.iteration_limit, Some(9));
    assert_eq!(definition.sub_agents[0].definition.name, "helper");
    let again = Definition::from_json(definition.to_json().as_str(), "again").unwrap();
    assert_eq!(again, definition);
    let built_in = Definition::built_in();
    assert_eq!(
        Definition::from_json(built_in.to_json().as_str(), "b").unwrap(),
        built_in
    );
}

#[test]
fn parameters_are_filled_in_once_and_checked() {
    let definition = Definition::from_json(WHOLE, "reviewer.json").unwrap();
    let filled = definition.fill(&given(&[("path", "${who}.rs")])).unwrap();
    assert_eq!(
        filled.instructions,
        "Review ${who}.rs for Ada. ${unknown} stays."
    );
    assert_eq!(filled.description, "Reviews ${who}.rs.");
    assert!(filled.parameters.is_empty());
    let table: [(&[(&str, &str)], &str); 5] = [
        (&[], "`path`"),
        (&[("path", "  ")], "`path`"),
        (&[("path", "x"), ("who", "Bob")], "Ada, Grace"),
        (&[("path", "x"), ("whom", "Ada")], "path, who"),
        (&[("path", "sk-a1b2c3d4e5f6g7h8i9j0k1")], "looks like a key"),
    ];
    for (values, wanted) in table {
        let error = definition.fill(&given(values)).unwrap_err().to_string();
        assert!(error.contains(wanted), "{values:?}: {error}");
    }
}

#[test]
fn what_does_not_load_is_named_with_file_and_line() {
    let table = [
        ("{\n\n  \"nam\": \"x\"\n}", "d.json:3", "nam"),
        ("{ \"name\": \"\" }", "d.json:1", "letters"),
        ("{ \"name\": \"a/b\" }", "d.json:1", "letters"),
        (
            "{ \"name\": \"a\", \"model\": \"gpt\" }",
            "d.json:1",
            "PROVIDER/MODEL",
        ),
        (
            "{ \"name\": \"a\", \"limits\": { \"iteration-limit\": 0 } }",
            "d.json:1",
            "at least 1",
        ),
        (
            "{ \"name\": \"a\",\n \"budget\": { \"money\": 1 } }",
            "d.json:2",
            "budget: there is no limit \"money\"",
        ),
        ("{ \"name\": \"a\", \"cost\": {} }", "d.json:1", "cost"),
        ("{ \"name\": \"a\", \"tools\": [7] }", "d.json:1", "toolset"),
        (
            "{ \"name\": \"a\", \"options\": { \"extra\": { \"api_key\": \"sk\" } } }",
            "d.json:1",
            "environment",
        ),
        (
            "{ \"name\": \"a\",\n \"instructions\": \"use sk-proj-a1b2c3d4e5f6g7h8\"\n}",
            "d.json:2",
            "instructions: a definition holds no keys (sk-…)",
        ),
        (
            "{ \"name\": \"a\",\n \"limits\": {\n  \"iteration-limit\": \"x\" } }",
            "d.json:3",
            "d.json:3: iteration-limit: invalid type",
        ),
        ("[]", "d.json:1", "an object with the keys of a definition"),
        ("{ \"name\": \"a\"", "d.json:1", "EOF"),
        ("", "d.json:1", "EOF"),
    ];
    for (text, place, wanted) in table {
        let error = Definition::from_json(text, "d.json")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(place), "{text}: {error}");
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

#[test]
fn markdown_is_front_matter_and_instructions() {
    let read = |text: &str| {
        Definition::from_markdown(text, "a.md", MarkdownDialect::Attache, "fallback")
            .map_err(|error| error.to_string())
    };
    let definition =
        read("---\nname: a\ntools: [filesystem]\nlimits: {iteration-limit: 3}\n---\n\nDo it.\n")
            .unwrap();
    assert_eq!(definition.instructions, "Do it.");
    assert_eq!(definition.limits.iteration_limit, Some(3));
    let crlf = read("---\r\nname: a\r\n---\r\nDo it.\r\n").unwrap();
    assert_eq!((&*crlf.name, &*crlf.instructions), ("a", "Do it."));
    let table = [
        ("no front matter", "a.md:1", "front matter"),
        ("---\nname: a\n", "a.md:1", "front matter"),
        ("---\nname: a\ncolour: red\n---\nx", "a.md:3", "colour"),
        ("---\nname: [\n---\nx", "a.md:2", "name: expected string"),
        (
            "---\nname: a\nlimits:\n  iteration-limit: 0\n---\nx",
            "a.md:4",
            "at least 1",
        ),
        (
            "---\nname: a\n---\nuse ghp_a1b2c3d4e5f6g7h8i9j0",
            "a.md:2",
            "instructions: a definition holds no keys (ghp_…)",
        ),
        (
            "---\nname: a\ninstructions: x\n---\ny",
            "a.md:3",
            "not both",
        ),
    ];
    for (text, place, wanted) in table {
        let error = read(text).unwrap_err();
        assert!(error.starts_with(place), "{text}: {error}");
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

#[test]
fn files_of_other_agents_are_read_for_what_they_say() {
    let read = |text: &str| {
        Definition::from_markdown(text, "b.md", MarkdownDialect::Foreign, "fallback").unwrap()
    };
    let some = read("---\ndescription: Looks.\ntools: Read, LS, Bash\nmodel: inherit\n---\nLook.");
    assert_eq!(some.name, "fallback");
    assert_eq!(some.tools, ["read_file", "list_directory"]);
    assert_eq!(some.model, None);
    let all = read("---\nname: all\nmodel: openai/gpt\n---\nLook.");
    assert_eq!(all.tools, Definition::built_in().tools);
    assert_eq!(all.model.as_deref(), Some("openai/gpt"));
    let list = read("---\nname: l\ntools: [Task, Edit, Edit]\n---\nx");
    assert_eq!(list.tools, ["agent-session", "edit_file"]);
}
