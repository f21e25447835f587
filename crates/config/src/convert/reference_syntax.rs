//! References in the syntax of each format.

use super::{ConfigWriter, OutputReader, TargetFormat};
use crate::server::ServerConfig;
pub(super) use crate::template::input::variable_for;
use crate::template::secret_scheme;
use crate::template::{TemplatePart, TemplateString, ValueReference};

/// Losses while a text was written.
#[derive(Default)]
struct ConversionLoss {
    /// True if the format does not resolve a reference.
    stuck: bool,
    /// Defaults that the format does not support.
    defaults: Vec<String>,
    /// True if inputs became variables.
    asked: bool,
}

impl ConfigWriter {
    /// Writes a text, and warns of parts that the target does not understand.
    pub(super) fn write_text(
        &mut self,
        server: &ServerConfig,
        key: &str,
        text: &TemplateString,
    ) -> String {
        let mut trouble = ConversionLoss::default();
        let is_ours = self.target == TargetFormat::Consort || self.reader == OutputReader::Us;
        let spelled = match (self.target, text.parts()) {
            (
                TargetFormat::Consort,
                [TemplatePart::Reference(ValueReference::Variable { name, default: None }, _)],
            ) => {
                format!("env:{name}")
            }
            (TargetFormat::Consort, [TemplatePart::Reference(ValueReference::File(path), _)])
                if !path.starts_with("//") =>
            {
                format!("file:{path}")
            }
            (
                _,
                [
                    TemplatePart::Reference(
                        ValueReference::Keyring { .. } | ValueReference::Program(_),
                        spelled,
                    ),
                ],
            ) if is_ours && !spelled.starts_with("${") => spelled.clone(),
            (target, parts) => match text.to_literal() {
                Some(text) if is_ours => text,
                _ => write_parts((target, self.reader), parts, &mut trouble),
            },
        };
        let (target, reader) = (self.target, self.reader);
        let mut warn = |message, hint: &str| self.warn(server, message, Some(hint));
        if trouble.stuck {
            let message = format!("{target} does not resolve the reference in `{key}`");
            warn(message, "replace it by the value, or let the client use Consort");
        }
        for name in trouble.defaults {
            let message =
                format!("{target} does not support defaults: that of `{name}` is omitted");
            warn(message, "set the variable");
        }
        // Reported by the check of the file when Consort reads it.
        if text.holds_secret() && reader == OutputReader::Others {
            warn(
                format!("`{key}` contains a secret, which is written in plain text"),
                "use a reference \
                such as `env:NAME`",
            );
        }
        if trouble.asked {
            self.warn_of_inputs(server, text);
        }
        spelled
    }

    /// Warns of the inputs of a text that became variables.
    pub(super) fn warn_of_inputs(&mut self, server: &ServerConfig, text: &TemplateString) {
        for reference in text.references() {
            if let ValueReference::Input(id) = reference {
                let message = format!(
                    "{} has no prompts: the input `{id}` becomes an environment variable",
                    self.target
                );
                self.warn(server, message, Some(&format!("set `{}`", variable_for(id))));
            }
        }
    }
}

/// The output format and its reader.
type WriterTarget = (TargetFormat, OutputReader);

fn write_parts(hand: WriterTarget, parts: &[TemplatePart], trouble: &mut ConversionLoss) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            TemplatePart::Literal(literal) => text.push_str(literal),
            TemplatePart::Reference(reference, _) => {
                text.push_str(&reference_for(hand, reference, trouble));
            }
        }
    }
    text
}

fn reference_for(
    hand: WriterTarget,
    reference: &ValueReference,
    trouble: &mut ConversionLoss,
) -> String {
    use ValueReference::{
        File, Folder, FolderName, Home, Input, Keyring, Program, Separator, Variable,
    };
    let (target, reader) = hand;
    let asks =
        reader == OutputReader::Us && !matches!(target, TargetFormat::Zed | TargetFormat::Codex);
    let follows = match (target, reference) {
        _ if reader == OutputReader::Us => true,
        (TargetFormat::Consort, _) | (TargetFormat::McpServers, Variable { .. } | Input(_)) => true,
        (TargetFormat::VsCode, reference) => {
            !matches!(reference, File(_) | Keyring { .. } | Program(_))
        }
        (TargetFormat::McpServers | TargetFormat::Zed | TargetFormat::Codex, _) => false,
    };
    trouble.stuck |= !follows;
    match (target, reference) {
        (TargetFormat::VsCode, Variable { name, default })
            if default.is_none() || reader == OutputReader::Others =>
        {
            trouble.defaults.extend(default.is_some().then(|| name.clone()));
            format!("${{env:{name}}}")
        }
        (_, Variable { name, default: None }) => format!("${{{name}}}"),
        (_, Variable { name, default: Some(default) }) => {
            format!("${{{name}:-{}}}", write_parts(hand, default, trouble))
        }
        (TargetFormat::VsCode | TargetFormat::Consort, Input(id)) => format!("${{input:{id}}}"),
        (_, Input(id)) if asks => format!("${{input:{id}}}"),
        (_, Input(id)) => {
            trouble.asked = true;
            format!("${{{}}}", variable_for(id))
        }
        (_, File(path)) => format!("${{file:{path}}}"),
        (_, Keyring { service, name }) => format!("${{keyring:{service}/{name}}}"),
        (_, Program(words)) => format!("${{cmd:{}}}", secret_scheme::join_words(words)),
        (_, Folder) => "${workspaceFolder}".to_owned(),
        (_, FolderName) => "${workspaceFolderBasename}".to_owned(),
        (_, Home) => "${userHome}".to_owned(),
        (_, Separator) => "${/}".to_owned(),
    }
}
