//! `attache demo`: the main job, with a script for a model and everything else as it always is.

use std::path::{Path, PathBuf};

use attache_client::protocol::NewSession;

use super::follow::{self, Follow};
use crate::clock;
use crate::fail::{Failure, NOT_FOUND};
use crate::link::{self, Link};
use crate::output::Output;

pub(crate) async fn demo(dir: Option<PathBuf>, output: &Output) -> Result<u8, Failure> {
    let dir = folder(dir.as_deref())?;
    let link = Link::daemon().await?;
    let new = NewSession {
        session_id: clock::id(),
        agent: None,
        model: Some("scripted/demo".to_owned()),
        parameters: std::collections::BTreeMap::new(),
        working_directory: dir.display().to_string(),
        name: Some("demo".to_owned()),
        first_message: Some(
            "Look at this folder through three sub-agents and say what is in it.".to_owned(),
        ),
        environment: link::environment(),
        detached: false,
        budget: None,
    };
    follow::run(link, new, Follow { tree: true }, output).await
}

fn folder(dir: Option<&Path>) -> Result<PathBuf, Failure> {
    let Some(dir) = dir else {
        return link::working_directory();
    };
    let fault = |fault: std::io::Error| {
        Failure::new(
            NOT_FOUND,
            "invalid-arguments",
            format!("{}: {fault}", dir.display()),
        )
        .with_hint("Name a folder that exists and that you may read.")
    };
    let dir = dir.canonicalize().map_err(fault)?;
    std::fs::read_dir(&dir).map_err(fault)?;
    Ok(dir)
}
