//! The second opinion: the same bytes go from a small server to our decoders and to another library's, and both must
//! read the same, but for the differences that are listed with their reasons. The table of models is checked here too.

mod cases;
mod catalog;
mod differences;
mod ours;
mod reading;
#[path = "../../../crates/model/tests/suite/replies.rs"]
mod replies;
mod replies_agree;
mod server;
mod theirs;
