//! Dangling names in `[consort]`: servers and profiles that the config does not have.

use consort_core::{NamePattern, Problem, ServerId};
use consort_shape::exposure::ExposureSpec;
use consort_shape::policy::PolicySpec;

use crate::config::Config;
use crate::syntax::names::{closest_name, shorten_name};

/// Servers that exist without being configured: Consort's own tools, and agents.
const BUILT_IN: [&str; 2] = ["builtin", consort_agent::sub_agent::AGENTS];

impl Config {
    /// Returns a warning for each server or profile that `[consort]` names and that is not in the config. Tools are not
    /// checked: they are known only once their servers run.
    pub fn dangling_names(&self) -> Vec<Problem> {
        let broken = self.errors.iter().filter_map(|error| error.server());
        let servers = self.servers.iter().map(|server| &server.name).chain(broken);
        let servers = servers.map(ServerId::as_str).chain(BUILT_IN).collect();
        let profiles = self.options.profiles.keys().map(String::as_str).collect();
        let mut names = NameChecker { config: self, servers, profiles, problems: Vec::new() };
        names.options();
        names.problems
    }
}

/// The known names, and the problems found.
struct NameChecker<'a> {
    config: &'a Config,
    servers: Vec<&'a str>,
    profiles: Vec<&'a str>,
    problems: Vec<Problem>,
}

impl NameChecker<'_> {
    fn options(&mut self) {
        let options = &self.config.options;
        self.policy("policy", options.policy.as_ref());
        self.exposure("exposure", options.exposure.as_ref());
        for (n, spec) in options.transforms.iter().enumerate() {
            self.tools(&format!("transforms[{n}].tools"), &spec.tools);
        }
        for (n, spec) in options.cache.iter().enumerate() {
            self.tools(&format!("cache[{n}].tools"), &spec.tools);
        }
        for (name, profile) in &options.profiles {
            let path = format!("profiles.{}", shorten_name(name));
            for server in &profile.servers {
                let known = self.servers.contains(&ServerId::derive(server).as_str());
                if !known {
                    self.missing(&format!("{path}.servers"), "server", server);
                }
            }
            self.tools(&format!("{path}.tools"), &profile.tools);
            self.policy(&format!("{path}.policy"), profile.policy.as_ref());
            self.exposure(&format!("{path}.exposure"), profile.exposure.as_ref());
            for (n, spec) in profile.transforms.iter().enumerate() {
                self.tools(&format!("{path}.transforms[{n}].tools"), &spec.tools);
            }
        }
        for (name, agent) in &options.agents {
            self.tools(&format!("agents.{}.tools", shorten_name(name)), &agent.tools);
        }
    }

    fn policy(&mut self, path: &str, spec: Option<&PolicySpec>) {
        let Some(spec) = spec else { return };
        for (n, rule) in spec.rules.iter().enumerate() {
            let path = format!("{path}.rules[{n}]");
            self.patterns(&format!("{path}.servers"), rule.servers.as_deref());
            self.tools(&format!("{path}.tools"), rule.tools.as_deref().unwrap_or_default());
            for profile in rule.profiles.as_deref().unwrap_or_default() {
                let pattern = NamePattern::new(profile);
                if !self.profiles.iter().any(|known| pattern.fits(known)) {
                    self.missing(&format!("{path}.profiles"), "profile", profile);
                }
            }
        }
        self.patterns(&format!("{path}.hints"), spec.hints.as_deref());
        let classes: Vec<String> = spec.classes.keys().cloned().collect();
        self.tools(&format!("{path}.classes"), &classes);
    }

    fn exposure(&mut self, path: &str, spec: Option<&ExposureSpec>) {
        if let Some(ExposureSpec::Table(table)) = spec {
            self.tools(&format!("{path}.direct"), &table.direct);
        }
    }

    /// Checks the servers of tools that are written as `server.tool`.
    fn tools(&mut self, path: &str, tools: &[String]) {
        for tool in tools {
            if let Some((server, _)) = tool.split_once('.') {
                self.pattern(path, server);
            }
        }
    }

    fn patterns(&mut self, path: &str, servers: Option<&[String]>) {
        for server in servers.unwrap_or_default() {
            self.pattern(path, server);
        }
    }

    fn pattern(&mut self, path: &str, server: &str) {
        let pattern = NamePattern::new(server);
        if !self.servers.iter().any(|known| pattern.fits(known)) {
            self.missing(path, "server", server);
        }
    }

    fn missing(&mut self, path: &str, kind: &str, name: &str) {
        let known = if kind == "server" { &self.servers } else { &self.profiles };
        let near = closest_name(name, known.iter().copied());
        let file = self.config.file.display();
        let message = format!("{file}: `{path}`: unknown {kind} `{}`", shorten_name(name));
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        self.problems.push(Problem { hint, ..Problem::warning(message) });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn servers_and_profiles_that_are_not_there_are_told() {
        let text = r#"
[mcp.github]
command = ["x"]
[consort.exposure]
mode = "search"
direct = ["github.get_*", "gihub.search"]
[consort.policy]
hints = ["gith*", "gitlab"]
classes = { "githbu.delete_*" = "destructive" }
[[consort.policy.rules]]
servers = ["github", "builtin"]
profiles = ["smal"]
then = "deny"
[[consort.policy.rules]]
tools = ["*.delete_*", "delete", "gitub.x"]
then = "deny"
[consort.profiles.small]
servers = ["github", "gthub"]
[consort.agents.a]
model = "p:m"
tools = ["agents.*", "githb.*"]
[[consort.cache]]
tools = "nowhere.x"
seconds = 1
"#;
        let config = Config::parse(Path::new("consort.toml"), text).unwrap();
        let told: Vec<String> = config.dangling_names().iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(told.join("\n"), @"
        consort.toml: `policy.rules[0].profiles`: unknown profile `smal`
        consort.toml: `policy.rules[1].tools`: unknown server `gitub`
        consort.toml: `policy.hints`: unknown server `gitlab`
        consort.toml: `policy.classes`: unknown server `githbu`
        consort.toml: `exposure.direct`: unknown server `gihub`
        consort.toml: `cache[0].tools`: unknown server `nowhere`
        consort.toml: `profiles.small.servers`: unknown server `gthub`
        consort.toml: `agents.a.tools`: unknown server `githb`
        ");
    }
}
