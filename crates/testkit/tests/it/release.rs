//! Release files: the workflows name only what exists, and the bill of materials lists all that is linked.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::fixtures;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn output(command: &mut Command) -> String {
    let output = command.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns a workflow, as `PyYAML` reads it.
fn workflow(name: &str) -> Value {
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let mut python = Command::new(fixtures::python("python"));
    let file = root().join(".github/workflows").join(name);
    serde_json::from_str(&output(python.args(["-c", script]).arg(file))).unwrap()
}

/// Returns both workflows with their names.
fn workflows() -> [(&'static str, Value); 2] {
    ["test.yml", "release.yml"].map(|name| (name, workflow(name)))
}

fn jobs(workflow: &Value) -> impl Iterator<Item = (&String, &Value)> {
    workflow["jobs"].as_object().unwrap().iter()
}

fn steps(job: &Value) -> &[Value] {
    job["steps"].as_array().unwrap()
}

#[test]
fn every_job_has_a_runner_a_time_limit_and_steps_with_versions() {
    for (name, workflow) in workflows() {
        assert_eq!(workflow["permissions"]["contents"], "read", "{name}");
        let names: BTreeSet<_> = jobs(&workflow).map(|(job, _)| job.as_str()).collect();
        for (job, definition) in jobs(&workflow) {
            let place = format!("{name}: {job}");
            assert!(definition["runs-on"].is_string(), "{place}");
            assert!(definition["timeout-minutes"].is_u64(), "{place}");
            if let Some(needed) = definition["needs"].as_str() {
                assert!(names.contains(needed), "{place} needs `{needed}`");
            }
            for step in steps(definition) {
                let used = step["uses"].as_str();
                let pinned = used.is_some_and(|used| used.contains('@'));
                assert!(pinned || step["run"].is_string(), "{place}: {step}");
            }
        }
    }
}

#[test]
fn the_commands_of_the_workflows_are_shell_and_name_what_exists() {
    let mut scripts = BTreeSet::new();
    for (name, workflow) in workflows() {
        for (job, step) in jobs(&workflow)
            .flat_map(|(job, definition)| steps(definition).iter().map(move |step| (job, step)))
        {
            let Some(run) = step["run"].as_str() else { continue };
            let mut bash = Command::new("bash");
            let mut bash = bash.arg("-n").stdin(Stdio::piped()).spawn().unwrap();
            bash.stdin.take().unwrap().write_all(run.as_bytes()).unwrap();
            assert!(bash.wait().unwrap().success(), "{name}: {job}: {run}");

            let words: Vec<_> = run.split_whitespace().collect();
            for word in &words {
                if word.starts_with("scripts/") || word.starts_with(".ci/") {
                    assert!(root().join(word).is_file(), "{name}: {job}: no `{word}`");
                    scripts.insert((*word).to_owned());
                }
            }
            for pair in words.windows(2).filter(|pair| pair[0] == "-p") {
                let folder = pair[1].strip_prefix("consort-").unwrap();
                assert!(root().join("crates").join(folder).is_dir(), "{name}: {job}: {pair:?}");
            }
        }
    }
    let known = [".ci/run", "scripts/package", "scripts/sbom"];
    assert_eq!(scripts, known.map(str::to_owned).into());
}

#[test]
fn the_workflows_build_with_the_oldest_rust_and_for_every_npm_package() {
    let rust = read("Cargo.toml");
    let rust = rust.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    let image = format!("rust:{}-bookworm", rust.trim_matches('"'));
    let release = workflow("release.yml");
    let mut platforms = BTreeSet::new();
    for build in release["jobs"]["build"]["strategy"]["matrix"]["include"].as_array().unwrap() {
        let target = build["target"].as_str().unwrap();
        let (processor, system) = target.split_once('-').unwrap();
        let processor = if processor == "aarch64" { "arm64" } else { "x64" };
        let linux = system == "unknown-linux-gnu";
        platforms.insert(format!("{}-{processor}", if linux { "linux" } else { "darwin" }));
        assert_eq!(build["container"], if linux { image.as_str() } else { "" }, "{target}");
    }
    for (job, definition) in jobs(&workflow("test.yml")) {
        let container = &definition["container"];
        assert!(container.is_null() || *container == *image, "{job}: {container}");
    }
    let npm = read("packaging/npm.py");
    let list = npm.lines().find_map(|line| line.strip_prefix("PLATFORMS = ")).unwrap();
    let list: BTreeSet<String> = serde_json::from_str(list).unwrap();
    assert_eq!(platforms, list);
}

#[test]
fn the_bill_of_materials_lists_exactly_what_is_linked() {
    let bill = output(&mut Command::new(root().join("scripts/sbom")));
    assert_eq!(bill, output(&mut Command::new(root().join("scripts/sbom"))), "equal input");
    let bill: Value = serde_json::from_str(&bill).unwrap();
    assert_eq!(bill["bomFormat"], "CycloneDX");
    assert_eq!(bill["specVersion"], "1.5");
    assert_eq!(bill["metadata"]["component"]["name"], "consort");

    let mut tree = Command::new(env!("CARGO"));
    tree.args([
        "tree",
        "--locked",
        "--package",
        "consort",
        "--prefix",
        "none",
        "--format",
        "{lib} {p}",
    ]);
    let tree = output(tree.args(["--edges", "normal,no-proc-macro"]));
    let linked: BTreeSet<_> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
            Some(format!("pkg:cargo/{name}@{version}"))
        })
        .collect();
    assert!(linked.len() > 100, "{tree}");
    let components = bill["components"].as_array().unwrap();
    let all = components.iter().chain([&bill["metadata"]["component"]]);
    let listed: BTreeSet<_> = all.map(|part| part["purl"].as_str().unwrap().to_owned()).collect();
    assert_eq!(listed, linked);

    let lock = read("Cargo.lock");
    for part in components {
        let (name, version) = (part["name"].as_str().unwrap(), part["version"].as_str().unwrap());
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&entry), "{name} {version} is not in the lock file");
        assert!(part["licenses"][0]["expression"].is_string(), "{part}");
        let ours = name.starts_with("consort");
        let hash = part["hashes"][0]["content"].as_str();
        assert!(ours || hash.is_some_and(|hash| lock.contains(hash)), "{part}");
    }
    for dependency in bill["dependencies"].as_array().unwrap() {
        let named = dependency["dependsOn"].as_array().unwrap().iter().chain([&dependency["ref"]]);
        for reference in named {
            assert!(listed.contains(reference.as_str().unwrap()), "{reference}");
        }
    }
}

/// Collects the text files below a folder, by their paths in the repository.
fn texts(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !matches!(name, "target" | "node_modules" | ".git") {
                texts(&path, found);
            }
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            let path = path.strip_prefix(root()).unwrap();
            found.push((path.to_str().unwrap().to_owned(), text));
        }
    }
}

#[test]
fn no_page_runs_the_packages_of_others_and_no_file_names_a_registry() {
    let mut files = Vec::new();
    texts(&root(), &mut files);
    assert!(files.len() > 500, "{} files", files.len());
    let wrong = [
        ("uvx", " consort "),
        ("npx", " consort "),
        ("npx -y", " consort "),
        ("pip install", " consort "),
    ];
    let wrong: Vec<_> = wrong.iter().map(|(program, name)| format!("{program}{name}")).collect();
    let hosts = ["registry.npmjs", "pypi.org", "pythonhosted", "ghcr.io", "index.crates"];
    for (file, text) in files {
        for line in text.lines() {
            // Quotes and the end of a line end the name too.
            let words = line
                .split_whitespace()
                .map(|word| word.trim_matches(['`', '"', '\'', '.', ',', ':']));
            let words = format!(" {} ", words.collect::<Vec<_>>().join(" "));
            let bad = wrong.iter().find(|wrong| words.contains(wrong.as_str()));
            assert!(bad.is_none(), "{file}: `{line}`: the package is called `consort-mcp`");
        }
        let packaging =
            [".github/", "packaging/", "scripts/"].iter().any(|folder| file.starts_with(folder));
        let host = hosts.iter().find(|host| packaging && text.contains(**host));
        assert!(host.is_none(), "{file} names the registry {host:?}");
    }
}
