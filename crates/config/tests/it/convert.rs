//! From every format to every other.

use consort_config::{Config, LineColumn, ServerConfig, ServerOrigin, TargetFormat, convert};
use insta::assert_snapshot;

use crate::{read, sample};

const SAMPLES: [&str; 13] = [
    "claude_desktop_config.json",
    "claude_code.mcp.json",
    "claude.json",
    "cursor.json",
    "windsurf.json",
    "project/.vscode/mcp.json",
    "zed_settings.json",
    "codex.toml",
    "consort.toml",
    "aether.json",
    "aidk.json",
    "aidk_map.json",
    "elysia.json",
];

/// The text with what was lost on the way.
fn converted(config: &Config, target: TargetFormat) -> String {
    let converted = convert(&config.servers, target);
    format!("{}{}", converted.text, crate::listed(&converted.problems))
}

/// The servers, wherever they are written.
fn anywhere(servers: &[ServerConfig]) -> Vec<ServerConfig> {
    let origin =
        ServerOrigin { file: "x".into(), spot: LineColumn::default(), project: None, config: None };
    servers.iter().map(|server| ServerConfig { origin: origin.clone(), ..server.clone() }).collect()
}

/// The servers after they were written for somebody and read again.
fn there_and_back(servers: &[ServerConfig], target: TargetFormat) -> Vec<ServerConfig> {
    let text = convert(servers, target).text;
    let config = read("x", &text);
    assert_eq!(crate::complaints(&config), "", "{text}");
    anywhere(&config.servers)
}

#[test]
fn our_own_format_can_say_everything() {
    for name in SAMPLES {
        let servers = anywhere(&sample(name).servers);
        assert_eq!(there_and_back(&servers, TargetFormat::Consort), servers, "{name}");
    }
}

#[test]
fn a_second_conversion_loses_nothing_more() {
    for name in SAMPLES {
        let mut servers = sample(name).servers;
        // Only we refuse its plain address, so only we have a word to allow it.
        servers.retain(|server| server.name.as_str() != "intranet");
        for (_, target) in TargetFormat::ALL {
            let once = there_and_back(&servers, target);
            assert_eq!(there_and_back(&once, target), once, "{name} as {target}");
        }
    }
}

#[test]
fn every_format_keeps_what_it_can_say() {
    for (name, target) in [
        ("claude_desktop_config.json", TargetFormat::McpServers),
        ("project/.vscode/mcp.json", TargetFormat::VsCode),
        ("zed_settings.json", TargetFormat::Zed),
        ("codex.toml", TargetFormat::Codex),
    ] {
        let servers = anywhere(&sample(name).servers);
        assert_eq!(there_and_back(&servers, target), servers, "{name}");
    }
}

#[test]
fn our_own_format_is_readable() {
    assert_snapshot!(converted(&sample("consort.toml"), TargetFormat::Consort), @r#"
    [[inputs]]
    id = "pin"
    type = "promptString"
    description = "PIN of the vault"
    password = true

    [mcp.weather]
    transport = "stdio"
    command = ["python", "-m", "weather_mcp_server"]

    [mcp.weather.env]
    WEATHER_API_KEY = "env:WEATHER_API_KEY"

    [mcp.database]
    transport = "http"
    url = "http://localhost:8080/mcp"

    [mcp.database.headers]
    Authorization = "env:DATABASE_TOKEN"

    [mcp.search]
    transport = "http"
    url = "https://search.example.com/mcp"
    description = "Finds things"
    era = "modern"
    connect = "call"
    idle_stop = "15m"

    [mcp.search.auth]
    bearer = "file:search.token"

    [mcp.search.timeout]
    idle = "30s"
    total = "10m"
    connect = "500ms"

    [mcp.search.tools.deep_search.timeout]
    idle = "2m"
    total = "1h"

    [mcp.search.tools."quick.search".timeout]
    idle = "5s"

    [mcp.vault]
    transport = "stdio"
    command = ["vault-mcp", "--pin", "${input:pin}"]
    cwd = "state"
    inherit_env = ["SSH_AUTH_SOCK"]
    disabled = true

    [mcp.intranet]
    transport = "sse"
    url = "http://tools.intranet/sse"
    insecure = true

    [mcp.intranet.auth]
    api_key = "env:INTRANET_KEY"
    header = "X-Intranet"
    "#);
}

#[test]
fn mcp_servers_has_variables_and_headers() {
    assert_snapshot!(converted(&sample("consort.toml"), TargetFormat::McpServers), @r#"
    {
      "mcpServers": {
        "weather": {
          "command": "python",
          "args": [
            "-m",
            "weather_mcp_server"
          ],
          "env": {
            "WEATHER_API_KEY": "${WEATHER_API_KEY}"
          }
        },
        "database": {
          "type": "http",
          "url": "http://localhost:8080/mcp",
          "headers": {
            "Authorization": "${DATABASE_TOKEN}"
          }
        },
        "search": {
          "type": "http",
          "url": "https://search.example.com/mcp",
          "headers": {
            "Authorization": "Bearer ${file:search.token}"
          }
        },
        "vault": {
          "command": "vault-mcp",
          "args": [
            "--pin",
            "${PIN}"
          ],
          "cwd": "state",
          "disabled": true
        },
        "intranet": {
          "type": "sse",
          "url": "http://tools.intranet/sse",
          "headers": {
            "X-Intranet": "${INTRANET_KEY}"
          }
        }
      }
    }
    warning: search: `mcpServers` has no equivalent of `description`, `era`, `connect`, `idle_stop`, `timeout.idle`, `timeout.total`, `timeout.connect`, `tools`: omitted
    warning: search: `mcpServers` does not resolve the reference in `headers.Authorization`
      hint: replace it by the value, or let the client use Consort
    warning: vault: `mcpServers` has no equivalent of `inherit_env`: omitted
    warning: vault: `mcpServers` has no prompts: the input `pin` becomes an environment variable
      hint: set `PIN`
    "#);
}

#[test]
fn vs_code_has_inputs() {
    assert_snapshot!(converted(&sample("consort.toml"), TargetFormat::VsCode), @r#"
    {
      "servers": {
        "weather": {
          "type": "stdio",
          "command": "python",
          "args": [
            "-m",
            "weather_mcp_server"
          ],
          "env": {
            "WEATHER_API_KEY": "${env:WEATHER_API_KEY}"
          }
        },
        "database": {
          "type": "http",
          "url": "http://localhost:8080/mcp",
          "headers": {
            "Authorization": "${env:DATABASE_TOKEN}"
          }
        },
        "search": {
          "type": "http",
          "url": "https://search.example.com/mcp",
          "headers": {
            "Authorization": "Bearer ${file:search.token}"
          }
        },
        "intranet": {
          "type": "sse",
          "url": "http://tools.intranet/sse",
          "headers": {
            "X-Intranet": "${env:INTRANET_KEY}"
          }
        }
      }
    }
    warning: vault: omitted: VS Code has no setting for a disabled server
    warning: search: VS Code has no equivalent of `description`, `era`, `connect`, `idle_stop`, `timeout.idle`, `timeout.total`, `timeout.connect`, `tools`: omitted
    warning: search: VS Code does not resolve the reference in `headers.Authorization`
      hint: replace it by the value, or let the client use Consort
    "#);
}

#[test]
fn zed_follows_no_references() {
    assert_snapshot!(converted(&sample("consort.toml"), TargetFormat::Zed), @r#"
    {
      "context_servers": {
        "weather": {
          "source": "custom",
          "command": "python",
          "args": [
            "-m",
            "weather_mcp_server"
          ],
          "env": {
            "WEATHER_API_KEY": "${WEATHER_API_KEY}"
          }
        },
        "database": {
          "source": "custom",
          "url": "http://localhost:8080/mcp",
          "headers": {
            "Authorization": "${DATABASE_TOKEN}"
          }
        },
        "search": {
          "source": "custom",
          "url": "https://search.example.com/mcp",
          "headers": {
            "Authorization": "Bearer ${file:search.token}"
          },
          "timeout": 30
        },
        "vault": {
          "source": "custom",
          "enabled": false,
          "command": "vault-mcp",
          "args": [
            "--pin",
            "${PIN}"
          ]
        },
        "intranet": {
          "source": "custom",
          "url": "http://tools.intranet/sse",
          "headers": {
            "X-Intranet": "${INTRANET_KEY}"
          }
        }
      }
    }
    warning: weather: Zed does not resolve the reference in `env.WEATHER_API_KEY`
      hint: replace it by the value, or let the client use Consort
    warning: database: Zed does not resolve the reference in `headers.Authorization`
      hint: replace it by the value, or let the client use Consort
    warning: search: Zed has no equivalent of `description`, `era`, `connect`, `idle_stop`, `timeout.total`, `timeout.connect`, `tools`: omitted
    warning: search: Zed does not resolve the reference in `headers.Authorization`
      hint: replace it by the value, or let the client use Consort
    warning: vault: Zed has no equivalent of `inherit_env`, `cwd`: omitted
    warning: vault: Zed does not resolve the reference in `args`
      hint: replace it by the value, or let the client use Consort
    warning: vault: Zed has no prompts: the input `pin` becomes an environment variable
      hint: set `PIN`
    warning: intranet: Zed supports Streamable HTTP, not HTTP+SSE
      hint: check whether the server has a Streamable HTTP URL
    warning: intranet: Zed does not resolve the reference in `headers.X-Intranet`
      hint: replace it by the value, or let the client use Consort
    "#);
}

#[test]
fn codex_has_its_own_keys_for_variables() {
    assert_snapshot!(converted(&sample("claude_code.mcp.json"), TargetFormat::Codex), @r#"
    [mcp_servers.api-server]
    url = "${API_BASE_URL:-https://api.example.com}/mcp"
    bearer_token_env_var = "API_KEY"
    tool_timeout_sec = 600

    [mcp_servers.events]
    url = "https://events.example.com/sse"

    [mcp_servers.db]
    command = "npx"
    args = ["-y", "@bytebase/dbhub", "--dsn", "postgresql://reader:hunter2@db.example.com:5432/app"]
    warning: api-server: Codex does not resolve the reference in `url`
      hint: replace it by the value, or let the client use Consort
    warning: events: Codex supports Streamable HTTP, not HTTP+SSE
      hint: check whether the server has a Streamable HTTP URL
    warning: db: `args` contains a secret, which is written in plain text
      hint: use a reference such as `env:NAME`
    "#);
    let text = r#"{"mcpServers": {
        "a": {"command": "x", "env": {"TOKEN": "${TOKEN}", "OTHER": "${TOKEN}", "PLAIN": "1"}},
        "b": {"url": "https://x.example/mcp", "headers": {"X-Key": "env:KEY", "X-Mixed": "k=${KEY}"}}
    }}"#;
    assert_snapshot!(converted(&read(".mcp.json", text), TargetFormat::Codex), @r#"
    [mcp_servers.a]
    command = "x"
    env_vars = ["TOKEN"]

    [mcp_servers.a.env]
    OTHER = "${TOKEN}"
    PLAIN = "1"

    [mcp_servers.b]
    url = "https://x.example/mcp"

    [mcp_servers.b.http_headers]
    X-Mixed = "k=${KEY}"

    [mcp_servers.b.env_http_headers]
    X-Key = "KEY"
    warning: a: Codex does not resolve the reference in `env.OTHER`
      hint: replace it by the value, or let the client use Consort
    warning: b: Codex does not resolve the reference in `headers.X-Mixed`
      hint: replace it by the value, or let the client use Consort
    "#);
}

#[test]
fn two_servers_of_one_name_cannot_both_be_written() {
    let servers = sample("cursor.json").servers;
    let twice: Vec<ServerConfig> = [&servers[..], &servers[..1]].concat();
    let problems = convert(&twice, TargetFormat::McpServers).problems;
    assert_snapshot!(problems[0], @"linear: omitted: another server is named `linear`");
}

#[test]
fn a_format_nobody_knows_is_refused_with_those_we_know() {
    assert_eq!("VSCode".parse(), Ok(TargetFormat::VsCode));
    assert_snapshot!("goose".parse::<TargetFormat>().unwrap_err(), @"unknown format `goose`: expected `mcpServers`, `vscode`, `zed`, `codex` or `consort`");
}
