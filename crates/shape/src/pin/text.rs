//! A lock as text: TOML for version control, one line a definition.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::str::FromStr;

use consort_core::{Json, ServerId};
use serde::Deserialize;
use toml::Spanned;

use super::canonical::legible;
use super::launch::{SSE, STREAMABLE_HTTP};
use super::{LockedServer, Pin, PinLock, PinnedItem, PinnedKind, ServerLaunch};

/// The version that is written and read.
const VERSION: i64 = 1;

const HEADER: &str = "\
# Approved definitions of this project's MCP servers: how each is started, and every tool, prompt
# and instruction with its pin. Definitions that differ from it are blocked until approved.
# Written by `consort lock`; commit it to version control and review its changes.
";

/// Error in the text of a lock, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockError {
    line: Option<usize>,
    mistake: LockMistake,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum LockMistake {
    #[error("an unresolved merge conflict")]
    Conflict,
    #[error("no `version`: not a lock file")]
    NoVersion,
    #[error("unknown version {0}: expected {VERSION}")]
    Version(String),
    #[error("{0}")]
    Syntax(String),
    #[error("{0}")]
    Name(consort_core::InvalidName),
    #[error("`{server}` must have either a `command` or a `url`")]
    Launch { server: ServerId },
    #[error("the `launch` pin of `{server}` does not match its command or URL")]
    LaunchPin { server: ServerId },
    #[error("{0}")]
    Pin(super::InvalidPin),
    #[error("the definition of `{name}` is not JSON: {error}")]
    Definition { name: String, error: consort_core::JsonError },
    #[error("the pin of `{name}` does not match its definition")]
    Mismatch { name: String },
}

impl LockError {
    /// The line it is in, from 1.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// Returns advice on how to fix it.
    pub fn hint(&self) -> &'static str {
        match self.mistake {
            LockMistake::Conflict => "resolve it with either side, then run `consort lock --check`",
            LockMistake::Version(_) => {
                "it was written by a newer version of Consort: use that version"
            }
            LockMistake::LaunchPin { .. } | LockMistake::Mismatch { .. } => {
                "it was edited by hand: restore it, or delete it and run `consort lock`"
            }
            _ => "restore it from version control, or delete it and run `consort lock`",
        }
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        fmt::Display::fmt(&self.mistake, f)
    }
}

impl std::error::Error for LockError {}

#[derive(Deserialize)]
struct LockHead {
    version: Option<Spanned<toml::Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLock {
    #[serde(rename = "version")]
    _version: i64,
    #[serde(default)]
    server: BTreeMap<Spanned<String>, Spanned<WrittenServer>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenServer {
    launch: Spanned<String>,
    command: Option<String>,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    variables: BTreeSet<String>,
    #[serde(default)]
    inherits: BTreeSet<String>,
    directory: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeSet<String>,
    #[serde(default)]
    sse: bool,
    transport: Option<String>,
    instructions: Option<WrittenItem>,
    #[serde(default)]
    prompts: BTreeMap<String, WrittenItem>,
    #[serde(default)]
    tools: BTreeMap<String, WrittenItem>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenItem {
    pin: Spanned<String>,
    definition: Spanned<String>,
}

impl FromStr for PinLock {
    type Err = LockError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let at = |at: usize, mistake: LockMistake| LockError {
            line: Some(text.get(..at).unwrap_or(text).matches('\n').count() + 1),
            mistake,
        };
        let syntax = |error: toml::de::Error| {
            let first = error.message().lines().next().unwrap_or_default();
            at(error.span().map_or(0, |span| span.start), LockMistake::Syntax(first.to_owned()))
        };
        if let Some(line) = text.lines().position(conflict) {
            return Err(LockError { line: Some(line + 1), mistake: LockMistake::Conflict });
        }
        let head: LockHead = toml::from_str(text).map_err(syntax)?;
        match head.version {
            None => return Err(LockError { line: None, mistake: LockMistake::NoVersion }),
            Some(version) if version.get_ref().as_integer() != Some(VERSION) => {
                let start = version.span().start;
                return Err(at(start, LockMistake::Version(version.into_inner().to_string())));
            }
            Some(_) => {}
        }
        let written: WrittenLock = toml::from_str(text).map_err(syntax)?;
        let mut lock = Self::default();
        for (name, server) in written.server {
            let start = name.span().start;
            let id: ServerId =
                name.into_inner().parse().map_err(|error| at(start, LockMistake::Name(error)))?;
            let locked = read_server(&id, server.into_inner(), start, &at)?;
            lock.servers.insert(id, locked);
        }
        Ok(lock)
    }
}

/// Returns true for a conflict marker of a version control system.
fn conflict(line: &str) -> bool {
    ["<<<<<<<", "|||||||", "=======", ">>>>>>>"].iter().any(|mark| {
        line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

type MistakeAt<'a> = dyn Fn(usize, LockMistake) -> LockError + 'a;

fn read_server(
    id: &ServerId,
    mut server: WrittenServer,
    start: usize,
    at: &MistakeAt<'_>,
) -> Result<LockedServer, LockError> {
    let pin = read_pin(&server.launch, at)?;
    let (instructions, prompts, tools) = (
        server.instructions.take(),
        std::mem::take(&mut server.prompts),
        std::mem::take(&mut server.tools),
    );
    let place = server.launch.span().start;
    let launch =
        launch(server).ok_or_else(|| at(start, LockMistake::Launch { server: id.clone() }))?;
    if launch.pin() != pin {
        return Err(at(place, LockMistake::LaunchPin { server: id.clone() }));
    }
    let instructions = instructions.map(|item| (PinnedKind::Instructions, String::new(), item));
    let prompts = prompts.into_iter().map(|(name, item)| (PinnedKind::Prompt, name, item));
    let tools = tools.into_iter().map(|(name, item)| (PinnedKind::Tool, name, item));
    let items = instructions.into_iter().chain(prompts).chain(tools).map(|(kind, name, item)| {
        let item = read_item(if name.is_empty() { "instructions" } else { &name }, item, at)?;
        Ok(((kind, name), item))
    });
    Ok(LockedServer { launch, items: items.collect::<Result<_, LockError>>()? })
}

fn launch(server: WrittenServer) -> Option<ServerLaunch> {
    let WrittenServer { command, arguments, variables, inherits, directory, .. } = server;
    let program = !arguments.is_empty()
        || !variables.is_empty()
        || !inherits.is_empty()
        || directory.is_some();
    let transport = match (server.sse, server.transport) {
        (true, Some(_)) => return None,
        (true, None) => Some(SSE.to_owned()),
        (false, written) => written,
    };
    match (command, server.url) {
        (Some(command), None) if server.headers.is_empty() && transport.is_none() => {
            Some(ServerLaunch::Program { command, arguments, variables, inherits, directory })
        }
        (None, Some(url)) if !program => {
            let transport = transport.unwrap_or_else(|| STREAMABLE_HTTP.to_owned());
            Some(ServerLaunch::Address { url, headers: server.headers, transport })
        }
        _ => None,
    }
}

fn read_pin(text: &Spanned<String>, at: &MistakeAt<'_>) -> Result<Pin, LockError> {
    text.get_ref().parse().map_err(|error| at(text.span().start, LockMistake::Pin(error)))
}

fn read_item(name: &str, item: WrittenItem, at: &MistakeAt<'_>) -> Result<PinnedItem, LockError> {
    let pin = read_pin(&item.pin, at)?;
    let (start, name) = (item.definition.span().start, crate::visible_text::excerpt(name, 128));
    let definition = Json::parse(item.definition.into_inner())
        .map_err(|error| at(start, LockMistake::Definition { name: name.clone(), error }))?;
    let item = PinnedItem::new(definition);
    if item.pin() == pin { Ok(item) } else { Err(at(start, LockMistake::Mismatch { name })) }
}

/// Writes the text of `consort.lock`: servers, kinds and names in order, a line a definition, so that a
/// change is one line in a diff. Invisible characters are escaped.
impl fmt::Display for PinLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}version = {VERSION}")?;
        for (id, locked) in &self.servers {
            write!(f, "\n[server.{id}]\nlaunch = \"{}\"\n", locked.launch.pin())?;
            write_launch(&locked.launch, f)?;
            if let Some(item) = locked.items.get(&(PinnedKind::Instructions, String::new())) {
                writeln!(f, "instructions = {}", LockEntry(item))?;
            }
            for (kind, table) in [(PinnedKind::Prompt, "prompts"), (PinnedKind::Tool, "tools")] {
                let mut items = locked.items.iter().filter(|((of, _), _)| *of == kind).peekable();
                if items.peek().is_some() {
                    write!(f, "\n[server.{id}.{table}]\n")?;
                }
                for ((_, name), item) in items {
                    writeln!(f, "{} = {}", key(name), LockEntry(item))?;
                }
            }
        }
        Ok(())
    }
}

fn write_launch(launch: &ServerLaunch, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let list = |f: &mut fmt::Formatter<'_>, name: &str, texts: Vec<&String>| {
        let texts: Vec<String> = texts.into_iter().map(|text| quote(text)).collect();
        if texts.is_empty() { Ok(()) } else { writeln!(f, "{name} = [{}]", texts.join(", ")) }
    };
    match launch {
        ServerLaunch::Program { command, arguments, variables, inherits, directory } => {
            writeln!(f, "command = {}", quote(command))?;
            list(f, "arguments", arguments.iter().collect())?;
            list(f, "variables", variables.iter().collect())?;
            list(f, "inherits", inherits.iter().collect())?;
            directory.iter().try_for_each(|path| writeln!(f, "directory = {}", quote(path)))
        }
        ServerLaunch::Address { url, headers, transport } => {
            writeln!(f, "url = {}", quote(url))?;
            list(f, "headers", headers.iter().collect())?;
            match transport.as_str() {
                STREAMABLE_HTTP => Ok(()),
                SSE => writeln!(f, "sse = true"),
                other => writeln!(f, "transport = {}", quote(other)),
            }
        }
    }
}

/// A definition on one line.
struct LockEntry<'a>(&'a PinnedItem);

impl fmt::Display for LockEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut json = legible(self.0.definition());
        // JSON is full of double quotes: between single ones, nothing of it needs an escape of TOML's.
        let quotes = if json.contains('\'') { "'''" } else { "'" };
        if json.contains("'''") {
            json = json.replace('\'', "\\u0027");
        }
        write!(f, "{{ pin = \"{}\", definition = {quotes}{json}{quotes} }}", self.0.pin())
    }
}

/// Writes a TOML key.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quote(name) }
}

/// Writes a TOML string, with invisible characters escaped.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if crate::visible_text::hidden_character(c).is_some() => {
                write!(quoted, "\\U{:08x}", u32::from(c)).expect("a string takes everything");
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use proptest::prelude::*;

    fn lock() -> PinLock {
        let item = |kind, name: &str, json: &'static str| {
            ((kind, name.to_owned()), PinnedItem::new(Json::parse(json).unwrap()))
        };
        let files = LockedServer {
            launch: ServerLaunch::Program {
                command: "npx".to_owned(),
                arguments: vec![
                    "-y".to_owned(),
                    "files@1.2.3".to_owned(),
                    "${HOME}/a\u{202e}\"b".to_owned(),
                ],
                variables: ["TOKEN".to_owned()].into(),
                inherits: BTreeSet::new(),
                directory: None,
            },
            items: [
                item(
                    PinnedKind::Tool,
                    "read",
                    r#"{"name": "read", "description": "It's a \u202e test"}"#,
                ),
                item(PinnedKind::Tool, "a b", r#"{"name": "a b", "x": 1.50}"#),
                item(PinnedKind::Prompt, "p", r#"{"name": "p", "description": "'''py'''"}"#),
                item(PinnedKind::Instructions, "", r#""Use it.\nWell.""#),
            ]
            .into(),
        };
        let web = LockedServer {
            launch: ServerLaunch::Address {
                url: "https://web.example/mcp".to_owned(),
                headers: ["Authorization".to_owned()].into(),
                transport: "sse".to_owned(),
            },
            items: BTreeMap::new(),
        };
        PinLock {
            servers: [("web".parse().unwrap(), web), ("files".parse().unwrap(), files)].into(),
        }
    }

    /// The text with pins shortened.
    fn short(text: &str) -> String {
        let mut parts = text.split("sha256:");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| format!("{text}sha256:{}…{}", &part[..4], &part[64..]))
    }

    #[test]
    fn a_lock_is_a_text_that_people_can_read() {
        assert_snapshot!(short(&lock().to_string()), @r#"
        # Approved definitions of this project's MCP servers: how each is started, and every tool, prompt
        # and instruction with its pin. Definitions that differ from it are blocked until approved.
        # Written by `consort lock`; commit it to version control and review its changes.
        version = 1

        [server.files]
        launch = "sha256:1263…"
        command = "npx"
        arguments = ["-y", "files@1.2.3", "${HOME}/a\U0000202e\"b"]
        variables = ["TOKEN"]
        instructions = { pin = "sha256:1a02…", definition = '"Use it.\nWell."' }

        [server.files.prompts]
        p = { pin = "sha256:470e…", definition = '''{"description":"\u0027\u0027\u0027py\u0027\u0027\u0027","name":"p"}''' }

        [server.files.tools]
        "a b" = { pin = "sha256:a205…", definition = '{"name":"a b","x":1.5}' }
        read = { pin = "sha256:72a0…", definition = '''{"description":"It's a \u202e test","name":"read"}''' }

        [server.web]
        launch = "sha256:5ef3…"
        url = "https://web.example/mcp"
        headers = ["Authorization"]
        sse = true
        "#);
    }

    #[test]
    fn a_lock_is_read_back_from_its_text() {
        assert_eq!(lock().to_string().parse(), Ok(lock()));
        assert_eq!(PinLock::default().to_string().parse(), Ok(PinLock::default()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_what_to_do() {
        let text = lock().to_string();
        let zeros = format!("sha256:{}", "0".repeat(64));
        let pin = Pin::of(&Json::parse(r#"{"name": "a b", "x": 1.5}"#).unwrap()).to_string();
        let launch = lock().servers[&"web".parse().unwrap()].launch.pin().to_string();
        let wrong = [
            text.replace("version = 1", "version = 2"),
            text.replace("version = 1\n", ""),
            text.replace("version = 1", "version = 1\nmore = 2"),
            text.replace("[server.web]", "<<<<<<< HEAD\n[server.web]"),
            text.replace("[server.web]", "[server.web"),
            text.replace("[server.web]", "[server.\"w b\"]"),
            text.replace("https://web.example", "https://evil.example"),
            text.replace("command = ", "url = \"x\"\ncommand = "),
            text.replace(&launch, "sha256:12"),
            text.replace(&pin, &zeros),
            text.replace("\"x\":1.5", "\"x\":1.6"),
            text.replace("\"x\":1.5", "\"x\":1."),
            text.replace("command = ", "commands = "),
        ];
        let told = |text: &String| {
            let error = text.parse::<PinLock>().unwrap_err();
            format!("{error}\n  {}", error.hint())
        };
        assert_snapshot!(wrong.iter().map(told).collect::<Vec<_>>().join("\n"), @r##"
        line 4: unknown version 2: expected 1
          it was written by a newer version of Consort: use that version
        no `version`: not a lock file
          restore it from version control, or delete it and run `consort lock`
        line 5: unknown field `more`, expected `version` or `server`
          restore it from version control, or delete it and run `consort lock`
        line 20: an unresolved merge conflict
          resolve it with either side, then run `consort lock --check`
        line 20: unclosed table, expected `]`
          restore it from version control, or delete it and run `consort lock`
        line 20: invalid name `w b`: expected 1 to 64 letters, digits, `_` or `-`
          restore it from version control, or delete it and run `consort lock`
        line 21: the `launch` pin of `web` does not match its command or URL
          it was edited by hand: restore it, or delete it and run `consort lock`
        line 6: `files` must have either a `command` or a `url`
          restore it from version control, or delete it and run `consort lock`
        line 21: not a pin: expected `sha256:` and 64 lowercase hexadecimal digits
          restore it from version control, or delete it and run `consort lock`
        line 17: the pin of `a b` does not match its definition
          it was edited by hand: restore it, or delete it and run `consort lock`
        line 17: the pin of `a b` does not match its definition
          it was edited by hand: restore it, or delete it and run `consort lock`
        line 17: the definition of `a b` is not JSON: invalid number at byte 20
          restore it from version control, or delete it and run `consort lock`
        line 8: unknown field `commands`, expected one of `launch`, `command`, `arguments`, `variables`, `inherits`, `directory`, `url`, `headers`, `sse`, `transport`, `instructions`, `prompts`, `tools`
          restore it from version control, or delete it and run `consort lock`
        "##);
    }

    fn locks() -> impl Strategy<Value = PinLock> {
        let text = "[a-c'\"\\\\{}\n\t\u{200b}\u{e0041}é😀]{0,6}";
        let item = prop::collection::btree_map(text, text, 0..4)
            .prop_map(|map| PinnedItem::new(Json::from_value(&map).unwrap()));
        let kind = prop::sample::select(vec![PinnedKind::Tool, PinnedKind::Prompt]);
        let items = prop::collection::btree_map((kind, text), item, 0..4);
        let program =
            (text, prop::collection::vec(text, 0..3), prop::collection::btree_set(text, 0..3))
                .prop_map(|(command, arguments, variables)| ServerLaunch::Program {
                    command,
                    arguments,
                    inherits: variables.clone(),
                    variables,
                    directory: None,
                });
        let transport = prop_oneof![Just("http".to_owned()), Just("sse".to_owned()), text];
        let address = (text, prop::collection::btree_set(text, 0..3), transport).prop_map(
            |(url, headers, transport)| ServerLaunch::Address { url, headers, transport },
        );
        let locked = (prop_oneof![program, address], items, proptest::option::of(text)).prop_map(
            |(launch, mut items, instructions)| {
                let item = instructions.map(|text| PinnedItem::new(Json::string(&text)));
                items.extend(item.map(|item| ((PinnedKind::Instructions, String::new()), item)));
                LockedServer { launch, items }
            },
        );
        prop::collection::btree_map("[a-zA-Z0-9_-]{1,8}", locked, 0..4).prop_map(|servers| {
            PinLock {
                servers: servers
                    .into_iter()
                    .map(|(id, locked)| (id.parse().unwrap(), locked))
                    .collect(),
            }
        })
    }

    proptest! {
        #[test]
        fn every_lock_is_read_back_and_shows_all_it_says(lock in locks()) {
            let text = lock.to_string();
            prop_assert_eq!(text.parse(), Ok(lock));
            prop_assert!(text.chars().all(|c| crate::visible_text::hidden_character(c).is_none()));
        }
    }
}
