//! Configuration snippets for clients of the gateway.

use std::path::PathBuf;

use consort_config::{ExportClient, ExportMode, FolderLayout, UserFolders, snippet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::active_config::Scene;
use crate::blocking::aside;
use crate::profile_costs::path;
use crate::route::{Asked, Refusal, Route, Told, get};
use crate::state::Console;

/// Placeholder of the page's own origin in a snippet.
const ORIGIN: &str = "ORIGIN";

/// Placeholder of the token in a snippet.
const TOKEN: &str = "TOKEN";

pub(crate) fn routes() -> Vec<Route> {
    vec![get("/api/connect", "What to write where so that a client uses the gateway.", connect)]
}

/// Endpoint to connect to.
#[derive(Deserialize, JsonSchema)]
struct Wanted {
    /// Name of the profile; all tools if absent.
    #[serde(default)]
    profile: Option<String>,
}

/// Client configuration for an endpoint of the gateway.
#[derive(Serialize, JsonSchema)]
struct Connect {
    /// Path of the MCP endpoint.
    path: String,
    /// Path of the token file, if a token is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    token_file: Option<String>,
    clients: Vec<Recipe>,
}

/// Configuration of one client.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Snippet")]
struct Recipe {
    id: &'static str,
    name: &'static str,
    /// File to write it to; if absent, it is a command to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Text with `ORIGIN` for the origin of the gateway and `TOKEN` for the token.
    snippet: String,
}

async fn connect(console: Console, asked: Asked, wanted: Wanted) -> Result<Told<Connect>, Refusal> {
    let scene = console.scene();
    if let Some(name) = &wanted.profile
        && !scene.profiles.contains(name)
    {
        let near = consort_core::nearest(name, scene.profiles.iter().map(String::as_str));
        let refusal = Refusal::missing(format!("no profile is called `{}`", name.escape_debug()));
        return Err(match near.first() {
            Some(near) => refusal.hint(format!("did you mean `{near}`?")),
            None => refusal,
        });
    }
    let token_file = console.0.start.token_file.as_ref().map(|file| file.display().to_string());
    let locked = asked.door.is_locked();
    aside(move || {
        let profile = wanted.profile.as_deref();
        let clients = clients(&scene, profile, locked);
        Told(Connect { path: path(profile), token_file, clients })
    })
    .await
}

fn clients(scene: &Scene, profile: Option<&str>, locked: bool) -> Vec<Recipe> {
    let url = format!("{ORIGIN}{}", path(profile));
    let told = |id, name, file: Option<String>, snippet: String| Recipe {
        id,
        name,
        file,
        snippet: snippet.trim_end().to_owned() + "\n",
    };
    let mut clients = vec![
        told("claude-code", "Claude Code", None, claude_code(&url, locked)),
        told("codex", "Codex", Some("~/.codex/config.toml".to_owned()), codex(&url, locked)),
    ];
    // The scheme is part of the origin; a plain one must be said to be meant.
    let mode =
        ExportMode::Url { url: format!("http://{url}"), token: locked.then(|| TOKEN.to_owned()) };
    for (recipient, id, name) in [
        (ExportClient::ClaudeDesktop, "claude-desktop", "Claude Desktop"),
        (ExportClient::Cursor, "cursor", "Cursor"),
        (ExportClient::VsCode, "vscode", "VS Code"),
    ] {
        let text = snippet(recipient, &mode).replace(&format!("http://{ORIGIN}"), ORIGIN);
        // A variable must not be taken for what stands for the token.
        let text = text.replace("CONSORT_TOKEN", "CONSORT_BEARER");
        clients.push(told(id, name, usual_file(recipient), text));
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
    clients.push(told("mcp-json", "Any client with an mcp.json", Some("mcp.json".to_owned()), any));
    clients.extend(
        stdio(scene, profile).map(|text| {
            told("stdio", "Without a gateway (stdio)", Some("mcp.json".to_owned()), text)
        }),
    );
    clients
}

/// Default path of a client's config, independent of the machine.
fn usual_file(recipient: ExportClient) -> Option<String> {
    let home = PathBuf::from("~");
    let folders = UserFolders {
        current: PathBuf::new(),
        settings: Some(home.join(".config")),
        home: Some(home),
    };
    Some(recipient.file(&folders, FolderLayout::of_system())?.display().to_string())
}

fn claude_code(url: &str, locked: bool) -> String {
    let header = format!(" --header \"Authorization: Bearer {TOKEN}\"");
    let header = if locked { header.as_str() } else { "" };
    format!("claude mcp add --transport http consort {}{header}", quoted(url))
}

fn codex(url: &str, locked: bool) -> String {
    let header = format!("http_headers = {{ Authorization = \"Bearer {TOKEN}\" }}\n");
    let header = if locked { header.as_str() } else { "" };
    // A string is written alike in JSON and in TOML.
    format!("[mcp_servers.consort]\nurl = {}\n{header}", json!(url))
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:~%".contains(c);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Command line with which a client starts its own consort with the same config.
fn stdio(scene: &Scene, profile: Option<&str>) -> Option<String> {
    let command = std::env::current_exe().ok()?.display().to_string();
    let mut arguments = vec!["serve".to_owned(), "--stdio".to_owned()];
    if let Some(config) = &scene.config {
        let file = std::path::absolute(&config.file).ok()?;
        arguments.extend(["--config".to_owned(), file.display().to_string()]);
    }
    if let Some(profile) = profile {
        arguments.extend(["--profile".to_owned(), profile.to_owned()]);
    }
    Some(snippet(ExportClient::Cursor, &ExportMode::Program { command, arguments }))
}
