//! Reading of servers from a tree: the part common to all formats.

pub(crate) mod aether;
mod agents;
pub(crate) mod aidk;
mod auth;
pub(crate) mod codex;
pub(crate) mod consort;
pub(crate) mod elysia;
mod inputs;
pub(crate) mod mcp_servers;
pub(crate) mod options;
pub(crate) mod vscode;
pub(crate) mod zed;

use std::collections::BTreeMap;
use std::path::PathBuf;

use consort_core::ServerId;

use crate::error::Mistake;
use crate::fields::{Fields, UnknownKeys};
use crate::findings::Findings;
use crate::input::Input;
use crate::names::{closest, shortened};
use crate::place::Spot;
use crate::server::{Origin, ServerConfig};
use crate::sketch::Sketch;
use crate::text::Reference;
use crate::tree::{Node, Value};

/// Collects the servers of one scope, in which every name is unique.
pub(crate) struct Reader<'a> {
    findings: &'a Findings<'a>,
    inputs: Vec<Input>,
    project: Option<PathBuf>,
    names: BTreeMap<ServerId, Spot>,
    servers: Vec<ServerConfig>,
    unknown: UnknownKeys,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(findings: &'a Findings<'a>) -> Self {
        let (names, servers) = (BTreeMap::new(), Vec::new());
        let unknown = UnknownKeys::Warn;
        Self { findings, inputs: Vec::new(), project: None, names, servers, unknown }
    }

    /// Restricts the reader to Consort's own keys.
    pub(crate) fn own(mut self) -> Self {
        self.unknown = UnknownKeys::Refuse;
        self
    }

    /// Adds inputs for `${input:…}`.
    pub(crate) fn inputs(&mut self, inputs: Vec<Input>) {
        self.inputs.extend(inputs);
    }

    /// Sets the project of these servers.
    pub(crate) fn project(mut self, project: &str) -> Self {
        self.project = Some(project.into());
        self
    }

    /// Reads a table of servers by name.
    pub(crate) fn map(&mut self, key: &str, node: &'a Node, read: fn(&Fields<'a>) -> Sketch) {
        let Value::Table(table) = &node.value else {
            return self.findings.blocking(|| self.wrong(key, node, "a table of servers"));
        };
        for entry in &table.0 {
            self.add(&entry.key, entry.at, &entry.node, read);
        }
    }

    /// Reads a list of servers that contain their names.
    pub(crate) fn list(
        &mut self,
        key: &str,
        node: &'a Node,
        name: &'static str,
        read: fn(&Fields<'a>) -> Sketch,
    ) {
        let Value::List(list) = &node.value else {
            return self.findings.blocking(|| self.wrong(key, node, "a list of servers"));
        };
        for (n, node) in list.iter().enumerate() {
            let Some(table) = node.table() else {
                self.wrong(&format!("{key}[{n}]"), node, "a table");
                continue;
            };
            match table.get(name).map(|node| (&node.value, node.at)) {
                Some((Value::Text(text), at)) => self.add(text, at, node, read),
                // Reports that it is missing or not a string, and that alone.
                _ => {
                    let fields = Fields::new(self.findings, None, node.at, table);
                    if fields.get(name).is_none() {
                        let hint = "every server in a list says its name";
                        fields.error(node.at, Mistake::Missing { key: name, hint });
                    }
                    fields.string(name);
                }
            }
        }
    }

    /// Reads one server. It is added only if it has no errors.
    pub(crate) fn add(
        &mut self,
        name: &str,
        at: usize,
        node: &'a Node,
        read: fn(&Fields<'a>) -> Sketch,
    ) {
        let id = self.name(name, at);
        let (before, spot) = (self.findings.mistakes(), self.findings.spot(at));
        if let Some(first) = self.names.get(&id).copied() {
            // Of no server: the first of that name can be used.
            return self.findings.error(at, None, Mistake::NameTwice { name: id, first });
        }
        self.names.insert(id.clone(), spot);
        let Value::Table(table) = &node.value else {
            let (key, found) = (shortened(name), node.value.kind());
            let mistake = Mistake::WrongType { key, expected: "a table", found };
            return self.findings.error(node.at, Some(&id), mistake);
        };
        let fields = Fields::new(self.findings, Some(id.clone()), node.at, table);
        let fields = fields.unknown_keys(self.unknown);
        let sketch = read(&fields);
        fields.finish();
        if sketch.left_out {
            return;
        }
        let (file, project) = (self.findings.file().to_owned(), self.project.clone());
        let origin = Origin { file, spot, project, config: None };
        let Some(mut server) = sketch.into_server(id, origin, &fields) else { return };
        self.link(&mut server, &fields);
        if self.findings.mistakes() == before {
            self.servers.push(server);
        }
    }

    pub(crate) fn into_servers(self) -> Vec<ServerConfig> {
        self.servers
    }

    fn name(&self, name: &str, at: usize) -> ServerId {
        name.parse().unwrap_or_else(|error| {
            let id = ServerId::derive(name);
            let hint = Some(format!("it is called `{id}` here"));
            self.findings.warn(at, Some(&id), &format!("{error}"), hint);
            id
        })
    }

    /// Attaches the inputs that a server refers to.
    fn link(&self, server: &mut ServerConfig, fields: &Fields<'_>) {
        let own = std::mem::take(&mut server.inputs);
        let mut linked: Vec<Input> = Vec::new();
        for (_, text) in server.texts() {
            for reference in text.references() {
                let Reference::Input(id) = reference else { continue };
                if linked.iter().any(|input| input.id == *id) {
                    continue;
                }
                let known = own.iter().chain(&self.inputs);
                if let Some(input) = known.clone().find(|input| input.id == *id) {
                    linked.push(input.clone());
                    continue;
                }
                let near = closest(id, known.map(|input| input.id.as_str())).map(str::to_owned);
                let mistake = Mistake::UnknownInput { id: shortened(id), near };
                fields.error_in(text, mistake);
            }
        }
        server.inputs = linked;
    }

    fn wrong(&self, key: &str, node: &Node, expected: &'static str) {
        let mistake =
            Mistake::WrongType { key: key.to_owned(), expected, found: node.value.kind() };
        self.findings.error(node.at, None, mistake);
    }
}
