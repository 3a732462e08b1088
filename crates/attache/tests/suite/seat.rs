//! Viewers line by line as processes of their own: what is typed at their seats, and what they show.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin};
use std::sync::{Arc, Mutex};

use crate::house::{House, signal, until};

/// A viewer at work.
pub(crate) struct Seat {
    child: Child,
    typed: Option<ChildStdin>,
    shown: Arc<Mutex<String>>,
}

impl Seat {
    pub(crate) fn at(house: &House, arguments: &[&str]) -> Self {
        let mut command = house.command(arguments);
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let out: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().unwrap()),
            Box::new(child.stderr.take().unwrap()),
        ];
        for mut out in out {
            let shown = Arc::clone(&shown);
            std::thread::spawn(move || {
                let mut bytes = [0; 4_096];
                while let Ok(count @ 1..) = out.read(&mut bytes) {
                    let text = String::from_utf8_lossy(&bytes[..count]);
                    shown.lock().unwrap().push_str(&text);
                }
            });
        }
        Self {
            typed: child.stdin.take(),
            child,
            shown,
        }
    }

    pub(crate) fn types(&mut self, line: &str) {
        let typed = self.typed.as_mut().unwrap();
        typed.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn shows(&self, text: &str) {
        self.shows_often(text, 1);
    }

    pub(crate) fn shows_often(&self, text: &str, times: usize) {
        until(&format!("a viewer shows {text:?} {times} times"), || {
            self.shown().matches(text).count() >= times
        });
    }

    pub(crate) fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    /// It is killed.
    pub(crate) fn dies(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// A person presses Ctrl-C; how it ends then.
    pub(crate) fn interrupted(mut self) -> (Option<i32>, String) {
        signal(self.child.id(), "INT");
        let code = self.child.wait().unwrap().code();
        (code, self.shown())
    }

    /// The input ends, and with it the viewer.
    pub(crate) fn leaves(self) -> String {
        let (code, shown) = self.ends();
        assert_eq!(code, Some(0), "{shown}");
        shown
    }

    /// The same; how it ends then.
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        drop(self.typed.take());
        let code = self.child.wait().unwrap().code();
        (code, self.shown())
    }
}

/// A session that goes on by itself and has nothing to do.
pub(crate) fn idle(house: &House) -> String {
    let run = ["run", "--detach", "--json", "--model", "echo/any", "begin"];
    let started = house.run(&run).well().json();
    let id = started["session_id"].as_str().unwrap().to_owned();
    house.run(&["wait", &id]).well();
    id
}
