//! Settings as they may come: every member with any value.

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
