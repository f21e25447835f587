//! What is said about each kind of mistake: where, what, what would be right, what to do.

use std::path::Path;

use consort_config::{Config, ConfigError, ConfigFormat, TransportConfig};
use consort_core::Problem;
use insta::assert_snapshot;

use crate::{complaints, listed, read};

/// Complaints about a whole file.
fn unusable(name: &str, text: &str) -> String {
    let errors = Config::parse(Path::new(name), text).unwrap_err();
    listed(&errors.errors().iter().map(Problem::from).collect::<Vec<_>>())
}

/// Complaints about one server in our own format.
fn toml(body: &str) -> String {
    complaints(&read("consort.toml", &format!("[mcp.x]\n{body}")))
}

/// Complaints about the servers of a `.mcp.json`.
fn json(servers: &str) -> String {
    complaints(&read(".mcp.json", &format!("{{\"mcpServers\": {{\n{servers}\n}}}}")))
}

#[test]
fn a_slip_in_the_syntax_is_shown_where_it_is() {
    assert_snapshot!(unusable(".mcp.json", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\" \"args\": []}\n  }\n}"), @"error: .mcp.json:3:25: not valid JSON: expected comma");
    assert_snapshot!(unusable(".mcp.json", "{\"mcpServers\": "), @"error: .mcp.json:1:16: not valid JSON: expected value after colon in object property");
    assert_snapshot!(unusable("consort.toml", "[mcp.x]\ncommand = npx\nargs = [\n\n[mcp.y]\nurl = = 1\n"), @"
    error: consort.toml:2:11: not valid TOML: invalid float, expected `nan`
    error: consort.toml:5:2: not valid TOML: string values must be quoted, expected literal string
    error: consort.toml:6:1: not valid TOML: missing comma between array elements, expected `,`
    ");
    assert_snapshot!(unusable("consort.toml", "[mcp.x]\nurl = 'a'\nurl = 'b'\n"), @"error: consort.toml:3:1: not valid TOML: duplicate key");
}

#[test]
fn a_file_that_describes_no_servers_says_how_to() {
    assert_snapshot!(unusable(".mcp.json", "{\"mcpServer\": {}}"), @"
    error: .mcp.json:1:1: no servers are configured
      hint: unknown key `mcpServer`; did you mean `mcpServers`?
    ");
    assert_snapshot!(unusable("x.json", "{\"a\": 1}"), @"
    error: x.json:1:1: no servers are configured
      hint: define servers under `mcpServers` (JSON) or as `[mcp.NAME]` (TOML)
    ");
    assert_snapshot!(unusable("x.json", "[1]"), @"
    error: x.json:1:1: no servers are configured
      hint: define servers under `mcpServers` (JSON) or as `[mcp.NAME]` (TOML)
    ");
    assert_snapshot!(unusable("config.yaml", "extensions:\n  github:\n    enabled: true\n"), @"
    error: config.yaml:1:1: no servers are configured
      hint: define servers under `mcpServers` (JSON) or as `[mcp.NAME]` (TOML)
    ");
}

#[test]
fn a_mistake_in_yaml_has_its_place() {
    assert_snapshot!(unusable("config.yaml", "extensions:\n  a: [1\n  b: 2\n"), @"error: config.yaml:3:4: not valid YAML: illegal placement of ':' indicator");
    assert_snapshot!(unusable("x.yaml", "mcpServers: *none\n"), @"error: x.yaml:1:13: not valid YAML: while parsing node, found unknown anchor");
    let text = "mcpServers:\n  a: {command: 5}\n  b: {url: https://b.example, url: https://c.example}\n  c: {command: c, arg: [x]}\n";
    assert_snapshot!(complaints(&read("x.yaml", text)), @"
    error: a: x.yaml:2:16: `command` is a number: expected a string or a list of strings
    error: b: x.yaml:3:31: duplicate key `url`
      hint: the first is in line 3
    warning: c: x.yaml:4:19: unknown key `arg`
      hint: did you mean `args`?
    ");
    let text = "mcpServers:\n  - name: a\n    command: a\n  - command: b\n  - name: a\n    url: https://a.example\n";
    assert_snapshot!(complaints(&read("x.yaml", text)), @"
    error: x.yaml:4:5: `name` is missing
      hint: every server in a list requires a `name`
    error: x.yaml:5:11: two servers are named `a`
      hint: the first is in line 2; rename one of them
    ");
    let text = "extensions:\n  a: {type: stdio, cmd: a, socket: x, enabled: true}\n  b: {type: carrier, uri: https://b.example}\n";
    assert_snapshot!(complaints(&read("x.yaml", text)), @"
    error: a: x.yaml:2:36: `socket` is not supported: a URL is reached over TCP
      hint: remove `socket` if the server also listens on a port
    error: b: x.yaml:3:13: unknown value `carrier` of `type`: expected `stdio`, `http` or `sse`
    ");
}

#[test]
fn a_file_with_nothing_in_it_is_fine() {
    for (name, text) in [("consort.toml", "# soon\n"), ("mcp.json", "{}"), ("mcp.json", "")] {
        let config = read(name, text);
        assert_eq!((config.servers.len(), complaints(&config).as_str()), (0, ""));
    }
    assert_eq!(read("mcp.json", "{\"mcpServers\": {}}").format, ConfigFormat::McpServers);
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let complaint = |file: &Path| {
        let errors = Config::read(file).unwrap_err();
        let problem = Problem::from(&errors.errors()[0]).to_string();
        problem.replace(folder.path().to_str().unwrap(), "FOLDER")
    };
    assert_snapshot!(complaint(&folder.path().join("lost.toml")), @"FOLDER/lost.toml: cannot read the config: No such file or directory (os error 2)");
    let binary = folder.path().join("binary.toml");
    std::fs::write(&binary, [0xff, 0xfe]).unwrap();
    assert_snapshot!(complaint(&binary), @"FOLDER/binary.toml: the config is not UTF-8 text");
}

#[test]
fn unknown_keys_are_errors_in_our_own_format_and_warnings_in_others() {
    let config = read(
        "consort.toml",
        "[mcp.x]\ncommand = 'x'\nargz = []\nenviroment = {}\n[mpc.y]\nurl = 'http://localhost'\n[consort]\nbuilt_in = true\n",
    );
    assert_snapshot!(complaints(&config), @"
    error: x: consort.toml:3:1: unknown key `argz`
      hint: did you mean `args`?
    error: x: consort.toml:4:1: unknown key `enviroment`
      hint: did you mean `environment`?
    error: consort.toml:5:2: unknown key `mpc`
      hint: did you mean `mcp`?
    error: consort.toml:8:1: unknown key `built_in`
      hint: did you mean `builtin`?
    ");
    assert_eq!(config.servers.len(), 0);
    let blocking: Vec<bool> = config.errors.iter().map(ConfigError::is_blocking).collect();
    assert_eq!(blocking, [false, false, true, true]);
    assert_snapshot!(json(r#""a": {"command": "x", "_note": "mine", "comand": "y", "timeout": {"idel": 1}}"#), @"
    warning: a: .mcp.json:2:40: unknown key `comand`
      hint: did you mean `command`?
    warning: a: .mcp.json:2:67: unknown key `timeout.idel`
      hint: did you mean `idle`?
    ");
}

#[test]
fn a_key_by_its_old_name_is_read_with_a_warning() {
    let config = read(
        "consort.toml",
        "[mcp.x]\ncommand = 'x'\nenvironment = { A = '1' }\ndirectory = 'd'\n",
    );
    assert_snapshot!(complaints(&config), @"
    warning: x: consort.toml:3:15: `environment` is deprecated: renamed to `env`
      hint: use the new name: the old one will be removed in a later version
    warning: x: consort.toml:4:13: `directory` is deprecated: renamed to `cwd`
      hint: use the new name: the old one will be removed in a later version
    ");
    let TransportConfig::Stdio(program) = &config.servers[0].transport else { panic!("a program") };
    assert_eq!(program.env.keys().collect::<Vec<_>>(), ["A"]);
    assert_eq!(program.cwd.as_ref().unwrap().to_string(), "d");
}

#[test]
fn a_value_of_the_wrong_type_is_told_the_right_one() {
    assert_snapshot!(toml("command = 5\nargs = 'x'\nenv = []\nheaders = { a = { b = 1 } }\ndisabled = 'no'\nidle_stop = true"), @r#"
    error: x: consort.toml:2:11: `command` is a number: expected a string or a list of strings
    error: x: consort.toml:3:8: `args` is a string: expected a list of strings
    error: x: consort.toml:4:7: `env` is a list: expected a table of strings
    error: x: consort.toml:5:17: `headers.a` is a table: expected a string
    error: x: consort.toml:6:12: `disabled` is a string: expected a boolean
    error: x: consort.toml:7:13: `idle_stop` is a boolean: expected a duration, such as `30` or `"30s"`
    "#);
    assert_snapshot!(json(r#""a": {"command": ["x", {}]}, "b": [], "c": {"command": "x", "env": {"A": ["b"]}, "args": [null]}"#), @"
    error: a: .mcp.json:2:24: `command[1]` is a table: expected a string
    error: b: .mcp.json:2:35: `b` is a list: expected a table
    error: c: .mcp.json:2:74: `env.A` is a list: expected a string
    error: c: .mcp.json:2:91: `args[0]` is null: expected a string
    ");
    assert_snapshot!(complaints(&read("mcp.json", r#"{"mcpServers": []}"#)), @"error: mcp.json:1:16: `mcpServers` is a list: expected a table of servers");
    assert_snapshot!(complaints(&read("mcp.json", r#"{"servers": [1, {"type": "http"}, {"name": 5}]}"#)), @"
    error: mcp.json:1:14: `servers[0]` is a number: expected a table
    error: mcp.json:1:17: `name` is missing
      hint: every server in a list requires a `name`
    error: mcp.json:1:44: `name` is a number: expected a string
    ");
}

#[test]
fn a_server_is_in_exactly_one_place() {
    assert_snapshot!(toml("description = 'nowhere'"), @"error: x: consort.toml:1:1: `command` or `url` is required");
    assert_snapshot!(toml("command = 'x'\nurl = 'https://x.example'"), @"error: x: consort.toml:1:1: `command` and `url` are mutually exclusive");
    assert_snapshot!(toml("transport = 'stdio'\nurl = 'https://x.example'"), @"
    error: x: consort.toml:1:1: `command` is missing
      hint: a server with the transport `stdio` requires a `command`
    ");
    assert_snapshot!(toml("transport = 'sse'\ncommand = 'x'"), @"
    error: x: consort.toml:1:1: `url` is missing
      hint: a server with this transport requires a `url`
    ");
    assert_snapshot!(toml("command = []"), @"error: x: consort.toml:2:11: `command` is empty");
    assert_snapshot!(toml("command = ''"), @"error: x: consort.toml:2:11: `command` is empty");
    assert_snapshot!(json(r#""a": {"url": "https://x.example", "serverUrl": "https://y.example"}"#), @"error: a: .mcp.json:2:48: `url` and `serverUrl` are mutually exclusive");
    assert_snapshot!(toml("env = { A = '1' }\nenvironment = { A = '2' }\ncommand = 'x'"), @"error: x: consort.toml:3:15: `env` and `environment` are mutually exclusive");
}

#[test]
fn what_does_not_fit_the_place_is_warned_about() {
    assert_snapshot!(toml("command = 'x'\nheaders = { A = 'b' }"), @"warning: x: consort.toml:3:11: `headers` is ignored: the server is a local process");
    assert_snapshot!(toml("url = 'https://x.example'\nargs = ['a']"), @"warning: x: consort.toml:3:8: `args` is ignored: the server is remote");
    assert_snapshot!(toml("command = 'npx -y server'"), @"
    warning: x: consort.toml:2:11: `command` contains spaces: it must be the name of one program
      hint: separate the program and its arguments: `command` and `args`
    ");
    assert_snapshot!(toml("command = 'x'\ninherit_env = ['*']"), @"
    warning: x: consort.toml:3:15: `inherit_env` passes every environment variable to the server, including secrets
      hint: list only the variables it needs
    ");
}

#[test]
fn an_unknown_word_is_answered_with_the_known_ones() {
    assert_snapshot!(toml("transport = 'stdoi'\ncommand = 'x'\nera = 'moderm'\nconnect = 'never'"), @"
    error: x: consort.toml:2:13: unknown value `stdoi` of `transport`: expected `stdio`, `http` or `sse`
      hint: did you mean `stdio`?
    error: x: consort.toml:4:7: unknown value `moderm` of `era`: expected `auto`, `legacy` or `modern`
      hint: did you mean `modern`?
    error: x: consort.toml:5:11: unknown value `never` of `connect`: expected `start` or `call`
    ");
}

#[test]
fn a_name_fits_and_is_used_once() {
    assert_snapshot!(json(r#""git hub": {"command": "a"}, "git-hub": {"command": "b"}, "": {"command": "c"}"#), @"
    error: .mcp.json:2:30: two servers are named `git-hub`
      hint: the first is in line 2; rename one of them
    warning: git-hub: .mcp.json:2:1: invalid name `git hub`: expected 1 to 64 letters, digits, `_` or `-`
      hint: renamed to `git-hub`
    warning: server: .mcp.json:2:59: invalid name ``: expected 1 to 64 letters, digits, `_` or `-`
      hint: renamed to `server`
    ");
    assert_snapshot!(json(r#""a": {"command": "a", "command": "b"}, "a": {"command": "c"}"#), @"
    error: a: .mcp.json:2:23: duplicate key `command`
      hint: the first is in line 2
    error: .mcp.json:2:40: two servers are named `a`
      hint: the first is in line 2; rename one of them
    ");
    assert_snapshot!(toml("command = 'x'\n[mcp.x.tools.'no blanks']\ntimeout = 5"), @"error: x: consort.toml:3:14: in `tools`: invalid name `no blanks`: expected 1 to 128 printable characters without spaces");
    assert_snapshot!(toml("command = 'x'\nenv = { 'A=B' = '1' }"), @"error: x: consort.toml:3:17: invalid environment variable name in `env`: it contains `=`");
}

#[test]
fn a_time_is_between_a_millisecond_and_a_day() {
    assert_snapshot!(toml("command = 'x'\ntimeout = -5\nidle_stop = '2 weeks'"), @"
    error: x: consort.toml:3:11: invalid `timeout`: expected at least `1ms`
    error: x: consort.toml:4:13: invalid `idle_stop`: expected a number of seconds, or a number with `ms`, `s`, `m` or `h`, such as `30s`
    ");
    assert_snapshot!(toml("command = 'x'\ntimeout = { idle = 0, total = 86401, connect = [] }"), @r#"
    error: x: consort.toml:3:20: invalid `timeout.idle`: expected at least `1ms`
    error: x: consort.toml:3:31: invalid `timeout.total`: expected at most `24h`
    error: x: consort.toml:3:48: `timeout.connect` is a list: expected a duration, such as `30` or `"30s"`
    "#);
    assert_snapshot!(toml("command = 'x'\ntimeout = { idle = '2m', total = '1m' }"), @"warning: x: consort.toml:3:11: `timeout.idle` is longer than `timeout.total` and has no effect");
    assert_snapshot!(toml("command = 'x'\n[mcp.x.tools.slow]\ntimeout = 'soon'"), @"error: x: consort.toml:4:11: invalid `tools.slow.timeout`: expected a number of seconds, or a number with `ms`, `s`, `m` or `h`, such as `30s`");
}

#[test]
fn an_address_is_http_and_safe() {
    assert_snapshot!(toml("url = 'ws://x.example/mcp'"), @"
    error: x: consort.toml:2:7: `url` is a WebSocket URL, which MCP does not support
      hint: use the server's Streamable HTTP URL, which starts with https://
    ");
    assert_snapshot!(toml("url = 'WSS://${HOST}/mcp'"), @"
    error: x: consort.toml:2:7: `url` is a WebSocket URL, which MCP does not support
      hint: use the server's Streamable HTTP URL, which starts with https://
    ");
    assert_snapshot!(toml("url = 'x.example/mcp'"), @"error: x: consort.toml:2:7: `url` is not a valid URL: expected a URL that starts with http:// or https://");
    assert_snapshot!(toml("url = 'http://x.example/mcp'"), @"
    error: x: consort.toml:2:7: `url` is plain HTTP to another machine
      hint: use https, or set `insecure = true`
    ");
    assert_snapshot!(toml("url = 'https://me:hunter2@x.example/mcp'"), @"error: x: consort.toml:2:7: `url` is not a valid URL: the URL contains credentials; send them in a header");
    assert_snapshot!(toml("url = 'https://x.example'\nheaders = { 'no header' = '1' }"), @"error: x: consort.toml:3:27: invalid header `no header`: not a valid HTTP header name");
    assert_snapshot!(toml("url = 'http://x.example/mcp'\ninsecure = true"), @"");
}

#[test]
fn auth_says_how_and_with_what() {
    assert_snapshot!(toml("url = 'https://x.example'\nauth = 'env:TOKEN'"), @"error: x: consort.toml:3:8: `auth` is a string: expected a table");
    assert_snapshot!(toml("url = 'https://x.example'\nauth = { type = 'bearer' }"), @r#"
    error: x: consort.toml:3:8: `auth.token` is missing
      hint: set `bearer = "env:NAME"`, or `type` and `token`
    "#);
    assert_snapshot!(toml("url = 'https://x.example'\nauth = { token = 'env:TOKEN' }"), @"
    error: x: consort.toml:3:8: `auth.type` is missing
      hint: use `bearer`, `api_key` or `custom`
    ");
    assert_snapshot!(toml("url = 'https://x.example'\nauth = { type = 'basic', token = 'env:TOKEN' }"), @"error: x: consort.toml:3:17: unknown value `basic` of `auth.type`: expected `bearer`, `api_key` or `custom`");
    assert_snapshot!(toml("url = 'https://x.example'\nauth = { bearer = 'env:A' }\nheaders = { authorization = 'env:B' }"), @"error: x: consort.toml:4:29: `auth` and `headers.authorization` are mutually exclusive");
}

#[test]
fn what_is_no_reference_is_refused() {
    assert_snapshot!(toml("command = 'x'\nargs = ['${command:pick}', '${hunter:2}', '${OPEN', '${}']"), @"
    error: x: consort.toml:3:9: cannot read `args[0]`: unsupported reference `${command:…}`
      hint: it is defined only inside an editor; use `${env:NAME}` or `${input:id}`
    error: x: consort.toml:3:28: cannot read `args[1]`: `${…}` is not a valid reference
      hint: supported references are `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${file:path}`, `${keyring:SERVICE/NAME}`, `${cmd:COMMAND}`, `${input:id}`, `${workspaceFolder}` and `${userHome}`; for the literal string, write `literal:…`
    error: x: consort.toml:3:43: cannot read `args[2]`: `${` without a closing `}`
      hint: supported references are `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${file:path}`, `${keyring:SERVICE/NAME}`, `${cmd:COMMAND}`, `${input:id}`, `${workspaceFolder}` and `${userHome}`; for the literal string, write `literal:…`
    error: x: consort.toml:3:53: cannot read `args[3]`: empty reference
      hint: supported references are `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${file:path}`, `${keyring:SERVICE/NAME}`, `${cmd:COMMAND}`, `${input:id}`, `${workspaceFolder}` and `${userHome}`; for the literal string, write `literal:…`
    ");
    assert_snapshot!(toml("command = 'x'\nenv = { A = 'env:MY-TOKEN', B = '${input:tokn}' }\n[[inputs]]\nid = 'token'\ntype = 'promptString'"), @"
    error: x: consort.toml:3:13: cannot read `env.A`: not a valid variable name
      hint: a variable name consists of letters, digits and `_`
    error: x: consort.toml:3:33: unknown input `tokn`
      hint: did you mean `token`?
    ");
    assert_snapshot!(complaints(&read("mcp.json", r#"{"inputs": [{"type": "pickString"}, {"id": "a", "type": "ask"}, 5], "servers": {}}"#)), @"
    error: mcp.json:1:13: `id` is missing
      hint: an input requires an `id`
    error: mcp.json:1:13: `options` is missing
      hint: an input of the type `pickString` requires `options`
    error: mcp.json:1:57: unknown value `ask` of `type`: expected `promptString` or `pickString`
    error: mcp.json:1:65: `inputs[2]` is a number: expected a table
    ");
}

#[test]
fn the_formats_of_other_systems_are_checked_as_well() {
    let off = r#"{"tool_service": {"enable_mcp": false, "mcp_servers": [{"name": "a", "endpoint": "http://localhost"}]}}"#;
    let config = read("x.json", off);
    assert_eq!(config.servers, []);
    assert_snapshot!(complaints(&config), @"
    warning: x.json:1:33: `enable_mcp` is false: none of the 1 servers is loaded
      hint: set `enable_mcp` to true
    ");
    let top = r#"{"enable_mcp": true, "mcp_servers": [{"name": "a", "endpoint": "ftp://x", "timeout": 0}]}"#;
    assert_snapshot!(complaints(&read("x.json", top)), @"
    error: a: x.json:1:64: `endpoint` is not a valid URL: expected a URL that starts with http:// or https://
    error: a: x.json:1:86: invalid `timeout`: expected at least `1ms`
    ");
    let script = r#"{"servers": [{"name": "a", "server_script_path": "x.rb"}, {"name": "b", "server_script_path": "x.py", "command": "y"}]}"#;
    assert_snapshot!(complaints(&read("x.json", script)), @"
    error: a: x.json:1:50: the script `x.rb` is neither Python nor JavaScript
      hint: use a script that ends in .py or .js, or set `command`
    error: b: x.json:1:95: `command` and `server_script_path` are mutually exclusive
    ");
    let codex = "[mcp_servers.a]\nurl = 'https://x.example'\nbearer_token_env_var = 'not a name'\nenv_http_headers = { A = 5 }\nenv_vars = [5]\n";
    assert_snapshot!(complaints(&read("config.toml", codex)), @"
    error: a: config.toml:3:24: cannot read `bearer_token_env_var`: not a valid variable name
      hint: a variable name consists of letters, digits and `_`
    error: a: config.toml:4:26: `env_http_headers.A` is a number: expected the name of an environment variable
    error: a: config.toml:5:13: `env_vars[0]` is a number: expected the name of an environment variable
    warning: a: config.toml:5:12: `env_vars` is ignored: the server is remote
    ");
    let zed = r#"{"context_servers": {"a": {"command": {"args": []}}, "b": {"command": {"path": "x", "arg": []}}}}"#;
    assert_snapshot!(complaints(&read("settings.json", zed)), @"
    error: a: settings.json:1:39: `command.path` is missing
      hint: it is the program to start
    warning: b: settings.json:1:85: unknown key `command.arg`
      hint: did you mean `args`?
    ");
}

#[test]
fn a_key_that_is_not_read_is_named() {
    let both = r#"{"mcpServers": {"a": {"command": "x"}}, "servers": {"b": {"command": "y"}}}"#;
    let config = read("mcp.json", both);
    assert_eq!(config.servers[0].name.as_str(), "a");
    assert_snapshot!(complaints(&config), @"warning: mcp.json:1:1: `servers` is ignored, because `mcpServers` is set too");
    // VS Code reads its own key in its own folder.
    assert_eq!(read(".vscode/mcp.json", both).servers[0].name.as_str(), "b");
}

#[test]
fn one_broken_server_does_not_take_the_rest_down() {
    let config = read(
        "consort.toml",
        "[mcp.a]\ncommand = 'a'\n[mcp.b]\nurl = 5\n[mcp.c]\nurl = 'https://c.example'\n",
    );
    let names: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["a", "c"]);
    assert_snapshot!(complaints(&config), @"error: b: consort.toml:4:7: `url` is a number: expected a string");
    assert_eq!(config.errors[0].server().unwrap().as_str(), "b");
}

#[test]
fn vs_code_settings_and_a_server_called_servers_are_told_apart() {
    let settings =
        r#"{"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"a": {"command": "x"}}}}"#;
    let config = read("settings.json", settings);
    assert_eq!((config.format, config.servers.len()), (ConfigFormat::VsCode, 1));
    let ours = read("consort.toml", "[mcp.servers]\ncommand = 'x'\n");
    assert_eq!((ours.format, ours.servers.len()), (ConfigFormat::Consort, 1));
}
