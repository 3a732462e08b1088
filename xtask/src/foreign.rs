//! Programs that others wrote, for walks through ours: packages of Python and Node, installed below the folder of the build in
//! the versions that stand beside the walks, and a house for each walk. Nothing of the system is changed.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::shell::{Call, program, root};

/// The folder of the walks.
pub(crate) fn walks() -> PathBuf {
    root().join("tests/clients")
}

/// An interpreter of Python below a folder, with the packages that a file names.
pub(crate) fn python(folder: &Path, requirements: &Path) -> Result<String, Failure> {
    let python = folder.join("python");
    if !python.join("bin/pip").exists() {
        program("python3", &["-m", "venv", &text(&python)]).run()?;
    }
    let install = ["install", "--quiet", "--requirement", &text(requirements)];
    program(&text(&python.join("bin/pip")), &install).run()?;
    Ok(text(&python.join("bin/python")))
}

/// A walk in a house of its own: nothing of the user's state or settings is touched, and the daemons that it starts leave
/// soon after it.
pub(crate) fn walk(house: &Path, walks: &Path, runner: &str, script: &str, binary: &Path) -> Call {
    // A house of an earlier run is of no use to anybody.
    let _removed = std::fs::remove_dir_all(house);
    let script = text(&walks.join(script));
    program(runner, &[&script, &text(binary)])
        .env("HOME", &text(house))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("XDG_CONFIG_HOME", &text(&house.join("config")))
        .env("ATTACHE_HOME", &text(&house.join("state")))
        .env("ATTACHE_DAEMON__IDLE_SECONDS", "1")
}

/// Installs packages into a folder; without any, those that its manifest names.
pub(crate) fn npm(folder: &Path, packages: &[&str]) -> Result<(), Failure> {
    let folder = text(folder);
    let mut call = vec![
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--prefix",
        &folder,
    ];
    call.extend(packages);
    program("npm", &call).run()
}

/// Makes a folder, with those above it.
pub(crate) fn make(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|source| Failure::Read {
        path: folder.to_owned(),
        source,
    })
}

/// Refuses arguments for a command that takes none.
pub(crate) fn none(args: &[String], command: &str) -> Result<(), Failure> {
    match args.first() {
        None => Ok(()),
        Some(arg) => Err(Failure::Usage {
            why: format!("`{command}` takes no arguments, and got `{arg}`"),
        }),
    }
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> String {
    path.display().to_string()
}
