//! How many durable events a second go through the engine's commands: decided, stored, applied, published. Sixty-four
//! sessions have a turn open whose model says nothing; in its stead a task for each session asks for steps and results
//! and waits for every answer, so that a session has one append in flight, as in earnest.

#![expect(clippy::print_stdout, reason = "a benchmark says what it found")]

#[path = "../../store/benches/shared/clock.rs"]
mod clock;

#[path = "shared/silent.rs"]
mod silent;

use attache_engine::EngineHandle;
use attache_session::{
    CallResult, Command, NewCall, ResultOrigin, SessionId, StepText, TurnId, Usage,
};

use clock::{sync_time, time};

/// The text of one step.
const TEXT: &str = "The parser lives in src/parse.rs; the entry point is `parse_document`, which \
                    calls `next_token` until it meets the end of the input, and it keeps spans.";

fn step(number: usize, calls: usize) -> Command {
    Command::RecordStep {
        turn: TurnId(1),
        step: StepText {
            text: TEXT.into(),
            reasoning: "".into(),
            opaque: None,
            usage: Usage::default(),
            cost: None,
            model: "silent/silent".into(),
            incomplete: false,
        },
        calls: (0..calls)
            .map(|call| NewCall {
                id: format!("call-{number}-{call}").into(),
                name: "read_file".into(),
                arguments: r#"{"path":"src/parse.rs"}"#.into(),
                changes_state: false,
            })
            .collect(),
    }
}

fn results(number: usize, calls: usize) -> Command {
    Command::RecordResults {
        turn: TurnId(1),
        results: (0..calls)
            .map(|call| CallResult {
                call: format!("call-{number}-{call}").into(),
                content: TEXT.into(),
                is_error: false,
                spawned: None,
                origin: ResultOrigin::Tool,
                images: Vec::new(),
                took_micros: None,
                report: None,
            })
            .collect(),
    }
}

/// Steps with so many calls, each with its results; the answer is how many appends that made.
async fn work(engine: EngineHandle, session: SessionId, calls: usize, rounds: usize) -> usize {
    let mut appends = 0;
    for number in 0..rounds {
        let mut commands = vec![step(number, calls)];
        if calls > 0 {
            commands.push(results(number, calls));
        }
        for command in commands {
            let answer = engine.command(session, command, None).await;
            answer.expect("a turn is open");
            appends += 1;
        }
    }
    appends
}

async fn root(engine: &EngineHandle) -> SessionId {
    let session = silent::root(engine, true).await;
    let state = engine.state(session).await.expect("a session");
    assert_eq!(state.turn.as_ref().map(|turn| turn.id), Some(TurnId(1)));
    session
}

fn heads(engine: &EngineHandle, sessions: &[SessionId]) -> u64 {
    let heads = sessions
        .iter()
        .map(|id| engine.row(*id).expect("a row").head.0);
    heads.sum()
}

fn run(name: &str, sessions: usize, calls: usize, rounds: usize) {
    // Beside the build, not in a folder that may lie in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let sync = sync_time(folder.path());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let (engine, all, before) = runtime.block_on(async {
        let engine = silent::engine(folder.path()).await;
        let mut all = Vec::with_capacity(sessions);
        for _ in 0..sessions {
            all.push(root(&engine).await);
        }
        let before = heads(&engine, &all);
        (engine, all, before)
    });
    let (appends, took) = time(|| {
        runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for session in &all {
                tasks.spawn(work(engine.clone(), *session, calls, rounds));
            }
            tasks.join_all().await.iter().sum::<usize>()
        })
    });
    let after = heads(&engine, &all);
    let (events, seconds) = ((after - before) as f64, took.as_secs_f64());
    println!(
        "{name}: {:.0} durable events/s, {:.0} appends/s, {:.1} events an append (fdatasync p50 {:.3} ms)",
        events / seconds,
        appends as f64 / seconds,
        events / appends as f64,
        sync.as_secs_f64() * 1e3,
    );
}

fn main() {
    run("64 sessions, steps of two calls", 64, 2, 1_000);
    run("64 sessions, steps of four calls", 64, 4, 600);
    run("64 sessions, one event an append", 64, 0, 2_000);
    run("one session, steps of two calls", 1, 2, 1_000);
}
