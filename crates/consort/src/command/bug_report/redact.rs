//! Redaction of secrets: those of the config by their values, others by their names and forms.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use consort_client::{HelperError, HelperProgram};
use consort_config::{
    AuthConfig, Config, HttpConfig, InputVariable, ServerConfig, SystemValues, TemplateString,
    TransportConfig, ValueSource, state_folder,
};
use consort_core::secret::{HIDDEN, hide_if_secret, is_secret_name};
use serde_json::Value;

/// Keys whose values are hidden whatever they are, with everything below them.
const HIDDEN_KEYS: [&str; 16] = [
    "env",
    "headers",
    "auth",
    "bearer",
    "key",
    "client_id",
    "client_secret",
    "proxy",
    "value",
    "default",
    "body",
    "annotations",
    "provider",
    "instructions",
    "description",
    "options",
];

/// Keys of tables that have one of these names and are no secret.
const SHOWN_TABLES: [&str; 1] = ["options"];

/// Length from which a value is a secret: a shorter one would be found in half of all words.
const PLAIN_LENGTH: usize = 6;

/// The same for a value whose name is that of a secret.
const SECRET_LENGTH: usize = 4;

/// Replaces secrets by `***`.
pub(super) struct SecretRedactor {
    /// Known secrets, the longest first.
    values: Vec<String>,
}

impl SecretRedactor {
    /// A redactor of everything that a config holds or refers to, and of the tokens of gateways.
    pub(super) fn new(
        config: Option<&Config>,
        token_files: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let mut values = BTreeSet::new();
        let own = state_folder().map(|folder| folder.join("token"));
        for file in own.into_iter().chain(token_files) {
            add(&mut values, "token", &std::fs::read_to_string(file).unwrap_or_default());
        }
        if let Some(config) = config {
            let projects = config.projects.values().flatten();
            for server in config.servers.iter().chain(projects) {
                add_server(&mut values, server);
            }
            let options = serde_json::to_value(&config.options).unwrap_or_default();
            add_hidden(&mut values, "", &options, false);
            add_references(&mut values, config, &options);
            let keys = config.options.providers.values().filter_map(|it| it.key.as_ref());
            for secret in config.options.tokens.values().chain(keys) {
                add(&mut values, "secret", &secret.literal().unwrap_or_default());
            }
        }
        let mut values: Vec<String> = values.into_iter().collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// Returns a text without secrets.
    pub(super) fn text(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for value in &self.values {
            clean = clean.replace(value.as_str(), HIDDEN);
        }
        let words = clean.split_inclusive(char::is_whitespace).map(|word| {
            let bare = word.trim_matches(|c: char| c.is_whitespace() || "\"'`,;()[]<>".contains(c));
            match word.split_once(bare).filter(|_| !bare.is_empty()) {
                Some((before, after)) => format!("{before}{}{after}", hide_word(bare)),
                None => word.to_owned(),
            }
        });
        words.collect()
    }

    /// Returns a config as JSON without secrets.
    pub(super) fn config(&self, config: &Config) -> Value {
        let mut value = serde_json::to_value(config).unwrap_or_default();
        for server in value["servers"].as_array_mut().into_iter().flatten() {
            hide_flag_values(&mut server["arguments"]);
        }
        self.hide("", &mut value, false);
        value
    }

    fn hide(&self, key: &str, value: &mut Value, hidden: bool) {
        let hidden = hidden || is_hidden_key(key, value);
        match value {
            Value::Object(table) => {
                table.iter_mut().for_each(|(key, value)| self.hide(key, value, hidden));
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.hide(key, value, hidden)),
            Value::String(text) if hidden && !is_reference(text) => HIDDEN.clone_into(text),
            Value::String(text) => *text = self.text(text),
            Value::Number(_) if hidden => *value = HIDDEN.into(),
            _ => {}
        }
    }
}

/// Returns a text with the home folder as `~`.
pub(super) fn without_home(text: &str) -> String {
    let home = std::env::home_dir().map(|home| home.display().to_string());
    match home.filter(|home| home.len() > 1) {
        Some(home) => text.replace(home.trim_end_matches('/'), "~"),
        None => text.to_owned(),
    }
}

fn is_hidden_key(key: &str, value: &Value) -> bool {
    let is_table = value.is_object() && SHOWN_TABLES.contains(&key);
    (HIDDEN_KEYS.contains(&key) || is_secret_name(key) && !value.is_object()) && !is_table
}

/// Returns true for a value that only refers to a secret: `env:NAME`, `file:PATH`, `keyring:SERVICE/NAME`, `${NAME}`.
fn is_reference(text: &str) -> bool {
    let whole = |inside: &str| !inside.contains(['$', '{', '}']) && !inside.contains(":-");
    let braced = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    ["env:", "file:", "keyring:"].iter().any(|scheme| text.starts_with(scheme))
        || braced.is_some_and(whole)
}

/// Hides a word that has the form of a secret, and every value in the query of a URL.
fn hide_word(word: &str) -> String {
    let word = hide_if_secret(word).into_owned();
    let Some((before, query)) = word.split_once('?').filter(|(before, _)| before.contains("://"))
    else {
        return word;
    };
    let fields = query.split('&').map(|field| match field.split_once('=') {
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None => HIDDEN.to_owned(),
    });
    format!("{before}?{}", fields.collect::<Vec<_>>().join("&"))
}

/// Hides the argument after a flag such as `--token`.
fn hide_flag_values(arguments: &mut Value) {
    let Some(arguments) = arguments.as_array_mut() else { return };
    let is_secret_flag = |flag: &Value| flag.as_str().is_some_and(is_secret_flag);
    for at in 1..arguments.len() {
        if is_secret_flag(&arguments[at - 1]) {
            arguments[at] = HIDDEN.into();
        }
    }
}

fn is_secret_flag(flag: &str) -> bool {
    flag.starts_with('-') && !flag.contains('=') && is_secret_name(flag)
}

/// Adds a value and its parts: lines, the credential after `Bearer`, and the part after `name=`.
fn add(values: &mut BTreeSet<String>, name: &str, value: &str) {
    let least = if is_secret_name(name) { SECRET_LENGTH } else { PLAIN_LENGTH };
    for line in value.lines().map(str::trim) {
        let credential = line.split_once(' ').map(|(_, rest)| rest.trim());
        let parts = [Some(line), credential].into_iter().flatten();
        values.extend(parts.filter(|part| part.len() >= least).map(str::to_owned));
    }
}

/// Adds the literal parts of a value, and the defaults of its references.
fn add_template(values: &mut BTreeSet<String>, name: &str, text: &str) {
    if is_reference(text) {
        return;
    }
    add(values, name, text);
    let mut pieces = text.split("${");
    add(values, name, pieces.next().unwrap_or_default());
    for piece in pieces {
        let (inside, after) = piece.split_once('}').unwrap_or((piece, ""));
        let default = inside.split_once(":-").map_or("", |(_, default)| default);
        add(values, name, default);
        add(values, name, after.trim_end_matches('}'));
    }
}

fn add_server(values: &mut BTreeSet<String>, server: &ServerConfig) {
    match &server.transport {
        TransportConfig::Stdio(program) => {
            for (name, value) in &program.env {
                add_template(values, name, &value.to_plain_string());
            }
            let arguments: Vec<String> =
                program.arguments.iter().map(TemplateString::to_plain_string).collect();
            for (at, argument) in arguments.iter().enumerate() {
                if at > 0 && is_secret_flag(&arguments[at - 1]) {
                    add_template(values, "secret", argument);
                }
                let named = argument.split_once('=').filter(|(name, _)| is_secret_name(name));
                if let Some((name, value)) = named {
                    add(values, name, value);
                }
                add_url(values, argument);
            }
        }
        TransportConfig::Remote(address) => {
            add_address(values, address);
        }
    }
    for input in &server.inputs {
        input
            .default
            .iter()
            .for_each(|text| add_template(values, &input.id, &text.to_plain_string()));
    }
    let source = RecordedValues { system: SystemValues::silent(), values: RefCell::default() };
    drop(server.check(&source));
    drop(server.to_login(&source));
    for (name, value) in source.values.into_inner() {
        add(values, &name, &value);
    }
}

fn add_address(values: &mut BTreeSet<String>, address: &HttpConfig) {
    add_url(values, &address.url.to_plain_string());
    for value in address.headers.values() {
        add_template(values, "secret", &value.to_plain_string());
    }
    if let Some(AuthConfig::Bearer(text) | AuthConfig::ApiKey { key: text, .. }) = &address.auth {
        add_template(values, "secret", &text.to_plain_string());
    }
    if let Some(oauth) = &address.oauth {
        for text in oauth.client_id.iter().chain(&oauth.client_secret) {
            add_template(values, "secret", &text.to_plain_string());
        }
    }
    if let Some(proxy) = &address.network.proxy {
        add_url(values, &proxy.to_plain_string());
    }
}

/// Adds the credentials and the values of the query of a URL.
fn add_url(values: &mut BTreeSet<String>, url: &str) {
    let Some((_, rest)) = url.split_once("://") else { return };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if let Some((credentials, _)) = host.rsplit_once('@') {
        credentials.split(':').for_each(|part| add(values, "secret", part));
    }
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    for (_, value) in query.split('&').filter_map(|field| field.split_once('=')) {
        add(values, "secret", value.split('#').next().unwrap_or_default());
    }
}

/// Adds the strings below hidden keys.
fn add_hidden(values: &mut BTreeSet<String>, key: &str, value: &Value, hidden: bool) {
    let hidden = hidden || is_hidden_key(key, value);
    match value {
        Value::Object(table) => {
            table.iter().for_each(|(key, value)| add_hidden(values, key, value, hidden));
        }
        Value::Array(list) => list.iter().for_each(|value| add_hidden(values, key, value, hidden)),
        Value::String(text) if hidden && !is_reference(text) => add(values, key, text),
        Value::String(text) => add_url(values, text),
        _ => {}
    }
}

/// Adds the values of references in the options: tokens of callers, and keys of model providers.
fn add_references(values: &mut BTreeSet<String>, config: &Config, value: &Value) {
    match value {
        Value::Object(table) => {
            table.values().for_each(|value| add_references(values, config, value));
        }
        Value::Array(list) => list.iter().for_each(|value| add_references(values, config, value)),
        Value::String(text) => {
            if let Some(Ok(value)) = text.strip_prefix("env:").map(std::env::var) {
                add(values, "secret", &value);
            } else if let Some(file) = text.strip_prefix("file:") {
                let file = config.file.parent().unwrap_or(Path::new("")).join(file);
                add(values, "secret", &std::fs::read_to_string(file).unwrap_or_default());
            }
        }
        _ => {}
    }
}

/// Values of this process, recorded when they are asked for.
struct RecordedValues {
    system: SystemValues,
    values: RefCell<Vec<(String, String)>>,
}

impl ValueSource for RecordedValues {
    fn variable(&self, name: &str) -> Option<String> {
        let value = self.system.variable(name)?;
        self.values.borrow_mut().push((name.to_owned(), value.clone()));
        Some(value)
    }

    fn file(&self, path: &Path) -> io::Result<String> {
        let text = self.system.file(path)?;
        self.values.borrow_mut().push(("secret".to_owned(), text.clone()));
        Ok(text)
    }

    fn input(&self, input: &InputVariable, config: &Path) -> Option<String> {
        let value = self.system.input(input, config)?;
        self.values.borrow_mut().push(("secret".to_owned(), value.clone()));
        Some(value)
    }

    fn home(&self) -> Option<PathBuf> {
        self.system.home()
    }

    /// Runs nothing: the config may be one that is not trusted.
    fn program(&self, program: &HelperProgram) -> Result<String, HelperError> {
        let source = io::ErrorKind::PermissionDenied.into();
        Err(HelperError::Start { program: format!("{program:?}"), source })
    }
}
