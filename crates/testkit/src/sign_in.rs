//! An `OpenID` provider, clients that ask for access as their users, and a person at a browser who agrees.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::fixtures;
use crate::listening::Listening;

/// The secret of the client `gateway` at [`openid_provider`].
pub const GATEWAY_SECRET: &str = "a secret of the gateway at its issuer";

/// Starts npm `oidc-provider`. Anybody signs in by a name alone.
pub fn openid_provider() -> Listening {
    let mut command = Command::new(fixtures::node());
    command.arg(fixtures::openid_provider()).env("NODE_PATH", fixtures::node_modules());
    Listening::start(command)
}

/// A browser with a person in it.
#[derive(Debug)]
pub struct Person<'a> {
    /// The name that the person signs in with.
    pub name: &'a str,
    /// The folder of the browser's data.
    pub folder: &'a Path,
}

/// The last page of a visit.
#[derive(Clone, Debug)]
pub struct LastPage {
    /// Its URL.
    pub url: String,
    /// The labels of the buttons that led there.
    pub clicks: Vec<String>,
    /// Its visible text.
    pub text: String,
}

impl Person<'_> {
    /// Opens a URL in Chromium, signs in wherever asked and agrees to everything, until a page has no button.
    pub fn visit(&self, url: &str) -> LastPage {
        let mut command = Command::new(fixtures::node());
        command
            .arg(fixtures::person())
            .args([OsStr::new(url), OsStr::new(self.name), self.folder.as_os_str()])
            .env("NODE_PATH", fixtures::browser_modules());
        let output = command.output().expect("the browser can be started");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let failure = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{url}: {failure}");
        let mut lines = text.splitn(3, '\n');
        let mut line = || lines.next().unwrap_or_default().to_owned();
        let (url, clicks) = (line(), line());
        let clicks = clicks.trim_start_matches("clicks: ").split(", ").map(str::to_owned).collect();
        LastPage { url, clicks, text: line() }
    }
}

/// A client of another project that is given a URL alone, and then asks for access as its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInClient {
    /// The official TypeScript SDK.
    TypeScript,
    /// The official Python SDK.
    Python,
    /// The client of `FastMCP`.
    FastMcp,
    /// `mcp-remote`, which bridges clients on standard input and output.
    McpRemote,
}

impl SignInClient {
    /// Every client.
    pub const ALL: [Self; 4] = [Self::TypeScript, Self::Python, Self::FastMcp, Self::McpRemote];

    /// Returns the command that connects to a URL, prints `open URL` for the browser or names the URL on standard error,
    /// lists tools and calls `echo`. The folder is for what it stores.
    pub fn command(self, url: &str, folder: &Path) -> Command {
        let python = || Command::new(fixtures::python("python3"));
        let mut command = match self {
            Self::TypeScript | Self::McpRemote => Command::new(fixtures::node()),
            Self::Python | Self::FastMcp => python(),
        };
        match self {
            Self::TypeScript => command.arg(fixtures::client("sign_in.cjs")).args([url, "auto"]),
            Self::Python => command.arg(fixtures::client("sign_in.py")).args([url, "auto"]),
            Self::FastMcp => command.arg(fixtures::client("fastmcp_sign_in.py")).arg(url),
            Self::McpRemote => command.arg(fixtures::mcp_remote()).arg(url),
        };
        command
            .env("NODE_PATH", fixtures::node_modules())
            .env("HOME", folder)
            .env("MCP_REMOTE_CONFIG_DIR", folder.join("mcp-remote"))
            .env("BROWSER", fixtures::client("print_url.sh"));
        command
    }
}
