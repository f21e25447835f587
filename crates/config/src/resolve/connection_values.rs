//! Values of a server that programs print, read anew for each connection.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use consort_client::{
    BoxFuture, ConnectionValues, HelperLimits, HelperProgram, ServerLocation, UnreadableValue,
};

use crate::resolve::secret_program::SecretProgram;

/// A part of a value.
#[derive(Clone, Debug)]
pub(crate) enum ValuePart {
    /// Known when the config is read.
    Text(String),
    /// Printed by a program.
    Program(SecretProgram),
}

/// The place of a value.
#[derive(Clone, Debug)]
pub(crate) enum ValuePlace {
    /// An argument, by its position.
    Argument(usize),
    /// An environment variable.
    Variable(String),
    /// A header.
    Header(String),
}

impl fmt::Display for ValuePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(index) => write!(f, "args[{index}]"),
            Self::Variable(name) => write!(f, "env.{name}"),
            Self::Header(name) => write!(f, "headers.{name}"),
        }
    }
}

/// The values of one server that programs print.
#[derive(Default)]
pub(crate) struct PrintedValues {
    values: Vec<(ValuePlace, Vec<ValuePart>)>,
    headers_helper: Option<HelperProgram>,
    key: String,
}

impl PrintedValues {
    pub(crate) fn add(&mut self, place: ValuePlace, parts: Vec<ValuePart>) {
        self.values.push((place, parts));
    }

    /// Sets the program that prints a JSON object of headers.
    pub(crate) fn set_headers_helper(&mut self, helper: HelperProgram) {
        self.headers_helper = Some(helper);
    }

    /// Returns the source for connections, if there are values.
    pub(crate) fn into_source(mut self) -> Option<Arc<dyn ConnectionValues>> {
        if self.values.is_empty() && self.headers_helper.is_none() {
            return None;
        }
        let mut key = format!("{:?}\n", self.headers_helper);
        for (place, parts) in &self.values {
            key.push_str(&place.to_string());
            for part in parts {
                match part {
                    ValuePart::Text(text) => key.extend(["\n=", text]),
                    ValuePart::Program(program) => key.extend(["\n!", &program.key()]),
                }
            }
            key.push('\n');
        }
        self.key = key;
        Some(Arc::new(self))
    }

    async fn printed(
        &self,
        limits: &HelperLimits,
    ) -> Result<Vec<(&ValuePlace, String)>, UnreadableValue> {
        let mut known: HashMap<String, String> = HashMap::new();
        let mut values = Vec::new();
        for (place, parts) in &self.values {
            let mut value = String::new();
            for part in parts {
                match part {
                    ValuePart::Text(text) => value.push_str(text),
                    ValuePart::Program(program) => {
                        let key = program.key();
                        let printed = match known.get(&key) {
                            Some(printed) => printed.clone(),
                            None => program.read(&place.to_string(), limits).await?,
                        };
                        value.push_str(&printed);
                        known.insert(key, printed);
                    }
                }
            }
            values.push((place, value));
        }
        Ok(values)
    }

    async fn read_server(
        &self,
        server: &ServerLocation,
        limits: &HelperLimits,
    ) -> Result<ServerLocation, UnreadableValue> {
        let mut server = server.clone();
        for (place, value) in self.printed(limits).await? {
            server = match (server, place) {
                (ServerLocation::Command(command), ValuePlace::Argument(index)) => {
                    ServerLocation::Command(command.replace_argument(*index, value))
                }
                (ServerLocation::Command(command), ValuePlace::Variable(name)) => {
                    ServerLocation::Command(command.variable(name, value))
                }
                (server, ValuePlace::Header(name)) => with_header(server, name, &value)?,
                (server, _) => server,
            };
        }
        if let Some(helper) = &self.headers_helper {
            for (name, value) in read_headers(helper, limits).await? {
                server = with_header(server, &name, &value)?;
            }
        }
        Ok(server)
    }
}

/// Values are secrets more often than not.
impl fmt::Debug for PrintedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values.iter().map(|(place, _)| place.to_string())).finish()
    }
}

impl ConnectionValues for PrintedValues {
    fn key(&self) -> &str {
        &self.key
    }

    fn read<'a>(
        &'a self,
        server: &'a ServerLocation,
        limits: HelperLimits,
    ) -> BoxFuture<'a, Result<ServerLocation, UnreadableValue>> {
        Box::pin(async move { self.read_server(server, &limits).await })
    }
}

/// Sets a header, in place of one of the same name.
fn with_header(
    server: ServerLocation,
    name: &str,
    value: &str,
) -> Result<ServerLocation, UnreadableValue> {
    let Some(url) = server.url().cloned() else { return Ok(server) };
    let url = url.replace_header(name, value).map_err(|_| {
        UnreadableValue::new(
            format!("cannot use `headers.{name}`: it is not a valid HTTP header"),
            "a value has one line of printable characters",
        )
    })?;
    Ok(server.map_url(|_| url))
}

async fn read_headers(
    helper: &HelperProgram,
    limits: &HelperLimits,
) -> Result<BTreeMap<String, String>, UnreadableValue> {
    let hint = "run the command of `headersHelper` yourself: it prints a JSON object of strings";
    let failed = |reason: String| {
        UnreadableValue::new(format!("cannot read `headersHelper`: {reason}"), hint)
    };
    let text = helper
        .run(limits)
        .await
        .map_err(|error| UnreadableValue { detail: error.detail(), ..failed(error.to_string()) })?;
    // The error of the parser may quote a secret.
    serde_json::from_str(&text)
        .map_err(|_| failed("its output is not a JSON object of strings".to_owned()))
}
