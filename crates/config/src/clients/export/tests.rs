//! Snippets, changed configs and install links of clients.

use std::path::Path;

use base64::Engine;
use insta::assert_snapshot;
use serde_json::Value;

use super::yaml::{PRESENT, STYLE};
use super::*;
use crate::clients::KNOWN_CLIENTS;
use crate::clients::import::FolderLayout;
use crate::config::Config;

fn program() -> ExportMode {
    let arguments = ["serve", "--stdio", "--config", "/home/me/my \"own\" #1.toml"];
    ExportMode::Program {
        command: "/bin/consort".into(),
        arguments: arguments.map(str::to_owned).to_vec(),
    }
}

fn url() -> ExportMode {
    ExportMode::Url { url: "http://127.0.0.1:8080/mcp".into(), token: Some("t0ken".into()) }
}

fn client(id: &str) -> &'static KnownClient {
    KnownClient::find(id).unwrap()
}

#[test]
fn every_client_wants_it_in_its_own_words() {
    let written =
        |client: &KnownClient, mode: &ExportMode| serde_json::to_string(&(client.entry)(mode));
    let lines = |client: &KnownClient| {
        let path = client.servers.join("/");
        [program(), url()]
            .map(|mode| format!("{} {path} {}\n", client.id, written(client, &mode).unwrap()))
    };
    assert_snapshot!(KNOWN_CLIENTS.iter().flat_map(lines).collect::<String>(), @r#"
    claude-desktop mcpServers {"command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    claude-desktop mcpServers {"command":"npx","args":["-y","mcp-remote@^0.1.16","http://127.0.0.1:8080/mcp","--allow-http","--header","Authorization:${CONSORT_TOKEN}"],"env":{"CONSORT_TOKEN":"Bearer t0ken"}}
    claude-code mcpServers {"type":"stdio","command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    claude-code mcpServers {"type":"http","url":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"}}
    cursor mcpServers {"command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    cursor mcpServers {"url":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"}}
    windsurf mcpServers {"command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    windsurf mcpServers {"serverUrl":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"}}
    vscode servers {"type":"stdio","command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    vscode servers {"type":"http","url":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"}}
    zed context_servers {"source":"custom","command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    zed context_servers {"source":"custom","url":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"}}
    codex mcp_servers {"command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    codex mcp_servers {"url":"http://127.0.0.1:8080/mcp","http_headers":{"Authorization":"Bearer t0ken"}}
    gemini-cli mcpServers {"command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    gemini-cli mcpServers {"httpUrl":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"}}
    copilot-cli mcpServers {"type":"local","command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"],"tools":["*"]}
    copilot-cli mcpServers {"type":"http","url":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"},"tools":["*"]}
    goose extensions {"enabled":true,"name":"consort","description":"All MCP servers of Consort","timeout":300,"type":"stdio","cmd":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    goose extensions {"enabled":true,"name":"consort","description":"All MCP servers of Consort","timeout":300,"type":"streamable_http","uri":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"}}
    continue mcpServers {"name":"consort","command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    continue mcpServers {"name":"consort","type":"streamable-http","url":"http://127.0.0.1:8080/mcp","requestOptions":{"headers":{"Authorization":"Bearer t0ken"}}}
    opencode mcp {"type":"local","command":["/bin/consort","serve","--stdio","--config","/home/me/my \"own\" #1.toml"],"enabled":true}
    opencode mcp {"type":"remote","url":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"},"enabled":true}
    amp amp.mcpServers {"command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    amp amp.mcpServers {"url":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"}}
    crush mcp {"type":"stdio","command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    crush mcp {"type":"http","url":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"}}
    kiro mcpServers {"command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    kiro mcpServers {"url":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"}}
    lm-studio mcpServers {"command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    lm-studio mcpServers {"url":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"}}
    junie mcpServers {"command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    junie mcpServers {"command":"npx","args":["-y","mcp-remote@^0.1.16","http://127.0.0.1:8080/mcp","--allow-http","--header","Authorization:${CONSORT_TOKEN}"],"env":{"CONSORT_TOKEN":"Bearer t0ken"}}
    librechat mcpServers {"type":"stdio","command":"/bin/consort","args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]}
    librechat mcpServers {"type":"streamable-http","url":"http://127.0.0.1:8080/mcp","headers":{"Authorization":"Bearer t0ken"}}
    "#);
    assert!(!format!("{:?}", url()).contains("t0ken"));
}

#[test]
fn a_snippet_is_a_whole_config() {
    let snippets = ["claude-code", "codex", "continue"].map(|id| snippet(client(id), &url()));
    assert_snapshot!(snippets.concat(), @r#"
    {
      "mcpServers": {
        "consort": {
          "type": "http",
          "url": "http://127.0.0.1:8080/mcp",
          "headers": {
            "Authorization": "Bearer t0ken"
          }
        }
      }
    }
    [mcp_servers.consort]
    url = "http://127.0.0.1:8080/mcp"
    http_headers = { Authorization = "Bearer t0ken" }
    mcpServers:
      - name: "consort"
        type: "streamable-http"
        url: "http://127.0.0.1:8080/mcp"
        requestOptions:
          headers:
            Authorization: "Bearer t0ken"
    "#);
}

#[test]
fn what_is_written_for_a_client_is_read_as_that_client_reads_it() {
    for client in KNOWN_CLIENTS {
        let file = Path::new(client.written_files(FolderLayout::Linux)[0]);
        let read = |mode: &ExportMode| {
            let config = Config::parse(file, &snippet(client, mode)).unwrap();
            assert_eq!(config.format, client.format, "{client}");
            assert!(config.errors.is_empty() && config.problems.is_empty(), "{client}");
            let [server] = &config.servers[..] else { panic!("{client} has not one server") };
            assert_eq!((server.name.as_str(), server.disabled), (ENTRY_NAME, false), "{client}");
            serde_json::to_value(&server.transport).unwrap()
        };
        let started = read(&program());
        assert_eq!(started["command"], "/bin/consort", "{client}");
        assert_eq!(started["arguments"][3], "/home/me/my \"own\" #1.toml", "{client}");
        let remote = read(&url());
        if remote["transport"] == "stdio" {
            assert!(remote["arguments"].to_string().contains("mcp-remote"), "{client}");
        } else {
            assert_eq!(remote["transport"], "http", "{client}");
            assert_eq!(remote["url"], "http://127.0.0.1:8080/mcp", "{client}");
            assert_eq!(remote["headers"]["Authorization"], "Bearer ***", "{client}");
        }
    }
}

#[test]
fn what_is_there_stays_as_it_is_written() {
    let text = "// mine\n{\n\t\"theme\": \"dark\", // odd\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"x\"}, /* kept */\n\t},\n}\n";
    let once = export(client("cursor"), &program(), text).unwrap();
    assert_snapshot!(once, @r#"
    // mine
    {
    	"theme": "dark", // odd
    	"mcpServers": {
    		"a": {"command": "x"}, /* kept */
    		"consort": {
    			"command": "/bin/consort",
    			"args": ["serve", "--stdio", "--config", "/home/me/my \"own\" #1.toml"],
    		},
    	},
    }
    "#);
    assert_eq!(export(client("cursor"), &program(), &once).unwrap(), once, "twice is once");
    let other = export(client("cursor"), &url(), &once).unwrap();
    assert_snapshot!(other, @r#"
    // mine
    {
    	"theme": "dark", // odd
    	"mcpServers": {
    		"a": {"command": "x"}, /* kept */
    		"consort": {
    			"url": "http://127.0.0.1:8080/mcp",
    			"headers": {
    				"Authorization": "Bearer t0ken",
    			},
    		},
    	},
    }
    "#);
}

#[test]
fn codex_keeps_its_comments_and_an_entry_is_replaced_where_it_is() {
    let text =
        "# mine\nmodel = \"x\" # odd\n\n[mcp_servers.a]\ncommand = \"a\"\n\n[tui]\ntheme = 1\n";
    let once = export(client("codex"), &program(), text).unwrap();
    assert_snapshot!(once, @r#"
    # mine
    model = "x" # odd

    [mcp_servers.a]
    command = "a"

    [mcp_servers.consort]
    command = "/bin/consort"
    args = ["serve", "--stdio", "--config", '/home/me/my "own" #1.toml']

    [tui]
    theme = 1
    "#);
    assert_eq!(export(client("codex"), &program(), &once).unwrap(), once, "twice is once");
    let other = export(
        client("codex"),
        &url(),
        &once.replace("[mcp_servers.consort]", "# ours\n[mcp_servers.consort]"),
    )
    .unwrap();
    assert_snapshot!(other, @r#"
    # mine
    model = "x" # odd

    [mcp_servers.a]
    command = "a"

    # ours
    [mcp_servers.consort]
    url = "http://127.0.0.1:8080/mcp"
    http_headers = { Authorization = "Bearer t0ken" }

    [tui]
    theme = 1
    "#);
    let inline = export(client("codex"), &url(), "mcp_servers = { a = { command = \"a\" } }\n");
    assert_snapshot!(inline.unwrap(), @r#"mcp_servers = { a = { command = "a" } , consort = { url = "http://127.0.0.1:8080/mcp", http_headers = { Authorization = "Bearer t0ken" } } }"#);
}

#[test]
fn an_entry_finds_its_place_wherever_there_is_none() {
    let fresh = snippet(client("vscode"), &program());
    for text in ["", " \n", "{}", "\u{feff}{}", "{\"servers\": {}}", "{\"inputs\": [1]}"] {
        let made = export(client("vscode"), &program(), text).unwrap();
        let read: Value = serde_json::from_str(made.trim_start_matches('\u{feff}')).unwrap();
        let fresh: Value = serde_json::from_str(&fresh).unwrap();
        assert_eq!(read["servers"], fresh["servers"], "{text}");
        assert_eq!(made.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
    }
}

#[test]
fn opencode_of_version_2_gets_it_one_level_deeper() {
    let text = "{\"mcp\": {\"servers\": {\"a\": {\"type\": \"local\", \"command\": [\"a\"]}}}}";
    let made = export(client("opencode"), &program(), text).unwrap();
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(made["mcp"]["servers"]["consort"]["command"][0], "/bin/consort");
    assert!(made["mcp"]["servers"]["consort"].get("enabled").is_none(), "{made}");
    let text = "{\"mcp\": {\"servers\": {\"type\": \"remote\", \"url\": \"https://a.example\"}}}";
    let made = export(client("opencode"), &program(), text).unwrap();
    assert!(made.contains("\"enabled\": true"), "a server may be called `servers`: {made}");
}

#[test]
fn yaml_gets_new_lines_between_those_that_are_there() {
    let text = "# mine\nGOOSE_MODEL: x   # odd\n\nextensions: # all\n    # first\n    memory: {type: builtin, enabled: true}\n    notes:\n        cmd: |\n            # no comment\n        type: stdio\n# end\nlast: 'it'\n";
    let once = export(client("goose"), &program(), text).unwrap();
    assert_snapshot!(once, @r#"
    # mine
    GOOSE_MODEL: x   # odd

    extensions: # all
        consort:
          enabled: true
          name: "consort"
          description: "All MCP servers of Consort"
          timeout: 300
          type: "stdio"
          cmd: "/bin/consort"
          args: ["serve","--stdio","--config","/home/me/my \"own\" #1.toml"]
        # first
        memory: {type: builtin, enabled: true}
        notes:
            cmd: |
                # no comment
            type: stdio
    # end
    last: 'it'
    "#);
    assert_eq!(export(client("goose"), &program(), &once).unwrap(), once, "twice is once");
    assert_eq!(once.lines().filter(|line| text.contains(line)).count(), text.lines().count());
    let list = "mcpServers:\r\n- name: a\r\n  command: a\r\nmodels: []";
    let made = export(client("continue"), &url(), list).unwrap();
    assert!(made.ends_with("models: []") && !made.replace("\r\n", "").contains('\n'));
    assert_snapshot!(made.replace('\r', ""), @r#"
    mcpServers:
    - name: "consort"
      type: "streamable-http"
      url: "http://127.0.0.1:8080/mcp"
      requestOptions:
        headers:
          Authorization: "Bearer t0ken"
    - name: a
      command: a
    models: []
    "#);
    for text in ["a: 1", "a: 1\n", "mcpServers:\n", "mcpServers: # none\nb: 2\n", "---\na: 1\n"] {
        let made = export(client("librechat"), &program(), text).unwrap();
        assert!(text.lines().all(|line| made.contains(line)), "{made}");
        assert_eq!(Config::parse(Path::new("librechat.yaml"), &made).unwrap().servers.len(), 1);
    }
}

#[test]
fn what_cannot_be_added_to_is_left_alone() {
    let wrong =
        |id: &str, text: &str| export(client(id), &program(), text).unwrap_err().to_string();
    assert_eq!(wrong("cursor", "[]"), "the document is not an object");
    assert_eq!(wrong("cursor", "{\"mcpServers\": []}"), "`mcpServers` is not an object");
    assert_eq!(wrong("cursor", "{\n\"a\": [}"), "line 2 is not JSON: unexpected close brace");
    assert_eq!(wrong("codex", "a = 1\nb"), "line 2 is not TOML: key with no value, expected `=`");
    assert_eq!(wrong("codex", "mcp_servers = 1"), "`mcp_servers` is not an object");
    assert_eq!(wrong("goose", "- a\n"), "the document is not an object");
    assert_eq!(
        wrong("goose", "a: [1\n"),
        "line 2 is not YAML: while parsing a flow sequence, expected ',' or ']'"
    );
    assert_eq!(wrong("goose", "extensions: {}\n"), STYLE);
    assert_eq!(wrong("goose", "extensions: {a: {type: stdio}}\n"), STYLE);
    assert_eq!(wrong("goose", "a: 1\n...\n"), STYLE);
    assert_eq!(wrong("goose", "extensions:\n  consort:\n    cmd: y\n"), PRESENT);
    assert_eq!(wrong("continue", "mcpServers:\n  - name: consort\n    command: y\n"), PRESENT);
}

#[test]
fn a_link_installs_the_entry_and_never_holds_the_token() {
    let cursor = |mode: &ExportMode| {
        let link = install_link(client("cursor"), mode).unwrap();
        let start = "cursor://anysphere.cursor-deeplink/mcp/install?name=consort&config=";
        let config = link.strip_prefix(start).unwrap();
        let config = config.replace("%3D", "=").replace("%2B", "+").replace("%2F", "/");
        let config = base64::engine::general_purpose::STANDARD.decode(config).unwrap();
        String::from_utf8(config).unwrap()
    };
    let vscode = |mode: &ExportMode| install_link(client("vscode"), mode).unwrap();
    assert_snapshot!(cursor(&program()), @r#"{"args":["serve","--stdio","--config","/home/me/my \"own\" #1.toml"],"command":"/bin/consort"}"#);
    assert_snapshot!(cursor(&url()), @r#"{"headers":{"Authorization":"Bearer ${env:CONSORT_TOKEN}"},"url":"http://127.0.0.1:8080/mcp"}"#);
    assert_snapshot!(vscode(&program()), @"vscode:mcp/install?%7B%22args%22%3A%5B%22serve%22%2C%22--stdio%22%2C%22--config%22%2C%22%2Fhome%2Fme%2Fmy%20%5C%22own%5C%22%20%231.toml%22%5D%2C%22command%22%3A%22%2Fbin%2Fconsort%22%2C%22name%22%3A%22consort%22%2C%22type%22%3A%22stdio%22%7D");
    assert_snapshot!(vscode(&url()), @"vscode:mcp/install?%7B%22headers%22%3A%7B%22Authorization%22%3A%22Bearer%20%24%7Binput%3Aconsort-token%7D%22%7D%2C%22inputs%22%3A%5B%7B%22description%22%3A%22Token%20of%20the%20Consort%20gateway%22%2C%22id%22%3A%22consort-token%22%2C%22password%22%3Atrue%2C%22type%22%3A%22promptString%22%7D%5D%2C%22name%22%3A%22consort%22%2C%22type%22%3A%22http%22%2C%22url%22%3A%22http%3A%2F%2F127.0.0.1%3A8080%2Fmcp%22%7D");
    let open = ExportMode::Url { url: "http://127.0.0.1:8080/mcp".into(), token: None };
    assert_snapshot!(cursor(&open), @r#"{"url":"http://127.0.0.1:8080/mcp"}"#);
    assert!(!vscode(&open).contains("inputs"));
    for client in KNOWN_CLIENTS {
        assert!(install_link(client, &url()).is_none_or(|link| !link.contains("t0ken")));
    }
    assert_eq!(install_link(client("zed"), &url()), None);
}
