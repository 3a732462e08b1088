//! Agent definitions as files: the project's own, those that other agents' users already have, and
//! the user's. The nearest one of a name wins; one that does not load is shown with its reason and
//! hides no other.

use std::path::{Path, PathBuf};

use attache_engine::parts::{Definition, MarkdownDialect, Toolsets, field_line, read_small};
use attache_engine::{Catalog, CatalogEntry};

/// Largest file of a definition or of settings, in bytes.
pub(crate) const FILE_LIMIT: u64 = 1024 * 1024;

/// Most files of one folder that are looked at.
const FILES: usize = 1_000;

/// Definitions in folders of the project and of the user, and the built-in one.
#[derive(Clone, Default)]
pub struct FolderCatalog {
    /// The tools that a definition may name.
    pub toolsets: Toolsets,
    /// The user's folder of definitions, if there is one.
    pub user_folder: Option<PathBuf>,
}

impl Catalog for FolderCatalog {
    fn list(&self, working_directory: &Path) -> Vec<CatalogEntry> {
        let mut entries: Vec<CatalogEntry> = Vec::new();
        let project = project_folder(working_directory);
        let folders = [
            (project.join(".attache/agents"), MarkdownDialect::Attache),
            (project.join(".claude/agents"), MarkdownDialect::Foreign),
            (project.join(".github/agents"), MarkdownDialect::Foreign),
        ];
        let user = self
            .user_folder
            .clone()
            .map(|folder| (folder, MarkdownDialect::Attache));
        for (folder, dialect) in folders.into_iter().chain(user) {
            for entry in self.read_folder(&folder, &project, dialect) {
                let known = entries.iter().position(|known| known.name == entry.name);
                match known {
                    None => entries.push(entry),
                    // A broken one is shown beside another of its name, and found only without one.
                    Some(_) if entry.definition.is_err() => entries.push(entry),
                    Some(at) if entries[at].definition.is_err() => entries.push(entry),
                    Some(_) => {}
                }
            }
        }
        let built_in = Definition::built_in();
        if !entries.iter().any(|known| known.name == built_in.name) {
            entries.push(CatalogEntry {
                name: built_in.name.clone(),
                source: "built in".to_owned(),
                definition: Ok(built_in),
            });
        }
        entries
    }
}

impl FolderCatalog {
    fn read_folder(
        &self,
        folder: &Path,
        project: &Path,
        dialect: MarkdownDialect,
    ) -> Vec<CatalogEntry> {
        let Ok(files) = std::fs::read_dir(folder) else {
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = files
            .filter_map(|file| Some(file.ok()?.path()))
            .take(FILES)
            .collect();
        paths.sort();
        paths
            .iter()
            .filter_map(|path| self.read_file(path, project, dialect))
            .collect()
    }

    fn read_file(
        &self,
        path: &Path,
        project: &Path,
        dialect: MarkdownDialect,
    ) -> Option<CatalogEntry> {
        let extension = path.extension()?.to_str()?;
        let json = match extension {
            "md" => false,
            "json" if dialect == MarkdownDialect::Attache => true,
            _ => return None,
        };
        // Seen from the project, or by its name among the user's own: a model reads this too.
        let seen = path
            .strip_prefix(project)
            .ok()
            .or_else(|| path.file_name().map(Path::new))?;
        let source = seen.display().to_string();
        let stem = path.file_stem()?.to_str()?.to_owned();
        // `reviewer.agent.md` is the agent `reviewer`.
        let stem = stem
            .strip_suffix(".agent")
            .map_or(stem.clone(), str::to_owned);
        let definition = text_of(path, &source).and_then(|text| {
            let read = if json {
                Definition::from_json(&text, &source)
            } else {
                Definition::from_markdown(&text, &source, dialect, &stem)
            };
            let definition = read.map_err(|error| error.to_string())?;
            match self.toolsets.belt(&definition.tools) {
                Ok(_) => Ok(definition),
                Err(error) => {
                    let line = field_line(&text, "tools");
                    Err(format!("{source}:{line}: tools: {error}"))
                }
            }
        });
        let name = definition
            .as_ref()
            .map_or(stem, |definition| definition.name.clone());
        Some(CatalogEntry {
            name,
            source,
            definition,
        })
    }
}

/// The folder that a project's files lie in: the nearest one upwards that has any, else the
/// working directory.
pub(crate) fn project_folder(working_directory: &Path) -> PathBuf {
    let marks = [".attache", ".claude/agents", ".github/agents", ".git"];
    working_directory
        .ancestors()
        .find(|folder| marks.iter().any(|mark| folder.join(mark).exists()))
        .unwrap_or(working_directory)
        .to_path_buf()
}

fn text_of(path: &Path, shown: &str) -> Result<String, String> {
    let bytes = read_small(path, FILE_LIMIT).map_err(|fault| format!("{shown}: {fault}"))?;
    String::from_utf8(bytes).map_err(|_fault| format!("{shown}: not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> FolderCatalog {
        FolderCatalog {
            toolsets: attache_tools::built_in(),
            ..FolderCatalog::default()
        }
    }

    #[test]
    fn one_that_does_not_load_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let agents = folder.path().join(".attache/agents");
        std::fs::create_dir_all(&agents).unwrap();
        std::fs::write(agents.join("good.md"), "---\nname: good\n---\nDo good.").unwrap();
        std::fs::write(
            agents.join("bad.json"),
            "{\n  \"name\": \"bad\",\n  \"colour\": 1\n}",
        )
        .unwrap();
        // Not hidden by the other of its name.
        std::fs::write(agents.join("good.json"), "{").unwrap();
        let tools = "---\nname: tools\ntools: [glob, hammer]\n---\nx";
        std::fs::write(agents.join("tools.md"), tools).unwrap();
        std::fs::write(agents.join("notes.txt"), "no definition").unwrap();
        std::os::unix::fs::symlink("/dev/zero", agents.join("endless.md")).unwrap();
        let inner = folder.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let listed = catalog().list(&inner);
        let names: Vec<(&str, bool)> = listed
            .iter()
            .map(|entry| (&*entry.name, entry.definition.is_ok()))
            .collect();
        let wanted = [
            ("bad", false),
            ("endless", false),
            ("good", false),
            ("good", true),
            ("tools", false),
            ("attache", true),
        ];
        assert_eq!(names, wanted);
        let why = listed[0].definition.as_ref().unwrap_err();
        assert!(
            why.contains("bad.json:3") && why.contains("colour"),
            "{why}"
        );
        let why = listed[4].definition.as_ref().unwrap_err();
        assert!(
            why.contains("tools.md:3: tools: ") && why.contains("hammer"),
            "{why}"
        );
    }

    #[test]
    fn files_of_others_are_read_for_what_they_say() {
        let folder = tempfile::tempdir().unwrap();
        let agents = folder.path().join(".claude/agents");
        std::fs::create_dir_all(&agents).unwrap();
        let text = "---\nname: reviewer\ndescription: Reviews.\ntools: Read, Grep, Bash\n\
                    model: sonnet\ncolor: red\n---\nReview it.";
        std::fs::write(agents.join("reviewer.md"), text).unwrap();
        let found = catalog().find("reviewer", folder.path()).unwrap();
        assert_eq!(found.tools, ["read_file", "grep"]);
        assert_eq!((found.model, &*found.instructions), (None, "Review it."));
    }
}
