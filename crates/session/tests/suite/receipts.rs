//! Where an item of input has got to: each stage, and what there is to say of it.

use attache_session::{
    Command, EndReason, Immediacy, Mail, MailBody, MailId, Origin, Position, QueueId, Receipt,
    StopReason, receipts,
};

use crate::desk::{Desk, eid, iid, sid};

/// All receipts of what a desk's session was sent.
fn of(desk: &Desk, unread: &[Mail]) -> Vec<Receipt> {
    let events = desk.log.iter().enumerate();
    let events = events.map(|(index, stamped)| (Position(0).plus(index + 1), stamped));
    receipts(events, desk.state.is_live(), unread, None, 20)
}

/// The one receipt, as words.
fn one(desk: &Desk) -> String {
    let all = of(desk, &[]);
    let [receipt] = &all[..] else {
        panic!("one item was sent, not {all:?}");
    };
    shown(receipt)
}

fn shown(receipt: &Receipt) -> String {
    let mut text = receipt.stage.to_string();
    if let Some(reason) = receipt.reason {
        text.push_str(&format!(" {reason}"));
    }
    if let Some(turn) = receipt.turn {
        text.push_str(&format!(" turn {}", turn.0));
    }
    text
}

#[test]
fn an_item_is_followed_to_the_turn_that_takes_it() {
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "go");
    assert_eq!(one(&desk), "consumed turn 1");
    let position = of(&desk, &[])[0].position.expect("it is in the record");
    assert_eq!(
        desk.log[usize::try_from(position.0).unwrap() - 1]
            .event
            .kind(),
        "consumed"
    );
    let item = desk.says(QueueId::Default, "more");
    let all = of(&desk, &[]);
    assert_eq!(
        (all[1].item, shown(&all[1])),
        (item, "delivered".to_owned())
    );
    assert_eq!(all[1].queue, Some(QueueId::Default));
    desk.ends(EndReason::Completed);
    assert_eq!(shown(&of(&desk, &[])[1]), "consumed turn 2");
}

#[test]
fn steering_that_comes_too_late_says_so() {
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "go");
    desk.says(QueueId::Immediate, "not so fast");
    desk.ends(EndReason::Interrupted);
    assert_eq!(shown(&of(&desk, &[])[1]), "consumed run-ended-first turn 2");
}

#[test]
fn what_waits_says_what_for() {
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "go");
    desk.does(Command::CreateQueue {
        name: None,
        immediacy: Immediacy::Held,
    });
    let item = desk.says(QueueId::Custom(0), "later");
    let last = |desk: &Desk| shown(of(desk, &[]).last().expect("an item"));
    assert_eq!(last(&desk), "delivered queue-held");
    desk.stops(StopReason::Terminated);
    assert_eq!(last(&desk), "missed session-stopped");
    desk.does(Command::Start { epoch: eid(9) });
    assert_eq!(last(&desk), "delivered queue-held");
    desk.does(Command::Withdraw { item, expected: 0 });
    assert_eq!(last(&desk), "missed withdrawn");
}

#[test]
fn mail_is_accepted_until_the_receiver_looks() {
    let mut desk = Desk::new();
    let mail = |number: u128, from: u128| Mail {
        id: MailId(1),
        from: sid(from),
        body: MailBody::Input {
            item: iid(number),
            text: "hello".into(),
            immediate: false,
        },
    };
    let unread = [mail(1, 7), mail(2, 8)];
    let all = of(&desk, &unread);
    assert_eq!(
        all.iter().map(shown).collect::<Vec<_>>(),
        ["accepted", "accepted"]
    );
    desk.stops(StopReason::Terminated);
    assert_eq!(shown(&of(&desk, &unread)[0]), "accepted session-stopped");
    // Only what one session has sent, and not more than was asked for.
    let of_one = receipts([], true, &unread, Some(sid(8)), 20);
    assert_eq!(
        (of_one.len(), &of_one[0].origin),
        (1, &Origin::Session(sid(8)))
    );
    let newest = receipts([], true, &unread, None, 1);
    assert_eq!(newest[0].item, iid(2));
}

#[test]
fn an_end_that_is_cut_off_from_its_beginning_is_known() {
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "go");
    let consumed = desk
        .log
        .iter()
        .position(|it| it.event.kind() == "consumed")
        .expect("it was taken");
    let end = desk.log[consumed..]
        .iter()
        .map(|stamped| (Position(9), stamped));
    let all = receipts(end, true, &[], None, 20);
    assert_eq!(
        all.iter().map(shown).collect::<Vec<_>>(),
        ["consumed turn 1"]
    );
}

#[test]
fn a_sender_is_told_what_will_never_be_read() {
    let mut desk = Desk::new();
    desk.stops(StopReason::Terminated);
    let decision = desk.does(Command::Undeliverable {
        item: iid(3),
        to: sid(7),
        text: "x".repeat(1_000).into(),
    });
    let texts = crate::desk::texts(&decision.events);
    assert!(texts.is_empty(), "it waits for the start");
    let waiting = desk.waiting(QueueId::Immediate);
    assert_eq!(waiting.len(), 1);
    assert!(
        waiting[0].contains(&format!("{} to session {}", iid(3), sid(7))),
        "{waiting:?}"
    );
    assert!(waiting[0].chars().count() < 400, "a part of it");
    desk.does(Command::Start { epoch: eid(9) });
    assert!(of(&desk, &[]).is_empty(), "a notice needs no receipt");
}
