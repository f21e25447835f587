//! Parts that several formats write alike.

use super::ConfigWriter;
use super::output_value::OutputValue;
use crate::server::{HttpConfig, ServerConfig, StdioConfig};
use crate::template::input::{InputKind, InputVariable};

impl ConfigWriter {
    pub(super) fn command(&mut self, server: &ServerConfig, program: &StdioConfig) -> OutputValue {
        OutputValue::Text(self.write_text(server, "command", &program.command))
    }

    pub(super) fn arguments(
        &mut self,
        server: &ServerConfig,
        program: &StdioConfig,
    ) -> OutputValue {
        let spell = |text| OutputValue::Text(self.write_text(server, "args", text));
        OutputValue::List(program.arguments.iter().map(spell).collect())
    }

    pub(super) fn env(&mut self, server: &ServerConfig, program: &StdioConfig) -> OutputValue {
        let texts = program.env.iter().map(|(name, text)| (name.as_str(), text.clone()));
        self.map(server, "env", texts)
    }

    pub(super) fn cwd(&mut self, server: &ServerConfig, program: &StdioConfig) -> OutputValue {
        let spell = |text| OutputValue::Text(self.write_text(server, "cwd", text));
        OutputValue::from_option(program.cwd.as_ref(), spell)
    }

    pub(super) fn url(&mut self, server: &ServerConfig, address: &HttpConfig) -> OutputValue {
        OutputValue::Text(self.write_text(server, "url", &address.url))
    }

    /// Returns the inputs of all servers, each once.
    pub(super) fn env_file(&mut self, server: &ServerConfig, program: &StdioConfig) -> OutputValue {
        OutputValue::from_option(program.env_file.as_ref(), |text| {
            OutputValue::Text(self.write_text(server, "env_file", text))
        })
    }

    pub(super) fn inputs(&mut self, servers: &[&ServerConfig]) -> OutputValue {
        let mut written: Vec<&InputVariable> = Vec::new();
        let mut inputs = Vec::new();
        for server in servers {
            for input in &server.inputs {
                if !written.iter().any(|other| other.id == input.id) {
                    written.push(input);
                    inputs.push(self.input(server, input));
                }
            }
        }
        OutputValue::List(inputs)
    }

    fn input(&mut self, server: &ServerConfig, input: &InputVariable) -> OutputValue {
        let (kind, password, options) = match &input.kind {
            InputKind::PromptString { password } => {
                ("promptString", *password, OutputValue::Nothing)
            }
            InputKind::PickString { options } => {
                ("pickString", false, OutputValue::strings(options))
            }
            InputKind::Command { .. } => ("command", false, OutputValue::Nothing),
        };
        let command = match &input.kind {
            InputKind::Command { command } => OutputValue::text(command),
            _ => OutputValue::Nothing,
        };
        let spell = |text| OutputValue::Text(self.write_text(server, "default", text));
        let default = OutputValue::from_option(input.default.as_ref(), spell);
        OutputValue::table([
            ("id", OutputValue::text(&input.id)),
            ("type", OutputValue::text(kind)),
            ("description", OutputValue::from_option(input.description.clone(), OutputValue::Text)),
            ("password", OutputValue::value_if(password, OutputValue::Bool(true))),
            ("options", options),
            ("command", command),
            ("default", default),
        ])
    }
}
