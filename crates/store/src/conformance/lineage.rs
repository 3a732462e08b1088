//! Cases: births, links, listings and entities.

use attache_session::{Expect, Json, SessionId};

use super::values::{Author, at, held, said, session, uuid, wait};
use super::{Case, Subject};
use crate::append::Append;
use crate::entity::{EntityKind, EntityPut};
use crate::read::{RowFilter, Store};
use crate::refused::Refused;

pub(super) const CASES: &[Case] = &[
    ("a_child_is_born_in_its_spawners_append", births),
    ("a_session_is_born_once", exists),
    ("a_parent_must_exist", orphans),
    ("a_circle_is_refused", circles),
    ("children_are_listed_in_the_order_of_joining", joining),
    ("listings_are_filtered_and_paged", listings),
    ("ids_are_found_by_their_end", endings),
    ("an_entity_has_a_tag", entities),
];

fn ids(store: &dyn Store, filter: RowFilter) -> Vec<SessionId> {
    let rows = store.rows(filter, None, 100).expect("rows");
    rows.iter().map(|row| row.session).collect()
}

fn births(subject: &mut dyn Subject) {
    let mut parent = Author::root(subject.store(), 1);
    let mut child = parent.child(subject.store(), 2);
    let grandchild = child.child(subject.store(), 3);
    subject.restart();
    let store = subject.store();
    let row = store.row(session(3)).expect("a row").expect("a session");
    assert_eq!(row.root, session(1));
    assert_eq!(row.spawner, Some(session(2)));
    assert_eq!(row.generation, grandchild.generation);
    assert_eq!(*row.summary, grandchild.summary());
    for (descendant, ancestor, holds) in [
        (3, 1, true),
        (3, 2, true),
        (2, 1, true),
        (1, 1, false),
        (1, 3, false),
        (3, 3, false),
        (9, 1, false),
    ] {
        assert_eq!(
            store.descends(session(descendant), session(ancestor)),
            Ok(holds),
            "{descendant} of {ancestor}"
        );
    }
}

fn bear(parent: &mut Author, number: u128) -> Append {
    let mut child = Author::new(number);
    let birth = child.birth(Some(parent));
    let born = child.born(birth);
    let mut append = parent.append(vec![held(number)]);
    append.births.push(born);
    append.links.push(session(number));
    append
}

fn exists(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut parent = Author::root(store, 1);
    parent.child(store, 2);
    let exists = Err(Refused::Exists {
        session: session(2),
    });
    let append = bear(&mut parent, 2);
    assert_eq!(parent.commit(store, append), exists);
    let mut append = bear(&mut parent, 3);
    append.births.push(append.births[0].clone());
    assert_eq!(
        parent.commit(store, append),
        Err(Refused::Exists {
            session: session(3)
        })
    );
    let mut headless = bear(&mut parent, 3);
    headless.births[0].events.remove(0);
    let answer = parent.commit(store, headless);
    assert!(matches!(answer, Err(Refused::Failed(_))), "{answer:?}");
    let mut equal = bear(&mut parent, 3);
    equal.births[0].events[1].at = equal.births[0].events[0].at;
    assert_eq!(parent.commit(store, equal), Err(Refused::TimeNotIncreasing));
    assert_eq!(store.row(session(3)), Ok(None));
}

fn orphans(subject: &mut dyn Subject) {
    let store = subject.store();
    let stranger = Author::new(8);
    let mut child = Author::new(2);
    let birth = child.birth(Some(&stranger));
    let append = child.append(birth);
    assert_eq!(
        wait(store.commit(append)),
        Err(Refused::Unknown {
            session: session(8)
        })
    );
    let parent = Author::root(store, 1);
    let mut child = Author::new(2);
    let birth = child.birth(Some(&parent));
    let append = child.append(birth);
    wait(store.commit(append)).expect("a birth of its own accord");
    assert_eq!(ids(store, RowFilter::Children(session(1))), [session(2)]);
}

fn link(author: &mut Author, number: u128) -> Append {
    let mut append = author.append(vec![held(number)]);
    append.links.push(session(number));
    append
}

fn circles(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut one = Author::root(store, 1);
    let mut two = one.child(store, 2);
    let mut three = two.child(store, 3);
    let mut other = Author::root(store, 4);
    for (author, number) in [
        (&mut one, 1),
        (&mut two, 1),
        (&mut three.clone(), 1),
        (&mut three, 2),
    ] {
        let append = link(author, number);
        let child = session(number);
        assert_eq!(
            author.commit(store, append),
            Err(Refused::Circle { child }),
            "{number}"
        );
    }
    let append = link(&mut other, 2);
    other.commit(store, append).expect("a further parent");
    let append = link(&mut three, 4);
    assert_eq!(
        three.commit(store, append),
        Err(Refused::Circle { child: session(4) })
    );
    let append = link(&mut other, 9);
    assert_eq!(
        other.commit(store, append),
        Err(Refused::Unknown {
            session: session(9)
        })
    );
}

fn joining(subject: &mut dyn Subject) {
    let mut one = Author::root(subject.store(), 1);
    let _four = Author::root(subject.store(), 4);
    let _five = Author::root(subject.store(), 5);
    one.child(subject.store(), 3);
    let mut append = bear(&mut one, 2);
    append.links = vec![session(5), session(2), session(4)];
    one.commit(subject.store(), append).expect("three join");
    // Who joins again keeps its place.
    let append = link(&mut one, 3);
    one.commit(subject.store(), append).expect("held again");
    subject.restart();
    let store = subject.store();
    let order = [3, 5, 2, 4].map(session);
    assert_eq!(ids(store, RowFilter::Children(session(1))), order);
    let page = store
        .rows(RowFilter::Children(session(1)), Some(session(5)), 1)
        .expect("rows");
    assert_eq!(page[0].session, session(2));
    assert_eq!(page.len(), 1);
    assert_eq!(store.descends(session(4), session(1)), Ok(true));
}

fn listings(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut nine = Author::root(store, 9);
    let mut eight = nine.child(store, 8);
    let mut two = Author::root(store, 2);
    eight.child(store, 7);
    two.child(store, 1);
    let all = [9, 8, 2, 7, 1].map(session);
    assert_eq!(ids(store, RowFilter::All), all);
    assert_eq!(ids(store, RowFilter::Roots), [9, 2].map(session));
    assert_eq!(
        ids(store, RowFilter::Tree(session(9))),
        [9, 8, 7].map(session)
    );
    assert_eq!(ids(store, RowFilter::Tree(session(5))), []);
    assert_eq!(ids(store, RowFilter::Children(session(1))), []);
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let page = store.rows(RowFilter::All, after, 2).expect("rows");
        let Some(last) = page.last() else { break };
        after = Some(last.session);
        paged.extend(page.iter().map(|row| row.session));
    }
    assert_eq!(paged, all);
    let page = store
        .rows(RowFilter::Tree(session(9)), Some(session(9)), 1)
        .expect("rows");
    assert_eq!(page[0].session, session(8));
    assert!(
        store
            .rows(RowFilter::All, Some(session(77)), 9)
            .expect("rows")
            .is_empty()
    );
}

fn endings(subject: &mut dyn Subject) {
    let store = subject.store();
    for number in [0x0a1_b2c3, 0x1a1_b2c3, 0x0a1_b2c4] {
        Author::root(store, number);
    }
    let found = store.ids_ending("a1b2c3", 9).expect("ids");
    assert_eq!(found, [0x0a1_b2c3, 0x1a1_b2c3].map(session));
    assert_eq!(store.ids_ending("a1b2c3", 1).expect("ids").len(), 1);
    assert_eq!(store.ids_ending("ffffff", 9).expect("ids"), []);
    let whole = session(0x0a1_b2c4).to_string();
    assert_eq!(store.ids_ending(&whole, 9).expect("ids").len(), 1);
    assert_eq!(store.ids_ending("%", 9).expect("ids"), []);
}

fn put(number: u128, name: &str, expected: Option<u64>) -> EntityPut {
    EntityPut {
        id: uuid(number),
        kind: EntityKind::TrustProfile,
        name: name.to_owned(),
        expected,
        at: at(5),
        change: uuid(100 + number),
        data: Json::from_checked("{\"a\":  1}"),
    }
}

fn entities(subject: &mut dyn Subject) {
    let first = wait(subject.store().put_entity(put(1, "b", None))).expect("an entity");
    assert_eq!(first.tag, 1);
    let changed = |entity: u128, current| {
        Err(Refused::EntityChanged {
            entity: uuid(entity),
            current,
        })
    };
    let store = subject.store();
    assert_eq!(
        wait(store.put_entity(put(1, "b", None))),
        changed(1, Some(1))
    );
    assert_eq!(
        wait(store.put_entity(put(1, "b", Some(2)))),
        changed(1, Some(1))
    );
    assert_eq!(
        wait(store.put_entity(put(2, "a", Some(1)))),
        changed(2, None)
    );
    assert_eq!(
        wait(store.put_entity(put(2, "b", None))),
        changed(1, Some(1))
    );
    let second = wait(store.put_entity(put(1, "c", Some(1)))).expect("a change");
    assert_eq!(second.tag, 2);
    wait(store.put_entity(put(2, "b", None))).expect("a name that is free again");
    subject.restart();
    let store = subject.store();
    assert_eq!(store.entity(uuid(1)), Ok(Some(second.clone())));
    assert_eq!(
        store.entity_named(EntityKind::TrustProfile, "c"),
        Ok(Some(second))
    );
    assert_eq!(store.entity_named(EntityKind::User, "c"), Ok(None));
    let names = store.entities(EntityKind::TrustProfile).expect("entities");
    let names: Vec<_> = names.iter().map(|entity| entity.name.as_str()).collect();
    assert_eq!(names, ["b", "c"]);
    let mut author = Author::root(store, 1);
    for (tag, current) in [(2, None), (1, Some(Some(2)))] {
        let mut append = author.append(vec![said("x")]);
        let entity = uuid(1);
        append.expects.push(Expect::EntityTag { entity, tag });
        let answer = author.commit(store, append);
        match current {
            None => assert!(answer.is_ok(), "{answer:?}"),
            Some(current) => assert_eq!(answer, Err(Refused::EntityChanged { entity, current })),
        }
    }
}
