//! A realistic file of every format, read whole.

use insta::assert_snapshot;

use crate::{complaints, sample, shown};

#[test]
fn claude_desktop_keeps_programs_and_their_keys() {
    assert_snapshot!(shown(&sample("claude_desktop_config.json")), @r#"
    {
      "file": "claude_desktop_config.json",
      "format": "mcpServers",
      "servers": [
        {
          "name": "filesystem",
          "transport": "stdio",
          "command": "npx",
          "arguments": [
            "-y",
            "@modelcontextprotocol/server-filesystem",
            "/home/me/projects"
          ],
          "origin": {
            "file": "claude_desktop_config.json",
            "line": 4,
            "column": 5
          }
        },
        {
          "name": "github",
          "transport": "stdio",
          "command": "docker",
          "arguments": [
            "run",
            "-i",
            "--rm",
            "-e",
            "GITHUB_PERSONAL_ACCESS_TOKEN",
            "ghcr.io/github/github-mcp-server"
          ],
          "env": {
            "GITHUB_PERSONAL_ACCESS_TOKEN": "***",
            "GITHUB_TOOLSETS": "repos,issues"
          },
          "origin": {
            "file": "claude_desktop_config.json",
            "line": 8,
            "column": 5
          }
        },
        {
          "name": "my-notes",
          "transport": "stdio",
          "command": "/Users/me/My Tools/notes",
          "env": {
            "NOTES_PORT": "3000",
            "NOTES_SYNC": "true"
          },
          "origin": {
            "file": "claude_desktop_config.json",
            "line": 16,
            "column": 5
          }
        }
      ],
      "options": {}
    }
    warning: my-notes: claude_desktop_config.json:16:5: invalid name `my notes`: expected 1 to 64 letters, digits, `_` or `-`
      hint: renamed to `my-notes`
    "#);
}

#[test]
fn claude_code_writes_defaults_and_milliseconds() {
    assert_snapshot!(shown(&sample("claude_code.mcp.json")), @r#"
    {
      "file": "claude_code.mcp.json",
      "format": "mcpServers",
      "servers": [
        {
          "name": "api-server",
          "transport": "http",
          "url": "${API_BASE_URL:-https://api.example.com}/mcp",
          "headers": {
            "Authorization": "Bearer ${API_KEY}"
          },
          "timeout": {
            "idle": "10m"
          },
          "origin": {
            "file": "claude_code.mcp.json",
            "line": 3,
            "column": 5
          }
        },
        {
          "name": "events",
          "transport": "sse",
          "url": "https://events.example.com/sse",
          "origin": {
            "file": "claude_code.mcp.json",
            "line": 11,
            "column": 5
          }
        },
        {
          "name": "db",
          "transport": "stdio",
          "command": "npx",
          "arguments": [
            "-y",
            "@bytebase/dbhub",
            "--dsn",
            "***"
          ],
          "origin": {
            "file": "claude_code.mcp.json",
            "line": 15,
            "column": 5
          }
        }
      ],
      "options": {}
    }
    warning: api-server: claude_code.mcp.json:9:18: `timeout` is interpreted as 600000 milliseconds
      hint: add a unit, such as `"60s"`, if that is not intended
    "#);
}

#[test]
fn claude_code_keeps_the_servers_of_projects_apart() {
    assert_snapshot!(shown(&sample("claude.json")), @r#"
    {
      "file": "claude.json",
      "format": "mcpServers",
      "servers": [
        {
          "name": "memory",
          "transport": "stdio",
          "command": "npx",
          "arguments": [
            "-y",
            "@modelcontextprotocol/server-memory"
          ],
          "origin": {
            "file": "claude.json",
            "line": 4,
            "column": 5
          }
        }
      ],
      "projects": {
        "/home/me/shop": [
          {
            "name": "memory",
            "transport": "stdio",
            "command": "uvx",
            "arguments": [
              "shop-memory"
            ],
            "origin": {
              "file": "claude.json",
              "line": 10,
              "column": 9,
              "project": "/home/me/shop"
            }
          },
          {
            "name": "stripe",
            "transport": "http",
            "url": "https://mcp.stripe.com",
            "origin": {
              "file": "claude.json",
              "line": 11,
              "column": 9,
              "project": "/home/me/shop"
            }
          }
        ]
      },
      "options": {}
    }
    "#);
}

#[test]
fn the_servers_of_the_current_project_replace_those_of_the_user() {
    let names = |folder: &str| {
        let mut config = sample("claude.json");
        config.add_project_servers(folder.as_ref());
        let command = |server: &consort_config::ServerConfig| {
            let of = server.origin.project.as_ref().map(|of| of.display().to_string());
            format!("{} of {}", server.name, of.unwrap_or("the user".to_owned()))
        };
        (config.servers.iter().map(command).collect::<Vec<_>>().join(", "), config.projects.len())
    };
    let all = "memory of /home/me/shop, stripe of /home/me/shop";
    assert_eq!(names("/home/me/shop"), (all.to_owned(), 0));
    assert_eq!(names("/home/me/shop/src/deep"), (all.to_owned(), 0));
    assert_eq!(names("/home/me"), ("memory of the user".to_owned(), 1));
    assert_eq!(names("/home/me/shop2"), ("memory of the user".to_owned(), 1));
}

#[test]
fn a_server_that_claude_code_disabled_in_a_project_is_disabled_there_alone() {
    let text = r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}, "projects": {
        "/p": {"mcpServers": {"c": {"command": "c"}}, "disabledMcpServers": ["a", "c", "gone"]},
        "/q": {"disabledMcpServers": ["b"]}, "/r": {"allowedTools": []}}}"#;
    let enabled = |folder: &str| {
        let mut config = crate::read(".claude.json", text);
        config.add_project_servers(folder.as_ref());
        let enabled = config.servers.iter().filter(|server| !server.disabled);
        enabled.map(|server| server.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(enabled("/elsewhere"), "a b");
    assert_eq!(enabled("/p/src"), "b");
    assert_eq!(enabled("/q"), "a");
    assert_eq!(enabled("/r"), "a b");
}

#[test]
fn references_of_a_client_are_read_wherever_its_config_is() {
    let opencode = r#"{"$schema": "https://opencode.ai/config.json",
        "mcp": {"a": {"type": "local", "command": ["a"], "environment": {"A": "{env:TOKEN}"}}}}"#;
    let crush = r#"{"$schema": "https://charm.land/crush.json",
        "mcp": {"a": {"type": "stdio", "command": "a", "env": {"A": "$TOKEN"}}}}"#;
    for text in [opencode, crush] {
        let config = crate::read("config.json", text);
        let resolved =
            consort_config::convert(&config.servers, consort_config::TargetFormat::Consort);
        assert!(resolved.text.contains(r#"A = "env:TOKEN""#), "{}", resolved.text);
        assert_eq!(complaints(&config), "");
    }
    assert_snapshot!(complaints(&crate::read("mcp.json", r#"{"mcpServers": {"a": {"command": "a",
        "env": {"A": "$TOKEN", "B": "{env:TOKEN}", "C": "literal:$TOKEN"}}}}"#)), @r"
    warning: a: mcp.json:2:22: `env.A` contains `$NAME`, which reaches the server as it is written
      hint: for an environment variable, write `${NAME}`; for the string itself, `literal:…`
    warning: a: mcp.json:2:37: `env.B` contains `{env:NAME}`, which reaches the server as it is written
      hint: for an environment variable, write `${NAME}`; for the string itself, `literal:…`
    ");
}

#[test]
fn a_secret_of_another_store_is_refused_by_its_name_in_options_too() {
    assert_snapshot!(complaints(&crate::read("consort.toml", r#"
[consort.tokens]
ci = "op://Private/ci/token"
[consort.providers.p]
base_url = "https://p.example/v1"
key = "pass:models/p"
"#)), @r"
    error: consort.toml:3:6: cannot read `tokens.ci`: `op:` is not a secret reference that Consort knows
      hint: use `env:NAME`, `file:path`, `keyring:SERVICE/NAME`, or `cmd:COMMAND` with a program that prints the secret; for the literal string, write `literal:op:…`
    error: consort.toml:6:7: cannot read `providers.p.key`: `pass:` is not a secret reference that Consort knows
      hint: use `env:NAME`, `file:path`, `keyring:SERVICE/NAME`, or `cmd:COMMAND` with a program that prints the secret; for the literal string, write `literal:pass:…`
    ");
}

#[test]
fn cursor_refers_to_folders_and_variables() {
    assert_snapshot!(shown(&sample("cursor.json")), @r#"
    {
      "file": "cursor.json",
      "format": "mcpServers",
      "servers": [
        {
          "name": "linear",
          "transport": "http",
          "url": "https://mcp.linear.app/sse",
          "headers": {
            "X-API-Key": "${env:LINEAR_KEY}",
            "X-Team": "core"
          },
          "origin": {
            "file": "cursor.json",
            "line": 3,
            "column": 5
          }
        },
        {
          "name": "local",
          "transport": "stdio",
          "command": "${workspaceFolder}/tools/server",
          "arguments": [
            "--root",
            "${userHome}${/}data"
          ],
          "env_file": ".env",
          "cwd": "${workspaceFolder}",
          "disabled": true,
          "origin": {
            "file": "cursor.json",
            "line": 7,
            "column": 5
          }
        }
      ],
      "options": {}
    }
    "#);
}

#[test]
fn windsurf_and_others_have_their_own_names_for_a_url() {
    assert_snapshot!(shown(&sample("windsurf.json")), @r#"
    {
      "file": "windsurf.json",
      "format": "mcpServers",
      "servers": [
        {
          "name": "remote",
          "transport": "http",
          "url": "https://mcp.example.com/mcp",
          "headers": {
            "Authorization": "Bearer ${file:~/.tokens/example}"
          },
          "drop": [
            "delete_everything"
          ],
          "origin": {
            "file": "windsurf.json",
            "line": 3,
            "column": 5
          }
        },
        {
          "name": "gemini-style",
          "transport": "http",
          "url": "http://localhost:8080/mcp",
          "timeout": {
            "idle": "30s"
          },
          "origin": {
            "file": "windsurf.json",
            "line": 8,
            "column": 5
          }
        },
        {
          "name": "goose-style",
          "transport": "http",
          "url": "http://127.0.0.1:9000/mcp",
          "origin": {
            "file": "windsurf.json",
            "line": 9,
            "column": 5
          }
        }
      ],
      "options": {}
    }
    "#);
}

#[test]
fn vs_code_asks_and_comments() {
    assert_snapshot!(shown(&sample("project/.vscode/mcp.json")), @r#"
    {
      "file": "project/.vscode/mcp.json",
      "format": "vscode",
      "servers": [
        {
          "name": "perplexity",
          "transport": "stdio",
          "command": "npx",
          "arguments": [
            "-y",
            "server-perplexity-ask",
            "--region=${input:region}"
          ],
          "env": {
            "CACHE": "${workspaceFolder}/.cache/${workspaceFolderBasename}",
            "LOG": "${env:LOG_LEVEL}",
            "PERPLEXITY_API_KEY": "${input:perplexity-key}"
          },
          "inputs": [
            {
              "id": "region",
              "description": "Where to search",
              "type": "pickString",
              "options": [
                "eu",
                "us"
              ],
              "default": "eu"
            },
            {
              "id": "perplexity-key",
              "description": "Perplexity API Key",
              "type": "promptString",
              "password": true
            }
          ],
          "origin": {
            "file": "project/.vscode/mcp.json",
            "line": 19,
            "column": 5
          }
        },
        {
          "name": "github",
          "transport": "http",
          "url": "https://api.githubcopilot.com/mcp/",
          "origin": {
            "file": "project/.vscode/mcp.json",
            "line": 31,
            "column": 5
          }
        }
      ],
      "options": {}
    }
    "#);
}

#[test]
fn zed_has_two_shapes_and_extensions() {
    assert_snapshot!(shown(&sample("zed_settings.json")), @r#"
    {
      "file": "zed_settings.json",
      "format": "zed",
      "servers": [
        {
          "name": "postgres",
          "transport": "stdio",
          "command": "postgres-context-server",
          "arguments": [
            "--stdio"
          ],
          "env": {
            "DATABASE_URL": "postgres://***@localhost/app"
          },
          "timeout": {
            "idle": "2m"
          },
          "origin": {
            "file": "zed_settings.json",
            "line": 5,
            "column": 5
          }
        },
        {
          "name": "older",
          "transport": "stdio",
          "command": "node",
          "arguments": [
            "server.js"
          ],
          "env": {
            "DEBUG": "1"
          },
          "origin": {
            "file": "zed_settings.json",
            "line": 12,
            "column": 5
          }
        },
        {
          "name": "remote",
          "transport": "http",
          "url": "https://mcp.example.com/mcp",
          "headers": {
            "Authorization": "Bearer ***"
          },
          "disabled": true,
          "origin": {
            "file": "zed_settings.json",
            "line": 21,
            "column": 5
          }
        }
      ],
      "options": {}
    }
    warning: mcp-server-github: zed_settings.json:16:26: the server is part of a Zed extension, which only Zed can start
      hint: set its `command`
    "#);
}

#[test]
fn codex_names_variables_instead_of_writing_values() {
    assert_snapshot!(shown(&sample("codex.toml")), @r#"
    {
      "file": "codex.toml",
      "format": "codex",
      "servers": [
        {
          "name": "context7",
          "transport": "stdio",
          "command": "npx",
          "arguments": [
            "-y",
            "@upstash/context7-mcp"
          ],
          "env": {
            "MY_ENV_VAR": "MY_ENV_VALUE"
          },
          "inherit": [
            "LOCAL_TOKEN",
            "REMOTE_TOKEN"
          ],
          "timeout": {
            "idle": "45500ms",
            "connect": "20s"
          },
          "origin": {
            "file": "codex.toml",
            "line": 4,
            "column": 14
          }
        },
        {
          "name": "figma",
          "transport": "http",
          "url": "https://mcp.figma.com/mcp",
          "headers": {
            "X-Figma-Region": "us-east-1",
            "X-Trace": "env:TRACE_ID"
          },
          "auth": {
            "bearer": "env:FIGMA_OAUTH_TOKEN"
          },
          "keep": [
            "get_code"
          ],
          "disabled": true,
          "origin": {
            "file": "codex.toml",
            "line": 14,
            "column": 14
          }
        }
      ],
      "options": {}
    }
    "#);
}

#[test]
#[expect(clippy::too_many_lines, reason = "the snapshot shows every key there is")]
fn our_own_format_says_everything() {
    assert_snapshot!(shown(&sample("consort.toml")), @r#"
    {
      "file": "consort.toml",
      "format": "consort",
      "servers": [
        {
          "name": "weather",
          "transport": "stdio",
          "command": "python",
          "arguments": [
            "-m",
            "weather_mcp_server"
          ],
          "env": {
            "WEATHER_API_KEY": "env:WEATHER_API_KEY"
          },
          "origin": {
            "file": "consort.toml",
            "line": 7,
            "column": 6
          }
        },
        {
          "name": "database",
          "transport": "http",
          "url": "http://localhost:8080/mcp",
          "headers": {
            "Authorization": "env:DATABASE_TOKEN"
          },
          "origin": {
            "file": "consort.toml",
            "line": 12,
            "column": 6
          }
        },
        {
          "name": "search",
          "transport": "http",
          "url": "https://search.example.com/mcp",
          "auth": {
            "bearer": "file:search.token"
          },
          "timeout": {
            "idle": "30s",
            "total": "10m",
            "connect": "500ms"
          },
          "description": "Finds things",
          "era": "modern",
          "connect": "call",
          "idle_stop": "15m",
          "tools": {
            "deep_search": {
              "idle": "2m",
              "total": "1h"
            },
            "quick.search": {
              "idle": "5s"
            }
          },
          "origin": {
            "file": "consort.toml",
            "line": 17,
            "column": 6
          }
        },
        {
          "name": "vault",
          "transport": "stdio",
          "command": "vault-mcp",
          "arguments": [
            "--pin",
            "${input:pin}"
          ],
          "inherit": [
            "SSH_AUTH_SOCK"
          ],
          "cwd": "state",
          "disabled": true,
          "inputs": [
            {
              "id": "pin",
              "description": "PIN of the vault",
              "type": "promptString",
              "password": true
            }
          ],
          "origin": {
            "file": "consort.toml",
            "line": 32,
            "column": 6
          }
        },
        {
          "name": "intranet",
          "transport": "sse",
          "url": "http://tools.intranet/sse",
          "auth": {
            "api_key": {
              "header": "X-Intranet",
              "key": "${INTRANET_KEY}"
            }
          },
          "insecure": true,
          "origin": {
            "file": "consort.toml",
            "line": 39,
            "column": 6
          }
        }
      ],
      "options": {
        "builtin": false
      }
    }
    "#);
}

#[test]
fn a_list_of_endpoints_has_a_timeout_of_thirty_seconds() {
    assert_snapshot!(shown(&sample("aether.json")), @r#"
    {
      "file": "aether.json",
      "format": "aether",
      "servers": [
        {
          "name": "local_tools",
          "transport": "http",
          "url": "http://localhost:8000/mcp",
          "headers": {
            "Authorization": "Bearer ***"
          },
          "timeout": {
            "idle": "45s"
          },
          "origin": {
            "file": "aether.json",
            "line": 6,
            "column": 17
          }
        },
        {
          "name": "plain",
          "transport": "http",
          "url": "http://localhost:8002/mcp",
          "timeout": {
            "idle": "30s"
          },
          "origin": {
            "file": "aether.json",
            "line": 11,
            "column": 16
          }
        }
      ],
      "options": {}
    }
    "#);
}

#[test]
fn a_connection_of_its_own_is_read_with_its_auth() {
    assert_snapshot!(shown(&sample("aidk.json")), @r#"
    {
      "file": "aidk.json",
      "format": "aidk",
      "servers": [
        {
          "name": "filesystem-mcp",
          "transport": "stdio",
          "command": "npx",
          "arguments": [
            "-y",
            "@modelcontextprotocol/server-filesystem",
            "/path/to/allowed/dir"
          ],
          "env": {
            "DEBUG": "mcp"
          },
          "origin": {
            "file": "aidk.json",
            "line": 3,
            "column": 19
          }
        },
        {
          "name": "api-mcp",
          "transport": "sse",
          "url": "https://mcp.example.com/sse",
          "auth": {
            "bearer": "***"
          },
          "origin": {
            "file": "aidk.json",
            "line": 12,
            "column": 19
          }
        },
        {
          "name": "cloud-mcp",
          "transport": "http",
          "url": "https://mcp.cloud.example.com",
          "auth": {
            "api_key": {
              "header": "Authorization",
              "key": "env:CLOUD_TOKEN"
            }
          },
          "origin": {
            "file": "aidk.json",
            "line": 18,
            "column": 19
          }
        }
      ],
      "options": {}
    }
    warning: cloud-mcp: aidk.json:19:18: `transport` is interpreted as `http`: MCP has no WebSocket transport
      hint: use `http` (Streamable HTTP)
    "#);
    assert_snapshot!(shown(&sample("aidk_map.json")), @r#"
    {
      "file": "aidk_map.json",
      "format": "aidk",
      "servers": [
        {
          "name": "files",
          "transport": "stdio",
          "command": "npx",
          "arguments": [
            "-y",
            "server-filesystem"
          ],
          "origin": {
            "file": "aidk_map.json",
            "line": 2,
            "column": 3
          }
        },
        {
          "name": "keyed",
          "transport": "sse",
          "url": "https://mcp.example.com/sse",
          "auth": {
            "api_key": {
              "header": "X-API-Key",
              "key": "env:API_KEY"
            }
          },
          "origin": {
            "file": "aidk_map.json",
            "line": 3,
            "column": 3
          }
        }
      ],
      "options": {}
    }
    "#);
}

#[test]
fn scripts_run_by_what_their_names_end_in() {
    assert_snapshot!(shown(&sample("elysia.json")), @r#"
    {
      "file": "elysia.json",
      "format": "elysia",
      "servers": [
        {
          "name": "weather",
          "transport": "stdio",
          "command": "python3",
          "arguments": [
            "servers/weather.py"
          ],
          "description": "Forecasts for anywhere",
          "origin": {
            "file": "elysia.json",
            "line": 4,
            "column": 15
          }
        },
        {
          "name": "notes",
          "transport": "stdio",
          "command": "node",
          "arguments": [
            "./notes.js"
          ],
          "disabled": true,
          "origin": {
            "file": "elysia.json",
            "line": 9,
            "column": 15
          }
        },
        {
          "name": "crm",
          "transport": "sse",
          "url": "https://crm.example.com/sse",
          "headers": {
            "Authorization": "Bearer ${input:crm-token}"
          },
          "inputs": [
            {
              "id": "crm-token",
              "description": "CRM token",
              "type": "promptString",
              "password": true
            }
          ],
          "origin": {
            "file": "elysia.json",
            "line": 11,
            "column": 15
          }
        }
      ],
      "options": {}
    }
    "#);
}
