//! Structure of the repository: file sizes, dependencies between crates, number of dependencies.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Maximum number of lines of a file before its tests.
const LINES: usize = 400;

/// Maximum number of packages in the lock file, workspace crates and dev-dependencies included.
const PACKAGES: usize = 342;

/// The only module that may name an operating system.
const PLATFORM: &str = "crates/client/src/platform.rs";

/// Allowed dependencies between workspace crates.
const ARROWS: &[(&str, &[&str])] = &[
    ("consort-protocol", &[]),
    ("consort-client", &["consort-protocol"]),
    ("consort-files", &[]),
    ("consort-oauth", &["consort-client", "consort-files"]),
    ("consort-core", &["consort-protocol"]),
    ("consort-schema", &[]),
    (
        "consort-hub",
        &["consort-protocol", "consort-client", "consort-core", "consort-files", "consort-schema"],
    ),
    ("consort-search", &["consort-core"]),
    ("consort-models", &["consort-protocol", "consort-client", "consort-core"]),
    ("consort-shape", &["consort-protocol", "consort-core", "consort-models", "consort-search"]),
    ("consort-audit", &["consort-client", "consort-protocol", "consort-core", "consort-files"]),
    ("consort-server", &["consort-protocol", "consort-core", "consort-files"]),
    (
        "consort-identity",
        &["consort-protocol", "consort-core", "consort-files", "consort-oauth", "consort-server"],
    ),
    (
        "consort-gateway",
        &[
            "consort-protocol",
            "consort-client",
            "consort-core",
            "consort-files",
            "consort-audit",
            "consort-server",
        ],
    ),
    (
        "consort-agent",
        &["consort-protocol", "consort-core", "consort-files", "consort-models", "consort-shape"],
    ),
    (
        "consort-config",
        &[
            "consort-client",
            "consort-core",
            "consort-files",
            "consort-hub",
            "consort-models",
            "consort-oauth",
            "consort-shape",
            "consort-agent",
            "consort-audit",
            "consort-server",
            "consort-gateway",
        ],
    ),
    (
        "consort-admin",
        &[
            "consort-config",
            "consort-protocol",
            "consort-client",
            "consort-core",
            "consort-hub",
            "consort-identity",
            "consort-models",
            "consort-search",
            "consort-shape",
            "consort-agent",
            "consort-audit",
            "consort-server",
            "consort-identity",
            "consort-gateway",
        ],
    ),
    (
        "consort",
        &[
            "consort-admin",
            "consort-config",
            "consort-protocol",
            "consort-client",
            "consort-core",
            "consort-files",
            "consort-hub",
            "consort-identity",
            "consort-oauth",
            "consort-models",
            "consort-search",
            "consort-shape",
            "consort-agent",
            "consort-audit",
            "consort-server",
            "consort-identity",
            "consort-gateway",
        ],
    ),
    ("testkit", &["consort-protocol", "consort-client", "consort-oauth"]),
    (
        "bench",
        &[
            "consort-protocol",
            "consort-client",
            "consort-core",
            "consort-hub",
            "consort-identity",
            "consort-oauth",
            "consort-models",
            "consort-search",
            "consort-server",
            "consort-shape",
            "consort-agent",
            "consort-audit",
            "consort-gateway",
            "consort",
            "testkit",
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The sources of every crate.
fn all_sources() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for package in std::fs::read_dir(root().join("crates")).unwrap() {
        sources(&package.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > 50, "the sources are where they were");
    files
}

#[test]
fn a_file_is_short_before_its_tests() {
    let files = all_sources();
    let long: Vec<String> = files
        .iter()
        .filter_map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let lines = text.lines().take_while(|line| *line != "#[cfg(test)]").count();
            (lines > LINES).then(|| format!("{}: {lines} lines", path.display()))
        })
        .collect();
    assert!(long.is_empty(), "more than {LINES} lines before the tests:\n{}", long.join("\n"));
}

/// Words that no doc comment opens with: it opens with a noun phrase or a verb.
const QUESTION_WORDS: [&str; 10] =
    ["what", "who", "whom", "whose", "whether", "how", "where", "when", "why", "which"];

#[test]
fn doc_comments_open_with_a_noun_phrase_or_a_verb() {
    let (mut comments, mut wrong) = (0, Vec::new());
    for path in all_sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut is_within = false;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_start();
            let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            if let Some(comment) = comment.filter(|_| !is_within) {
                comments += 1;
                let first = comment.trim_start().split(|c: char| !c.is_alphabetic()).next();
                let first = first.unwrap_or_default().to_ascii_lowercase();
                if QUESTION_WORDS.contains(&first.as_str()) {
                    wrong.push(format!("{}:{}", path.display(), number + 1));
                }
            }
            is_within = comment.is_some();
        }
    }
    assert!(comments > 5000, "the comments are where they were: {comments}");
    // Definitions of tools that people have pinned keep their words.
    let most = comments / 50;
    assert!(wrong.len() <= most, "{} of {comments}:\n{}", wrong.len(), wrong.join("\n"));
}

/// The files of the command that may write directly to standard output or standard error, with the reason.
const WRITERS: [(&str, &str); 3] = [
    ("output.rs", "the only way to a terminal"),
    ("demo.rs", "an MCP server, which speaks JSON on its standard output"),
    ("command/man.rs", "shell completions, made of our own words alone"),
];

/// Expressions that write to standard output or standard error.
const WRITING: [&str; 8] = [
    "print!",
    "println!",
    "dbg!",
    "io::stdout(",
    "io::stderr(",
    "anstream::",
    "tty\"",
    "set_message(",
];

#[test]
fn everything_that_reaches_a_terminal_goes_through_the_cleaner() {
    let source = root().join("crates/consort/src");
    let mut files = Vec::new();
    sources(&source, &mut files);
    let mut wrong = Vec::new();
    for path in files {
        let name = path.strip_prefix(&source).unwrap().display().to_string();
        if name.starts_with("output/") || WRITERS.iter().any(|(writer, _)| *writer == name) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let own = text.split("#[cfg(test)]").next().unwrap();
        for (number, line) in own.lines().enumerate() {
            let code = line.split("//").next().unwrap();
            // To ask whether somebody is there writes nothing.
            let code = code
                .replace("io::stdout().is_terminal()", "")
                .replace("io::stderr().is_terminal()", "");
            if WRITING.iter().any(|word| code.contains(word)) && !name.ends_with("tests.rs") {
                wrong.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "written past `output::TerminalText`:\n{}", wrong.join("\n"));
}

#[test]
fn what_answers_callers_never_reads_text_that_is_for_the_operator() {
    for package in ["server", "gateway", "audit", "agent", "models", "search", "shape"] {
        let mut files = Vec::new();
        sources(&root().join("crates").join(package).join("src"), &mut files);
        for path in files {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains("for_operator"), "{}", path.display());
        }
    }
}

#[test]
fn arrows_point_one_way() {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let ours: BTreeSet<&str> =
        packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    let known: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(ours, known, "a new crate says here whom it may know");
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let (_, allowed) = ARROWS.iter().find(|(known, _)| *known == name).unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            // In tests, everybody may use the test kit.
            if ours.contains(used) && dependency["kind"] != "dev" {
                assert!(allowed.contains(&used), "{name} must not know {used}");
            }
        }
    }
}

#[test]
fn only_the_crates_of_the_ledger_and_of_identities_know_sqlite() {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let knows = |package: &&serde_json::Value| {
        let dependencies = package["dependencies"].as_array().unwrap();
        // Tests damage ledgers by SQL.
        dependencies.iter().any(|it| it["name"] == "rusqlite" && it["kind"] != "dev")
    };
    let packages = metadata["packages"].as_array().unwrap().iter().filter(knows);
    let names: Vec<&str> = packages.map(|package| package["name"].as_str().unwrap()).collect();
    // Each has a file of its own that nobody else opens.
    assert_eq!(names, ["consort-audit", "consort-identity"]);
}

#[test]
fn the_library_without_its_command_has_no_command_line() {
    let tree = cargo(&[
        "tree",
        "--package",
        "consort",
        "--no-default-features",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--locked",
    ]);
    for package in ["clap", "rustyline", "indicatif", "consort-admin", "tracing-subscriber"] {
        let used = tree.lines().any(|line| line.split(' ').next() == Some(package));
        assert!(!used, "the library pulls in {package}");
    }
}

#[test]
fn the_core_runs_reads_and_connects_nothing() {
    let tree = cargo(&[
        "tree",
        "--package",
        "consort-core",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--locked",
    ]);
    for package in ["tokio", "hyper", "rustls", "mio", "rustix"] {
        let used = tree.lines().any(|line| line.split(' ').next() == Some(package));
        assert!(!used, "consort-core pulls in {package}");
    }
}

#[test]
fn we_depend_on_few() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let names: Vec<&str> = lock.lines().filter_map(|line| line.strip_prefix("name = ")).collect();
    assert!(names.len() <= PACKAGES, "{} packages; each more is argued for", names.len());
}

/// Files that read the wall clock, with the purpose: it is shown or stored, and no wait depends on it.
const WALL_CLOCK: &[(&str, &str)] = &[
    ("agent/src/chunk.rs", "when a chunk was made"),
    ("agent/src/conversation.rs", "when a conversation began"),
    ("audit/src/clock.rs", "when a call was made, never earlier than the one before"),
    ("audit/src/metrics.rs", "when we began"),
    ("audit/src/otlp.rs", "when a metric was taken"),
    ("audit/src/otlp/span.rs", "when a span began"),
    (
        "gateway/src/naming.rs",
        "since when a server is no longer configured; its names are freed a day later",
    ),
    ("hub/src/builtin.rs", "the tool that tells the time"),
    ("hub/src/managed.rs", "since when a server is as it is"),
    ("hub/src/server_log.rs", "when a line of a server's log was written"),
    ("hub/src/status.rs", "since when a server is as it is"),
    ("server/src/sealing/clock.rs", "when what was sealed before a restart expires"),
];

// F21: a clock that is set forward or back ends nothing early or late.
#[test]
fn the_clock_on_the_wall_decides_nothing() {
    let mut files = Vec::new();
    let crates = root().join("crates");
    for package in [
        "agent", "audit", "client", "core", "gateway", "hub", "models", "protocol", "search",
        "server", "shape",
    ] {
        sources(&crates.join(package).join("src"), &mut files);
    }
    let reads = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let code: Vec<&str> = text.lines().take_while(|line| *line != "#[cfg(test)]").collect();
        let code = code.join("\n");
        code.contains("SystemTime::now()") || code.contains("UNIX_EPOCH.elapsed()")
    };
    let tests = |path: &PathBuf| path.iter().any(|part| part == "tests" || part == "tests.rs");
    let found: BTreeSet<String> = files
        .iter()
        .filter(|path| !tests(path) && reads(path))
        .map(|path| path.strip_prefix(&crates).unwrap().display().to_string())
        .collect();
    let known: BTreeSet<String> = WALL_CLOCK.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(found, known, "where the clock on the wall is read, say here what for");
}

#[test]
fn the_map_fits_on_a_few_pages() {
    let lines = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap().lines().count();
    assert!(lines <= 175, "{lines}");
}

#[test]
fn every_path_that_the_architecture_names_exists() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let crates = root().join("crates");
    let is_path = |word: &&str| {
        // A method of MCP that begins like the crate.
        if *word == "server/discover" {
            return false;
        }
        let first = word.split_once('/').map(|(first, _)| first);
        first.is_some_and(|first| !first.is_empty() && crates.join(first).is_dir())
    };
    let paths: Vec<&str> = text.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(paths.len() > 30, "the paths are written as they were: {paths:?}");
    let missing: Vec<&&str> = paths.iter().filter(|path| !crates.join(path).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names paths that do not exist: {missing:?}");
}

/// The enums with a variant for each transport to a server.
const TRANSPORT_ENUMS: [&str; 6] = [
    "AddTransport",
    "Transport",
    "UpstreamTransport",
    "ServerLocation",
    "TransportKind",
    "RemoteTransport",
];

/// The files that name a transport to a URL, with the part that a new one has there. Its own file is one more.
const TRANSPORT_FILES: [(&str, &str); 4] = [
    ("client/src/connect.rs", "negotiation"),
    ("client/src/transport/location.rs", "its URL and credentials"),
    ("client/src/transport.rs", "sending, its name, the words of OpenTelemetry"),
    ("config/src/server/transport.rs", "names in configs, formats that know it"),
];

// A transport that is named in twenty files is forgotten in one of them.
#[test]
fn a_new_transport_touches_at_most_five_files() {
    let crates = root().join("crates");
    let is_test = |path: &PathBuf| path.iter().any(|part| part == "tests" || part == "tests.rs");
    // Peers for tests and benchmarks choose a transport; they implement none.
    let is_peer = |path: &PathBuf| {
        path.starts_with(crates.join("testkit")) || path.starts_with(crates.join("bench"))
    };
    let names_transport = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
        code.filter(|line| !line.trim_start().starts_with("//")).any(names_remote_transport)
    };
    let found: BTreeSet<String> = all_sources()
        .iter()
        .filter(|path| !is_test(path) && !is_peer(path) && names_transport(path))
        .map(|path| path.strip_prefix(&crates).unwrap().display().to_string())
        .collect();
    let known: BTreeSet<String> =
        TRANSPORT_FILES.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(found, known, "ask the transport by a method, as `TransportConfig::name`");
}

/// Keys of a server that no client has, so that only Consort's own code can name them, and the code that uses the value.
const OWN_KEYS: [(&str, &str); 7] = [
    ("era", "resolve/settings.rs"),
    ("idle_stop", "resolve/settings.rs"),
    ("max_concurrent_calls", "server/limits.rs"),
    ("max_queued_calls", "server/limits.rs"),
    ("queue_wait", "server/limits.rs"),
    ("max_connections", "server/limits.rs"),
    ("connection_idle", "server/limits.rs"),
];

// A key that is named in eight files is forgotten in one of them.
#[test]
fn a_key_of_a_server_is_declared_in_one_file() {
    let config = root().join("crates/config/src");
    let mut files = Vec::new();
    sources(&config, &mut files);
    for (key, user) in OWN_KEYS {
        let is_named = |path: &&PathBuf| {
            let text = std::fs::read_to_string(path).unwrap();
            let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
            let mut code = code.filter(|line| !line.trim_start().starts_with("//"));
            let (field, text) = (format!("options.{key}"), format!("\"{key}\""));
            let declared = format!("{key}: ");
            code.any(|line| {
                line.contains(&field)
                    || line.contains(&text)
                    || line.trim_start().starts_with(&declared)
            })
        };
        let named: BTreeSet<String> = files
            .iter()
            .filter(|path| !path.ends_with("tests.rs"))
            .filter(is_named)
            .map(|path| path.strip_prefix(&config).unwrap().display().to_string())
            // Ceilings of users have a key of the same name.
            .filter(|file| file != user && !file.ends_with("/ceilings.rs"))
            .collect();
        let declaration = match user {
            "server/limits.rs" => Vec::new(),
            _ => vec!["server/options.rs"],
        };
        assert_eq!(
            named.iter().map(String::as_str).collect::<Vec<_>>(),
            declaration,
            "`{key}`: declare it by `declare_keys!` alone"
        );
    }
}

/// Returns true if a line of code names a transport to a URL, a variant of one of the enums, or defines such an enum.
fn names_remote_transport(line: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    TRANSPORT_ENUMS.iter().any(|name| {
        let mut found = line.match_indices(name);
        found.any(|(at, _)| {
            let rest = &line[at + name.len()..];
            let is_whole = !line[..at].ends_with(is_name);
            let is_defined = line[..at].ends_with("enum ") && rest.starts_with(" {");
            is_whole && (is_defined || rest.starts_with("::Http") || rest.starts_with("::Sse"))
        })
    })
}

#[test]
fn the_name_of_a_transport_is_recognised() {
    for line in
        ["UpstreamTransport::Sse => 1,", "let a = Transport::Http(http);", "enum Transport {"]
    {
        assert!(names_remote_transport(line), "{line}");
    }
    for line in ["ClientTransport::Http", "MessageTransport::HTTP", "Transport::Stdio(stdio)"] {
        assert!(!names_remote_transport(line), "{line}");
    }
}

// A revision says itself what it has: where one is compared, a later one would be forgotten.
#[test]
fn nobody_compares_revisions() {
    let crates = root().join("crates");
    let mut files = Vec::new();
    for package in [
        "admin", "agent", "audit", "client", "config", "consort", "core", "gateway", "hub",
        "models", "oauth", "protocol", "search", "server", "shape",
    ] {
        sources(&crates.join(package).join("src"), &mut files);
    }
    let is_test = |path: &PathBuf| path.iter().any(|part| part == "tests" || part == "tests.rs");
    let mut found = Vec::new();
    for path in
        files.iter().filter(|path| !is_test(path) && !path.ends_with("protocol/src/revision.rs"))
    {
        let text = std::fs::read_to_string(path).unwrap();
        let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
        for (at, line) in code.enumerate().filter(|(_, line)| compares_revisions(line)) {
            let path = path.strip_prefix(&crates).unwrap().display();
            found.push(format!("{path}:{}: {}", at + 1, line.trim()));
        }
    }
    assert!(
        found.is_empty(),
        "ask the revision (crates/protocol/src/revision.rs):\n{}",
        found.join("\n")
    );
}

/// Returns true if a line of code compares a revision, or the date of one, with something, or matches it.
fn compares_revisions(line: &str) -> bool {
    let line = line.trim();
    if line.starts_with("//") {
        return false;
    }
    let dates = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
    let named = dates.iter().any(|date| {
        line.contains(&format!("\"{date}\""))
            || line.contains(&format!("V{}", date.replace('-', "_")))
    });
    let operators = [" == ", " != ", " < ", " > ", " <= ", " >= ", "matches!(", "Ord", " => "];
    named && operators.iter().any(|operator| line.contains(operator))
}

#[test]
fn a_comparison_of_revisions_is_recognised() {
    for line in [
        "if revision >= Revision::V2025_11_25 {",
        "Ok(session) if session.revision == Revision::V2025_03_26 => session,",
        "version == \"2025-03-26\"",
        "matches!(revision, Revision::V2024_11_05)",
        "Revision::V2024_11_05 => 1,",
    ] {
        assert!(compares_revisions(line), "{line}");
    }
    for line in
        ["// as in 2025-11-25", "let newest = Revision::V2025_11_25;", "revision.has_batches()"]
    {
        assert!(!compares_revisions(line), "{line}");
    }
}

/// The code of a source before its tests, without comments.
fn code_of(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let code = lines.map(|line| line.split("//").next().unwrap());
    code.collect::<Vec<_>>().join("\n")
}

/// Sources in a folder of a crate, without its tests.
fn sources_of(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    sources(&root().join("crates").join(folder), &mut files);
    files.retain(|path| !path.iter().any(|part| part == "tests" || part == "tests.rs"));
    assert!(!files.is_empty(), "{folder}");
    files
}

/// Expressions that a lifecycle does without: it waits for nothing, locks nothing, and reads no clock.
const IMPURE: [&str; 14] = [
    "async ",
    ".await",
    "select!",
    "tokio::sync",
    "tokio::spawn",
    "tokio::time::sleep",
    "Mutex",
    "RwLock",
    "Atomic",
    "Instant::now",
    "SystemTime",
    "RandomState",
    "std::fs",
    "tracing::",
];

#[test]
fn the_lifecycle_of_a_server_does_no_io_and_reads_no_clock() {
    let mut files = sources_of("hub/src/lifecycle");
    files.push(root().join("crates/hub/src/lifecycle.rs"));
    for path in files {
        let code = code_of(&path);
        for word in IMPURE {
            assert!(!code.contains(word), "{}: `{word}`", path.display());
        }
    }
}

/// Files of the hub that write to disk, each on a thread for blocking work.
const HUB_WRITERS: [&str; 2] = ["catalog_store.rs", "server_log.rs"];

// A lock that is held across a wait holds up everybody; a task that nobody holds outlives its server.
#[test]
fn the_hub_holds_no_lock_across_a_wait_and_no_task_is_detached() {
    let tokio_locks = ["Mutex", "RwLock"];
    for path in sources_of("hub/src") {
        let code = code_of(&path);
        let name = path.file_name().unwrap().to_str().unwrap();
        // Guards of parking_lot are not `Send`, so the compiler refuses a task that holds one across a wait.
        for import in code.split("use tokio::sync::").skip(1) {
            let import = import.split(';').next().unwrap();
            let is_lock = tokio_locks.iter().any(|lock| import.contains(lock));
            assert!(!is_lock, "{}: {import}", path.display());
        }
        for word in ["tokio::sync::Mutex", "tokio::sync::RwLock", "tokio::spawn(", "task::spawn("] {
            assert!(!code.contains(word), "{}: `{word}`", path.display());
        }
        let writes = ["fs::write", "File::create", "OpenOptions", "consort_files::"];
        let is_writer = writes.iter().any(|word| code.contains(word));
        assert!(!is_writer || HUB_WRITERS.contains(&name), "{}", path.display());
    }
}

/// Maximum number of modules of a crate that depend on each other in a circle.
const CYCLE: usize = 3;

/// Folders with a larger circle.
const LARGE_CIRCLES: [&str; 2] = ["audit/src/ledger", "client/src/transport"];

// Modules in a circle can only be read, and moved, together.
#[test]
fn modules_of_a_crate_depend_on_each_other_in_small_circles_only() {
    let mut wrong = Vec::new();
    for package in std::fs::read_dir(root().join("crates")).unwrap() {
        let name = package.unwrap().file_name().into_string().unwrap();
        if name == "bench" || name == "testkit" {
            continue;
        }
        for folder in module_folders(&name) {
            let circles = circles_of(&module_graph(&name, &folder));
            let large = circles.into_iter().filter(|circle| circle.len() > CYCLE);
            let place = format!("{name}/src/{}", folder.display());
            if !LARGE_CIRCLES.contains(&place.as_str()) {
                wrong.extend(large.map(|circle| format!("{place}: {}", circle.join(", "))));
            }
        }
    }
    assert!(wrong.is_empty(), "more than {CYCLE} modules in a circle:\n{}", wrong.join("\n"));
}

type ModuleGraph = BTreeMap<String, BTreeSet<String>>;

/// The folders of a crate that hold modules: the root, an empty path, and those of modules with modules of their own.
fn module_folders(package: &str) -> BTreeSet<PathBuf> {
    let source = root().join("crates").join(package).join("src");
    let files = sources_of(&format!("{package}/src"));
    files.iter().map(|path| path.strip_prefix(&source).unwrap().parent().unwrap().into()).collect()
}

/// Modules in a folder of a crate, each with those of the same folder that it, or a module within it, names in a path. An
/// item that the module of the folder exports leads to the module that it is from.
fn module_graph(package: &str, within: &Path) -> ModuleGraph {
    let folder = root().join("crates").join(package).join("src").join(within);
    let files = sources_of(&format!("{package}/src/{}", within.display()));
    let mut from_root = "crate::".to_owned();
    from_root.extend(within.iter().flat_map(|module| [module.to_str().unwrap(), "::"]));
    let is_root = within.as_os_str().is_empty();
    let mut exported = BTreeMap::new();
    let parents = if is_root {
        vec![folder.join("lib.rs"), folder.join("main.rs")]
    } else {
        vec![folder.with_extension("rs")]
    };
    for parent in parents.iter().filter(|path| path.exists()) {
        let code = code_without_tests(parent);
        for import in code.split("use ").skip(1) {
            let import = import.split(';').next().unwrap();
            let (from, items) = import.split_once("::").unwrap_or((import, ""));
            let words = items.split(|c: char| !c.is_alphanumeric() && c != '_');
            exported.extend(words.map(|word| (word.to_owned(), from.to_owned())));
        }
    }
    let mut graph = ModuleGraph::new();
    for path in files.iter().filter(|path| !parents.contains(path)) {
        let code = code_without_tests(path);
        let inside = path.strip_prefix(&folder).unwrap().with_extension("");
        let module = inside.iter().next().unwrap().to_str().unwrap().to_owned();
        let to_folder = "super::".repeat(inside.iter().count());
        let named = graph.entry(module).or_default();
        for path in code.split(&from_root).skip(1) {
            named.extend(first_names(path));
        }
        // A longer chain would leave the folder.
        for (at, _) in code.match_indices(&to_folder) {
            if !code[..at].ends_with("::") {
                named.extend(first_names(&code[at + to_folder.len()..]));
            }
        }
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    for (module, named) in &mut graph {
        let origin = |name: &String| match exported.get(name) {
            Some(from) if !modules.contains(name) => from.clone(),
            _ => name.clone(),
        };
        *named =
            named.iter().map(origin).filter(|it| modules.contains(it) && it != module).collect();
    }
    graph
}

/// The code of a source before its module of tests, without comments.
fn code_without_tests(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.split("\n#[cfg(test)]\nmod ").next().unwrap().lines();
    lines.map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The first name of a path, or of each path in a group.
fn first_names(path: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![word(path)] };
    let (mut depth, mut names) = (0, vec![word(group)]);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(word(&group[at + 1..])),
            _ => {}
        }
    }
    names
}

/// Groups of modules each of which leads to all others of its group.
fn circles_of(graph: &ModuleGraph) -> BTreeSet<Vec<String>> {
    let reached = |from: &String| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(module) = open.pop() {
            let next = graph.get(module).into_iter().flatten();
            open.extend(next.filter(|module| reached.insert((*module).clone())));
        }
        reached
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|module| (module, reached(module))).collect();
    let circle = |module: &String| -> Vec<String> {
        let behind = reached[module].iter();
        behind.filter(|other| reached[other].contains(module)).cloned().collect()
    };
    graph.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
}

#[test]
fn a_circle_of_modules_is_found() {
    let paths = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("f", "a")];
    let mut graph = ModuleGraph::new();
    for (from, to) in paths {
        graph.entry(to.to_owned()).or_default();
        graph.entry(from.to_owned()).or_default().insert(to.to_owned());
    }
    let circle = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(circles_of(&graph), BTreeSet::from([circle]));
    assert_eq!(first_names("a::{b, c};"), ["a"]);
    assert_eq!(first_names("{a, b::{c, d}, e::f};"), ["a", "b", "e"]);
}

/// Returns true if a line of code selects code by the system or processor it is compiled for.
fn names_a_system(line: &str) -> bool {
    if line.trim_start().starts_with("//") {
        return false;
    }
    let selectors = ["target_", "unix", "windows", "macos", "linux"];
    let conditions = ["cfg(", "cfg!(", "cfg_attr("];
    let conditional = conditions.iter().any(|condition| {
        let rest = line.split_once(condition).map(|(_, rest)| rest);
        rest.is_some_and(|rest| selectors.iter().any(|selector| rest.contains(selector)))
    });
    conditional || ["env::consts::OS", "env::consts::FAMILY"].iter().any(|name| line.contains(name))
}

#[test]
fn only_the_platform_module_names_an_operating_system() {
    let platform = root().join(PLATFORM);
    let (mut found, mut files) = (Vec::new(), all_sources());
    for package in std::fs::read_dir(root().join("crates")).unwrap() {
        let tests = package.unwrap().path().join("tests");
        if tests.is_dir() {
            sources(&tests, &mut files);
        }
    }
    for path in files {
        // This file has the words in its rules.
        if path.ends_with("testkit/tests/layout.rs") || path.ends_with(PLATFORM) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| names_a_system(line)) {
            found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
        }
    }
    assert!(found.is_empty(), "these belong into {PLATFORM}:\n{}", found.join("\n"));
    // Dependencies by system would be a second place.
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let manifest = std::fs::read_to_string(entry.unwrap().path().join("Cargo.toml")).unwrap();
        assert!(!manifest.contains("[target."), "{manifest}");
    }
    let text = std::fs::read_to_string(platform).unwrap();
    assert!(text.lines().any(names_a_system), "the rule finds nothing in {PLATFORM}");
}

#[test]
fn every_fallback_of_the_platform_module_is_stated() {
    let text = std::fs::read_to_string(root().join(PLATFORM)).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let mut functions = 0;
    for (number, line) in lines.iter().enumerate() {
        let other = *line == "#[cfg(not(target_os = \"linux\"))]";
        if other && lines[number + 1..].iter().take(2).any(|next| next.contains("fn ")) {
            functions += 1;
            let stated = lines[number - 1];
            assert!(stated.starts_with("/// "), "line {}: the fallback is not stated", number + 1);
        }
    }
    assert!(functions >= 4, "{functions} fallbacks are found");
}

#[test]
fn a_condition_on_the_system_is_recognised() {
    for line in [
        "#[cfg(target_os = \"linux\")]",
        "    #[cfg(unix)]",
        "#[cfg(all(test, windows))]",
        "#[cfg_attr(not(target_os = \"linux\"), path = \"other.rs\")]",
        "let program = if cfg!(target_os = \"macos\") { 1 } else { 2 };",
        "if std::env::consts::OS == \"macos\" {}",
    ] {
        assert!(names_a_system(line), "{line}");
    }
    for line in [
        "#[cfg(test)]",
        "#[cfg(feature = \"tls\")]",
        "use std::os::unix::fs::symlink;",
        "// cfg(unix)",
    ] {
        assert!(!names_a_system(line), "{line}");
    }
}
