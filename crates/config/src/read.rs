//! Reading of servers from a tree: the part common to all formats.

pub(crate) mod aether;
mod agents;
pub(crate) mod aidk;
pub(crate) mod amp;
mod auth;
pub(crate) mod codex;
pub(crate) mod consort;
pub(crate) mod continue_list;
pub(crate) mod crush;
pub(crate) mod elysia;
pub(crate) mod format;
pub(crate) mod goose;
mod identity;
mod inputs;
pub(crate) mod mcp_servers;
pub(crate) mod opencode;
pub(crate) mod options;
mod tool_filters;
pub(crate) mod vscode;
pub(crate) mod zed;

use std::collections::BTreeMap;
use std::path::PathBuf;

use consort_core::ServerId;

use crate::error::ConfigErrorKind;
use crate::server::ServerConfig;
use crate::server::origin::ServerOrigin;
use crate::server::partial::PartialServer;
use crate::source_location::LineColumn;
use crate::syntax::names::{closest_name, shorten_name};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::{TableReader, UnknownKeyPolicy};
use crate::syntax::tree::{SyntaxNode, SyntaxTable, SyntaxValue};
use crate::template::ValueReference;
use crate::template::input::InputVariable;

/// Reads the table of servers under a key of the root; none if it is absent.
pub(crate) fn read_map<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
    key: &str,
    read: fn(&TableReader<'a>) -> PartialServer,
) -> Vec<ServerConfig> {
    let mut reader = ServerReader::new(findings);
    if let Some(node) = root.get(key) {
        reader.map(key, node, read);
    }
    reader.into_servers()
}

/// Collects the servers of one scope, in which every name is unique.
pub(crate) struct ServerReader<'a> {
    findings: &'a ProblemCollector<'a>,
    inputs: Vec<InputVariable>,
    project: Option<PathBuf>,
    names: BTreeMap<ServerId, LineColumn>,
    servers: Vec<ServerConfig>,
    unknown: UnknownKeyPolicy,
}

impl<'a> ServerReader<'a> {
    pub(crate) fn new(findings: &'a ProblemCollector<'a>) -> Self {
        let (names, servers) = (BTreeMap::new(), Vec::new());
        let unknown = UnknownKeyPolicy::Warn;
        Self { findings, inputs: Vec::new(), project: None, names, servers, unknown }
    }

    /// Restricts the reader to Consort's own keys.
    pub(crate) fn refuse_unknown_keys(mut self) -> Self {
        self.unknown = UnknownKeyPolicy::Refuse;
        self
    }

    /// Adds inputs for `${input:…}`.
    pub(crate) fn inputs(&mut self, inputs: Vec<InputVariable>) {
        self.inputs.extend(inputs);
    }

    /// Sets the project of these servers.
    pub(crate) fn project(mut self, project: &str) -> Self {
        self.project = Some(project.into());
        self
    }

    /// Reads a table of servers by name.
    pub(crate) fn map(
        &mut self,
        key: &str,
        node: &'a SyntaxNode,
        read: fn(&TableReader<'a>) -> PartialServer,
    ) {
        let SyntaxValue::Table(table) = &node.value else {
            return self
                .findings
                .collect_blocking(|| self.report_wrong_type(key, node, "a table of servers"));
        };
        for entry in &table.0 {
            self.add(&entry.key, entry.at, &entry.node, read);
        }
    }

    /// Reads a list of servers that contain their names.
    pub(crate) fn list(
        &mut self,
        key: &str,
        node: &'a SyntaxNode,
        name: &'static str,
        read: fn(&TableReader<'a>) -> PartialServer,
    ) {
        let SyntaxValue::List(list) = &node.value else {
            return self
                .findings
                .collect_blocking(|| self.report_wrong_type(key, node, "a list of servers"));
        };
        for (n, node) in list.iter().enumerate() {
            self.add_named(&format!("{key}[{n}]"), node, name, read);
        }
    }

    /// Reads a server that contains its name.
    pub(crate) fn add_named(
        &mut self,
        path: &str,
        node: &'a SyntaxNode,
        name: &'static str,
        read: fn(&TableReader<'a>) -> PartialServer,
    ) {
        let Some(table) = node.table() else {
            return self.report_wrong_type(path, node, "a table");
        };
        match table.get(name).map(|node| (&node.value, node.at)) {
            Some((SyntaxValue::Text(text), at)) => self.add(text, at, node, read),
            // Reports that it is missing or not a string, and that alone.
            _ => {
                let fields = TableReader::new(self.findings, None, node.at, table);
                if fields.get(name).is_none() {
                    let hint = "every server in a list requires a `name`";
                    fields.error(node.at, ConfigErrorKind::Missing { key: name, hint });
                }
                fields.string(name);
            }
        }
    }

    /// Reads one server. It is added only if it has no errors.
    pub(crate) fn add(
        &mut self,
        name: &str,
        at: usize,
        node: &'a SyntaxNode,
        read: fn(&TableReader<'a>) -> PartialServer,
    ) {
        let id = self.name(name, at);
        let (before, spot) = (self.findings.error_count(), self.findings.spot(at));
        if let Some(first) = self.names.get(&id).copied() {
            // Of no server: the first of that name can be used.
            return self.findings.error(at, None, ConfigErrorKind::NameTwice { name: id, first });
        }
        self.names.insert(id.clone(), spot);
        let SyntaxValue::Table(table) = &node.value else {
            let (key, found) = (shorten_name(name), node.value.kind());
            let mistake = ConfigErrorKind::WrongType { key, expected: "a table", found };
            return self.findings.error(node.at, Some(&id), mistake);
        };
        let fields = TableReader::new(self.findings, Some(id.clone()), node.at, table);
        let fields = fields.unknown_keys(self.unknown);
        let partial = read(&fields);
        fields.finish();
        if partial.left_out {
            return;
        }
        let (file, project) = (self.findings.file().to_owned(), self.project.clone());
        let origin = ServerOrigin { file, spot, project, config: None };
        let Some(mut server) = partial.into_server(id, origin, &fields) else { return };
        self.link(&mut server, &fields);
        if self.findings.error_count() == before {
            self.servers.push(server);
        }
    }

    pub(crate) fn into_servers(self) -> Vec<ServerConfig> {
        self.servers
    }

    fn name(&self, name: &str, at: usize) -> ServerId {
        name.parse().unwrap_or_else(|error| {
            let id = ServerId::derive(name);
            let hint = Some(format!("renamed to `{id}`"));
            self.findings.warn(at, Some(&id), &format!("{error}"), hint);
            id
        })
    }

    /// Attaches the inputs that a server refers to.
    fn link(&self, server: &mut ServerConfig, fields: &TableReader<'_>) {
        let own = std::mem::take(&mut server.inputs);
        let mut linked: Vec<InputVariable> = Vec::new();
        for (_, text) in server.texts() {
            for reference in text.references() {
                let ValueReference::Input(id) = reference else { continue };
                if linked.iter().any(|input| input.id == *id) {
                    continue;
                }
                let known = own.iter().chain(&self.inputs);
                if let Some(input) = known.clone().find(|input| input.id == *id) {
                    linked.push(input.clone());
                    continue;
                }
                let near =
                    closest_name(id, known.map(|input| input.id.as_str())).map(str::to_owned);
                let mistake = ConfigErrorKind::UnknownInput { id: shorten_name(id), near };
                fields.error_in(text, mistake);
            }
        }
        server.inputs = linked;
    }

    fn report_wrong_type(&self, key: &str, node: &SyntaxNode, expected: &'static str) {
        let mistake =
            ConfigErrorKind::WrongType { key: key.to_owned(), expected, found: node.value.kind() };
        self.findings.error(node.at, None, mistake);
    }
}
