//! Cases: pages of a history, filtered, searched and walked through.

use attache_session::{Event, Origin, Picture, Position, Timestamp, TurnId, WatchId};

use super::values::{Author, answered, at, called, consumed, noted, pictured, said, session, uuid};
use super::{Case, Subject};
use crate::read::{Kind, LogItem, Page, PageQuery, Store};

pub(super) const CASES: &[Case] = &[
    ("an_event_has_one_kind", kinds),
    ("a_page_is_full_or_the_last", limits),
    ("the_total_counts_what_matches", totals),
    ("a_search_reads_the_whole_text_without_case", search),
    ("a_page_tells_of_pictures_without_their_bytes", pictures),
    (
        "g59_each_event_is_on_one_page_whatever_the_clock_said",
        cursors,
    ),
];

fn query() -> PageQuery {
    PageQuery {
        after: None,
        up_to: None,
        kinds: Vec::new(),
        search: None,
        limit: 100,
        newest: false,
    }
}

fn page(store: &dyn Store, query: &PageQuery) -> Page {
    store.page(session(1), query).expect("a page")
}

fn positions(page: &Page) -> Vec<u64> {
    page.items.iter().map(|item| item.position.0).collect()
}

/// Positions 1 and 2 are the birth; then one event of each kind, and some of none.
fn history(store: &dyn Store) -> Author {
    let mut author = Author::root(store, 1);
    let about = Origin::Notice {
        told: None,
        about: session(5),
        watch: WatchId(uuid(6)),
    };
    author.write(
        store,
        vec![
            Event::TurnStarted { turn: TurnId(1) },
            consumed(1, "Who is there?", Origin::Viewer),
            consumed(2, "A child is done", about),
            said("  \n"),
            said("Hello, Wörld"),
            called("a", "read_file", "{\"path\":\"SRC/main.rs\"}"),
            answered("a", "fn main() {}"),
            noted("Careful"),
        ],
    );
    author
}

fn kinds(subject: &mut dyn Subject) {
    history(subject.store());
    subject.restart();
    let store = subject.store();
    assert_eq!(positions(&page(store, &query())), [4, 5, 7, 8, 9, 10]);
    for (kinds, found) in [
        (vec![Kind::User], vec![4]),
        (vec![Kind::Assistant], vec![7]),
        (vec![Kind::ToolCall], vec![8]),
        (vec![Kind::ToolResult], vec![9]),
        (vec![Kind::Diagnostic], vec![5, 10]),
        (vec![Kind::Other], vec![1, 2, 3, 6]),
        (vec![Kind::User, Kind::Assistant, Kind::User], vec![4, 7]),
    ] {
        let page = page(store, &PageQuery { kinds, ..query() });
        assert_eq!(positions(&page), found);
        assert_eq!(page.total_matching, found.len() as u64);
        assert!(!page.more);
    }
    let nobody = store.page(session(9), &query()).expect("a page");
    assert_eq!((nobody.items.len(), nobody.total_matching), (0, 0));
}

fn limits(subject: &mut dyn Subject) {
    let store = subject.store();
    history(store);
    for (limit, newest, found, more) in [
        (0, false, vec![], true),
        (2, false, vec![4, 5], true),
        (2, true, vec![9, 10], true),
        (6, false, vec![4, 5, 7, 8, 9, 10], false),
        (6, true, vec![4, 5, 7, 8, 9, 10], false),
        (5, true, vec![5, 7, 8, 9, 10], true),
        (usize::MAX, false, vec![4, 5, 7, 8, 9, 10], false),
    ] {
        let query = PageQuery {
            limit,
            newest,
            ..query()
        };
        let page = page(store, &query);
        assert_eq!(positions(&page), found, "{limit} {newest}");
        assert_eq!(page.more, more, "{limit} {newest}");
        assert_eq!(page.total_matching, 6);
    }
    for (up_to, found) in [
        (0, vec![]),
        (4, vec![4]),
        (9, vec![4, 5, 7, 8, 9]),
        (99, vec![4, 5, 7, 8, 9, 10]),
    ] {
        let query = PageQuery {
            up_to: Some(Position(up_to)),
            ..query()
        };
        let page = page(store, &query);
        assert_eq!(positions(&page), found, "{up_to}");
        assert_eq!(page.total_matching, found.len() as u64, "{up_to}");
    }
}

/// The plain definition, over the whole log.
fn plainly(store: &dyn Store, query: &PageQuery) -> (u64, usize) {
    let log = store
        .events(session(1), Position(0), usize::MAX)
        .expect("a log");
    let matching = log.iter().filter(|item| {
        let kind = Kind::of(&item.event.event);
        let asked = if query.kinds.is_empty() {
            kind != Kind::Other
        } else {
            query.kinds.contains(&kind)
        };
        asked
            && query.after.is_none_or(|after| item.event.at > after)
            && query.up_to.is_none_or(|last| item.position <= last)
    });
    let total = matching.count();
    (total as u64, total.min(query.limit))
}

fn totals(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut author = history(store);
    for round in 0..40_u32 {
        let mut events = vec![said("text"), called("c", "t", "{}")];
        if round % 2 == 0 {
            events.push(answered("c", "r"));
        }
        if round % 13 == 0 {
            events.push(noted("n"));
        }
        events.push(Event::TurnStarted { turn: TurnId(2) });
        author.write(store, events);
    }
    let head = author.state.position.0;
    let start = store.events(session(1), Position(0), 1).expect("a log")[0]
        .event
        .at;
    for kinds in [
        vec![],
        vec![Kind::Diagnostic],
        vec![Kind::Assistant],
        vec![Kind::User, Kind::Diagnostic],
        vec![Kind::Other, Kind::ToolResult],
    ] {
        for limit in [0, 1, 7, 1_000] {
            for newest in [false, true] {
                for after in [None, Some(0), Some(30), Some(head as i64 - 3), Some(9_999)] {
                    for up_to in [None, Some(0), Some(50), Some(head - 2), Some(head + 5)] {
                        let query = PageQuery {
                            after: after.map(|more| Timestamp(start.0 + more)),
                            up_to: up_to.map(Position),
                            kinds: kinds.clone(),
                            search: None,
                            limit,
                            newest,
                        };
                        let page = page(store, &query);
                        let (total, length) = plainly(store, &query);
                        assert_eq!(page.total_matching, total, "{query:?}");
                        assert_eq!(page.items.len(), length, "{query:?}");
                        assert_eq!(page.more, total > length as u64, "{query:?}");
                    }
                }
            }
        }
    }
}

fn search(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut author = history(store);
    let long = format!("{}Needle in the hay", "x".repeat(700));
    let huge = format!("{}Überall", "y".repeat(100_000));
    author.write(store, vec![answered("b", &long), said(&huge)]);
    for (text, found) in [
        ("hello", vec![7]),
        ("WÖRLD", vec![7]),
        ("src/MAIN", vec![8]),
        ("READ_FILE", vec![8]),
        ("main", vec![8, 9]),
        ("needle", vec![11]),
        ("überall", vec![12]),
        ("careful", vec![10]),
        ("who IS", vec![4]),
        ("a child", vec![5]),
        ("nowhere", vec![]),
    ] {
        let query = PageQuery {
            search: Some(text.to_owned()),
            ..query()
        };
        let page = page(store, &query);
        assert_eq!(positions(&page), found, "{text}");
        assert_eq!(page.total_matching, found.len() as u64, "{text}");
    }
    let both = PageQuery {
        search: Some("main".to_owned()),
        kinds: vec![Kind::ToolResult],
        ..query()
    };
    assert_eq!(positions(&page(store, &both)), [9]);
    for (newest, found) in [(false, [8]), (true, [9])] {
        let one = PageQuery {
            search: Some("main".to_owned()),
            limit: 1,
            newest,
            ..query()
        };
        let page = page(store, &one);
        assert_eq!(positions(&page), found);
        assert_eq!((page.total_matching, page.more), (2, true));
    }
    let item = &page(
        store,
        &PageQuery {
            search: Some("überall".to_owned()),
            ..query()
        },
    )
    .items[0];
    assert_eq!(item.event.event, said(&huge));
}

fn walk(store: &dyn Store, query: &PageQuery) -> Vec<u64> {
    let mut seen = Vec::new();
    let mut query = query.clone();
    loop {
        let page = page(store, &query);
        seen.extend(positions(&page));
        match page.items.last() {
            Some(last) if page.more => query.after = Some(last.event.at),
            _ => return seen,
        }
    }
}

fn cursors(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut author = Author::root(store, 1);
    author.now = 9_000_000;
    for number in 0..5 {
        author.write(store, vec![said(&format!("text {number}"))]);
    }
    let two = PageQuery {
        limit: 2,
        ..query()
    };
    assert_eq!(walk(store, &two), [3, 4, 5, 6, 7]);
    let filtered = PageQuery {
        kinds: vec![Kind::Assistant],
        search: Some("TEXT".to_owned()),
        ..two.clone()
    };
    assert_eq!(walk(store, &filtered), [3, 4, 5, 6, 7]);
    let first = page(store, &two);
    author.write(store, vec![said("text in between")]);
    let rest = PageQuery {
        after: first.items.last().map(|item| item.event.at),
        ..two.clone()
    };
    assert_eq!(walk(store, &rest), [5, 6, 7, 8]);
    // A cursor without a fraction is the start of its second: a page may repeat, never skip.
    let second = PageQuery {
        after: Some(at(9_000_000 - 1)),
        ..query()
    };
    assert_eq!(positions(&page(store, &second)), [3, 4, 5, 6, 7, 8]);
    let whole = PageQuery {
        after: Some(at(9_000_000)),
        ..query()
    };
    assert_eq!(positions(&page(store, &whole)), [4, 5, 6, 7, 8]);
    let later = PageQuery {
        after: Some(at(i64::MAX)),
        ..query()
    };
    assert!(page(store, &later).items.is_empty());
}

fn pictures(subject: &mut dyn Subject) {
    let mut author = Author::root(subject.store(), 1);
    let event = pictured("a");
    author.write(subject.store(), vec![event.clone()]);
    subject.restart();
    let store = subject.store();
    let log = store.events(session(1), Position(2), 9).expect("a log");
    assert_eq!(log[0].event.event, event);
    let page = page(store, &query());
    let [LogItem { event: shown, .. }] = &page.items[..] else {
        panic!("one event was expected, not {page:?}");
    };
    let (Event::CallEnded { result: whole, .. }, Event::CallEnded { result, .. }) =
        (&event, &shown.event)
    else {
        panic!("a result was expected, not {shown:?}");
    };
    let told: Vec<_> = whole.images.iter().map(Picture::told).collect();
    assert_eq!((&result.images, &result.content), (&told, &whole.content));
}
