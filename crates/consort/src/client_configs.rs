//! Servers in the configs of other MCP clients on this machine.

use std::path::{Path, PathBuf};

use consort_config::{
    Config, FolderLayout, ImportSource, KnownClient, ServerConfig, UserFolders, import_sources,
};
use consort_core::escape::escape_line;

use crate::command_hub::read_file;
use crate::exit::CommandError;
use crate::output::note;

/// The config of a client that exists.
pub(crate) struct ClientConfig {
    pub(crate) client: &'static KnownClient,
    pub(crate) file: PathBuf,
    /// The config, or the reason why it cannot be read.
    config: Result<Config, CommandError>,
}

impl ClientConfig {
    /// Its servers, without entries that start Consort itself.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &ServerConfig> {
        let servers = self.config.iter().flat_map(|config| &config.servers);
        servers.filter(|server| !is_own_entry(server))
    }

    /// Errors and warnings of the file, as lines for the user.
    pub(crate) fn problems(&self) -> Vec<String> {
        match &self.config {
            Ok(config) => {
                let errors = config.errors.iter().map(ToString::to_string);
                let warnings = config.problems.iter().map(ToString::to_string);
                errors.chain(warnings).map(|problem| escape_line(&problem)).collect()
            }
            Err(failure) => vec![escape_line(&failure.message)],
        }
    }
}

/// The user's files of all clients that Consort knows, in which servers are searched. A file in the working folder may
/// be anybody's, and is not among them.
pub(crate) fn client_files() -> Vec<ImportSource> {
    let sources = import_sources(&UserFolders::of_process(), FolderLayout::of_system());
    sources.into_iter().filter(|source| !source.client.is_in_working_folder()).collect()
}

/// Reads the configs of clients that exist.
pub(crate) fn client_configs() -> Vec<ClientConfig> {
    let existing = client_files().into_iter().filter(|source| source.exists);
    let read = existing.map(|ImportSource { client, file, .. }| {
        let config = read_file(&file);
        ClientConfig { client, file, config }
    });
    read.collect()
}

/// The clients that have servers, each once.
pub(crate) fn clients_with_servers() -> Vec<&'static KnownClient> {
    let mut clients = Vec::new();
    for config in client_configs() {
        if config.servers().next().is_some() && !clients.contains(&config.client) {
            clients.push(config.client);
        }
    }
    clients
}

/// Notes that there is no config while other clients have servers.
pub(crate) fn note_importable() {
    let clients: Vec<String> = clients_with_servers().iter().map(ToString::to_string).collect();
    if !clients.is_empty() {
        let clients = clients.join(", ");
        note(format!("note: no config found, but there are servers of other clients: {clients}"));
        note("   hint: import them with `consort init`");
    }
}

/// Returns true for the entry with which a client uses Consort itself: importing it would be a loop.
pub(crate) fn is_own_entry(server: &ServerConfig) -> bool {
    let starts_consort = server.transport.program().is_some_and(|program| {
        let command = program.command.to_string();
        let name = Path::new(&command).file_stem().is_some_and(|name| name == "consort");
        name && program.arguments.iter().any(|word| word.to_string() == "serve")
    });
    starts_consort || server.name.as_str() == consort_config::ENTRY_NAME
}
