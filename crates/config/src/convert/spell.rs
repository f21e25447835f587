//! References in the syntax of each format.

use super::{Reader, Target, Writer};
use crate::server::ServerConfig;
use crate::text::{Part, Reference, Text};

/// Losses while a text was written.
#[derive(Default)]
struct Trouble {
    /// True if the format does not resolve a reference.
    stuck: bool,
    /// Defaults that the format does not support.
    defaults: Vec<String>,
    /// True if inputs became variables.
    asked: bool,
}

impl Writer {
    /// Writes a text, and warns of parts that the target does not understand.
    pub(super) fn spell(&mut self, server: &ServerConfig, key: &str, text: &Text) -> String {
        let mut trouble = Trouble::default();
        let spelled = match (self.target, text.parts()) {
            (
                Target::Consort,
                [Part::Reference(Reference::Variable { name, default: None }, _)],
            ) => {
                format!("env:{name}")
            }
            (Target::Consort, [Part::Reference(Reference::File(path), _)])
                if !path.starts_with("//") =>
            {
                format!("file:{path}")
            }
            (target, parts) => spelled((target, self.reader), parts, &mut trouble),
        };
        let (target, reader) = (self.target, self.reader);
        let mut warn = |message, hint: &str| self.warn(server, message, Some(hint));
        if trouble.stuck {
            let message = format!("{target} does not follow the reference in `{key}`");
            warn(message, "write the value there, or leave it to Consort");
        }
        for name in trouble.defaults {
            let message = format!("{target} has no defaults: that of `{name}` is left out");
            warn(message, "set the variable");
        }
        // Where we read it, it is said by who checks the file.
        if text.holds_secret() && reader == Reader::Others {
            warn(format!("`{key}` holds a secret, which is written out"), "write a reference");
        }
        if trouble.asked {
            self.asked(server, text);
        }
        spelled
    }

    /// Warns of the inputs of a text that became variables.
    pub(super) fn asked(&mut self, server: &ServerConfig, text: &Text) {
        for reference in text.references() {
            if let Reference::Input(id) = reference {
                let message =
                    format!("{} does not ask: the input `{id}` is a variable", self.target);
                self.warn(server, message, Some(&format!("set `{}`", variable_for(id))));
            }
        }
    }
}

/// The output format and its reader.
type Hand = (Target, Reader);

fn spelled(hand: Hand, parts: &[Part], trouble: &mut Trouble) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Literal(literal) => text.push_str(literal),
            Part::Reference(reference, _) => {
                text.push_str(&reference_for(hand, reference, trouble));
            }
        }
    }
    text
}

fn reference_for(hand: Hand, reference: &Reference, trouble: &mut Trouble) -> String {
    use Reference::{File, Folder, FolderName, Home, Input, Separator, Variable};
    let (target, reader) = hand;
    let asks = reader == Reader::Us && !matches!(target, Target::Zed | Target::Codex);
    let follows = match (target, reference) {
        _ if reader == Reader::Us => true,
        (Target::Consort, _) | (Target::McpServers, Variable { .. } | Input(_)) => true,
        (Target::VsCode, reference) => !matches!(reference, File(_)),
        (Target::McpServers | Target::Zed | Target::Codex, _) => false,
    };
    trouble.stuck |= !follows;
    match (target, reference) {
        (Target::VsCode, Variable { name, default })
            if default.is_none() || reader == Reader::Others =>
        {
            trouble.defaults.extend(default.is_some().then(|| name.clone()));
            format!("${{env:{name}}}")
        }
        (_, Variable { name, default: None }) => format!("${{{name}}}"),
        (_, Variable { name, default: Some(default) }) => {
            format!("${{{name}:-{}}}", spelled(hand, default, trouble))
        }
        (Target::VsCode | Target::Consort, Input(id)) => format!("${{input:{id}}}"),
        (_, Input(id)) if asks => format!("${{input:{id}}}"),
        (_, Input(id)) => {
            trouble.asked = true;
            format!("${{{}}}", variable_for(id))
        }
        (_, File(path)) => format!("${{file:{path}}}"),
        (_, Folder) => "${workspaceFolder}".to_owned(),
        (_, FolderName) => "${workspaceFolderBasename}".to_owned(),
        (_, Home) => "${userHome}".to_owned(),
        (_, Separator) => "${/}".to_owned(),
    }
}

/// Name of the variable for an input in formats without inputs: `github-token` is `GITHUB_TOKEN`.
pub(super) fn variable_for(id: &str) -> String {
    let letters = id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    let name = letters.collect::<String>().to_ascii_uppercase();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}
