//! Conversion of a server's config to checked settings for the hub.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_client::{
    ClientCertificate, EraPreference, HelperProgram, NetworkSettings, ProxyChoice, ProxyUrl,
    ServerCommand, ServerLocation, ServerUrl, Times, ToolTimes,
};
use consort_core::{NamePattern, Problem, SESSION, Severity};
use consort_hub::{ConnectTrigger as When, ServerSettings};
use consort_oauth::{ClientCredentials, LoginLimits};
use consort_shape::transform::{DropTools, ForServer, KeepTools, Transform};

use crate::duration::ConfigDuration;
use crate::error::{ConfigError, ConfigErrorKind};
use crate::resolve::connection_values::{PrintedValues, ValuePlace};
use crate::resolve::{InputMode, ReferenceResolver, ValueSource};
use crate::server::endpoint;
use crate::server::installer;
use crate::server::network::{NO_PROXY, NetworkConfig};
use crate::server::{
    AuthConfig, ConnectTime, EraSetting, HttpConfig, OAuthGrant, ServerConfig, ServerTimeouts,
    StdioConfig, ToolConfig, TransportConfig,
};
use crate::template::TemplateString;

/// URL of a disabled server whose own is not resolved. That domain never exists.
const UNRESOLVED: &str = "https://unresolved.invalid/";

impl ServerConfig {
    /// Resolves the references and builds settings. Inputs are requested through `resolve`.
    ///
    /// A disabled server is never started, so none of its references are resolved and no input is requested.
    pub fn to_settings(&self, resolve: &dyn ValueSource) -> Result<ServerSettings, ConfigError> {
        self.settings(&ReferenceResolver::new(self, resolve, InputMode::Ask))
    }

    /// Returns the transforms of the server's tools: those to keep, then those to drop.
    pub fn to_transforms(&self) -> Vec<Arc<dyn Transform>> {
        // Here the server is known, so a dot may also be part of a tool's own name.
        let own = |name: &String| {
            name.contains(['.', ':']).then(|| NamePattern::new(format!("{}.{name}", self.name)))
        };
        let patterns = |names: &[String]| {
            let both = |name: &String| [Some(NamePattern::new(name)), own(name)];
            names.iter().flat_map(both).flatten().collect::<Vec<_>>()
        };
        let of = |inner: Arc<dyn Transform>| -> Arc<dyn Transform> {
            Arc::new(ForServer { server: self.name.clone(), inner })
        };
        let keep = (!self.options.keep.is_empty())
            .then(|| of(Arc::new(KeepTools(patterns(&self.options.keep)))));
        let drop = (!self.options.drop.is_empty())
            .then(|| of(Arc::new(DropTools(patterns(&self.options.drop)))));
        keep.into_iter().chain(drop).collect()
    }

    /// Returns problems that would prevent the server from starting, and warnings. No input is requested.
    pub fn check(&self, resolve: &dyn ValueSource) -> Vec<Problem> {
        let resolver = ReferenceResolver::new(self, resolve, InputMode::Assume);
        let texts = self.texts();
        let errors: Vec<ConfigError> =
            texts.iter().filter_map(|(key, text)| resolver.text(key, text).err()).collect();
        let mut problems: Vec<Problem> = errors.iter().map(Problem::from).collect();
        // A URL with an unanswered question in it is not to be judged, nor one that a program prints.
        let is_known =
            self.inputs.is_empty() && !texts.iter().any(|(_, text)| text.needs_program());
        if errors.is_empty() && is_known {
            problems.extend(self.settings(&resolver).err().iter().map(Problem::from));
        }
        if self.disabled {
            for problem in &mut problems {
                problem.severity = Severity::Warning;
            }
        }
        for (key, text) in texts.iter().filter(|(_, text)| text.holds_secret()) {
            let message = format!("{}: `{key}` contains a secret", self.place(text.spot()));
            let hint = "use a reference instead: `env:NAME`, `file:path`, `keyring:SERVICE/NAME` or \
                        `cmd:COMMAND`";
            problems.push(Problem::warning(message).of(&self.name).hint(hint));
        }
        problems
    }

    fn settings(&self, resolver: &ReferenceResolver<'_>) -> Result<ServerSettings, ConfigError> {
        let mut printed = PrintedValues::default();
        let server = match &self.transport {
            TransportConfig::Stdio(program) => {
                ServerLocation::Command(self.command(program, resolver, &mut printed)?)
            }
            TransportConfig::Remote(address) => {
                address.transport.location(self.endpoint(address, resolver, &mut printed)?)
            }
        };
        let mut settings = ServerSettings {
            values: printed.into_source(),
            connect: match self.options.connect {
                ConnectTime::Start => When::Start,
                ConnectTime::Call => When::Call,
            },
            speak: match self.options.era {
                EraSetting::Auto => EraPreference::Auto,
                EraSetting::Legacy => EraPreference::Legacy,
                EraSetting::Modern => EraPreference::Modern,
            },
            times: self.times(),
            installer: self.installer(),
            tools: self.tool_times(),
            idle_stop: self.options.idle_stop.map(ConfigDuration::get),
            disabled: self.disabled,
            ..ServerSettings::new(self.name.clone(), server)
        };
        self.limits.apply(&mut settings);
        Ok(settings)
    }

    fn command(
        &self,
        program: &StdioConfig,
        resolver: &ReferenceResolver<'_>,
        printed: &mut PrintedValues,
    ) -> Result<ServerCommand, ConfigError> {
        let mut command = ServerCommand::new(self.text(resolver, "command", &program.command)?);
        for (index, argument) in program.arguments.iter().enumerate() {
            let place = ValuePlace::Argument(index);
            command = command.arguments([self.value(resolver, "args", argument, place, printed)?]);
        }
        if let Some(file) = program.env_file.as_ref().filter(|_| !self.disabled) {
            for (name, value) in resolver.env_file(file)? {
                command = command.variable(name, value);
            }
        }
        for (name, value) in &program.env {
            let (key, place) = (format!("env.{name}"), ValuePlace::Variable(name.clone()));
            let value = self.value(resolver, &key, value, place, printed)?;
            command = command.variable(name, value);
        }
        for name in &program.inherit {
            command = command.inherit(name);
        }
        match &program.cwd {
            Some(_) if self.disabled => Ok(command),
            Some(directory) => Ok(command.directory(resolver.path("cwd", directory)?)),
            None => Ok(command),
        }
    }

    fn endpoint(
        &self,
        address: &HttpConfig,
        resolver: &ReferenceResolver<'_>,
        printed: &mut PrintedValues,
    ) -> Result<ServerUrl, ConfigError> {
        let url = match address.url.as_literal() {
            None if self.disabled => UNRESOLVED.to_owned(),
            _ => self.text(resolver, "url", &address.url)?,
        };
        let mut endpoint = endpoint::endpoint("url", &url, address.insecure)
            .map_err(|mistake| resolver.error_at(&address.url, mistake))?;
        if !self.disabled {
            endpoint = endpoint.network(address.network.to_settings(resolver)?);
        }
        let auth = address.auth.as_ref().map(AuthConfig::header);
        let headers = address.headers.iter().map(|(name, text)| (name.as_str(), text.clone()));
        for (name, text) in headers.chain(auth) {
            let (key, place) = (format!("headers.{name}"), ValuePlace::Header(name.to_owned()));
            let value = self.value(resolver, &key, &text, place, printed)?;
            endpoint = endpoint::header(endpoint, name, &value)
                .map_err(|mistake| resolver.error_at(&text, mistake))?;
        }
        if let Some(line) = address.headers_helper.as_ref().filter(|_| !self.disabled) {
            // As Claude Code runs it: in a shell, with the name and the URL of the server.
            let helper = HelperProgram::new("/bin/sh")
                .arguments(["-c", line])
                .directory(resolver.folder())
                .variable("CLAUDE_CODE_MCP_SERVER_NAME", self.name.as_str())
                .variable("CLAUDE_CODE_MCP_SERVER_URL", &url);
            printed.set_headers_helper(helper);
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
        resolve: &dyn ValueSource,
    ) -> Result<Option<consort_oauth::LoginSettings>, ConfigError> {
        let Some(address) = self.transport.remote() else { return Ok(None) };
        let says = |name: &str| name.eq_ignore_ascii_case("authorization");
        let has_header =
            address.headers_helper.is_some() || address.headers.keys().any(|name| says(name));
        if self.disabled || address.auth.is_some() || has_header {
            return Ok(None);
        }
        let resolver = ReferenceResolver::new(self, resolve, InputMode::Ask);
        let oauth = address.oauth.clone().unwrap_or_default();
        let text = |key: &str, text: &Option<TemplateString>| {
            text.as_ref().map(|text| self.text(&resolver, key, text)).transpose()
        };
        let (id, secret) = (
            text("oauth.client_id", &oauth.client_id)?,
            text("oauth.client_secret", &oauth.client_secret)?,
        );
        Ok(Some(consort_oauth::LoginSettings {
            server: self.text(&resolver, "url", &address.url)?,
            client: id.map(|id| ClientCredentials { id, secret }),
            client_metadata_url: oauth.client_metadata,
            scope: oauth.scope,
            issuer: oauth.issuer,
            client_credentials_grant: oauth.grant == OAuthGrant::ClientCredentials,
            advice: format!("run `consort login {}`", self.name),
            network: address.network.to_settings(&resolver)?,
            limits: LoginLimits::default(),
        }))
    }

    fn text(
        &self,
        resolver: &ReferenceResolver<'_>,
        key: &str,
        text: &TemplateString,
    ) -> Result<String, ConfigError> {
        if self.disabled { Ok(text.to_string()) } else { resolver.text(key, text) }
    }

    /// Resolves a value. One that a program prints is empty until a connection is made.
    fn value(
        &self,
        resolver: &ReferenceResolver<'_>,
        key: &str,
        text: &TemplateString,
        place: ValuePlace,
        printed: &mut PrintedValues,
    ) -> Result<String, ConfigError> {
        if !self.disabled && text.needs_program() && resolver.starts_programs() {
            printed.add(place, resolver.value_parts(key, text)?);
            return Ok(String::new());
        }
        self.text(resolver, key, text)
    }

    /// The program that may fetch a package before the server starts.
    fn installer(&self) -> Option<String> {
        self.transport.program().and_then(installer::installer)
    }

    /// Returns the timeouts of the server. One whose package may have to be fetched first gets more time to start.
    fn times(&self) -> Times {
        let mut times = times(&self.timeout);
        if self.installer().is_some() {
            let ServerTimeouts { connect, install, .. } = self.timeout;
            let written = install.or(connect).map(ConfigDuration::get);
            times.handshake = written.unwrap_or(installer::INSTALL);
        }
        times
    }

    fn tool_times(&self) -> BTreeMap<String, ToolTimes> {
        let most = times(&self.timeout).total;
        let times = |tool: &ToolConfig| ToolTimes {
            idle: tool.idle.map(ConfigDuration::get),
            // A tool that may be silent for long may also take long.
            total: tool
                .total
                .map(ConfigDuration::get)
                .or(tool.idle.map(|idle| idle.get().max(most))),
        };
        self.tools.iter().map(|(name, tool)| (name.as_str().to_owned(), times(tool))).collect()
    }
}

impl NetworkConfig {
    /// Resolves the references and builds settings.
    fn to_settings(
        &self,
        resolver: &ReferenceResolver<'_>,
    ) -> Result<NetworkSettings, ConfigError> {
        let path = |key: &str, text: &Option<TemplateString>| {
            text.as_ref().map(|text| resolver.path(key, text)).transpose()
        };
        let proxy = match &self.proxy {
            None => ProxyChoice::Environment,
            Some(text) => match resolver.text("proxy", text)?.as_str() {
                NO_PROXY => ProxyChoice::Direct,
                url => ProxyChoice::Url(ProxyUrl::parse(url).map_err(|error| {
                    let mistake = ConfigErrorKind::Proxy(error);
                    resolver.error_at(text, mistake)
                })?),
            },
        };
        let certificate = path("client_certificate_file", &self.client_certificate_file)?;
        let key = path("client_key_file", &self.client_key_file)?;
        Ok(NetworkSettings {
            proxy,
            ca_file: path("ca_file", &self.ca_file)?,
            client_certificate: certificate.zip(key).map(|(certificate_file, key_file)| {
                ClientCertificate { certificate_file, key_file }
            }),
            ..NetworkSettings::default()
        })
    }
}

/// Adjusts the idle or the total timeout if only the other is set and would otherwise have no effect.
fn times(written: &ServerTimeouts) -> Times {
    let mut times = Times::default();
    match (written.idle.map(ConfigDuration::get), written.total.map(ConfigDuration::get)) {
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
