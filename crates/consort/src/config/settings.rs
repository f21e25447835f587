//! Conversion of a server's config to checked settings for the hub.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_core::{Pattern, Problem, SESSION, Severity};
use consort_hub::{Connect as When, ServerSettings};
use consort_oauth::{ClientCredentials, LoginLimits};
use consort_shape::transform::{DropTools, ForServer, KeepTools, Transform};
use consort_wire::{Command, Endpoint, Server, Speak, Times, ToolTimes};

use super::endpoint;
use super::error::ConfigError;
use super::installer;
use super::period::Period;
use super::resolve::{Following, Inputs, Resolve};
use super::server::{
    Address, Auth, Connect, Era, Grant, Program, ServerConfig, Timeouts, ToolConfig, Transport,
};
use super::text::Text;

/// URL of a disabled server whose own is not resolved. That domain never exists.
const UNRESOLVED: &str = "https://unresolved.invalid/";

impl ServerConfig {
    /// Resolves the references and builds settings. Inputs are requested through `resolve`.
    ///
    /// A disabled server is never started, so none of its references are resolved and no input is requested.
    pub fn to_settings(&self, resolve: &dyn Resolve) -> Result<ServerSettings, ConfigError> {
        self.settings(&Following::new(self, resolve, Inputs::Ask))
    }

    /// Returns the transforms of the server's tools: those to keep, then those to drop.
    pub fn to_transforms(&self) -> Vec<Arc<dyn Transform>> {
        // Here the server is known, so a dot may also be part of a tool's own name.
        let own = |name: &String| {
            name.contains(['.', ':']).then(|| Pattern::new(format!("{}.{name}", self.name)))
        };
        let patterns = |names: &[String]| {
            let both = |name: &String| [Some(Pattern::new(name)), own(name)];
            names.iter().flat_map(both).flatten().collect::<Vec<_>>()
        };
        let of = |inner: Arc<dyn Transform>| -> Arc<dyn Transform> {
            Arc::new(ForServer { server: self.name.clone(), inner })
        };
        let keep = (!self.keep.is_empty()).then(|| of(Arc::new(KeepTools(patterns(&self.keep)))));
        let drop = (!self.drop.is_empty()).then(|| of(Arc::new(DropTools(patterns(&self.drop)))));
        keep.into_iter().chain(drop).collect()
    }

    /// Returns problems that would prevent the server from starting, and warnings. No input is requested.
    pub fn check(&self, resolve: &dyn Resolve) -> Vec<Problem> {
        let following = Following::new(self, resolve, Inputs::Assume);
        let texts = self.texts();
        let errors: Vec<ConfigError> =
            texts.iter().filter_map(|(key, text)| following.text(key, text).err()).collect();
        let mut problems: Vec<Problem> = errors.iter().map(Problem::from).collect();
        // A URL with an unanswered question in it is not to be judged.
        if errors.is_empty() && self.inputs.is_empty() {
            problems.extend(self.settings(&following).err().iter().map(Problem::from));
        }
        if self.disabled {
            for problem in &mut problems {
                problem.severity = Severity::Warning;
            }
        }
        for (key, text) in texts.iter().filter(|(_, text)| text.holds_secret()) {
            let message = format!("{}: `{key}` holds a secret", self.place(text.spot()));
            let hint = "keep it out of the file: write `env:NAME` or `file:path`";
            problems.push(Problem::warning(message).of(&self.name).hint(hint));
        }
        problems
    }

    fn settings(&self, following: &Following<'_>) -> Result<ServerSettings, ConfigError> {
        let server = match &self.transport {
            Transport::Stdio(program) => Server::Command(self.command(program, following)?),
            Transport::Http(address) => Server::Http(self.endpoint(address, following)?),
            Transport::Sse(address) => Server::Sse(self.endpoint(address, following)?),
        };
        let mut settings = ServerSettings {
            connect: match self.connect {
                Connect::Start => When::Start,
                Connect::Call => When::Call,
            },
            speak: match self.era {
                Era::Auto => Speak::Auto,
                Era::Legacy => Speak::Legacy,
                Era::Modern => Speak::Modern,
            },
            times: self.times(),
            installer: self.installer(),
            tools: self.tool_times(),
            idle_stop: self.idle_stop.map(Period::get),
            disabled: self.disabled,
            ..ServerSettings::new(self.name.clone(), server)
        };
        self.limits.apply(&mut settings);
        Ok(settings)
    }

    fn command(
        &self,
        program: &Program,
        following: &Following<'_>,
    ) -> Result<Command, ConfigError> {
        let text = |key: &str, text: &Text| self.text(following, key, text);
        let mut command = Command::new(text("command", &program.command)?);
        for argument in &program.arguments {
            command = command.arguments([text("args", argument)?]);
        }
        for (name, value) in &program.environment {
            command = command.variable(name, text(&format!("env.{name}"), value)?);
        }
        for name in &program.inherit {
            command = command.inherit(name);
        }
        match &program.directory {
            Some(_) if self.disabled => Ok(command),
            Some(directory) => Ok(command.directory(following.path("cwd", directory)?)),
            None => Ok(command),
        }
    }

    fn endpoint(
        &self,
        address: &Address,
        following: &Following<'_>,
    ) -> Result<Endpoint, ConfigError> {
        let url = match address.url.as_literal() {
            None if self.disabled => UNRESOLVED.to_owned(),
            _ => self.text(following, "url", &address.url)?,
        };
        let mut endpoint = endpoint::endpoint("url", &url, address.insecure)
            .map_err(|mistake| following.failed(&address.url, mistake))?;
        if !self.disabled {
            endpoint = endpoint.network(address.network.to_settings(following)?);
        }
        let auth = address.auth.as_ref().map(Auth::header);
        let headers = address.headers.iter().map(|(name, text)| (name.as_str(), text.clone()));
        for (name, text) in headers.chain(auth) {
            let value = self.text(following, &format!("headers.{name}"), &text)?;
            endpoint = endpoint::header(endpoint, name, &value)
                .map_err(|mistake| following.failed(&text, mistake))?;
        }
        if let Some(name) = &address.session_header {
            endpoint =
                endpoint.meta_header(name, SESSION).expect("it was checked when it was read");
        }
        Ok(endpoint)
    }

    /// Returns the settings of an OAuth login at the server; `None` for a server with another authentication, or for a
    /// program.
    pub fn to_login(
        &self,
        resolve: &dyn Resolve,
    ) -> Result<Option<consort_oauth::LoginSettings>, ConfigError> {
        let (Transport::Http(address) | Transport::Sse(address)) = &self.transport else {
            return Ok(None);
        };
        let says = |name: &str| name.eq_ignore_ascii_case("authorization");
        if self.disabled || address.auth.is_some() || address.headers.keys().any(|name| says(name))
        {
            return Ok(None);
        }
        let following = Following::new(self, resolve, Inputs::Ask);
        let oauth = address.oauth.clone().unwrap_or_default();
        let text = |key: &str, text: &Option<Text>| {
            text.as_ref().map(|text| self.text(&following, key, text)).transpose()
        };
        let (id, secret) = (
            text("oauth.client_id", &oauth.client_id)?,
            text("oauth.client_secret", &oauth.client_secret)?,
        );
        Ok(Some(consort_oauth::LoginSettings {
            server: self.text(&following, "url", &address.url)?,
            client: id.map(|id| ClientCredentials { id, secret }),
            client_metadata_url: oauth.client_metadata,
            scope: oauth.scope,
            issuer: oauth.issuer,
            client_credentials_grant: oauth.grant == Grant::ClientCredentials,
            advice: format!("run `consort login {}`", self.name),
            network: address.network.to_settings(&following)?,
            limits: LoginLimits::default(),
        }))
    }

    fn text(
        &self,
        following: &Following<'_>,
        key: &str,
        text: &Text,
    ) -> Result<String, ConfigError> {
        if self.disabled { Ok(text.to_string()) } else { following.text(key, text) }
    }

    /// The program that may fetch a package before the server starts.
    fn installer(&self) -> Option<String> {
        match &self.transport {
            Transport::Stdio(program) => installer::installer(program),
            Transport::Http(_) | Transport::Sse(_) => None,
        }
    }

    /// Returns the timeouts of the server. One whose package may have to be fetched first gets more time to start.
    fn times(&self) -> Times {
        let mut times = times(&self.timeout);
        if self.installer().is_some() {
            let Timeouts { connect, install, .. } = self.timeout;
            let written = install.or(connect).map(Period::get);
            times.handshake = written.unwrap_or(installer::INSTALL);
        }
        times
    }

    fn tool_times(&self) -> BTreeMap<String, ToolTimes> {
        let most = times(&self.timeout).total;
        let times = |tool: &ToolConfig| ToolTimes {
            idle: tool.idle.map(Period::get),
            // A tool that may be silent for long may also take long.
            total: tool.total.map(Period::get).or(tool.idle.map(|idle| idle.get().max(most))),
        };
        self.tools.iter().map(|(name, tool)| (name.as_str().to_owned(), times(tool))).collect()
    }
}

/// Adjusts the idle or the total timeout if only the other is set and would otherwise have no effect.
fn times(written: &Timeouts) -> Times {
    let mut times = Times::default();
    match (written.idle.map(Period::get), written.total.map(Period::get)) {
        (Some(idle), Some(total)) => (times.idle, times.total) = (idle, total),
        (Some(idle), None) => (times.idle, times.total) = (idle, times.total.max(idle)),
        (None, Some(total)) => (times.idle, times.total) = (times.idle.min(total), total),
        (None, None) => {}
    }
    if let Some(connect) = written.connect {
        times.handshake = connect.get();
        times.connect = times.connect.min(connect.get());
    }
    times
}
