//! Tests of every format.

use insta::assert_snapshot;

use super::{MEMORY, WEB, added};

/// Two servers added to each of these, one after the other.
fn both_added(texts: &[(&str, &str)]) -> String {
    let both = |(file, text): &(&str, &str)| {
        let text = added(file, &added(file, text, MEMORY), WEB);
        format!("== {file}\n{}\n", text.trim_end())
    };
    texts.iter().map(both).collect()
}

#[test]
fn every_format_in_toml_is_added_to_in_its_own_words() {
    let texts = [
        ("consort.toml", ""),
        (
            "consort.toml",
            "# mine\n\n[consort]\nbuiltin = true\n\n[mcp.files] # here\ncommand = \"files\"\n\n# the rest\n[consort.profiles.small]\ntools = [\"x\"]\n",
        ),
        ("config.toml", "model = \"o3\"\n\n[mcp_servers.files]\ncommand = \"files\"\n"),
    ];
    assert_snapshot!(both_added(&texts), @r#"
    == consort.toml
    [mcp.memory]
    transport = "stdio"
    command = ["npx", "-y", "server-memory"]
    env = { KEY = "env:MEMORY_KEY" }

    [mcp.web]
    transport = "sse"
    url = "https://web.example/sse"
    headers = { Authorization = "Bearer ${TOKEN}" }
    keep = ["get_*"]
    == consort.toml
    # mine

    [consort]
    builtin = true

    [mcp.files] # here
    command = "files"

    [mcp.memory]
    transport = "stdio"
    command = ["npx", "-y", "server-memory"]
    env = { KEY = "env:MEMORY_KEY" }

    [mcp.web]
    transport = "sse"
    url = "https://web.example/sse"
    headers = { Authorization = "Bearer ${TOKEN}" }
    keep = ["get_*"]

    # the rest
    [consort.profiles.small]
    tools = ["x"]
    == config.toml
    model = "o3"

    [mcp_servers.files]
    command = "files"

    [mcp_servers.memory]
    command = "npx"
    args = ["-y", "server-memory"]
    env = { KEY = "${MEMORY_KEY}" }

    [mcp_servers.web]
    url = "https://web.example/sse"
    bearer_token_env_var = "TOKEN"
    enabled_tools = ["get_*"]
    type = "sse"
    "#);
}

#[test]
fn every_format_in_json_is_added_to_in_its_own_words() {
    let texts = [
        ("mcp.json", ""),
        (".vscode/mcp.json", "{}"),
        ("settings.json", r#"{"mcp": {"servers": {"files": {"command": "files"}}}}"#),
        ("settings.json", "{\n\t\"context_servers\": {}\n}\n"),
    ];
    assert_snapshot!(both_added(&texts), @r#"
    == mcp.json
    {
      "mcpServers": {
        "memory": {
          "command": "npx",
          "args": ["-y", "server-memory"],
          "env": {
            "KEY": "${MEMORY_KEY}"
          }
        },
        "web": {
          "type": "sse",
          "url": "https://web.example/sse",
          "headers": {
            "Authorization": "Bearer ${TOKEN}"
          },
          "keep": ["get_*"]
        }
      }
    }
    == .vscode/mcp.json
    {
      "servers": {
        "memory": {
          "type": "stdio",
          "command": "npx",
          "args": ["-y", "server-memory"],
          "env": {
            "KEY": "${env:MEMORY_KEY}"
          }
        },
        "web": {
          "type": "sse",
          "url": "https://web.example/sse",
          "headers": {
            "Authorization": "Bearer ${env:TOKEN}"
          },
          "keep": ["get_*"]
        }
      }
    }
    == settings.json
    {"mcp": {"servers": {
          "files": {"command": "files"},
          "memory": {
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "server-memory"],
            "env": {
              "KEY": "${env:MEMORY_KEY}"
            }
          },
          "web": {
            "type": "sse",
            "url": "https://web.example/sse",
            "headers": {
              "Authorization": "Bearer ${env:TOKEN}"
            },
            "keep": ["get_*"]
          }
        }}}
    == settings.json
    {
    	"context_servers": {
    		"memory": {
    			"source": "custom",
    			"command": "npx",
    			"args": ["-y", "server-memory"],
    			"env": {
    				"KEY": "${MEMORY_KEY}"
    			}
    		},
    		"web": {
    			"source": "custom",
    			"url": "https://web.example/sse",
    			"headers": {
    				"Authorization": "Bearer ${TOKEN}"
    			},
    			"type": "sse",
    			"keep": ["get_*"]
    		}
    	}
    }
    "#);
}
