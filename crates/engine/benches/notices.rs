//! How many notices a second reach a parent, and what one costs beside the commit that raises it. A parent watches all of
//! its children; their runs end at once, or one after the other. A notice counts when the parent has it on record: raised
//! in the child's append, taken in the parent's.

#![expect(clippy::print_stdout, reason = "a benchmark says what it found")]

#[path = "../../store/benches/shared/clock.rs"]
mod clock;
#[path = "shared/silent.rs"]
mod silent;

use std::time::Duration;

use attache_agent::{Caller, CreateChild};
use attache_engine::{Change, EngineHandle, Observer};
use attache_session::{Command, EndReason, SessionId, StepText, TurnId};

use clock::{sync_time, time};

/// Children whose runs end at once.
const AT_ONCE: usize = 2_000;

/// Children whose runs end one after the other, half of them watched.
const IN_TURN: usize = 400;

async fn child(
    engine: &EngineHandle,
    parent: SessionId,
    number: usize,
    watched: bool,
) -> SessionId {
    let sessions = engine.sessions();
    let caller = Caller {
        session: parent,
        turn: TurnId(1),
        call: format!("call-{number}").into(),
    };
    let new = CreateChild {
        definition: None,
        initial_message: Some("work".to_owned()),
        name: None,
        working_directory: None,
        parameters: Vec::new(),
        budget: attache_session::BudgetChange::default(),
    };
    let child = sessions
        .create(&caller, new)
        .await
        .expect("a child")
        .session;
    if watched {
        let watching = sessions.on_complete(&caller, child, None).await;
        watching.expect("it is watched");
    }
    child
}

async fn ends(engine: &EngineHandle, child: SessionId) {
    let end = Command::EndTurn {
        turn: TurnId(1),
        reason: EndReason::Completed,
        step: Some(StepText {
            text: "It is done: the parser keeps spans, and all tests pass.".into(),
            ..StepText::default()
        }),
        error: None,
    };
    engine
        .command(child, end, None)
        .await
        .expect("a turn is open");
}

/// Waits until the parent has so many more notices on record.
async fn told(observer: &mut Observer, notices: usize) {
    let mut left = notices;
    while left > 0 {
        for change in observer.next().await {
            match change {
                Change::Record { item, .. } if item.event.event.kind() == "queued" => {
                    left = left.saturating_sub(1);
                }
                Change::Lagged => panic!("the window holds all of them"),
                _ => {}
            }
        }
    }
}

async fn watch(engine: &EngineHandle, parent: SessionId) -> Observer {
    engine.attach(parent).await.expect("the parent").observer
}

fn middle(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn main() {
    // Beside the build, not in a folder that may lie in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let sync = sync_time(folder.path());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let (engine, parent, children) = runtime.block_on(async {
        let engine = silent::engine(folder.path()).await;
        let parent = silent::root(&engine, false).await;
        let mut children = Vec::with_capacity(AT_ONCE);
        for number in 0..AT_ONCE {
            children.push(child(&engine, parent, number, true).await);
        }
        (engine, parent, children)
    });
    let mut observer = runtime.block_on(watch(&engine, parent));
    let ((), took) = time(|| {
        runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for child in children {
                let engine = engine.clone();
                tasks.spawn(async move { ends(&engine, child).await });
            }
            tasks.join_all().await;
            told(&mut observer, AT_ONCE).await;
        });
    });
    println!(
        "{AT_ONCE} children end at once: {:.0} notices/s, on record in the parent (fdatasync p50 {:.3} ms)",
        AT_ONCE as f64 / took.as_secs_f64(),
        sync.as_secs_f64() * 1e3,
    );
    let parent = runtime.block_on(silent::root(&engine, false));
    let mut observer = runtime.block_on(watch(&engine, parent));
    let (mut bare, mut noticed) = (Vec::new(), Vec::new());
    for number in 0..IN_TURN {
        let watched = number % 2 == 0;
        let child = runtime.block_on(child(&engine, parent, number, watched));
        let ((), took) = time(|| {
            runtime.block_on(async {
                ends(&engine, child).await;
                if watched {
                    told(&mut observer, 1).await;
                }
            });
        });
        if watched {
            noticed.push(took);
        } else {
            bare.push(took);
        }
    }
    let (bare, noticed) = (middle(bare), middle(noticed));
    println!(
        "one by one: an end is on record after {bare:.3} ms, its notice in the parent after {noticed:.3} ms: {:.3} ms more",
        noticed - bare
    );
}
