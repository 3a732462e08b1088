//! The attach protocol with a viewer in another language that was written from the schema alone: with two viewers of ours it
//! looks at a session through a pulled connection and a killed daemon.

use crate::failure::Failure;
use crate::foreign::{none, python, walk, walks};
use crate::metadata;
use crate::shell::cargo;

/// Runs the walk with the true program.
pub(crate) fn clients(args: &[String]) -> Result<(), Failure> {
    none(args, "attach-clients")?;
    println!("attach-clients: a viewer in Python, with its packages below the folder of the build");
    cargo(&["build", "--profile", "ci", "--package", "attache"]).run()?;
    let target = metadata::target()?;
    let folder = target.join("attach-clients");
    let walks = walks();
    let python = python(&folder, &walks.join("attach/requirements.txt"))?;
    let house = folder.join("house");
    let binary = target.join("ci/attache");
    walk(&house, &walks, &python, "attach/walk.py", &binary).run()
}
