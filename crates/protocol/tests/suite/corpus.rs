//! The corpus of the fuzz targets, replayed: what a fuzzer found once stays mended without one.

#[path = "../../../../fuzz/harness/frames.rs"]
mod frames;
#[path = "../../../../fuzz/harness/host_end.rs"]
mod host_end;
#[path = "../../../../fuzz/harness/viewer_end.rs"]
mod viewer_end;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        check(&std::fs::read(file.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 3, "there is a corpus");
}

#[test]
fn the_corpus_of_frames_is_replayed() {
    replay("frames", frames::check);
}

#[test]
fn the_corpus_of_the_viewers_end_is_replayed() {
    replay("viewer_end", viewer_end::check);
}

#[test]
fn the_corpus_of_the_hosts_end_is_replayed() {
    replay("host_end", host_end::check);
}
