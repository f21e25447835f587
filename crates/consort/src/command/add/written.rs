//! Entries of new servers, from the command line or standard input, as JSON.

use std::io::Read;

use consort_config::{RemoteTransport, TransportConfig};
use consort_core::ServerId;
use consort_core::escape::escape_line;
use serde_json::{Map, Value, json};

use crate::cli::{AddJsonArguments, AddServerArguments, AddTransport, is_url};
use crate::exit::CommandError;

/// The new servers as JSON.
pub(super) fn entries(wanted: &AddServerArguments) -> Result<String, CommandError> {
    if wanted.paste {
        return standard_input();
    }
    let name = server_name(wanted.name.as_deref().unwrap_or_default())?;
    let entry = match url(wanted)? {
        Some(url) => remote_entry(wanted, url)?,
        None => command_entry(wanted)?,
    };
    Ok(json!({ name.as_str(): entry }).to_string())
}

/// The new server of `consort add-json` as JSON.
pub(super) fn json_entry(wanted: &AddJsonArguments) -> Result<String, CommandError> {
    let name = server_name(&wanted.name)?;
    let text = if wanted.entry == "-" { standard_input()? } else { wanted.entry.clone() };
    let entry: Value = serde_json::from_str(&text)
        .map_err(|error| CommandError::usage(format!("the entry is not valid JSON: {error}")))?;
    let wrong = |message: &str| {
        CommandError::usage(message).hint(
            "an entry is such as `{\"command\": \"npx\", \"args\": [\"-y\", \"notes-server\"]}`",
        )
    };
    match &entry {
        Value::Object(entry) if entry.contains_key("mcpServers") => {
            Err(wrong("this is a whole config, not the entry of one server")
                .hint("use `consort add --paste < FILE`"))
        }
        Value::Object(_) => Ok(json!({ name.as_str(): entry }).to_string()),
        _ => Err(wrong("the entry is not a JSON object")),
    }
}

fn server_name(name: &str) -> Result<ServerId, CommandError> {
    name.parse().map_err(|error| CommandError::usage(escape_line(&format!("{error}"))))
}

fn standard_input() -> Result<String, CommandError> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| CommandError::usage(format!("cannot read standard input: {error}")))?;
    Ok(text)
}

/// The URL of a remote server; `None` for a command.
fn url(wanted: &AddServerArguments) -> Result<Option<&str>, CommandError> {
    if let Some(url) = &wanted.url {
        return Ok(Some(url));
    }
    let is_remote = matches!(wanted.transport, Some(AddTransport(Some(_))));
    match &wanted.launch[..] {
        [url, more, ..] if wanted.has_url() => {
            let message = format!("unexpected argument `{more}` after the URL `{url}`");
            Err(CommandError::usage(escape_line(&message))
                .hint("give options of Consort directly after the URL, without `--`"))
        }
        [url] if wanted.has_url() => Ok(Some(url)),
        [word, ..] if is_remote => {
            let message = format!("`{word}` is not a URL, which this transport requires");
            Err(CommandError::usage(escape_line(&message))
                .hint("a URL begins with `https://` or `http://`"))
        }
        _ => Ok(None),
    }
}

fn remote_entry(wanted: &AddServerArguments, url: &str) -> Result<Value, CommandError> {
    if !is_url(url) {
        return Err(CommandError::usage(escape_line(&format!("`{url}` is not an HTTP URL"))));
    }
    if !wanted.env.is_empty() {
        return Err(CommandError::usage("--env is for commands: a URL starts no process")
            .hint("use --header 'NAME: VALUE'"));
    }
    let mut entry = json!({ "url": url, "headers": pairs("--header", &wanted.header)? });
    match wanted.transport {
        Some(AddTransport(Some(transport))) => entry["type"] = json!(transport.name()),
        Some(AddTransport(None)) => {
            let message = "the transport stdio requires a command, and this is a URL";
            let remote = TransportConfig::names().iter().copied();
            let remote: Vec<_> = remote.filter(|it| RemoteTransport::named(it).is_some()).collect();
            let hint = format!("use --transport {}", remote.join(" or "));
            return Err(CommandError::usage(message).hint(hint));
        }
        None => {}
    }
    Ok(entry)
}

fn command_entry(wanted: &AddServerArguments) -> Result<Value, CommandError> {
    let Some((command, arguments)) = wanted.launch.split_first() else {
        return Err(CommandError::usage("a command or a URL is required after the name"));
    };
    if !wanted.header.is_empty() {
        return Err(CommandError::usage("--header is for URLs: a command gets no HTTP requests")
            .hint("use --env NAME=VALUE"));
    }
    if arguments.is_empty() && is_url_without_scheme(command) {
        let message = format!("`{command}` is neither a command nor a URL");
        return Err(CommandError::usage(escape_line(&message))
            .hint(format!("a URL begins with a scheme: https://{}", escape_line(command))));
    }
    // As after `--env A=1 B=2`, where other commands take both.
    if command.contains('=') && !command.contains('/') {
        let message = "the command is `NAME=VALUE`, which is no program";
        return Err(CommandError::usage(message)
            .hint("repeat --env for each variable, before the name or before `--`"));
    }
    Ok(json!({ "command": command, "args": arguments, "env": pairs("--env", &wanted.env)? }))
}

/// Returns true for a host with a port or a path, such as `localhost:3000/mcp` or `mcp.example.com/mcp`, unless it is a
/// file.
fn is_url_without_scheme(word: &str) -> bool {
    if std::path::Path::new(word).exists() {
        return false;
    }
    let (authority, path) = word.split_once('/').map_or((word, None), |(a, path)| (a, Some(path)));
    let (host, port) = authority.rsplit_once(':').map_or((authority, None), |(h, p)| (h, Some(p)));
    let is_label = |label: &str| {
        !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    let is_host = host.split('.').all(is_label);
    is_host && (port.is_some_and(is_port) || port.is_none() && path.is_some() && host.contains('.'))
}

fn pairs(option: &str, written: &[String]) -> Result<Map<String, Value>, CommandError> {
    let pair = |written: &String| match split(option, written) {
        Some((name, value)) => Ok((name.to_owned(), value.into())),
        // What was meant as a value may be a secret.
        None if option == "--header" => {
            Err(CommandError::usage("--header takes `NAME: VALUE` or `NAME=VALUE`"))
        }
        None => Err(CommandError::usage(format!("{option} takes `NAME=VALUE`"))),
    };
    written.iter().map(pair).collect()
}

/// Splits an option into name and value.
fn split<'a>(option: &str, written: &'a str) -> Option<(&'a str, &'a str)> {
    let (name, value) = if option == "--header" {
        let (name, value) = written.split_once([':', '='])?;
        (name.trim(), value.trim())
    } else {
        written.split_once('=')?
    };
    (!name.is_empty()).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_its_scheme_is_no_command() {
        for word in ["localhost:3000", "127.0.0.1:9/mcp", "mcp.example.com/mcp", "h.example:8080/"]
        {
            assert!(is_url_without_scheme(word), "{word}");
        }
        for word in [
            "npx",
            "./server.py",
            "../a.b/c",
            "/opt/x.y/z",
            "bin/server",
            "server.sh",
            "a:b",
            "C:\\x",
        ] {
            assert!(!is_url_without_scheme(word), "{word}");
        }
    }

    #[test]
    fn a_header_is_split_at_its_first_separator() {
        let header = |written| split("--header", written);
        assert_eq!(header("A: b=c"), Some(("A", "b=c")));
        assert_eq!(header("X-Key=file:key.txt"), Some(("X-Key", "file:key.txt")));
        assert_eq!(header("A:b"), Some(("A", "b")));
        assert_eq!(header("none"), None);
        assert_eq!(header(": b"), None);
        assert_eq!(split("--env", "A=b: c=d"), Some(("A", "b: c=d")));
    }
}
