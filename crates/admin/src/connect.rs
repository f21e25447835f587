//! Configuration snippets for clients of the gateway.

use consort_core::Rights;
use std::path::PathBuf;

use consort_config::{ExportMode, FolderLayout, KnownClient, UserFolders, snippet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::active_config::ActiveConfig;
use crate::blocking::run_blocking;
use crate::profile_costs::endpoint_path;
use crate::route::{AdminError, ApiRoute, JsonResponse, RequestContext, get};
use crate::state::AdminState;

/// Placeholder of the page's own origin in a snippet.
const ORIGIN: &str = "ORIGIN";

/// Clients with a tab of their own, besides Claude Code.
const SHOWN_CLIENTS: [&str; 4] = ["codex", "claude-desktop", "cursor", "vscode"];

/// Placeholder of the token in a snippet.
const TOKEN: &str = "TOKEN";

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/connect", "Returns configuration snippets for clients of the gateway.", connect)
            .for_rights(Rights::Admin),
    ]
}

/// Endpoint to connect to.
#[derive(Deserialize, JsonSchema)]
struct ConnectQuery {
    /// Name of the profile; all tools if absent.
    #[serde(default)]
    profile: Option<String>,
}

/// Client configuration for an endpoint of the gateway.
#[derive(Serialize, JsonSchema)]
struct ConnectGuide {
    /// Path of the MCP endpoint.
    path: String,
    /// Path of the token file, if a token is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    token_file: Option<String>,
    clients: Vec<ClientSnippet>,
}

/// Configuration of one client.
#[derive(Serialize, JsonSchema)]
struct ClientSnippet {
    id: &'static str,
    name: &'static str,
    /// File to write it to; if absent, it is a command to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Text with `ORIGIN` for the origin of the gateway and `TOKEN` for the token.
    snippet: String,
}

async fn connect(
    state: AdminState,
    context: RequestContext,
    query: ConnectQuery,
) -> Result<JsonResponse<ConnectGuide>, AdminError> {
    let active = state.active();
    if let Some(name) = &query.profile
        && !active.profiles.contains(name)
    {
        let near = consort_core::nearest(name, active.profiles.iter().map(String::as_str));
        let refusal = AdminError::not_found(format!("unknown profile `{}`", name.escape_debug()));
        return Err(match near.first() {
            Some(near) => refusal.hint(format!("did you mean `{near}`?")),
            None => refusal,
        });
    }
    let token_file = state.0.settings.token_file.as_ref().map(|file| file.display().to_string());
    let locked = context.door.is_locked();
    run_blocking(move || {
        let profile = query.profile.as_deref();
        let clients = clients(&active, profile, locked);
        JsonResponse(ConnectGuide { path: endpoint_path(profile), token_file, clients })
    })
    .await
}

fn clients(active: &ActiveConfig, profile: Option<&str>, locked: bool) -> Vec<ClientSnippet> {
    let url = format!("{ORIGIN}{}", endpoint_path(profile));
    let client = |id, name, file: Option<String>, snippet: String| ClientSnippet {
        id,
        name,
        file,
        snippet: snippet.trim_end().to_owned() + "\n",
    };
    let mut clients = vec![client("claude-code", "Claude Code", None, claude_code(&url, locked))];
    // The scheme is part of the origin; a plain one must be said to be meant.
    let mode =
        ExportMode::Url { url: format!("http://{url}"), token: locked.then(|| TOKEN.to_owned()) };
    for known in SHOWN_CLIENTS.iter().filter_map(|id| KnownClient::find(id)) {
        let text = snippet(known, &mode).replace(&format!("http://{ORIGIN}"), ORIGIN);
        // A variable must not be taken for what stands for the token.
        let text = text.replace("CONSORT_TOKEN", "CONSORT_BEARER");
        clients.push(client(known.id, known.name, usual_file(known), text));
    }
    let header = if locked {
        format!(",\n      \"headers\": {{ \"Authorization\": \"Bearer {TOKEN}\" }}")
    } else {
        String::new()
    };
    let any = format!(
        "{{\n  \"mcpServers\": {{\n    \"consort\": {{\n      \"type\": \"http\",\n      \"url\": {}{header}\n    }}\n  }}\n}}",
        json!(url)
    );
    clients.push(client(
        "mcp-json",
        "Other clients with an mcp.json",
        Some("mcp.json".to_owned()),
        any,
    ));
    clients.extend(
        stdio(active, profile).map(|text| {
            client("stdio", "Local process (stdio)", Some("mcp.json".to_owned()), text)
        }),
    );
    clients
}

/// Default path of a client's config, independent of the machine.
fn usual_file(client: &KnownClient) -> Option<String> {
    let home = PathBuf::from("~");
    let folders = UserFolders {
        current: PathBuf::new(),
        settings: Some(home.join(".config")),
        home: Some(home),
    };
    Some(client.files(&folders, FolderLayout::of_system()).first()?.display().to_string())
}

fn claude_code(url: &str, locked: bool) -> String {
    let header = format!(" --header \"Authorization: Bearer {TOKEN}\"");
    let header = if locked { header.as_str() } else { "" };
    format!("claude mcp add --transport http consort {}{header}", shell_quote(url))
}

/// Quotes a word for a shell.
fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:~%".contains(c);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Command line with which a client starts its own consort with the same config.
fn stdio(active: &ActiveConfig, profile: Option<&str>) -> Option<String> {
    let command = std::env::current_exe().ok()?.display().to_string();
    let mut arguments = vec!["serve".to_owned(), "--stdio".to_owned()];
    if let Some(config) = &active.config {
        let file = std::path::absolute(&config.file).ok()?;
        arguments.extend(["--config".to_owned(), file.display().to_string()]);
    }
    if let Some(profile) = profile {
        arguments.extend(["--profile".to_owned(), profile.to_owned()]);
    }
    let cursor = KnownClient::find("cursor")?;
    Some(snippet(cursor, &ExportMode::Program { command, arguments }))
}
