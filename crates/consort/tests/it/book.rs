//! Every command in the book does what the book says.
//!
//! A block marked `console` is run line by line, as it is written, in a home of its page's own. `# exit code N`
//! in a line says how it ends, if not with 0. What a block names and cannot make itself is put there before it
//! (`props`). Something that serves goes on until the end of its block, at a free port where the book has the usual
//! one. A block that cannot be run says why: `console no-run: REASON`. `BOOK_PAGE=start` in the environment plays one
//! page alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use consort::config::Config;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::Home;
use crate::serve::Serving;

/// Why a block may go unrun. There are no other reasons.
const REASONS: [&str; 7] = [
    "changes the system",
    "builds for minutes",
    "downloads packages",
    "needs a browser and an account",
    "measures for minutes",
    "needs a provider's key",
    "needs a container engine",
];

/// The longest a line may take that ends by itself.
const LONGEST: Duration = Duration::from_mins(1);

/// The address that `consort serve` takes if nobody says another.
const USUAL: &str = "127.0.0.1:8808";

/// The folder in which commands are typed.
const WORK: &str = "work";

/// A piece of the book that is to be run.
pub(crate) struct Block {
    page: String,
    line: usize,
    unrun: Option<String>,
    lines: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages: the README, and everything in `docs`.
fn pages() -> Vec<(String, String)> {
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    let names = docs.map(|entry| format!("docs/{}", entry.unwrap().file_name().display()));
    let is_page = |name: &String| Path::new(name).extension().is_some_and(|end| end == "md");
    let mut names: Vec<String> = names.filter(is_page).collect();
    names.push("README.md".to_owned());
    names.sort();
    let read = |name: String| {
        let text = std::fs::read_to_string(root().join(&name)).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

/// The blocks of the five-minute guide that can be run, each with the config that the guide shows before it.
pub(crate) fn guide_blocks() -> Vec<(Block, Option<String>)> {
    let text = std::fs::read_to_string(root().join("docs/start.md")).unwrap();
    let (before, after) = text.split_once("```json\n").unwrap();
    let (config, after) = after.split_once("```\n").unwrap();
    let mut blocks_after = blocks("docs/start.md", after).into_iter();
    let mut walk: Vec<_> =
        blocks("docs/start.md", before).into_iter().map(|block| (block, None)).collect();
    walk.extend(blocks_after.next().map(|block| (block, Some(config.to_owned()))));
    walk.extend(blocks_after.map(|block| (block, None)));
    walk.retain(|(block, _)| block.unrun.is_none());
    walk
}

fn blocks(page: &str, text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((line, opening)) = lines.next() {
        let Some(info) = opening.strip_prefix("```") else { continue };
        let within = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
        let within: Vec<String> = within.map(str::to_owned).collect();
        let Some(info) = info.strip_prefix("console") else { continue };
        let unrun = info.trim().strip_prefix("no-run: ").map(str::to_owned);
        assert!(
            unrun.is_some() || info.trim().is_empty(),
            "{page}:{}: `{info}` is not understood",
            line + 1
        );
        blocks.push(Block { page: page.to_owned(), line: line + 1, unrun, lines: within });
    }
    blocks
}

/// What blocks name and cannot make themselves, by the name they use.
fn props(home: &Home) -> BTreeMap<&'static str, String> {
    let demo = std::fs::read_to_string(root().join("docs/demo.script.json")).unwrap();
    let sample = |name: &str| {
        let path = format!("crates/config/tests/it/samples/{name}");
        std::fs::read_to_string(root().join(path)).unwrap()
    };
    let task = "description = \"Say what {topic} is.\"\ntools = [\"search\"]\nmodel = \"scripted:docs/demo.script.json\"\n\
        [input]\ntopic = \"a gateway\"\n";
    BTreeMap::from([
        ("~/mcp.json", servers(home)),
        ("docs/demo.script.json", demo),
        ("aether.json", sample("aether.json")),
        ("aidk.json", sample("aidk.json")),
        ("elysia.json", sample("elysia.json")),
        ("task.toml", task.to_owned()),
    ])
}

/// The `mcp.json` that the book tells people to take, with the installed packages in place of those `npx` would fetch.
fn servers(home: &Home) -> String {
    let page = std::fs::read_to_string(root().join("docs/start.md")).unwrap();
    let (_, rest) = page.split_once("```json\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let mut config: Value = serde_json::from_str(text).unwrap();
    for server in config["mcpServers"].as_object_mut().unwrap().values_mut() {
        assert_eq!((&server["command"], &server["args"][0]), (&json!("npx"), &json!("-y")));
        let script = match server["args"][1].as_str().unwrap() {
            "@modelcontextprotocol/server-everything" => testkit::fixtures::server_everything(),
            "@modelcontextprotocol/server-filesystem" => testkit::fixtures::server_filesystem(),
            "@modelcontextprotocol/server-memory" => testkit::fixtures::server_memory(),
            other => panic!("`{other}` is no fixture"),
        };
        let more = server["args"].as_array().unwrap()[2..].iter().cloned();
        let arguments: Vec<Value> = [json!(script)].into_iter().chain(more).collect();
        (server["command"], server["args"]) = (json!(testkit::fixtures::node()), json!(arguments));
        // It would write beside its package.
        server["env"] = json!({ "MEMORY_FILE_PATH": home.path("memory.jsonl") });
    }
    config.to_string()
}

/// An `npx` that runs the installed packages in place of those it would fetch.
fn npx(home: &Home) -> String {
    let fixtures = [
        ("everything", testkit::fixtures::server_everything()),
        ("filesystem", testkit::fixtures::server_filesystem()),
        ("memory", testkit::fixtures::server_memory()),
    ];
    let cases = fixtures.map(|(name, script)| {
        format!("@modelcontextprotocol/server-{name}) script={:?} ;;", script.display().to_string())
    });
    format!(
        "#!/bin/sh\n[ \"$1\" = -y ] || exit 64\ncase $2 in\n{}\n*) exit 64 ;;\nesac\nshift 2\n\
         export MEMORY_FILE_PATH={:?}\nexec {:?} \"$script\" \"$@\"\n",
        cases.join("\n"),
        home.path("memory.jsonl").display().to_string(),
        testkit::fixtures::node().display().to_string(),
    )
}

/// A page that is being played.
pub(crate) struct Stage {
    pub(crate) home: Home,
    exports: String,
    programs: PathBuf,
    played: usize,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let home = Home::new();
        let programs = home.path(".programs");
        std::fs::create_dir(&programs).unwrap();
        std::fs::create_dir(home.path(WORK)).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_consort"), programs.join("consort"))
            .unwrap();
        let stage = Self { home, exports: String::new(), programs, played: 0 };
        stage.install("npx", &npx(&stage.home));
        stage
    }

    /// Adds a program, written in a script.
    fn install(&self, name: &str, script: &str) {
        let file = self.programs.join(name);
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }

    /// The variables with which a program of this home finds others.
    pub(crate) fn variables(&self) -> [String; 2] {
        let path = std::env::var("PATH").unwrap_or_default();
        let programs = self.programs.display();
        [format!("HOME={}", self.home.path("").display()), format!("PATH={programs}:{path}")]
    }

    fn bash(&self, line: &str) -> Command {
        let mut path = std::ffi::OsString::from(&self.programs);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let script = format!("set -o pipefail\n{}{line}", self.exports);
        let mut command = self.home.program("bash", &["-c", &script]);
        command.current_dir(self.home.path(WORK)).env("PATH", path).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().ends_with("_API_KEY") {
                command.env_remove(name);
            }
        }
        command
    }

    fn play(&mut self, block: &Block) -> Result<(), String> {
        self.prepare(block, props(&self.home));
        self.follow(block)
    }

    /// Writes those of the files that a block names.
    fn prepare(&self, block: &Block, props: BTreeMap<&'static str, String>) {
        let text = block.lines.join("\n");
        for (name, content) in props {
            if text.contains(name)
                || (name == "docs/demo.script.json" && text.contains("task.toml"))
            {
                let path = match name.strip_prefix("~/") {
                    Some(name) => self.home.path(name),
                    None => self.home.path(WORK).join(name),
                };
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, content).unwrap();
            }
        }
    }

    /// Runs a block, line by line.
    pub(crate) fn follow(&mut self, block: &Block) -> Result<(), String> {
        let mut serving: Option<Gateway> = None;
        for line in &block.lines {
            let (line, code) = read(line);
            if line.is_empty() {
                continue;
            }
            self.played += 1;
            let told = |why: String| format!("{}:{}: `{line}`: {why}", block.page, block.line);
            let line = match &serving {
                Some(serving) => line.replace(USUAL, &serving.address),
                None => line.clone(),
            };
            if line.starts_with("export ") {
                writeln!(self.exports, "{line}").unwrap();
            } else if serves(&line) {
                if let Some(serving) = serving.take() {
                    serving.end().map_err(told)?;
                }
                serving = Some(self.serve(&line).map_err(told)?);
            } else {
                self.run(&line, code).map_err(told)?;
            }
        }
        if let Some(serving) = serving {
            serving.end().map_err(|why| format!("{}:{}: {why}", block.page, block.line))?;
        }
        Ok(())
    }

    /// Runs what ends by itself.
    fn run(&self, line: &str, code: i32) -> Result<(), String> {
        let mut command = self.bash(line);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().unwrap();
        let pid = Pid::from_child(&child);
        let (done, ended) = std::sync::mpsc::channel::<()>();
        let watch = std::thread::spawn(move || {
            if ended.recv_timeout(LONGEST) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                kill_process_group(pid, Signal::KILL).ok();
            }
        });
        let output = child.wait_with_output().unwrap();
        drop(done);
        watch.join().unwrap();
        if output.status.code() == Some(code) {
            return Ok(());
        }
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Err(format!("ended with {}, not {code}\n{out}\n{err}", output.status))
    }

    /// Starts what serves until it is told to end, and waits until it does.
    fn serve(&self, line: &str) -> Result<Gateway, String> {
        let bare = line.split('#').next().unwrap_or(line).trim_end();
        let free = bare.contains("--listen");
        // The usual port may be somebody else's here.
        let line = if free { bare.to_owned() } else { format!("{bare} --listen 127.0.0.1:0") };
        let mut command = self.bash(&format!("exec {line}"));
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().unwrap();
        let mut heard = String::new();
        // Read to its end, so that whatever it says does not fill a pipe.
        let mut lines = testkit::OutputLines::new(child.stdout.take().unwrap());
        let address = loop {
            let Some(line) = lines.next() else {
                let mut err = String::new();
                child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
                child.wait().ok();
                return Err(format!("did not serve: {heard}{err}"));
            };
            heard.push_str(&line);
            heard.push('\n');
            let said = line.split_once("http://").map(|(_, rest)| rest);
            let end = said.and_then(|said| said.find("/mcp").map(|end| said[..end].to_owned()));
            if let Some(address) = end {
                break address;
            }
        };
        let mut err = child.stderr.take().unwrap();
        let err = std::thread::spawn(move || std::io::copy(&mut err, &mut std::io::sink()).ok());
        Ok(Gateway { child, address, pipe: err })
    }
}

/// Something that serves.
struct Gateway {
    child: Child,
    address: String,
    pipe: std::thread::JoinHandle<Option<u64>>,
}

impl Gateway {
    fn end(mut self) -> Result<(), String> {
        kill_process_group(Pid::from_child(&self.child), Signal::TERM).ok();
        let status = self.child.wait().unwrap();
        self.pipe.join().unwrap();
        if status.success() { Ok(()) } else { Err(format!("the gateway ended with {status}")) }
    }
}

/// A line without what is said about it, and the exit code that it should have.
fn read(line: &str) -> (String, i32) {
    let comment = line.rsplit_once(" # ").map(|(_, comment)| comment);
    let code = comment.and_then(|comment| comment.split_once("exit code "));
    let digits = code.map(|(_, code)| code.chars().take_while(char::is_ascii_digit).collect());
    let code = digits.and_then(|digits: String| digits.parse().ok()).unwrap_or(0);
    (line.trim().to_owned(), code)
}

/// Whether it serves until it is told to end.
fn serves(line: &str) -> bool {
    let bare = line.split(" # ").next().unwrap_or(line);
    bare.starts_with("consort")
        && bare.split(' ').any(|word| word == "serve")
        && !bare.contains("--stdio")
        && !bare.contains("--help")
}

#[test]
fn every_command_of_the_book_does_what_it_says() {
    let only = std::env::var("BOOK_PAGE").ok();
    let pages: Vec<_> = pages()
        .into_iter()
        .filter(|(name, _)| only.as_ref().is_none_or(|only| name.contains(only)))
        .map(|(name, text)| blocks(&name, &text))
        .filter(|blocks| !blocks.is_empty())
        .collect();
    let begun = Instant::now();
    let play = |blocks: Vec<Block>| {
        let (mut stage, mut wrong) = (Stage::new(), Vec::new());
        for block in blocks.iter().filter(|block| block.unrun.is_none()) {
            wrong.extend(stage.play(block).err());
        }
        (stage.played, wrong)
    };
    let (mut played, mut wrong) = (0, Vec::new());
    let unrun: Vec<String> = pages.iter().flatten().filter_map(unrun).collect();
    std::thread::scope(|scope| {
        let running: Vec<_> = pages.into_iter().map(|page| scope.spawn(|| play(page))).collect();
        for page in running {
            let (lines, failures) = page.join().unwrap();
            played += lines;
            wrong.extend(failures);
        }
    });
    println!("{played} lines run in {:?}; {} blocks are not:", begun.elapsed(), unrun.len());
    println!("{}", unrun.join("\n"));
    assert!(wrong.is_empty(), "{} lines do not:\n{}", wrong.len(), wrong.join("\n"));
}

/// Where a block is that is not run, and why.
fn unrun(block: &Block) -> Option<String> {
    let reason = block.unrun.as_ref()?;
    Some(format!("{}:{}: {reason}", block.page, block.line))
}

#[test]
fn what_is_not_run_has_one_of_a_few_reasons() {
    let mut odd = Vec::new();
    for (page, text) in pages() {
        for block in blocks(&page, &text) {
            let known = block.unrun.as_ref().is_none_or(|why| REASONS.contains(&why.as_str()));
            if !known {
                odd.extend(unrun(&block));
            }
        }
    }
    assert_eq!(odd, [""; 0]);
}

#[test]
fn every_config_of_the_book_is_read_without_complaint() {
    let (mut odd, mut read) = (Vec::new(), 0);
    for (page, text) in pages() {
        // Other blocks are locks, tasks, messages: they have tests of their own.
        let is_toml = |piece: &str| piece.contains("[consort") || piece.contains("[mcp.");
        let is_json = |piece: &str| piece.contains("\"mcpServers\"");
        let toml = pieces(&text, "toml").filter(|piece| is_toml(piece));
        let json = pieces(&text, "json").filter(|piece| is_json(piece));
        let toml = toml.map(|piece| ("consort.toml", piece));
        for (file, piece) in toml.chain(json.map(|piece| ("mcp.json", piece))) {
            read += 1;
            let config = Config::parse(Path::new(file), piece).unwrap();
            let errors = config.errors.iter().map(ToString::to_string);
            let problems = config.problems.iter().map(ToString::to_string);
            odd.extend(errors.chain(problems).map(|problem| format!("{page}: {problem}\n{piece}")));
        }
    }
    assert!(odd.is_empty(), "{}", odd.join("\n\n"));
    assert!(read > 15, "{read} were found");
}

#[test]
fn every_metric_is_in_the_book_and_no_other() {
    let page = std::fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let (_, rest) = page.split_once("## Metrics").unwrap();
    let (section, _) = rest.split_once("\n## ").unwrap();
    let first = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    let told: BTreeSet<&str> = first
        .flat_map(|cell| cell.split([',', ' ', '`']))
        .filter(|word| ["consort_", "process_", "gen_ai_"].iter().any(|it| word.starts_with(it)))
        .collect();
    let home = Home::new();
    // Some are there only for who has models, or asks for them.
    let config = json!({
        "mcpServers": { "demo": { "command": env!("CARGO_BIN_EXE_consort"), "args": ["demo-server"] } },
        "consort": {
            "serve": { "metrics_by_tool": true },
            "providers": { "local": { "base_url": "http://127.0.0.1:9/v1" } },
            "models": { "local:small": { "window": 100 } },
        },
    });
    std::fs::write(home.path("mcp.json"), config.to_string()).unwrap();
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    // Nobody collects there; that spans are dropped is one of them.
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let serving = Serving::run(&mut command);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params =
        json!({ "name": "get_weather", "arguments": { "location": "Oslo" }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: get_weather";
    let (status, answer) = serving.ask(head, &body.to_string());
    assert_eq!(status, 200, "{answer}");
    serving.get("/v1/models");
    let (status, metrics) = serving.get("/metrics");
    drop(serving);
    assert_eq!(status, 200);
    let types = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    assert_eq!(told, types.collect());
}

/// What is in the blocks of a language.
fn pieces<'a>(text: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
    let opening = format!("```{language}\n");
    let ends: Vec<&str> = text.split(&opening).skip(1).collect();
    ends.into_iter().filter_map(|rest| rest.split_once("\n```").map(|(piece, _)| piece))
}
