//! The documented example of every client, read whole.

use consort_config::{ConfigFormat, KNOWN_CLIENTS};
use insta::assert_snapshot;

use crate::{complaints, read, sample};

/// Servers in short: transport, place, and what is not the default.
fn servers(name: &str) -> String {
    let config = sample(name);
    let mut lines = vec![config.format.to_string()];
    for server in &config.servers {
        let mut value = serde_json::to_value(server).unwrap();
        let fields = value.as_object_mut().unwrap();
        fields.remove("origin");
        let name = fields.remove("name").unwrap();
        lines.push(format!("{}: {value}", name.as_str().unwrap()));
    }
    lines.push(complaints(&config));
    lines.join("\n")
}

/// The sample of a client.
fn sample_of(id: &str) -> &'static str {
    match id {
        "claude-desktop" => "claude_desktop_config.json",
        "claude-code" => "claude.json",
        "cursor" => "cursor.json",
        "windsurf" => "windsurf.json",
        "vscode" => "project/.vscode/mcp.json",
        "zed" => "zed_settings.json",
        "codex" => "codex.toml",
        "gemini-cli" => "gemini.json",
        "copilot-cli" => "copilot_cli.json",
        "goose" => "goose.yaml",
        "continue" => "continue.yaml",
        "opencode" => "opencode.json",
        "amp" => "amp.json",
        "crush" => "crush.json",
        "kiro" => "kiro.json",
        "lm-studio" => "lm_studio.json",
        "junie" => "junie.json",
        "librechat" => "librechat.yaml",
        id => panic!("`{id}` has no sample"),
    }
}

#[test]
fn every_client_has_an_example_that_is_read() {
    for client in KNOWN_CLIENTS {
        let config = sample(sample_of(client.id));
        assert_eq!(config.format, client.format, "{client}");
        assert!(!config.servers.is_empty(), "{client}");
    }
}

#[test]
fn goose_runs_programs_and_extensions_of_its_own() {
    assert_snapshot!(servers("goose.yaml"), @r#"
    Goose
    github: {"arguments":["-y","@modelcontextprotocol/server-github"],"command":"npx","description":"Issues and pull requests","env":{"GITHUB_HOST":"https://github.example.com","GITHUB_PERSONAL_ACCESS_TOKEN":"env:GITHUB_PERSONAL_ACCESS_TOKEN"},"timeout":{"idle":"1m"},"transport":"stdio"}
    docs: {"disabled":true,"headers":{"Authorization":"Bearer ${DOCS_TOKEN}"},"keep":["search","read"],"timeout":{"idle":"5m"},"transport":"http","url":"https://docs.example.com/mcp"}
    events: {"transport":"sse","url":"https://events.example.com/sse"}
    warning: developer: goose.yaml:12:5: the extension is a part of Goose, which only Goose can run
      hint: set `type`, with `cmd` or `uri`, for a server of the same kind
    "#);
}

#[test]
fn continue_has_a_list_and_options_of_requests() {
    assert_snapshot!(servers("continue.yaml"), @r#"
    Continue
    SQLite-MCP: {"arguments":["-y","mcp-sqlite","/path/to/your/database.db"],"command":"npx","cwd":"/path/to/your","env":{"LOG":"debug"},"timeout":{"connect":"5s"},"transport":"stdio"}
    events: {"headers":{"X-Team":"blue"},"transport":"sse","url":"https://events.example.com/sse"}
    docs: {"auth":{"bearer":"${DOCS_KEY}"},"transport":"http","url":"https://docs.example.com/mcp"}
    warning: SQLite-MCP: continue.yaml:9:11: invalid name `SQLite MCP`: expected 1 to 64 letters, digits, `_` or `-`
      hint: renamed to `SQLite-MCP`
    warning: continue.yaml:29:5: `mcpServers[3]` is published on Continue's hub, where only Continue looks it up
      hint: set its `name`, with `command` or `url`
    "#);
}

#[test]
fn librechat_counts_in_milliseconds_and_has_data_of_its_users() {
    assert_snapshot!(servers("librechat.yaml"), @r#"
    mcpServers
    everything: {"transport":"http","url":"http://localhost:3001/sse"}
    puppeteer: {"arguments":["-y","@modelcontextprotocol/server-puppeteer"],"command":"npx","connect":"call","timeout":{"connect":"15s","idle":"1m"},"transport":"stdio"}
    filesystem: {"arguments":["-y","@modelcontextprotocol/server-filesystem","/home/user/LibreChat/"],"command":"npx","transport":"stdio"}
    error: sheets: librechat.yaml:14:18: `headers.X-User-ID` is not supported: the placeholder `{{…}}` has a value for each user of LibreChat
      hint: use a reference such as `${NAME}`
    error: per-user: librechat.yaml:36:21: `headers.X-Auth-Token` is not supported: the placeholder `{{…}}` has a value for each user of LibreChat
      hint: use a reference such as `${NAME}`
    warning: sheets: librechat.yaml:16:25: `serverInstructions` is ignored: instructions are those of the server
    warning: puppeteer: librechat.yaml:23:14: `timeout` is interpreted as 60000 milliseconds
      hint: add a unit, such as `"60s"`, if that is not intended
    warning: puppeteer: librechat.yaml:26:25: `serverInstructions` is ignored: instructions are those of the server
    "#);
}

#[test]
fn opencode_has_local_and_remote_servers() {
    assert_snapshot!(servers("opencode.json"), @r#"
    OpenCode
    everything: {"arguments":["-y","@modelcontextprotocol/server-everything"],"command":"npx","env":{"MY_ENV_VAR":"my_env_var_value"},"timeout":{"connect":"5s"},"transport":"stdio"}
    remote: {"disabled":true,"headers":{"Authorization":"Bearer ${MY_API_KEY}"},"transport":"http","url":"https://mcp.example.com/mcp"}
    sentry: {"oauth":{"client_id":"my-client","scope":"tools:read"},"transport":"http","url":"https://mcp.sentry.dev/mcp"}
    warning: jira: opencode.json:29:13: the server is defined by an organization, which only OpenCode looks up
      hint: set its `type`, with `command` or `url`
    warning: opencode.json:31:3: `tools` is ignored: its patterns have OpenCode's names of tools
      hint: hide tools with `drop` in the server's entry
    "#);
    assert_snapshot!(servers("opencode_2.json"), @r#"
    OpenCode
    everything: {"arguments":["-y","@modelcontextprotocol/server-everything"],"command":"npx","cwd":".","env":{"LOG_LEVEL":"debug"},"timeout":{"connect":"10s","idle":"1m"},"transport":"stdio"}
    remote: {"disabled":true,"timeout":{"connect":"20s"},"transport":"http","url":"https://mcp.example.com/mcp"}
    "#);
}

#[test]
fn amp_has_flat_settings() {
    assert_snapshot!(servers("amp.json"), @r#"
    Amp
    playwright: {"arguments":["-y","@playwright/mcp@latest","--headless"],"command":"npx","keep":["navigate_page","take_*"],"transport":"stdio"}
    linear: {"headers":{"Authorization":"Bearer ${LINEAR_TOKEN}"},"transport":"http","url":"https://mcp.linear.app/sse"}
    "#);
}

#[test]
fn crush_hides_tools() {
    assert_snapshot!(servers("crush.json"), @r#"
    Crush
    filesystem: {"arguments":["/path/to/mcp-server.js"],"command":"node","drop":["some-tool-name"],"env":{"NODE_ENV":"production"},"timeout":{"connect":"2m"},"transport":"stdio"}
    github: {"drop":["create_issue","create_pull_request"],"headers":{"Authorization":"Bearer ${GH_PAT}"},"timeout":{"connect":"2m"},"transport":"http","url":"https://api.githubcopilot.com/mcp/"}
    streaming-service: {"disabled":true,"headers":{"API-Key":"${API_KEY}"},"transport":"sse","url":"https://example.com/mcp/sse"}
    "#);
}

#[test]
fn copilot_lists_the_tools_that_it_uses() {
    assert_snapshot!(servers("copilot_cli.json"), @r#"
    mcpServers
    playwright: {"arguments":["@playwright/mcp@latest"],"command":"npx","transport":"stdio"}
    context7: {"headers":{"CONTEXT7_API_KEY":"${CONTEXT7_KEY}"},"keep":["resolve-library-id","get-library-docs"],"transport":"http","url":"https://mcp.context7.com/mcp"}
    quiet: {"drop":["*"],"transport":"sse","url":"https://quiet.example.com/sse"}
    "#);
}

#[test]
fn kiro_approves_tools() {
    assert_snapshot!(servers("kiro.json"), @r#"
    mcpServers
    local-server-name: {"arguments":["arg1","arg2"],"command":"command-to-run-server","drop":["tool_name3"],"env":{"ENV_VAR1":"hard-coded-variable","ENV_VAR2":"${EXPANDED_VARIABLE}"},"transport":"stdio"}
    remote-server-name: {"disabled":true,"headers":{"HEADER1":"value1"},"transport":"http","url":"https://endpoint.to.connect.to"}
    warning: local-server-name: kiro.json:11:22: `autoApprove` is ignored: approvals are configured in `[consort.policy]`
    "#);
}

#[test]
fn lm_studio_and_junie_write_what_cursor_writes() {
    assert_snapshot!(servers("lm_studio.json"), @r#"
    mcpServers
    hf-mcp-server: {"headers":{"Authorization":"Bearer ***"},"transport":"http","url":"https://huggingface.co/mcp"}
    "#);
    assert_snapshot!(servers("junie.json"), @r#"
    mcpServers
    memory: {"arguments":["-y","@modelcontextprotocol/server-memory"],"command":"npx","env":{"MEMORY_FILE_PATH":"/home/me/memory.json"},"transport":"stdio"}
    "#);
}

#[test]
fn gemini_selects_among_its_servers() {
    assert_snapshot!(servers("gemini.json"), @r#"
    mcpServers
    python_tools: {"arguments":["-m","my_mcp_server","--port","8080"],"command":"python","cwd":"./mcp-servers/python","drop":["dangerous_tool"],"keep":["safe_tool","file_reader"],"timeout":{"idle":"15s"},"transport":"stdio"}
    http: {"headers":{"X-Custom-Header":"custom-value"},"timeout":{"idle":"5s"},"transport":"http","url":"http://localhost:3000/mcp"}
    experimental: {"disabled":true,"transport":"http","url":"https://experimental.example.com/sse"}
    cloud: {"disabled":true,"oauth":{"scope":"https://www.googleapis.com/auth/userinfo.email"},"transport":"http","url":"https://cloud.example.com/mcp"}
    warning: python_tools: gemini.json:9:18: `timeout` is interpreted as 15000 milliseconds
      hint: add a unit, such as `"60s"`, if that is not intended
    warning: python_tools: gemini.json:10:16: `trust` is ignored: approvals are configured in `[consort.policy]`
    warning: http: gemini.json:17:18: `timeout` is interpreted as 5000 milliseconds
      hint: add a unit, such as `"60s"`, if that is not intended
    warning: cloud: gemini.json:22:27: `authProviderType` is ignored: log in with `consort login`, or set `headers` with a reference to the token
    "#);
}

#[test]
fn the_key_mcp_is_read_as_the_client_that_wrote_it() {
    let json = |text: &str| read("x.json", text).format;
    let local = r#""x": {"type": "local", "command": ["x"]}"#;
    let stdio = r#""x": {"type": "stdio", "command": "x"}"#;
    assert_eq!(json(&format!("{{\"mcp\": {{{local}}}}}")), ConfigFormat::OpenCode);
    assert_eq!(json(&format!("{{\"mcp\": {{\"servers\": {{{local}}}}}}}")), ConfigFormat::OpenCode);
    assert_eq!(json(&format!("{{\"mcp\": {{\"servers\": {{{stdio}}}}}}}")), ConfigFormat::VsCode);
    assert_eq!(json(&format!("{{\"mcp\": {{{stdio}}}, \"lsp\": {{}}}}")), ConfigFormat::Crush);
    assert_eq!(json(&format!("{{\"mcp\": {{{stdio}}}}}")), ConfigFormat::Consort);
    let ours = format!("{{\"mcp\": {{{local}}}, \"consort\": {{\"builtin\": false}}}}");
    assert_eq!(json(&ours), ConfigFormat::Consort);
    let ours = read("consort.toml", "[mcp.x]\ntype = 'local'\ncommand = 'x'\n\n[options]\na = 1\n");
    assert_eq!(ours.format, ConfigFormat::Consort);
    assert_snapshot!(complaints(&ours), @"error: consort.toml:5:2: unknown key `options`");
    // Settings of Consort in the wrong place are not skipped as another client's.
    let misplaced = read("x.json", &format!("{{\"mcp\": {{{stdio}}}, \"providers\": {{}}}}"));
    assert!(misplaced.errors[0].is_blocking(), "{}", complaints(&misplaced));
    let named =
        read("x.json", r#"{"mcp": {"allowed": {"command": "x"}, "excluded": {"command": "y"}}}"#);
    assert_eq!((named.format, named.servers.len()), (ConfigFormat::Consort, 2));
}
