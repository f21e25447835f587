//! The gateway in the config of other clients.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::Value;

use crate::{Home, Ran};

/// What was printed, without what differs from machine to machine.
fn plain(home: &Home, text: &str) -> String {
    text.replace(env!("CARGO_BIN_EXE_consort"), "CONSORT")
        .replace(std::fs::canonicalize(home.path("")).unwrap().to_str().unwrap(), "HOME")
        .replace(home.path("").to_str().unwrap().trim_end_matches('/'), "HOME")
}

fn exported(home: &Home, arguments: &[&str]) -> Ran {
    home.run(&[&["config", "export"], arguments].concat())
}

fn backups(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    entries.filter(|path| path.display().to_string().contains(".bak-")).collect()
}

#[test]
fn a_client_without_a_config_gets_one() {
    let home = Home::new();
    let ran = exported(&home, &["cursor"]);
    assert_eq!(ran.code, 0);
    assert_snapshot!(ran.err, @"
    warning: no config found: the client gets the bundled demo server
       hint: use --config FILE, or add a server with `consort add`
    ");
    assert_snapshot!(plain(&home, &ran.out), @"Cursor will use Consort from its next start: HOME/.cursor/mcp.json");
    let file = home.path(".cursor/mcp.json");
    assert_snapshot!(plain(&home, &std::fs::read_to_string(&file).unwrap()), @r#"
    {
      "mcpServers": {
        "consort": {
          "command": "CONSORT",
          "args": ["serve", "--stdio"]
        }
      }
    }
    "#);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(home.path(".cursor")).unwrap().count(), 1);
    let ran = exported(&home, &["cursor"]);
    assert_snapshot!(plain(&home, &ran.out), @"Cursor already has this entry: HOME/.cursor/mcp.json");
    assert_eq!(backups(&home.path(".cursor")), Vec::<PathBuf>::new());
}

#[test]
fn what_a_client_has_stays_and_a_copy_is_kept() {
    let home = Home::new();
    let folder = home.path(".config/Code/User");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("mcp.json");
    let text = "{\n  // the team's\n  \"servers\": {\n    \"notes\": {\"type\": \"stdio\", \"command\": \"notes\"}\n  },\n  \"inputs\": []\n}\n";
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    std::fs::write(home.path("token"), "s3cret\n").unwrap();
    let url = "http://127.0.0.1:8080/mcp";
    let ran = exported(&home, &["vscode", "--url", url, "--token-file", "token", "--json"]);
    assert_eq!(ran.code, 0);
    assert_snapshot!(plain(&home, &ran.err), @"warning: other users of this machine can read the token in HOME/.config/Code/User/mcp.json");
    assert!(!ran.out.contains("s3cret"), "{}", ran.out);
    let said: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&said["client"], &said["changed"]), (&"vscode".into(), &true.into()));
    let kept = backups(&folder);
    assert_eq!(
        said["backup"].as_str().unwrap(),
        std::fs::canonicalize(&kept[0]).unwrap().to_str().unwrap()
    );
    assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), text);
    assert_snapshot!(std::fs::read_to_string(&file).unwrap(), @r#"
    {
      // the team's
      "servers": {
        "notes": {"type": "stdio", "command": "notes"},
        "consort": {
          "type": "http",
          "url": "http://127.0.0.1:8080/mcp",
          "headers": {
            "Authorization": "Bearer s3cret"
          }
        }
      },
      "inputs": []
    }
    "#);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    let ran = exported(&home, &["vscode"]);
    assert_eq!(backups(&folder).len(), 2, "{}", ran.err);
    assert!(ran.err.starts_with("backup: "), "{}", ran.err);
}

#[test]
fn the_config_in_force_is_named() {
    let home = Home::new();
    let ran = exported(&home, &["claude-desktop", "--print"]);
    assert_snapshot!(plain(&home, &ran.out), @r#"
    {
      "mcpServers": {
        "consort": {
          "command": "CONSORT",
          "args": ["serve", "--stdio"]
        }
      }
    }
    "#);
    std::fs::create_dir_all(home.path(".config/consort")).unwrap();
    std::fs::write(home.path(".config/consort/consort.toml"), "").unwrap();
    let ran = exported(&home, &["claude-desktop", "--print"]);
    assert!(
        ran.out.contains("/.config/consort/consort.toml"),
        "a client may have another home: {}",
        ran.out
    );
    std::fs::remove_dir_all(home.path(".config")).unwrap();
    std::fs::write(home.path("mcp.json"), "{\"mcpServers\": {}}").unwrap();
    let ran = exported(&home, &["claude-desktop", "--print"]);
    assert_snapshot!(plain(&home, &ran.out), @r#"
    {
      "mcpServers": {
        "consort": {
          "command": "CONSORT",
          "args": ["serve", "--stdio", "--config", "HOME/mcp.json"]
        }
      }
    }
    "#);
    assert!(!home.path(".config").exists(), "nothing is written");
}

#[test]
fn a_config_that_cannot_be_read_is_left_alone() {
    let home = Home::new();
    std::fs::write(home.path("odd.json"), "{\"mcpServers\": [").unwrap();
    let ran = exported(&home, &["cursor", "--output", "odd.json"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(plain(&home, &ran.err), @"
    error: cannot edit `HOME/odd.json`: line 1 is not JSON: unterminated array
    hint: print the entry with --print and add it manually
    ");
    assert_eq!(std::fs::read_to_string(home.path("odd.json")).unwrap(), "{\"mcpServers\": [");
    let ran = exported(&home, &["cursor", "--url", "ftp://x"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.err, @"error: invalid URL `ftp://x`: expected a URL that starts with http:// or https://");
    std::fs::write(home.path("empty"), "\n").unwrap();
    let ran = exported(&home, &["cursor", "--url", "http://localhost:1", "--token-file", "empty"]);
    assert_snapshot!(ran.err, @"error: `empty` contains no token: expected one line without spaces");
    let ran = exported(&home, &["cursor", "--token-file", "empty"]);
    assert_eq!(ran.code, 2, "a token is for a URL");
}

#[test]
fn a_config_behind_a_link_stays_behind_it() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("dotfiles")).unwrap();
    std::fs::create_dir_all(home.path(".cursor")).unwrap();
    std::fs::write(home.path("dotfiles/mcp.json"), "{}").unwrap();
    std::os::unix::fs::symlink("../dotfiles/mcp.json", home.path(".cursor/mcp.json")).unwrap();
    assert_eq!(exported(&home, &["cursor"]).code, 0);
    assert!(std::fs::symlink_metadata(home.path(".cursor/mcp.json")).unwrap().is_symlink());
    assert!(std::fs::read_to_string(home.path("dotfiles/mcp.json")).unwrap().contains("serve"));
}

#[test]
fn yaml_is_added_to_or_left_to_the_user() {
    let home = Home::new();
    std::fs::create_dir_all(home.path(".config/goose")).unwrap();
    let file = home.path(".config/goose/config.yaml");
    let text =
        "GOOSE_MODEL: x # mine\nextensions:\n  memory:\n    type: builtin\n    enabled: true\n";
    std::fs::write(&file, text).unwrap();
    let ran = exported(&home, &["goose"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_snapshot!(plain(&home, &std::fs::read_to_string(&file).unwrap()), @r#"
    GOOSE_MODEL: x # mine
    extensions:
      consort:
        enabled: true
        name: "consort"
        description: "All MCP servers of Consort"
        timeout: 300
        type: "stdio"
        cmd: "CONSORT"
        args: ["serve","--stdio"]
      memory:
        type: builtin
        enabled: true
    "#);
    assert_eq!(backups(&home.path(".config/goose")).len(), 1);
    let text = "extensions: {memory: {type: builtin, enabled: true}}\n";
    std::fs::write(&file, text).unwrap();
    let ran = exported(&home, &["goose", "--url", "http://127.0.0.1:8080/mcp"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(plain(&home, &ran.err), @"
    error: cannot edit `HOME/.config/goose/config.yaml`: nothing can be inserted without a change of what is there
    hint: add the printed entry manually
    ");
    assert_snapshot!(ran.out, @r#"
    extensions:
      consort:
        enabled: true
        name: "consort"
        description: "All MCP servers of Consort"
        timeout: 300
        type: "streamable_http"
        uri: "http://127.0.0.1:8080/mcp"
    "#);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_link_is_for_programs_and_has_no_token_in_it() {
    let home = Home::new();
    std::fs::write(home.path("token"), "s3cret\n").unwrap();
    let url = ["--url", "http://127.0.0.1:8080/mcp", "--token-file", "token", "--link"];
    let ran = exported(&home, &[&["cursor"], &url[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.starts_with("cursor://anysphere.cursor-deeplink/mcp/install?name=consort&config=")
    );
    let ran = exported(&home, &[&["vscode", "--json"], &url[..]].concat());
    let said: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(said["client"], "vscode");
    let link = said["link"].as_str().unwrap();
    assert!(link.starts_with("vscode:mcp/install?%7B") && !link.contains("s3cret"), "{link}");
    let ran = exported(&home, &["zed", "--link"]);
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.err, @"
    error: Zed has no links that install a server
    hint: omit --link to edit its config
    ");
    assert!(!home.path(".cursor").exists(), "nothing is written");
}
