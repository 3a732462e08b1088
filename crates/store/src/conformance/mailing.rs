//! Cases: what crosses from one session to another.

use attache_session::{Event, Expect, MailBody, MailId, NewMail, Notice, Told, Unread, WatchId};

use super::values::{Author, noted, said, session, uuid, wait};
use super::{Case, Subject};
use crate::append::Append;
use crate::check::MAILBOX_ROWS;
use crate::refused::Refused;

pub(super) const CASES: &[Case] = &[
    ("mail_is_written_by_its_sender_and_taken_once", taken_once),
    ("a_receiver_must_exist_or_be_born", receivers),
    ("mail_that_came_in_between_is_told", waiting),
    ("unread_mail_is_counted_by_class", classes),
    ("a_full_mailbox_takes_notices_only", full),
    ("a_number_of_mail_is_never_used_again", numbers),
];

fn input(number: u128, to: u128) -> NewMail {
    let body = MailBody::Input {
        item: attache_session::ItemId(uuid(number)),
        text: "hello".into(),
        immediate: number.is_multiple_of(2),
    };
    NewMail {
        to: session(to),
        body,
    }
}

fn notice(to: u128) -> NewMail {
    NewMail {
        to: session(to),
        body: MailBody::Notice(Notice {
            told: Some(Told {
                text: "all is well".into(),
                earlier: true,
            }),
            watch: WatchId(uuid(5)),
            message: Some("done".into()),
            outcome: None,
            end_reason: None,
            stopped: true,
        }),
    }
}

fn post(author: &mut Author, mail: Vec<NewMail>) -> Append {
    let mut append = author.append(vec![noted("post")]);
    append.mail = mail;
    append
}

fn take(author: &mut Author, taken: Vec<MailId>) -> Append {
    let mut append = author.append(vec![noted("take")]);
    append.taken = taken;
    append
}

fn taken_once(subject: &mut dyn Subject) {
    let mut sender = Author::root(subject.store(), 1);
    let mut receiver = Author::root(subject.store(), 2);
    let append = post(&mut sender, vec![input(1, 2), notice(2)]);
    sender.commit(subject.store(), append).expect("mail");
    subject.restart();
    let store = subject.store();
    let mail = store.mail(session(2), 9).expect("mail");
    assert_eq!(store.mail(session(2), 1).expect("mail"), mail[..1]);
    assert_eq!(store.mail(session(1), 9).expect("mail"), []);
    let bodies: Vec<_> = mail.iter().map(|mail| mail.body.clone()).collect();
    assert_eq!(bodies, [input(1, 2).body, notice(2).body]);
    assert!(mail.iter().all(|mail| mail.from == session(1)));
    assert!(mail[0].id < mail[1].id);
    // Only the receiver takes it.
    let gone = Err(Refused::MailGone { mail: mail[0].id.0 });
    let append = take(&mut sender, vec![mail[0].id]);
    assert_eq!(sender.commit(store, append), gone);
    let append = take(&mut receiver, vec![mail[0].id, mail[0].id]);
    assert_eq!(receiver.commit(store, append), gone);
    let append = take(&mut receiver, vec![mail[0].id]);
    receiver
        .commit(store, append)
        .expect("mail that lies there");
    assert_eq!(store.mail(session(2), 9).expect("mail"), mail[1..]);
    let append = take(&mut receiver, vec![mail[0].id]);
    assert_eq!(receiver.commit(store, append), gone);
}

fn receivers(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut author = Author::root(store, 1);
    let append = post(&mut author, vec![input(1, 2)]);
    assert_eq!(
        author.commit(store, append),
        Err(Refused::Unknown {
            session: session(2)
        })
    );
    let mut child = Author::new(2);
    let birth = child.birth(Some(&author));
    let born = child.born(birth);
    let mut append = post(&mut author, vec![input(1, 2)]);
    append.births.push(born);
    author.commit(store, append).expect("mail to a newborn");
    assert_eq!(store.mail(session(2), 9).expect("mail").len(), 1);
}

fn waiting(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut sender = Author::root(store, 1);
    let mut receiver = Author::root(store, 2);
    let append = post(&mut sender, vec![input(1, 2), input(2, 2)]);
    sender.commit(store, append).expect("mail");
    let mail = store.mail(session(2), 9).expect("mail");
    let mut append = take(&mut receiver, vec![mail[0].id]);
    append.expects.push(Expect::NoOtherMail);
    assert_eq!(receiver.commit(store, append), Err(Refused::MailWaiting));
    assert_eq!(store.mail(session(2), 9).expect("mail"), mail);
    let mut append = take(&mut receiver, vec![mail[1].id, mail[0].id]);
    append.expects.push(Expect::NoOtherMail);
    receiver.commit(store, append).expect("all is taken");
    assert_eq!(store.mail(session(2), 9).expect("mail"), []);
}

fn classes(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut sender = Author::root(store, 1);
    let _receiver = Author::root(store, 2);
    let hold = NewMail {
        to: session(2),
        body: MailBody::Hold,
    };
    let append = post(
        &mut sender,
        vec![
            input(1, 2),
            notice(2),
            hold,
            input(2, 2),
            notice(2),
            notice(2),
        ],
    );
    sender.commit(store, append).expect("mail");
    let row = store.row(session(2)).expect("a row").expect("a session");
    let unread = Unread {
        inputs: 2,
        notices: 3,
        other: 1,
    };
    assert_eq!(row.unread, unread);
    let rows = store.rows(crate::RowFilter::All, None, 9).expect("rows");
    let listed: Vec<_> = rows.iter().map(|row| row.unread).collect();
    assert_eq!(listed, [Unread::default(), unread]);
}

fn full(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut sender = Author::root(store, 1);
    let mut receiver = Author::root(store, 2);
    for _ in 0..MAILBOX_ROWS / 2_500 {
        let mail = (0..2_500).map(|number| input(number, 2)).collect();
        let append = post(&mut sender, mail);
        sender.commit(store, append).expect("room");
    }
    let append = post(&mut sender, vec![input(1, 2)]);
    let full = Err(Refused::MailboxFull {
        session: session(2),
    });
    assert_eq!(sender.commit(store, append), full);
    let append = post(&mut sender, vec![notice(2)]);
    sender.commit(store, append).expect("a notice always fits");
    let mail = store.mail(session(2), 2).expect("mail");
    let append = take(&mut receiver, mail.iter().map(|mail| mail.id).collect());
    receiver.commit(store, append).expect("mail");
    // One place: the second does not fit, and then neither is stored.
    let append = post(&mut sender, vec![input(1, 2), input(2, 2)]);
    assert_eq!(sender.commit(store, append), full);
    let append = post(&mut sender, vec![input(1, 2)]);
    sender.commit(store, append).expect("the last place");
}

fn numbers(subject: &mut dyn Subject) {
    let mut sender = Author::root(subject.store(), 1);
    let mut receiver = Author::root(subject.store(), 2);
    let mut last = MailId(0);
    for _ in 0..3 {
        let store = subject.store();
        let append = post(&mut sender, vec![input(1, 2)]);
        sender.commit(store, append).expect("mail");
        let mail = store.mail(session(2), 9).expect("mail");
        assert_eq!(mail.len(), 1);
        assert!(mail[0].id > last);
        last = mail[0].id;
        let append = take(&mut receiver, vec![last]);
        receiver.commit(store, append).expect("mail");
        subject.restart();
    }
    let event = Event::Sent {
        to: session(2),
        item: attache_session::ItemId(uuid(1)),
    };
    sender.write(subject.store(), vec![event, said("x")]);
    assert_eq!(wait(subject.store().sweep_commands(i64::MAX)), Ok(0));
}
