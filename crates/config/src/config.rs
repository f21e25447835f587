//! A config: its servers and options, errors and warnings.

pub mod changes;
pub(crate) mod include;
mod merge;
mod name_check;
pub(crate) mod search;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use consort_core::{Problem, ServerId};
use serde::Serialize;

use crate::config::include::ConfigFiles;
use crate::digest::ConfigDigest;
use crate::error::{ConfigError, ConfigErrorKind, UnusableFile};
use crate::options::ConsortOptions;
use crate::read::format::{self, ConfigFormat};
use crate::read::{
    self, aether, aidk, amp, codex, consort, continue_list, crush, elysia, goose, mcp_servers,
    opencode, vscode, zed,
};
use crate::resolve::SystemValues;
use crate::server::ServerConfig;
use crate::source_location::SourceLocation;
use crate::syntax;
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::tree::{SyntaxNode, SyntaxTable};

/// A config file with servers.
#[derive(Debug, Serialize)]
pub struct Config {
    /// Path of the file.
    pub file: PathBuf,
    /// The files that it includes, in the order in which they are merged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fragments: Vec<PathBuf>,
    /// The included files that are empty.
    #[serde(skip)]
    pub empty_fragments: Vec<PathBuf>,
    /// The digest of its bytes and those of the files that it includes.
    #[serde(skip)]
    pub digest: ConfigDigest,
    /// Format of the file.
    pub format: ConfigFormat,
    /// The usable servers.
    pub servers: Vec<ServerConfig>,
    /// The usable servers of single projects, which Claude Code stores in one file.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub projects: BTreeMap<PathBuf, Vec<ServerConfig>>,
    /// Options for all servers.
    pub options: ConsortOptions,
    /// Errors, each with the reason why something cannot be used.
    #[serde(skip)]
    pub errors: Vec<ConfigError>,
    /// Warnings.
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

impl Config {
    /// Reads a file, and the files that it includes.
    pub fn read(file: &Path) -> Result<Self, UnusableFile> {
        ConfigFiles::read(file)?.parse()
    }

    /// Reads the text of a file; `-` is the standard input.
    pub fn text(file: &Path) -> Result<String, UnusableFile> {
        include::read_text(file)
    }

    /// Parses a text as if it were the content of a file. The name of the file is used for messages, for relative
    /// paths, and to detect the format if the text alone is ambiguous. Included files are not read.
    pub fn parse(file: &Path, text: &str) -> Result<Self, UnusableFile> {
        let (file, text) = (file.to_owned(), text.to_owned());
        let files = ConfigFiles { file, text, fragments: Vec::new(), includes: Vec::new() };
        Self::parse_files(&files)
    }

    /// Returns all errors and oddities that can be found without starting anything.
    pub fn all_problems(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = self.errors.iter().map(Problem::from).collect();
        problems.extend(self.problems.iter().cloned());
        let resolve = SystemValues::silent();
        problems.extend(self.servers.iter().flat_map(|server| server.check(&resolve)));
        problems
    }

    /// Returns the places at which a server is described, also if it cannot be used.
    pub fn places_of(&self, name: &ServerId) -> Vec<SourceLocation> {
        let usable = self.servers.iter().filter(|server| server.name == *name);
        let usable = usable.map(|server| server.place(server.origin.spot));
        let broken = self.errors.iter().filter(|error| error.server() == Some(name));
        usable.chain(broken.map(|error| error.place().clone())).collect()
    }

    /// Adds the servers of the project that a folder belongs to. They replace servers of the same name, as in Claude
    /// Code.
    pub fn add_project_servers(&mut self, folder: &Path) {
        let Some(project) = folder.ancestors().find(|folder| self.projects.contains_key(*folder))
        else {
            return;
        };
        let own = self.projects.remove(project).unwrap_or_default();
        self.servers.retain(|server| !own.iter().any(|own| own.name == server.name));
        self.servers.extend(own);
    }

    /// Parses a config and the files that it includes as one.
    fn parse_files(files: &ConfigFiles) -> Result<Self, UnusableFile> {
        let fragments = files.fragments.iter().map(|one| (one.file.as_path(), one.text.as_str()));
        let texts = std::iter::once((files.file.as_path(), files.text.as_str())).chain(fragments);
        let texts: Vec<(&Path, &str)> =
            texts.map(|(file, text)| (file, include::strip_byte_order_mark(text))).collect();
        let parts = texts.iter().map(|(file, text)| ParsedConfigFile::read(file, text));
        let mut parts = parts.collect::<Result<Vec<ParsedConfigFile>, UnusableFile>>()?;
        let (format, projects) = (parts[0].format, std::mem::take(&mut parts[0].projects));
        let empty = parts.iter().zip(&texts).skip(1).filter(|(part, _)| part.is_empty());
        let empty_fragments = empty.map(|(_, (file, _))| (*file).to_owned()).collect();
        let twice = duplicate_servers(&parts);
        let (mut servers, mut errors, mut problems) = (Vec::new(), Vec::new(), Vec::new());
        let findings = ProblemCollector::of_files(texts.iter().copied());
        let begins = findings.file_offsets();
        let mut roots = Vec::new();
        for (n, mut part) in parts.into_iter().enumerate() {
            for server in part.servers.iter_mut().filter(|_| n > 0) {
                server.origin.config = Some(files.file.clone());
            }
            servers.extend(part.servers);
            errors.extend(part.errors);
            problems.extend(part.problems);
            part.root.shift(begins[n]);
            roots.push(part.root);
        }
        servers.retain(|server| !twice.iter().any(|error| error.server() == Some(&server.name)));
        let table = findings.collect_blocking(|| merge::merge_roots(&findings, roots));
        let options = read::options::read(&findings, &table);
        let (wrong, odd) = findings.into_parts();
        errors.extend(twice.into_iter().chain(wrong));
        problems.extend(odd);
        if files.fragments.is_empty() {
            errors.sort_by_key(|error| error.place().spot);
        }
        Ok(Self {
            file: files.file.clone(),
            fragments: files.fragments.iter().map(|fragment| fragment.file.clone()).collect(),
            empty_fragments,
            digest: files.digest(),
            format,
            servers,
            projects,
            options,
            errors,
            problems,
        })
    }
}

impl ConfigFiles {
    /// Parses the config that they form together. Of the servers of single projects, those of the current folder are
    /// added to the others.
    pub fn parse(&self) -> Result<Config, UnusableFile> {
        let mut config = Config::parse_files(self)?;
        if !config.projects.is_empty()
            && let Ok(folder) = std::env::current_dir()
        {
            config.add_project_servers(&folder);
        }
        Ok(config)
    }
}

/// One file of a config, with its servers parsed.
struct ParsedConfigFile {
    format: ConfigFormat,
    servers: Vec<ServerConfig>,
    projects: BTreeMap<PathBuf, Vec<ServerConfig>>,
    errors: Vec<ConfigError>,
    problems: Vec<Problem>,
    root: SyntaxNode,
}

impl ParsedConfigFile {
    fn read(file: &Path, text: &str) -> Result<Self, UnusableFile> {
        let findings = ProblemCollector::new(file, text);
        let root = syntax::parse(file, text, &findings)?;
        let signs = ConfigFormat::detect_all(file, &root)
            .map_err(|mistake| UnusableFile::new(findings.unusable(root.at, mistake), []))?;
        let (format, key) = signs[0];
        findings.set_reference_syntax(format.reference_syntax(file));
        for (_, other) in &signs[1..] {
            let message = format!("`{other}` is ignored, because `{key}` is set too");
            findings.warn(root.at, None, &message, None);
        }
        let nothing = SyntaxTable::default();
        let table = root.table().unwrap_or(&nothing);
        let servers = match format {
            ConfigFormat::McpServers => mcp_servers::read(&findings, table),
            ConfigFormat::VsCode => {
                let settings = format::vscode_settings(table).filter(|_| key == consort::KEY);
                vscode::read(&findings, settings.unwrap_or(table))
            }
            ConfigFormat::Zed => zed::read(&findings, table),
            ConfigFormat::Codex => codex::read(&findings, table),
            ConfigFormat::Consort => consort::read(&findings, table),
            ConfigFormat::Goose => goose::read(&findings, table),
            ConfigFormat::Continue => continue_list::read(&findings, table),
            ConfigFormat::OpenCode => opencode::read(&findings, table),
            ConfigFormat::Amp => amp::read(&findings, table),
            ConfigFormat::Crush => crush::read(&findings, table),
            ConfigFormat::Aether => aether::read(&findings, table),
            ConfigFormat::Aidk => aidk::read(&findings, &root),
            ConfigFormat::Elysia => elysia::read(&findings, table),
        };
        let projects = match format {
            ConfigFormat::McpServers => mcp_servers::projects(&findings, table, &servers),
            _ => BTreeMap::new(),
        };
        let (errors, problems) = findings.into_parts();
        Ok(Self { format, servers, projects, errors, problems, root })
    }

    /// Returns true if it has no servers and no options.
    fn is_empty(&self) -> bool {
        let is_set =
            |table: &SyntaxTable| table.get(read::options::KEY).is_some_and(|it| !it.is_empty());
        self.servers.is_empty() && self.errors.is_empty() && !self.root.table().is_some_and(is_set)
    }

    /// The servers that are described in it, also unusable ones, with their places.
    fn server_locations(&self) -> BTreeMap<ServerId, SourceLocation> {
        let broken =
            self.errors.iter().filter_map(|it| Some((it.server()?.clone(), it.place().clone())));
        let usable = self.servers.iter().map(|it| (it.name.clone(), it.place(it.origin.spot)));
        broken.chain(usable).collect()
    }
}

/// The errors of servers that are described in more than one file.
fn duplicate_servers(parts: &[ParsedConfigFile]) -> Vec<ConfigError> {
    let mut known: BTreeMap<ServerId, SourceLocation> = BTreeMap::new();
    let mut errors = Vec::new();
    for part in parts {
        for (name, place) in part.server_locations() {
            match known.get(&name).cloned() {
                None => drop(known.insert(name, place)),
                Some(first) => {
                    let mistake = ConfigErrorKind::ServerInTwoFiles { name: name.clone(), first };
                    errors.push(ConfigError::new(place, Some(&name), mistake));
                }
            }
        }
    }
    errors
}
