//! The text of the unit.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use consort_config::{Config, InputVariable, SystemValues, ValueSource, canonical_location};
use consort_core::escape::escape_line;

use crate::cli::GlobalArguments;
use crate::exit::CommandError;

/// The unit of the Debian package, for a binary in `/usr/bin` and the config that it finds.
const PACKAGED: &str = include_str!("../../../../../packaging/consort-user.service");

/// First line of a unit that this command wrote.
pub(super) const MARK: &str = "# Written by `consort service install`, which replaces it.";

/// Variables of this process that the service gets: servers are found by `PATH`, and the state is in the same folders.
const PASSED: [&str; 4] = ["PATH", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"];

/// A unit that runs the gateway with a config.
pub(super) struct ServiceUnit {
    program: String,
    arguments: Vec<String>,
    folder: String,
    variables: Vec<(&'static str, String)>,
}

impl ServiceUnit {
    /// The unit for a config, with the global options of this command.
    pub(super) fn new(common: &GlobalArguments, config: &Path) -> Result<Self, CommandError> {
        let program = std::env::current_exe().map_err(|error| {
            CommandError::usage(format!("cannot determine the path of this program: {error}"))
        })?;
        let config = canonical_location(config).unwrap_or_else(|| config.to_owned());
        let folder = config.parent().unwrap_or(Path::new("/")).to_owned();
        let mut arguments = vec!["--config".to_owned(), text_of(config.into())?];
        if let Some(profile) = &common.profile {
            arguments.extend(["--profile".to_owned(), text_of(profile.into())?]);
        }
        arguments.extend(common.read_only.then(|| "--read-only".to_owned()));
        arguments.extend(common.locked.then(|| "--locked".to_owned()));
        arguments.push("serve".to_owned());
        let set = PASSED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        let variables = set.map(|(name, value)| Ok((name, text_of(value)?)));
        Ok(Self {
            program: text_of(program.into())?,
            arguments,
            folder: text_of(folder.into())?,
            variables: variables.collect::<Result<_, CommandError>>()?,
        })
    }

    /// The text of the unit: the packaged one, with another program, folder and environment.
    pub(super) fn text(&self) -> String {
        let words = self.arguments.iter().map(|word| quote(&word.replace('$', "$$")));
        let words = words.collect::<Vec<_>>().join(" ");
        let mut text = format!("{MARK}\n");
        // The comment at the top is about the packaged unit.
        for line in PACKAGED.lines().skip_while(|line| line.starts_with('#')) {
            if line.starts_with("ExecStart=") {
                let _ = writeln!(text, "ExecStart={} {words}", quote(&self.program));
            } else if line.starts_with("WorkingDirectory=") {
                let _ = writeln!(text, "WorkingDirectory={}", self.folder.replace('%', "%%"));
                for (name, value) in &self.variables {
                    let _ = writeln!(text, "Environment={}", quote(&format!("{name}={value}")));
                }
            } else {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }
}

/// A word in the syntax of systemd, in which `%` begins a specifier.
fn quote(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{escaped}\"")
}

/// A path or value as text that fits on one line of a unit.
fn text_of(value: OsString) -> Result<String, CommandError> {
    match value.into_string() {
        Ok(text) if !text.contains(char::is_control) => Ok(text),
        Ok(text) => Err(unfit(&text)),
        Err(value) => Err(unfit(&value.to_string_lossy())),
    }
}

fn unfit(text: &str) -> CommandError {
    let text = escape_line(text);
    CommandError::usage(format!("`{text}` cannot be written to a unit"))
        .hint("use a path without control characters")
}

/// Returns the variables of the environment that the servers of a config refer to and that the service does not get.
pub(super) fn referenced_variables(config: &Config) -> BTreeSet<String> {
    let values = ReferencedVariables { system: SystemValues::silent(), names: RefCell::default() };
    for server in config.servers.iter().filter(|server| !server.disabled) {
        drop(server.check(&values));
    }
    let always = ["HOME", "USER", "LOGNAME", "SHELL", "LANG", "XDG_RUNTIME_DIR"];
    let is_known = |name: &str| always.contains(&name) || PASSED.contains(&name);
    values.names.into_inner().into_iter().filter(|name| !is_known(name)).collect()
}

/// Values of this process, with the names of the variables that were asked for and are set.
struct ReferencedVariables {
    system: SystemValues,
    names: RefCell<BTreeSet<String>>,
}

impl ValueSource for ReferencedVariables {
    fn variable(&self, name: &str) -> Option<String> {
        let value = self.system.variable(name)?;
        self.names.borrow_mut().insert(name.to_owned());
        Some(value)
    }

    fn file(&self, path: &Path) -> io::Result<String> {
        self.system.file(path)
    }

    fn input(&self, input: &InputVariable, config: &Path) -> Option<String> {
        self.system.input(input, config)
    }

    fn home(&self) -> Option<PathBuf> {
        self.system.home()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_characters_of_paths_reach_the_program_as_they_are() {
        let unit = ServiceUnit {
            program: "/opt/a b/100%/consort".to_owned(),
            arguments: ["--config", "/home/é/$x \"y\" \\z.toml", "serve"]
                .map(str::to_owned)
                .to_vec(),
            folder: "/home/é %h".to_owned(),
            variables: vec![("PATH", "/bin:/a b".to_owned())],
        };
        let text = unit.text();
        let set: Vec<&str> = text
            .lines()
            .filter(|line| ["Exec", "Work", "Envi"].iter().any(|word| line.starts_with(word)))
            .collect();
        assert_eq!(
            set,
            [
                r#"ExecStart="/opt/a b/100%%/consort" "--config" "/home/é/$$x \"y\" \\z.toml" "serve""#,
                "ExecReload=/bin/kill -HUP $MAINPID",
                "WorkingDirectory=/home/é %%h",
                r#"Environment="PATH=/bin:/a b""#,
            ]
        );
        assert!(text.starts_with(MARK) && text.contains("\n[Install]\n"), "{text}");
        assert!(text_of("a\nb".into()).is_err());
    }
}
