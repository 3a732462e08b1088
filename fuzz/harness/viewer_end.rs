//! A viewer's end that hears anything: nothing panics, a command is answered once, and where it stands never goes back within an
//! epoch unless a snapshot says so. Shared by the fuzz target and by the test that replays the corpus.

use attache_protocol::{
    Command, FromHost, Heard, Notifications, Seen, TreeMirror, ViewerAttach, decode,
};

/// The input: lines. `!` cuts the connection, `+` connects, `?` gives a command, `~` attaches again; every other line is a frame
/// of the host, and is passed over when it is none.
pub(crate) fn check(data: &[u8]) {
    let mut viewer = ViewerAttach::new("text", "fuzz", "r", data.first() == Some(&b'#'));
    let mut tree = TreeMirror::default();
    let mut notifications = Notifications::default();
    for line in data.split(|byte| *byte == b'\n').take(256) {
        match line {
            b"!" => viewer.lost(),
            b"+" => drop(viewer.connected()),
            b"~" => drop(viewer.again()),
            b"?" => {
                let session_id = "text".to_owned();
                let tree = false;
                drop(viewer.command(Command::Interrupt { session_id, tree }));
            }
            line => {
                let Ok(frame) = decode::<FromHost>(line) else {
                    continue;
                };
                let before = viewer.mirror().place();
                let pending: Vec<String> = viewer.pending().map(str::to_owned).collect();
                tree.apply(&frame);
                let (heard, _said) = viewer.handle(frame);
                let begins = heard
                    .iter()
                    .any(|heard| matches!(heard, Heard::Seen(Seen::Fresh)));
                for heard in &heard {
                    if let Heard::Answered { command_id, .. } = heard {
                        assert!(pending.contains(command_id), "answered twice");
                        assert!(viewer.pending().all(|id| id != command_id));
                    }
                }
                if let (Some(before), Some(after)) = (before, viewer.mirror().place())
                    && before.epoch == after.epoch
                    && !begins
                {
                    assert!(after.sequence >= before.sequence, "it went back");
                }
                if let Some(row) = viewer.mirror().session.clone() {
                    notifications.look(&row, 0, tree.rows());
                }
            }
        }
    }
}
