//! The table of models is what the catalogue says. How the program reads it is tested where it is read.

#[test]
fn the_table_is_what_the_catalogue_says() {
    let kept = std::fs::read_to_string(attache_opinion::path()).expect("the table is there");
    let made = attache_opinion::table();
    let line = kept
        .lines()
        .zip(made.lines())
        .find(|(kept, made)| kept != made);
    assert!(
        kept == made,
        "the table is not what the catalogue says ({} and {} lines; first difference {line:?}): \
         `cargo run --bin catalog` in `opinion/` writes it",
        kept.lines().count(),
        made.lines().count(),
    );
}
