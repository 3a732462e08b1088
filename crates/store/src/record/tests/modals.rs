//! Questions to a person as they may come: every member with any value.

use super::*;

pub(super) fn modals() -> impl Strategy<Value = Event> {
    let json = || option::of(word().prop_map(|text| Json::from_checked(format!("{text:?}"))));
    let texts = (word(), word(), word(), word());
    let rest = (option::of(word()), vec(word(), 0..3), json());
    let modal = (
        id(),
        turn(),
        texts,
        one_of(ModalKind::ALL),
        rest,
        any::<(bool, u32)>(),
    );
    let answer = (any::<bool>(), option::of(word()), json(), word());
    let state = prop_oneof![
        Just(ModalState::Open),
        Just(ModalState::Expired),
        Just(ModalState::Withdrawn),
        answer.prop_map(|(accepted, text, content, by)| ModalState::Answered {
            answer: ModalAnswer {
                accepted,
                text,
                content,
            },
            by,
        }),
    ];
    (modal, state).prop_map(|((id, turn, texts, kind, rest, more), state)| {
        let (call, tool, digest, text) = texts;
        let (body, choices, schema) = rest;
        let modal = Modal {
            id: ModalId(id),
            turn,
            call,
            tool,
            digest,
            kind,
            text,
            body,
            choices,
            free: more.0,
            schema,
            seconds: more.1,
        };
        Event::ModalSet {
            modal: Arc::new(modal),
            state,
        }
    })
}
