//! What every store does, as named cases. A backend passes all of them, and so nothing that relies
//! on the traits need know which one it has.

mod appends;
mod lineage;
mod mailing;
mod pages;
mod records;
pub(crate) mod values;

use crate::read::Store;

pub use values::{Author, at, said, session, uuid, wait};

/// A store under test.
pub trait Subject {
    /// The store.
    fn store(&self) -> &dyn Store;

    /// Ends the program that holds it, in good order, and starts another.
    fn restart(&mut self);
}

/// A case: its name, and what it does with an empty store.
pub type Case = (&'static str, fn(&mut dyn Subject));

/// All cases.
#[must_use]
pub fn cases() -> Vec<Case> {
    [
        appends::CASES,
        lineage::CASES,
        mailing::CASES,
        pages::CASES,
        records::CASES,
    ]
    .concat()
}

/// Runs all cases, each with an empty store.
pub fn suite(mut make: impl FnMut(&'static str) -> Box<dyn Subject>) {
    for (name, case) in cases() {
        case(make(name).as_mut());
    }
}
