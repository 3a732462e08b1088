//! Settings and ends of epochs as they may come: every member with any value.

use super::*;

pub(super) fn settings() -> impl Strategy<Value = Settings> {
    let texts = (option::of(word()), option::of(word()));
    (any::<bool>(), texts, vec(word(), 0..3)).prop_map(
        |(continue_in_background, (name, model), switched_off)| Settings {
            continue_in_background,
            name,
            model,
            switched_off,
        },
    )
}

pub(super) fn stops() -> impl Strategy<Value = Event> {
    (one_of(StopReason::ALL), vec(one_of(Holder::ALL), 0..3))
        .prop_map(|(reason, waited_for)| Event::Stopped { reason, waited_for })
}
