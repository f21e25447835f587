//! Programs in a workspace outside of the repository, with the features of the command and without.

use std::fs;
use std::path::{Path, PathBuf};

/// A workspace elsewhere that depends on this library by path.
struct Workspace(tempfile::TempDir);

impl Workspace {
    fn new() -> Self {
        let library = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (from, folder) =
            (library.join("tests/fixtures/programs"), tempfile::tempdir().unwrap());
        let bin = folder.path().join("src/bin");
        fs::create_dir_all(&bin).unwrap();
        for name in program_names() {
            let file = format!("{name}.rs");
            fs::copy(from.join("src/bin").join(&file), bin.join(&file)).unwrap();
        }
        let manifest = fs::read_to_string(from.join("Cargo.toml")).unwrap();
        let path = format!("path = {:?}", library.to_str().unwrap());
        assert!(manifest.contains(r#"path = "../../..""#));
        let manifest = manifest.replace(r#"path = "../../..""#, &path);
        fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
        fs::copy(library.join("../../Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
        Self(folder)
    }

    /// Runs a program and returns its output. What the tests of the repository built is used again.
    fn run(&self, name: &str, features: &[&str]) -> String {
        let target: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
        let output = testkit::cargo()
            .args(["run", "--quiet", "--offline", "--bin", name])
            .args(features)
            .env("CARGO_TARGET_DIR", target)
            .current_dir(self.0.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Checks what every program prints.
    fn check(&self, features: &[&str]) {
        for (name, lines) in EXPECTED {
            let out = self.run(name, features);
            let missing: Vec<&&str> = lines.iter().filter(|line| !out.contains(**line)).collect();
            assert!(missing.is_empty(), "{name} {features:?} lacks {missing:?} in\n{out}");
        }
    }
}

/// Each program, and pieces of its output.
const EXPECTED: [(&str, &[&str]); 4] = [
    (
        "document_000",
        &[
            r#""name":"get_weather""#,
            "openai {",
            r#""type":"function""#,
            r#""required":["location"]"#,
            "failed true rich one + [",
            r#""role":"tool""#,
            r#""tool_call_id":"call-1""#,
            "result false {\"temperature\":3,\"units\":\"celsius\"}",
            "result true {\"error\":\"no such place\"}",
            "answer It is 3 degrees in Oslo.",
        ],
    ),
    (
        "document_001",
        &[
            "builtin.echo",
            "streaming.long_computation",
            "result true",
            "chunk 1 Progress final=false streaming.long_computation",
            "chunk 3 Complete final=true streaming.long_computation",
            "is_error false",
            "live true",
            "wrong unknown tool `serch`; did you mean `search`?",
            "task builtin.echo streaming.get_weather streaming.search",
            "run Call builtin.echo",
            "run Complete streaming.search",
            "answer done",
        ],
    ),
    (
        "document_002",
        &[
            "component true",
            "tool mcp_search of papers: search",
            "tool mcp_remember of notes: remember",
            "tick 1",
            "  mcp_search is ",
            "tick 2",
            "answer found and noted",
        ],
    ),
    (
        "tree_003",
        &[
            "tool mcp_api_ai_mcp: MCP server 'api-ai-mcp' (stdio) - provides access to multiple tools",
            r#"decision mcp_api_ai_mcp {"action":"list"}"#,
            "answer found one paper",
            "answer it is positive",
        ],
    ),
];

fn program_names() -> impl Iterator<Item = &'static str> {
    EXPECTED.iter().map(|(name, _)| *name)
}

#[test]
fn a_program_for_each_document_runs_outside_of_the_repository() {
    let workspace = Workspace::new();
    workspace.check(&[]);
    workspace.check(&["--no-default-features"]);
}

#[test]
fn each_program_is_at_most_a_hundred_lines() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/programs/src/bin");
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 100, "{}: {lines} lines", path.display());
        names.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    assert_eq!(names, program_names().collect::<Vec<_>>());
}
