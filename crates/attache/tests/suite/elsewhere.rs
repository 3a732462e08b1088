//! Commands and viewers of one machine that talk to a host of another: here, two houses and a listener between them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};

use serde_json::json;

use crate::house::{House, gone, signal, until};
use crate::mcp::Listening;
use crate::seat::{Seat, idle};
use crate::stub::{Reply, Stub, after_tools, chat_calls, chat_piece, chat_text};

/// A token of a host.
fn token(house: &House, scope: &str) -> String {
    let made = house.run(&["token", "create", "--scope", scope]).well();
    made.out.trim().to_owned()
}

#[test]
fn commands_reach_a_host_elsewhere_and_leave_nothing_running_here() {
    let there = House::new();
    let served = Listening::start(&there, &[]);
    let id = idle(&there);
    let host = format!("ws://{}", served.address);
    let here = House::new()
        .with("ATTACHE_HOST", &host)
        .with("ATTACHE_TOKEN", &token(&there, "write"));
    let listed = here.run(&["ls", "--json"]).well().json();
    assert_eq!(listed[0]["session_id"], id.as_str());
    here.run(&["send", &id, "from elsewhere"]).well();
    here.run(&["wait", &id]).well();
    let shown = there.run(&["events", &id]).well().out;
    assert!(shown.contains("from elsewhere"), "{shown}");
    // A folder of this machine says nothing there.
    let run = ["run", "--json", "--model", "echo/any", "hello there"];
    let refused = here.run(&run);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("--dir"), "{refused:?}");
    let folder = there.work();
    let folder = folder.to_str().unwrap();
    let ran = here.run(&[&run[..], &["--dir", folder]].concat()).well();
    let result = ran.lines().pop().unwrap();
    assert_eq!(result["text"], "hello there");
    let born = result["session_id"].as_str().unwrap().to_owned();
    let row = there.run(&["show", &born, "--json"]).well().json();
    assert_eq!(row["working_directory"], folder);
    let missing = here.run(&[&run[..], &["--dir", "/no/such/folder"]].concat());
    assert_eq!(missing.code, 2, "{missing:?}");
    assert!(missing.err.contains("/no/such/folder"), "{missing:?}");
    // What belongs to a daemon of this machine is none of that host's.
    for command in [
        &["serve"][..],
        &["demo"],
        &["restart", "--now"],
        &["doctor"],
        &["mcp"],
    ] {
        let refused = here.run(command);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains("ATTACHE_HOST"), "{refused:?}");
    }
    assert_eq!(std::fs::read_dir(here.state()).unwrap().count(), 0);
}

#[test]
fn who_is_not_let_in_elsewhere_is_told_why_and_what_to_do() {
    let there = House::new();
    let served = Listening::start(&there, &[]);
    let host = format!("ws://{}", served.address);
    let here = House::new();
    let here = here.with("ATTACHE_HOST", &host);
    let nobody = here.run(&["ls"]);
    assert_eq!(nobody.code, 4, "{nobody:?}");
    assert!(nobody.err.contains("asks for a token"), "{nobody:?}");
    assert!(nobody.err.contains("attache token create"), "{nobody:?}");
    let file = here.file("secret", "attache_0\n");
    let file = file.to_str().unwrap();
    let stranger = here.run(&["ls", "--token-file", file]);
    assert_eq!(stranger.code, 4, "{stranger:?}");
    assert!(
        stranger.err.contains("does not know the token") && !stranger.err.contains("attache_0"),
        "{stranger:?}"
    );
    let good = token(&there, "read");
    std::fs::write(file, format!("{good}\n")).unwrap();
    here.run(&["ls", "--token-file", file]).well();
    let looks = here.run(&["terminate", &idle(&there), "--token-file", file]);
    assert_eq!(looks.code, 4, "{looks:?}");
    served.kill();
    let gone = here.run(&["ls"]);
    assert_eq!(gone.code, 3, "{gone:?}");
    assert!(gone.err.contains("cannot be reached"), "{gone:?}");
    for (wrong, why) in [
        ("http://localhost", "wss://NAME"),
        ("ws://box.example", "use wss://"),
        ("wss://me:secret@box.example", "holds no token"),
        ("box", "wss://NAME"),
    ] {
        let refused = here.run(&["ls", "--host", wrong]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(why), "{refused:?}");
    }
}

#[test]
fn a_viewer_elsewhere_comes_back_after_its_host_was_killed() {
    let there = House::new();
    let served = Listening::start(&there, &[]);
    let address = served.address.clone();
    let id = idle(&there);
    let here = House::new()
        .with("ATTACHE_HOST", &format!("ws://{address}"))
        .with("ATTACHE_TOKEN", &token(&there, "write"));
    let mut viewer = Seat::at(&here, &["attach", &id, "--plain"]);
    viewer.shows("> begin\nbegin\n");
    viewer.types("one");
    viewer.shows("one\n");
    served.kill();
    viewer.shows("looking for the host");
    let served = Listening::at(&there, &address, &[]);
    viewer.shows("the host is there again");
    viewer.shows("is stopped; the next message starts it");
    viewer.types("two");
    viewer.shows("two\n");
    there.run(&["wait", &id]).well();
    let shown = viewer.leaves();
    for text in ["begin\n", "one\n", "two\n"] {
        let times = shown.matches(text).count() - shown.matches(&format!("> {text}")).count();
        assert_eq!(times, 1, "{text:?} in {shown}");
    }
    drop(served);
}

#[test]
fn a_line_that_is_refused_ends_no_viewer() {
    let there = House::new();
    let served = Listening::start(&there, &[]);
    let here = House::new()
        .with("ATTACHE_HOST", &format!("ws://{}", served.address))
        .with("ATTACHE_TOKEN", &token(&there, "read"));
    let session = idle(&there);
    let mut seat = Seat::at(&here, &["attach", &session, "--plain"]);
    seat.types("hello");
    seat.shows("that needs a token of scope write, and this one has read");
    there.run(&["send", &session, "from there"]).well();
    seat.shows("from there");
    let (code, shown) = seat.ends();
    assert_eq!(code, Some(4), "{shown}");
}

/// The way to a host, which can be cut and mended.
struct Cable {
    address: String,
    carried: Arc<Mutex<Option<Vec<Carried>>>>,
    /// Bytes that it brings from the host before it breaks, once.
    breaks_after: Arc<AtomicUsize>,
}

/// A connection: its two ends, and how often the other side's turn came to speak. An odd number waits for the host.
struct Carried {
    ends: [TcpStream; 2],
    turns: Arc<AtomicUsize>,
}

/// Carries what one end says to the other. Only the near end's words make the number odd.
fn carry(
    mut from: TcpStream,
    mut to: TcpStream,
    turns: &AtomicUsize,
    breaks_after: &AtomicUsize,
    is_near: bool,
) {
    let mut bytes = [0; 4_096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let _taken = turns.try_update(Relaxed, Relaxed, |turns| {
            (turns.is_multiple_of(2) == is_near).then_some(turns + 1)
        });
        let is_left = |left: usize| Some(left.checked_sub(count).unwrap_or(usize::MAX));
        let left = match is_near {
            true => usize::MAX,
            false => breaks_after.try_update(Relaxed, Relaxed, is_left).unwrap(),
        };
        if left < count || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _broken = from.shutdown(Shutdown::Both);
    let _ended = to.shutdown(Shutdown::Both);
}

impl Cable {
    fn to(host: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let carried = Arc::new(Mutex::new(Some(Vec::new())));
        let breaks_after = Arc::new(AtomicUsize::new(usize::MAX));
        let (open, host) = (Arc::clone(&carried), host.to_owned());
        let breaks = Arc::clone(&breaks_after);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                // While it is cut, nobody gets through.
                if let Some(carried) = &mut *open.lock().unwrap() {
                    let ends = [near, TcpStream::connect(&host).unwrap()];
                    let turns = Arc::default();
                    for (from, is_near) in [(0, true), (1, false)] {
                        let [from, to] =
                            [&ends[from], &ends[1 - from]].map(|end| end.try_clone().unwrap());
                        let (turns, breaks) = (Arc::clone(&turns), Arc::clone(&breaks));
                        std::thread::spawn(move || carry(from, to, &turns, &breaks, is_near));
                    }
                    carried.push(Carried { ends, turns });
                }
            }
        });
        Self {
            address,
            carried,
            breaks_after,
        }
    }

    /// Waits until the newest of so many connections has begun to speak so often, and the host owes it an answer.
    fn waits(&self, connections: usize, spoken: usize) {
        until("a question is open", || {
            let carried = self.carried.lock().unwrap();
            let carried = carried.as_ref().unwrap();
            carried.len() == connections
                && carried[connections - 1].turns.load(Relaxed) == 2 * spoken - 1
        });
    }

    fn cut(&self) {
        for carried in self.carried.lock().unwrap().take().into_iter().flatten() {
            for end in carried.ends {
                let _ended = end.shutdown(Shutdown::Both);
            }
        }
    }

    fn mend(&self) {
        *self.carried.lock().unwrap() = Some(Vec::new());
    }
}

/// A model that calls a tool between two halves of its answer, and says the second when it is let.
fn halves() -> (Stub, mpsc::SyncSender<()>) {
    let (sender, gate) = mpsc::sync_channel(1);
    let gate = Mutex::new(gate);
    let stub = Stub::new(move |request| {
        if !after_tools(request) {
            let Reply::Events(mut events) = chat_calls(&[("get_current_session", json!({}))])
            else {
                unreachable!("calls are events")
            };
            events.insert(0, chat_piece("the first half, "));
            return Reply::Events(events);
        }
        gate.lock().unwrap().recv().unwrap();
        chat_text(&["and the second"])
    });
    (stub, sender)
}

/// A host that listens, the way to it, and at the other end somebody in a house, and a run there that waits for its second half.
fn over_a_cable(there: &House) -> (Listening, Cable, House, Seat) {
    let served = Listening::start(there, &[]);
    let cable = Cable::to(&served.address);
    let here = House::new()
        .with("ATTACHE_HOST", &format!("ws://{}", cable.address))
        .with("ATTACHE_TOKEN", &token(there, "write"));
    let work = there.work();
    let work = work.to_str().unwrap();
    let run = ["run", "--model", "openai/m", "--dir", work, "go"];
    let run = Seat::at(&here, &run);
    run.shows("the first half, ");
    (served, cable, here, run)
}

#[test]
fn a_run_elsewhere_goes_on_over_a_cut_connection_and_misses_nothing() {
    let (stub, let_go) = halves();
    let there = stub.house();
    let (_served, cable, here, run) = over_a_cable(&there);
    let listed = there.run(&["ls", "--json"]).well().json();
    let id = listed[0]["session_id"].as_str().unwrap();
    let followed = Seat::at(&here, &["events", id, "--follow"]);
    followed.shows("the first half");
    let waited = Seat::at(&here, &["wait", id]);
    // The way there, the greeting, the session, and what has no answer yet.
    cable.waits(3, 4);
    for times in 1..=2 {
        cable.cut();
        for seat in [&run, &followed, &waited] {
            seat.shows_often("looking for the host", times);
        }
        if times == 1 {
            cable.mend();
            for seat in [&run, &followed, &waited] {
                seat.shows("the host is there again");
            }
        }
    }
    let_go.send(()).unwrap();
    until("the answer is there", || {
        let events = there.run(&["events", id]).well().out;
        events.contains("and the second")
    });
    cable.mend();
    let shown = run.leaves();
    for half in ["the first half, ", "and the second"] {
        assert_eq!(shown.matches(half).count(), 1, "{shown}");
    }
    assert!(waited.leaves().contains("succeeded"));
    // Whoever looks on keeps the session.
    followed.shows("and the second");
    followed.dies();
}

#[test]
fn an_answer_whose_rest_is_being_read_when_the_connection_breaks_is_shown_once() {
    // Digits of which a compression makes little.
    let odd = |line: u64| line.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    let long: String = (0..30_000)
        .map(|line| format!("{:016x}\n", odd(odd(line + 1))))
        .collect();
    let said = long.clone();
    let stub = Stub::new(move |_| chat_text(&[&said]));
    let there = stub.house();
    let served = Listening::start(&there, &[]);
    let secret = token(&there, "write");
    let work = there.work();
    for bytes in [10_000, 40_000, 100_000, 200_000, 300_000, 400_000] {
        let cable = Cable::to(&served.address);
        cable.breaks_after.store(bytes, Relaxed);
        let here = House::new()
            .with("ATTACHE_HOST", &format!("ws://{}", cable.address))
            .with("ATTACHE_TOKEN", &secret);
        let run = [
            "run",
            "--model",
            "openai/m",
            "--dir",
            work.to_str().unwrap(),
            "go",
        ];
        let ran = here.run(&run).well();
        let same = ran.out.bytes().zip(long.bytes());
        let same = same.take_while(|(shown, said)| shown == said).count();
        let told = (ran.out.trim_end().len(), same, &ran.err);
        assert!(ran.out.trim_end() == long.trim_end(), "{bytes}: {told:?}");
        assert!(
            ran.err.contains("the host is there again"),
            "{bytes}: {} {}",
            ran.out.len(),
            ran.err
        );
    }
}

#[test]
fn who_follows_events_elsewhere_learns_of_an_end_that_came_meanwhile() {
    let (stub, let_go) = halves();
    let there = stub.house();
    let (_served, cable, here, run) = over_a_cable(&there);
    let listed = there.run(&["ls", "--json"]).well().json();
    let id = listed[0]["session_id"].as_str().unwrap();
    let followed = Seat::at(&here, &["events", id, "--follow"]);
    followed.shows("the first half");
    cable.cut();
    followed.shows("looking for the host");
    there.run(&["terminate", id]).well();
    let_go.send(()).unwrap();
    cable.mend();
    let shown = followed.leaves();
    assert_eq!(shown.matches("the first half").count(), 1, "{shown}");
    run.dies();
}

#[test]
fn whoever_looks_for_a_host_in_vain_can_leave() {
    let (stub, let_go) = halves();
    let there = stub.house();
    let (_served, cable, _here, run) = over_a_cable(&there);
    cable.cut();
    run.shows("looking for the host");
    let (code, shown) = run.interrupted();
    assert_eq!(code, Some(130), "{shown}");
    let_go.send(()).unwrap();
}

#[test]
fn a_daemon_listens_as_the_settings_say_whoever_starts_it() {
    // A port that is free now; nothing else here takes it meanwhile.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let there = House::new().with("ATTACHE_DAEMON__IDLE_SECONDS", "0");
    std::fs::create_dir_all(there.config()).unwrap();
    let settings = there.config().join("config.toml");
    std::fs::write(&settings, format!("[daemon]\nlisten = \"{address}\"\n")).unwrap();
    let here = House::new()
        .with("ATTACHE_HOST", &format!("ws://{address}"))
        .with("ATTACHE_TOKEN", &token(&there, "read"));
    // It is started on demand, and stays: nobody elsewhere could start it again.
    there.run(&["ls"]).well();
    let first = there.daemon().unwrap();
    let viewer = Seat::at(&here, &["attach", &idle(&there), "--read-only"]);
    viewer.shows("begin");
    // One that is killed or started anew listens again, whoever starts it.
    signal(first, "KILL");
    until("the daemon is gone", || gone(first));
    viewer.shows("looking for the host");
    there.run(&["ls"]).well();
    viewer.shows("the host is there again");
    there.run(&["restart", "--now"]).well();
    until("the viewer is back once more", || {
        viewer.shown().matches("the host is there again").count() == 2
    });
    viewer.leaves();
    let running = there.daemon().unwrap();
    signal(running, "TERM");
    until("the daemon has left", || gone(running));
    // Whoever holds the address is no daemon of ours.
    std::fs::write(&settings, "[daemon]\nlisten = \"0.0.0.0:7433\"\n").unwrap();
    let refused = there.run(&["ls"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.err.contains("others can reach"), "{refused:?}");
}

#[test]
fn a_host_elsewhere_proves_that_it_is_what_it_is_called() {
    let there = House::new();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = there.file("box.pem", &made.cert.pem());
    there.file("box.key", &made.signing_key.serialize_pem());
    let secret = token(&there, "read");
    let with_tls = ["--tls-cert", "box.pem", "--tls-key", "box.key"];
    let served = Listening::start(&there, &with_tls);
    let port = served.address.rsplit(':').next().unwrap();
    let here = House::new()
        .with("ATTACHE_HOST", &format!("wss://localhost:{port}"))
        .with("ATTACHE_TOKEN", &secret);
    let doubted = here.run(&["ls"]);
    assert_eq!(doubted.code, 4, "{doubted:?}");
    assert!(doubted.err.contains("--host-cert"), "{doubted:?}");
    let vouched = ["ls", "--host-cert", certificate.to_str().unwrap()];
    here.run(&vouched).well();
    // The same certificate under another name proves nothing.
    let other = format!("wss://127.0.0.1:{port}");
    let doubted = here.run(&[&vouched[..], &["--host", &other]].concat());
    assert_eq!(doubted.code, 4, "{doubted:?}");
}
