//! Parts that several formats write alike.

use super::Writer;
use super::out::Out;
use crate::input::{Input, InputKind};
use crate::server::{Address, Program, ServerConfig};

impl Writer {
    pub(super) fn command(&mut self, server: &ServerConfig, program: &Program) -> Out {
        Out::Text(self.spell(server, "command", &program.command))
    }

    pub(super) fn arguments(&mut self, server: &ServerConfig, program: &Program) -> Out {
        let spell = |text| Out::Text(self.spell(server, "args", text));
        Out::List(program.arguments.iter().map(spell).collect())
    }

    pub(super) fn environment(&mut self, server: &ServerConfig, program: &Program) -> Out {
        let texts = program.environment.iter().map(|(name, text)| (name.as_str(), text.clone()));
        self.map(server, "env", texts)
    }

    pub(super) fn directory(&mut self, server: &ServerConfig, program: &Program) -> Out {
        let spell = |text| Out::Text(self.spell(server, "cwd", text));
        Out::maybe(program.directory.as_ref(), spell)
    }

    pub(super) fn url(&mut self, server: &ServerConfig, address: &Address) -> Out {
        Out::Text(self.spell(server, "url", &address.url))
    }

    /// Returns the inputs of all servers, each once.
    pub(super) fn inputs(&mut self, servers: &[&ServerConfig]) -> Out {
        let mut written: Vec<&Input> = Vec::new();
        let mut inputs = Vec::new();
        for server in servers {
            for input in &server.inputs {
                if !written.iter().any(|other| other.id == input.id) {
                    written.push(input);
                    inputs.push(self.input(server, input));
                }
            }
        }
        Out::List(inputs)
    }

    fn input(&mut self, server: &ServerConfig, input: &Input) -> Out {
        let (kind, password, options) = match &input.kind {
            InputKind::PromptString { password } => ("promptString", *password, Out::Nothing),
            InputKind::PickString { options } => ("pickString", false, Out::strings(options)),
        };
        let spell = |text| Out::Text(self.spell(server, "default", text));
        let default = Out::maybe(input.default.as_ref(), spell);
        Out::table([
            ("id", Out::text(&input.id)),
            ("type", Out::text(kind)),
            ("description", Out::maybe(input.description.clone(), Out::Text)),
            ("password", Out::when(password, Out::Bool(true))),
            ("options", options),
            ("default", default),
        ])
    }
}
