//! Counters of limits that are set while their tree is at work, or was by the end of an earlier life of the host.

use std::sync::Arc;

use attache_session::{Event, Limit};
use attache_store::{Append, MemoryStore};
use attache_testkit::{FaultyStore, Puppet, World, text};
use serde_json::json;

use crate::budgets::{refused, set, spender, used, world};

#[tokio::test]
async fn what_is_charged_while_a_limit_is_set_is_counted_once() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let gate = store.hold(|append: &Append| {
        let mut events = append.events.iter();
        events.any(|stamped| matches!(stamped.event, Event::Said { .. }))
    });
    let tools = attache_tools::built_in();
    let world = World::with(Arc::new(store), spender(), tools, Vec::new()).await;
    let root = world.root(None).await;
    world.child(root, Some("steps 0")).await;
    // Its step is on its way to the store, charged under the limits of before.
    gate.reached().await;
    tokio::join!(set(&world, root, "tokens=1000"), async {
        // The new limit is decided by then, and what it counts from the beginning.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        gate.open();
    });
    world.quiet(root).await;
    assert_eq!(used(&world, root, Limit::Tokens), 30);
}

#[tokio::test]
async fn what_an_earlier_life_left_holds_no_place_in_this_one() {
    let world = world(Puppet::default(), "agents=2").await;
    let root = world.root(None).await;
    for name in ["a", "b"] {
        world.child(root, Some(name)).await;
    }
    world.quiet(root).await;
    assert_eq!(used(&world, root, Limit::Agents), 2);
    let world = world.restarted().await;
    world.engine.start(root, None).await.expect("it starts");
    assert_eq!(used(&world, root, Limit::Agents), 0, "both are stopped");
    for name in ["c", "d"] {
        world.child(root, Some(name)).await;
    }
    assert_eq!(used(&world, root, Limit::Agents), 2);
    let more = json!({ "initial_message": "e" });
    let (code, _) = refused(&world, root, "agent_session_create", more).await;
    assert_eq!(code, "limit-reached");
}

#[tokio::test]
async fn a_further_child_does_not_count_under_a_limit_that_is_set_later() {
    let world = world(Puppet::new(|_| text("done")), "").await;
    let root = world.root(None).await;
    let one = world.child(root, Some("a")).await;
    let other = world.child(root, Some("b")).await;
    let acquire = json!({ "session_id": other.to_string() });
    world.ask(one, "agent_session_acquire", acquire).await;
    world.child(one, Some("c")).await;
    set(&world, one, "agents=5").await;
    assert_eq!(used(&world, one, Limit::Agents), 1);
    // Its end is given back to the chain of its spawner, and to nobody else.
    world.engine.terminate(other).await.expect("it ends");
    assert_eq!(used(&world, one, Limit::Agents), 1);
}
