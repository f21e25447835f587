//! Programs that fetch a package before they start it, such as `npx`.

use std::path::Path;
use std::time::Duration;

use crate::server::StdioConfig;
use crate::template::TemplateString;

/// Default time limit for fetching a package and starting it, if `timeout` sets none.
pub(crate) const INSTALL: Duration = Duration::from_mins(5);

/// Programs that may fetch any package that they start.
const RUNNERS: [&str; 5] = ["npx", "uvx", "bunx", "pnpx", "pipx"];

/// Programs that may do so if their first argument is one of these.
const WORDS: [(&str, &[&str]); 9] = [
    ("npm", &["exec", "x"]),
    ("pnpm", &["dlx"]),
    ("yarn", &["dlx"]),
    ("bun", &["x"]),
    ("uv", &["tool", "run"]),
    ("deno", &["run"]),
    ("docker", &["run"]),
    ("podman", &["run"]),
    ("go", &["run"]),
];

/// Returns the name of the program if it may fetch a package before it starts a server.
pub(crate) fn installer(program: &StdioConfig) -> Option<String> {
    let command = program.command.as_literal()?;
    let name = Path::new(&*command).file_name()?.to_str()?;
    let first = program.arguments.first().and_then(TemplateString::as_literal);
    let fetches = |(runner, words): &(&str, &[&str])| {
        *runner == name && first.as_deref().is_some_and(|first| words.contains(&first))
    };
    (RUNNERS.contains(&name) || WORDS.iter().any(fetches)).then(|| name.to_owned())
}
