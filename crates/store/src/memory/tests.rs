//! The store in memory passes the suite, and crashes where it is told to.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use attache_session::{Position, TurnId};

use super::*;
use crate::conformance::values::noted;
use crate::conformance::{Author, Subject, said, session, suite, wait};
use crate::read::Store;

impl Subject for MemoryStore {
    fn store(&self) -> &dyn Store {
        self
    }

    fn restart(&mut self) {
        *self = self.crash();
    }
}

#[test]
fn memory_passes_the_suite() {
    suite(|_| Box::new(MemoryStore::new()));
}

fn poll<T>(future: &mut Pending<T>) -> Poll<Result<T, Refused>> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn what_is_not_acknowledged_is_not_durable() {
    let store = MemoryStore::new();
    let mut author = Author::root(&store, 1);
    let append = author.append(vec![said("a")]);
    let mut pending = store.commit(append);
    assert!(poll(&mut pending).is_pending());
    let head = |store: &MemoryStore| store.row(session(1)).unwrap().unwrap().head;
    assert_eq!(
        (head(&store), head(&store.crash())),
        (Position(3), Position(2))
    );
    assert_eq!(poll(&mut pending), Poll::Ready(Ok(Position(3))));
    assert_eq!(head(&store.crash()), Position(3));
    let append = author.append(vec![said("b")]);
    drop(store.commit(append));
    assert_eq!(head(&store.crash()), Position(4));
}

#[test]
fn a_later_answer_makes_the_earlier_durable() {
    let store = MemoryStore::new();
    let mut author = Author::root(&store, 1);
    let first = store.commit(author.append(vec![said("a")]));
    let second = store.commit(author.append(vec![said("b")]));
    assert_eq!(wait(second), Ok(Position(4)));
    assert_eq!(
        store.crash().row(session(1)).unwrap().unwrap().head,
        Position(4)
    );
    assert_eq!(wait(first), Ok(Position(3)));
}

#[test]
fn a_planned_crash_stops_everything() {
    for (fault, kept) in [(Fault::CrashBefore, 2), (Fault::CrashAfter, 3)] {
        let store = MemoryStore::with_faults(FaultPlan::new().with(2, fault));
        let mut author = Author::root(&store, 1);
        let partial = Partial {
            turn: TurnId(1),
            step: attache_session::StepText::default(),
        };
        store.checkpoint(session(1), partial);
        let mut pending = store.commit(author.append(vec![noted("a")]));
        assert!(store.crashed());
        wait(store.when_crashed());
        let mut later = store.claim(session(1), Generation(1));
        for _ in 0..3 {
            assert!(poll(&mut pending).is_pending());
            assert!(poll(&mut later).is_pending());
        }
        let found = store.crash();
        assert_eq!(found.row(session(1)).unwrap().unwrap().head, Position(kept));
        assert_eq!(found.partial(session(1)).unwrap().is_some(), kept == 3);
        assert!(!found.crashed());
    }
}

#[test]
fn a_planned_refusal_stores_nothing() {
    let plan = FaultPlan::new().with(2, Fault::Refuse(Refused::StorageFull));
    let store = MemoryStore::with_faults(plan);
    let mut author = Author::root(&store, 1);
    let append = author.append(vec![said("a")]);
    assert_eq!(author.commit(&store, append), Err(Refused::StorageFull));
    assert_eq!(author.write(&store, vec![said("a")]), Position(3));
    assert_eq!(store.commits(), 3);
    let traces = store.traces();
    assert_eq!(traces[0].kinds, ["created", "started"]);
    let refused: Vec<_> = traces.iter().map(|trace| trace.refused).collect();
    assert_eq!(refused, [false, true, false]);
}
