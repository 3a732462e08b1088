//! Summaries as they may come: every member with any value.

use super::*;

pub(super) fn summaries() -> impl Strategy<Value = Summary> {
    let names = (word(), word(), word(), word());
    let lists = (vec(session(), 0..3), vec(session(), 0..3));
    let times = any::<(i64, i64)>();
    let open = (
        option::of(id().prop_map(Epoch)),
        option::of(turn()),
        option::of(word()),
    );
    let ends = (
        option::of(one_of(StopReason::ALL)),
        option::of(one_of(EndReason::ALL)),
        option::of(word()),
        option::of(one_of(SideEffects::ALL)),
    );
    let spent = (option::of(any::<u64>()), any::<bool>());
    let counts = (
        any::<(u32, u32, bool, bool, bool, u32)>(),
        usage(),
        option::of(any::<u64>()),
        spent,
        bounds(),
    );
    (names, lists, times, open, ends, counts).prop_map(
        |(names, lists, times, open, ends, counts)| Summary {
            name: names.0,
            agent: names.1,
            model: names.2,
            working_directory: names.3,
            takes_input: counts.0.2,
            runs_turns: counts.0.3,
            parents: lists.0,
            created_at: Timestamp(times.0),
            last_activity_at: Timestamp(times.1),
            epoch: open.0,
            stop: ends.0,
            turn: open.1,
            action: open.2,
            deliverable: counts.0.0,
            queued: counts.0.1,
            watching: lists.1,
            end_reason: ends.1,
            result: ends.2,
            result_earlier: counts.0.2,
            side_effects: ends.3,
            changing: counts.0.3,
            usage: counts.1,
            spent: Spent {
                usd_nanos: counts.3.0,
                at_least: counts.3.1,
            },
            context_tokens: counts.2,
            bounds: std::sync::Arc::new(counts.4),
            continue_in_background: counts.0.4,
            asks: counts.0.5,
        },
    )
}
