//! Resolution of references in config values.

mod connection_values;
mod dotenv;
pub(crate) mod input_store;
pub(crate) mod option_secret;
mod secret_program;
mod settings;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use consort_client::{HelperError, HelperLimits, HelperProgram};
use consort_core::ServerId;
use parking_lot::Mutex;

use crate::error::{ConfigError, ConfigErrorKind};
use crate::resolve::connection_values::ValuePart;
use crate::resolve::input_store::InputStore;
use crate::resolve::secret_program::SecretProgram;
use crate::server::ServerConfig;
use crate::server::origin::ServerOrigin;
use crate::source_location::SourceLocation;
use crate::template::input::{InputKind, InputVariable};
use crate::template::{TemplatePart, TemplateString, ValueReference};

/// Size limit in bytes of a referenced file: it holds a secret, not a document.
const LARGEST: u64 = 64 << 10;

/// Source of referenced values. The binary implements it by [`SystemValues`], tests by a table; [`ServerConfig::to_settings`]
/// calls it.
pub trait ValueSource {
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// The text of a file.
    fn file(&self, path: &Path) -> io::Result<String>;

    /// The answer of the user to an input of a config; `None` if nobody can be asked.
    fn input(&self, input: &InputVariable, config: &Path) -> Option<String>;

    /// The user's home.
    fn home(&self) -> Option<PathBuf>;

    /// Runs a program that prints a value.
    fn program(&self, program: &HelperProgram) -> Result<String, HelperError> {
        program.run_blocking(&HelperLimits::default())
    }
}

/// Function that asks the user.
type AskFunction = dyn Fn(&InputVariable) -> Option<String> + Send + Sync;

/// Resolves references on this machine. Each input is requested once, however many servers need it.
pub struct SystemValues {
    ask: Box<AskFunction>,
    answers: Mutex<HashMap<(PathBuf, String), String>>,
    files: Mutex<BTreeSet<PathBuf>>,
    limits: Mutex<HelperLimits>,
    store: Option<InputStore>,
}

impl SystemValues {
    /// A resolver without user input.
    pub fn silent() -> Self {
        Self::asking(|_| None)
    }

    /// A resolver with user input, for example from a terminal.
    pub fn asking(ask: impl Fn(&InputVariable) -> Option<String> + Send + Sync + 'static) -> Self {
        Self {
            ask: Box::new(ask),
            answers: Mutex::default(),
            files: Mutex::default(),
            limits: Mutex::default(),
            store: None,
        }
    }

    /// Looks up inputs in a store before the user is asked, and stores the answers there.
    #[must_use]
    pub fn with_store(self, store: Option<InputStore>) -> Self {
        Self { store, ..self }
    }

    /// Sets the limits of programs that print values.
    pub fn set_limits(&self, limits: HelperLimits) {
        *self.limits.lock() = limits;
    }

    /// Returns the files that references led to since the last call.
    pub fn take_files(&self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut *self.files.lock())
    }
}

impl std::fmt::Debug for SystemValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Answers are secrets more often than not.
        f.debug_struct("SystemValues").finish_non_exhaustive()
    }
}

impl ValueSource for SystemValues {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &Path) -> io::Result<String> {
        self.files.lock().insert(path.to_owned());
        let mut text = String::new();
        File::open(path)?.take(LARGEST + 1).read_to_string(&mut text)?;
        if text.len() as u64 > LARGEST {
            let message = format!("it is larger than {} KiB", LARGEST >> 10);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(text)
    }

    fn input(&self, input: &InputVariable, config: &Path) -> Option<String> {
        let mut answers = self.answers.lock();
        let key = (config.to_owned(), input.id.clone());
        if let Some(answer) = answers.get(&key) {
            return Some(answer.clone());
        }
        let store = self.store.clone().map(|store| store.with_limits(self.limits.lock().clone()));
        let stored = || store.as_ref()?.get(config, &input.id);
        let variable = self.variable(&InputVariable::environment_variable(&input.id));
        let known = variable.or_else(stored).filter(|answer| input.accepts(answer));
        let answer = match known {
            Some(answer) => answer,
            None => {
                let answer = (self.ask)(input)?;
                // One that cannot be stored is asked for again the next time.
                if !answer.is_empty() && input.accepts(&answer) {
                    let _ = store.as_ref().map(|store| store.put(config, &input.id, &answer));
                }
                answer
            }
        };
        answers.insert(key, answer.clone());
        Some(answer)
    }

    fn program(&self, program: &HelperProgram) -> Result<String, HelperError> {
        let limits = self.limits.lock().clone();
        program.run_blocking(&limits)
    }

    fn home(&self) -> Option<PathBuf> {
        std::env::home_dir().filter(|home| !home.as_os_str().is_empty())
    }
}

/// Expands `${NAME}` and `${NAME:-default}` in a path. The error is the name of a variable that is not set.
pub fn expand_variables(
    path: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let (mut expanded, mut rest) = (String::new(), path);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, behind)) = after.split_once('}') else { break };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside.strip_prefix("env:").unwrap_or(inside), None),
        };
        let value = variable(name).filter(|value| default.is_none() || !value.is_empty());
        let value = value.or_else(|| default.map(str::to_owned)).ok_or_else(|| name.to_owned())?;
        expanded.push_str(before);
        expanded.push_str(&value);
        rest = behind;
    }
    Ok(expanded + rest)
}

/// Resolves the references of one server, or those of options for all servers.
pub(crate) struct ReferenceResolver<'a> {
    origin: &'a ServerOrigin,
    server: Option<&'a ServerId>,
    /// The definitions of the inputs.
    known_inputs: &'a [InputVariable],
    resolve: &'a dyn ValueSource,
    inputs: InputMode,
}

/// The treatment of inputs, and of programs that print values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputMode {
    Ask,
    /// Assume that they would be answered, and start nothing.
    Assume,
}

impl<'a> ReferenceResolver<'a> {
    pub(crate) fn new(
        server: &'a ServerConfig,
        resolve: &'a dyn ValueSource,
        inputs: InputMode,
    ) -> Self {
        let (origin, known_inputs) = (&server.origin, server.inputs.as_slice());
        Self { origin, server: Some(&server.name), known_inputs, resolve, inputs }
    }

    /// Resolves references in options for all servers.
    pub(crate) fn of_options(origin: &'a ServerOrigin, resolve: &'a dyn ValueSource) -> Self {
        Self { origin, server: None, known_inputs: &[], resolve, inputs: InputMode::Ask }
    }

    /// Resolves a text.
    pub(crate) fn text(&self, key: &str, text: &TemplateString) -> Result<String, ConfigError> {
        self.parts(key, text.parts()).map_err(|mistake| self.error_at(text, mistake))
    }

    /// Resolves a text, except for the parts that programs print.
    pub(crate) fn value_parts(
        &self,
        key: &str,
        text: &TemplateString,
    ) -> Result<Vec<ValuePart>, ConfigError> {
        let resolved = text.parts().iter().map(|part| match part {
            TemplatePart::Literal(text) => Ok(ValuePart::Text(text.clone())),
            TemplatePart::Reference(reference, _) => match self.program(reference) {
                Some(program) => Ok(ValuePart::Program(program)),
                None => Ok(ValuePart::Text(self.reference(key, reference)?)),
            },
        });
        resolved.collect::<Result<_, _>>().map_err(|mistake| self.error_at(text, mistake))
    }

    /// Reads a file of environment variables.
    pub(crate) fn env_file(
        &self,
        text: &TemplateString,
    ) -> Result<Vec<(String, String)>, ConfigError> {
        let path = self.path("env_file", text)?;
        let failed = |mistake| self.error_at(text, mistake);
        let read = self.read(&path, "env_file").map_err(failed)?;
        dotenv::parse(&read).map_err(|line| failed(ConfigErrorKind::EnvFile { path, line }))
    }

    /// Returns true if programs may be started.
    pub(crate) fn starts_programs(&self) -> bool {
        self.inputs == InputMode::Ask
    }

    /// Resolves a path, relative to the folder that the config is for.
    pub(crate) fn path(&self, key: &str, text: &TemplateString) -> Result<PathBuf, ConfigError> {
        let path = self.text(key, text)?;
        let folder = self.folder();
        self.expand(&path)
            .map(|path| folder.join(path))
            .map_err(|mistake| self.error_at(text, mistake))
    }

    /// An error at the place of the text.
    pub(crate) fn error_at(&self, text: &TemplateString, mistake: ConfigErrorKind) -> ConfigError {
        let place = SourceLocation { file: self.origin.file.clone(), spot: Some(text.spot()) };
        ConfigError::new(place, self.server, mistake)
    }

    /// Resolves the parts of a text.
    pub(crate) fn parts(
        &self,
        key: &str,
        parts: &[TemplatePart],
    ) -> Result<String, ConfigErrorKind> {
        let mut meaning = String::new();
        for part in parts {
            match part {
                TemplatePart::Literal(text) => meaning.push_str(text),
                TemplatePart::Reference(reference, _) => {
                    meaning.push_str(&self.reference(key, reference)?);
                }
            }
        }
        Ok(meaning)
    }

    fn reference(&self, key: &str, reference: &ValueReference) -> Result<String, ConfigErrorKind> {
        match reference {
            ValueReference::Variable { name, default } => {
                match (self.resolve.variable(name), default) {
                    (Some(value), None) => Ok(value),
                    // As in a shell: `:-` also stands in for what is empty.
                    (Some(value), Some(_)) if !value.is_empty() => Ok(value),
                    (_, Some(default)) => self.parts(key, default),
                    (None, None) => Err(ConfigErrorKind::UnsetVariable { name: name.clone() }),
                }
            }
            ValueReference::File(path) => self.file(key, path),
            ValueReference::Keyring { .. } | ValueReference::Program(_) => {
                self.printed(key, reference)
            }
            ValueReference::Input(id) => self.input(key, id),
            ValueReference::Folder => Ok(self.folder().display().to_string()),
            ValueReference::FolderName => {
                let folder = self.folder();
                Ok(folder.file_name().unwrap_or_default().display().to_string())
            }
            ValueReference::Home => self
                .resolve
                .home()
                .map(|home| home.display().to_string())
                .ok_or(ConfigErrorKind::NoHome),
            ValueReference::Separator => Ok(std::path::MAIN_SEPARATOR.to_string()),
        }
    }

    fn file(&self, key: &str, path: &str) -> Result<String, ConfigErrorKind> {
        let beside = self.origin.beside();
        let path = expand_variables(path, |name| self.resolve.variable(name))
            .map_err(|name| ConfigErrorKind::UnsetVariable { name })?;
        let path = beside.join(self.expand(&path)?);
        let mut text = self.read(&path, key)?;
        let end = text.trim_end_matches(['\r', '\n']).len();
        text.truncate(end);
        Ok(text)
    }

    fn read(&self, path: &Path, key: &str) -> Result<String, ConfigErrorKind> {
        self.resolve.file(path).map_err(|source| {
            // What the system says is safe to show; another error may quote what was read.
            let source = match source.raw_os_error() {
                Some(_) => source,
                None => source.kind().into(),
            };
            ConfigErrorKind::File { path: path.to_owned(), key: key.to_owned(), source }
        })
    }

    /// Returns the program that prints the value of a reference, if one does.
    fn program(&self, reference: &ValueReference) -> Option<SecretProgram> {
        match reference {
            ValueReference::Keyring { service, name } => {
                Some(SecretProgram::keyring(service, name))
            }
            ValueReference::Program(words) => {
                Some(SecretProgram::command(words, self.origin.beside()))
            }
            _ => None,
        }
    }

    fn printed(&self, key: &str, reference: &ValueReference) -> Result<String, ConfigErrorKind> {
        let Some(program) = self.program(reference).filter(|_| self.starts_programs()) else {
            return Ok(String::new());
        };
        let result = self.resolve.program(program.helper());
        program.interpret(key, result).map_err(ConfigErrorKind::Printed)
    }

    fn input(&self, key: &str, id: &str) -> Result<String, ConfigErrorKind> {
        let unanswered = |input: Option<&InputVariable>| {
            let description = input.and_then(|input| input.description.clone());
            ConfigErrorKind::Unanswered { id: id.to_owned(), description }
        };
        let Some(input) = self.known_inputs.iter().find(|input| input.id == id) else {
            return Err(unanswered(None));
        };
        if matches!(input.kind, InputKind::Command { .. }) {
            return Err(ConfigErrorKind::CommandInput { id: id.to_owned() });
        }
        if self.inputs == InputMode::Assume {
            return Ok(String::new());
        }
        let origin = self.origin;
        let config = origin.config.as_ref().unwrap_or(&origin.file);
        let answer = self.resolve.input(input, config).ok_or_else(|| unanswered(Some(input)))?;
        match &input.default {
            Some(default) if answer.is_empty() => self.parts(key, default.parts()),
            _ => Ok(answer),
        }
    }

    /// Expands `~` to the user's home.
    fn expand(&self, path: &str) -> Result<PathBuf, ConfigErrorKind> {
        match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = self.resolve.home().ok_or(ConfigErrorKind::NoHome)?;
                Ok(home.join(rest.trim_start_matches('/')))
            }
            _ => Ok(PathBuf::from(path)),
        }
    }

    /// The folder that the server is described for.
    pub(crate) fn folder(&self) -> PathBuf {
        let folder = self.origin.folder();
        // Absolute, so that it does not depend on the working folder of the server.
        std::path::absolute(if folder.as_os_str().is_empty() { Path::new(".") } else { &folder })
            .unwrap_or(folder)
    }
}
