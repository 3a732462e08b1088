//! Whole walks: an agent gets a task, creates children, they work, their results come back.

use attache_session::{Outcome, Status};
use attache_testkit::{Piece, Puppet, World, text};
use serde_json::{Value, json};

/// A parent that creates three children, waits for each and joins what they said.
fn fan(request: &attache_model::Request) -> Vec<Piece> {
    let user = Puppet::last_user(request);
    if let Some(task) = user.strip_prefix("task ") {
        return text(&format!("result {task}"));
    }
    let results: Vec<Value> = Puppet::results(request)
        .iter()
        .map(|result| serde_json::from_str(result).expect("results are JSON"))
        .collect();
    match results.first() {
        None => (0..3)
            .map(|n| {
                let arguments = json!({ "initial_message": format!("task {n}") });
                Piece::Call("agent_session_create".to_owned(), arguments.to_string())
            })
            .collect(),
        Some(first) if first["created_at"].is_string() => results
            .iter()
            .map(|made| {
                let arguments = json!({ "session_id": made["session_id"], "wait_for_idle": true });
                Piece::Call("agent_session_wait".to_owned(), arguments.to_string())
            })
            .collect(),
        Some(_) => {
            let joined: Vec<&str> = results
                .iter()
                .map(|done| done["result_preview"].as_str().unwrap())
                .collect();
            text(&joined.join(", "))
        }
    }
}

#[tokio::test]
async fn a_parent_joins_what_its_children_found() {
    let world = World::new().await;
    world.puppet.teach(fan);
    let root = world.root(Some("go")).await;
    world.quiet(root).await;
    let row = world.row(root);
    assert_eq!(row.status, Status::Idle);
    assert_eq!(row.view.outcome(), Some(Outcome::Succeeded));
    assert_eq!(
        row.view.summary.result.as_deref(),
        Some("result 0, result 1, result 2")
    );
    let listed = world.ask(root, "agent_session_list", json!({})).await;
    let statuses: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["idle", "idle", "idle"]);
}
