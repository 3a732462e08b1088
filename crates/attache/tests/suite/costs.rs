//! What sessions cost, as people and programs see it: priced by a user's table, rolled up over the tree, and marked where
//! a part is unknown.

use serde_json::{Value, json};

use crate::stub::{Reply, Stub, after_tools, chat_calls, last_user};

/// An answer with 1,000 tokens in, 400 of them cached, and 100 out.
fn counted(text: &str) -> Reply {
    let usage = json!({
        "prompt_tokens": 1_000, "completion_tokens": 100,
        "prompt_tokens_details": { "cached_tokens": 400 },
    });
    let said = json!({ "index": 0, "delta": { "content": text }, "finish_reason": "stop" });
    Reply::Events(vec![
        format!("data: {}\n\n", json!({ "choices": [said] })),
        format!("data: {}\n\n", json!({ "choices": [], "usage": usage })),
        "data: [DONE]\n\n".to_owned(),
    ])
}

const PRICES: &str = "[\"openai/dear\"]\ninput_usd = 2\noutput_usd = 10\ncache_read_usd = 0.5\n";

/// 600 at 2, 400 at 0.5, 100 at 10.
const EACH: f64 = 0.0024;

/// What the parent's two requests cost: the first has 20 at 2, 10 at 0.5, 7 at 10.
const PARENT: f64 = EACH + 0.000_115;

fn is(value: &Value, wanted: f64) -> bool {
    value
        .as_f64()
        .is_some_and(|usd| (usd - wanted).abs() < 1e-12)
}

#[test]
fn a_run_tells_what_it_and_its_tree_cost() {
    let stub = Stub::new(|request| {
        if last_user(request).contains("child") || after_tools(request) {
            return counted("done");
        }
        let child = |model: &str| {
            let definition =
                json!({ "name": "c", "model": format!("openai/{model}"), "tools": [] });
            let first = "you are the child";
            (
                "agent_session_create",
                json!({ "definition": definition, "initial_message": first }),
            )
        };
        chat_calls(&[child("dear"), child("unheard-of")])
    });
    let house = stub.house();
    std::fs::create_dir_all(house.config()).unwrap();
    std::fs::write(house.config().join("models.toml"), PRICES).unwrap();
    let ended = house
        .run(&["run", "--model", "openai/dear", "--json", "go"])
        .well();
    let result: Value = ended
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["type"] == "result")
        .unwrap();
    assert!(is(&result["cost_usd"], PARENT), "{result}");
    assert!(result["cost_at_least"].is_null());
    // One child's price is unknown.
    assert!(is(&result["tree_cost_usd"], PARENT + EACH), "{result}");
    assert_eq!(result["tree_cost_at_least"], true);
    assert_eq!(result["tree_usage"]["input_tokens"], 3_030);
    let rows = house.ls();
    let (root, children) = rows.split_first().unwrap();
    assert!(is(&root["tree_cost_usd"], PARENT + EACH), "{root}");
    assert!(is(&children[0]["cost_usd"], EACH) && children[0]["cost_at_least"].is_null());
    assert!(children[0]["tree_cost_usd"].is_null(), "it has no tree");
    assert!(
        children[1]["cost_usd"].is_null(),
        "an unknown price is no zero"
    );
    let id = root["session_id"].as_str().unwrap();
    let tree = house.run(&["tree", id, "--json"]).well().json();
    assert!(is(&tree["tree_cost_usd"], PARENT + EACH), "{tree}");
    assert!(is(&tree["children"][0]["tree_cost_usd"], EACH), "{tree}");
    let shown = house.run(&["show", id, "--json"]).well().json();
    assert!(is(&shown["tree_cost_usd"], PARENT + EACH), "{shown}");
    // For people.
    let ls = house.run(&["ls"]).well().out;
    assert!(ls.contains("  $0.0025 (tree at least $0.0049)"), "{ls}");
    let tree = house.run(&["tree"]).well().out;
    assert!(
        tree.contains("  $0.0025") && tree.contains("  $0.0024"),
        "{tree}"
    );
    let shown = house.run(&["show", id]).well().out;
    assert!(
        shown.contains("3030 tokens in (39 % from the cache), 307 out, at least $0.0049"),
        "{shown}"
    );
    let again = house
        .run(&["run", "--model", "openai/dear", "child"])
        .well();
    assert_eq!(again.out, "done\n");
    assert!(
        again
            .err
            .contains("1000 tokens in (40 % from the cache), 100 out, $0.0024"),
        "{again:?}"
    );
    // It is stored: a restart changes nothing.
    house.run(&["restart"]).well();
    assert!(is(&house.ls()[0]["tree_cost_usd"], PARENT + EACH));
}
