//! Toolset `filesystem`: each tool on a folder of its own, and the border around that folder.

mod border;
mod content;
mod search;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use attache_agent::Definition;
use attache_session::SessionId;
use attache_testkit::World;
use serde_json::Value;
use tempfile::TempDir;

/// A session in the folder `ws` of a fresh folder that also has an `outside`.
struct Desk {
    world: World,
    session: SessionId,
    top: TempDir,
}

impl Desk {
    async fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let ws = top.path().join("ws");
        fs::create_dir_all(&ws).unwrap();
        fs::create_dir_all(top.path().join("outside")).unwrap();
        fs::write(top.path().join("outside/secret"), "secret\n").unwrap();
        Self::at(&ws, top).await
    }

    async fn at(folder: &Path, top: TempDir) -> Self {
        let world = World::new().await;
        let session = world.root_at(folder, Definition::built_in(), None).await;
        Self {
            world,
            session,
            top,
        }
    }

    fn path(&self, name: &str) -> String {
        self.top.path().join(name).display().to_string()
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.top.path().join("ws").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.top.path().join("ws").join(name)).unwrap()
    }

    fn link(&self, target: &str, name: &str) {
        symlink(target, self.top.path().join("ws").join(name)).unwrap();
    }

    async fn ask(&self, tool: &str, arguments: Value) -> Value {
        let outcome = self.world.call(self.session, tool, arguments).await;
        let answer = attache_testkit::json_of(&outcome);
        assert_eq!(outcome.is_error, answer.get("error").is_some(), "{answer}");
        answer
    }

    async fn refused(&self, tool: &str, arguments: Value) -> (String, String) {
        let answer = self.ask(tool, arguments.clone()).await;
        let error = &answer["error"];
        let code = error["code"].as_str();
        let code = code.unwrap_or_else(|| panic!("{tool} {arguments}: {answer}"));
        assert!(!error["hint"].as_str().unwrap().is_empty(), "{answer}");
        (
            code.to_owned(),
            error["message"].as_str().unwrap().to_owned(),
        )
    }

    /// Names and contents of all that lies outside.
    fn outside(&self) -> Vec<(String, String)> {
        let entries = fs::read_dir(self.top.path().join("outside")).unwrap();
        let mut found: Vec<_> = entries
            .map(|entry| {
                let path = entry.unwrap().path();
                let content = fs::read_to_string(&path).unwrap();
                (path.file_name().unwrap().display().to_string(), content)
            })
            .collect();
        found.sort();
        found
    }
}
