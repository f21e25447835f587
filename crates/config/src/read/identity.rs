//! The options about users of a gateway: where it is reached, who signs them in, and their roles.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use consort_client::ProxyUrl;
use consort_core::{Caller, is_issuer_name};
use consort_server::PublicUrl;
use consort_shape::policy::{CallerSpec, PolicySpec, RoleTable};

use super::options::parsed;
use crate::duration::LongDuration;
use crate::error::ConfigErrorKind;
use crate::options::identity::{
    AuthorizationConfig, IssuerConfig, RecheckInterval, ServiceConfig, TlsConfig,
};
use crate::options::listen::ListenAddress;
use crate::server::network::NO_PROXY;
use crate::syntax::names::shorten_name;
use crate::syntax::table_reader::TableReader;

/// The options about users.
pub(super) struct IdentityOptions {
    pub(super) public_url: Option<String>,
    pub(super) owner_listen: Option<String>,
    pub(super) owner_access: Option<String>,
    pub(super) tls: Option<TlsConfig>,
    pub(super) issuers: BTreeMap<String, IssuerConfig>,
    pub(super) authorization: Option<AuthorizationConfig>,
    pub(super) services: BTreeMap<String, ServiceConfig>,
    pub(super) callers: BTreeMap<String, CallerSpec>,
    pub(super) roles: BTreeMap<String, Vec<String>>,
}

/// Reads the options about users.
pub(super) fn read(fields: &TableReader<'_>) -> IdentityOptions {
    let issuers: BTreeMap<String, IssuerConfig> =
        fields.spec("issuers", check_issuers).unwrap_or_default();
    let names: Vec<String> = issuers.keys().cloned().collect();
    let callers: BTreeMap<String, CallerSpec> =
        fields.spec("callers", |callers| check_callers(callers, &names)).unwrap_or_default();
    for name in callers.iter().filter(|(_, caller)| !caller.roles.is_empty()).map(|(name, _)| name)
    {
        if issuers.is_empty() {
            break;
        }
        let key = format!("callers.{}.roles", shorten_name(name));
        let message = format!("`{}` is read into `[consort.roles]`", fields.path(&key));
        let hint = "with users, list the callers of all roles in `[consort.roles]`".to_owned();
        fields.warn(fields.at_of("callers"), &message, Some(hint));
    }
    let roles = fields.spec("roles", |roles: &BTreeMap<String, Vec<String>>| {
        let spec =
            PolicySpec { roles: roles.clone(), issuers: names.clone(), ..PolicySpec::default() };
        RoleTable::from_spec(&spec).map(drop).map_err(|errors| {
            let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
            told.join("; ")
        })
    });
    IdentityOptions {
        public_url: parsed::<PublicUrl>(fields, "public_url"),
        owner_listen: parsed::<ListenAddress>(fields, "owner_listen"),
        owner_access: word(fields, "owner_access", &["owner_listen", "any"]),
        tls: fields.spec("tls", |tls: &TlsConfig| {
            let missing = [("certificate", &tls.certificate), ("key", &tls.key)];
            let missing = missing.into_iter().find(|(_, file)| file.is_empty());
            missing.map_or(Ok(()), |(key, _)| Err(format!("`{key}` is missing")))
        }),
        authorization: fields.spec("authorization", check_authorization),
        services: fields
            .spec("services", |services: &BTreeMap<String, ServiceConfig>| {
                let wrong = services.keys().find(|name| !is_service_name(name));
                wrong.map_or(Ok(()), |name| {
                    let name = shorten_name(name);
                    Err(format!("`{name}`: use 1 to 64 letters, digits, `-`, `_` or `.`"))
                })
            })
            .unwrap_or_default(),
        issuers,
        callers,
        roles: roles.unwrap_or_default(),
    }
}

/// One of a few words.
fn word(fields: &TableReader<'_>, key: &'static str, known: &[&str]) -> Option<String> {
    let text = fields.string(key)?;
    if !known.contains(&text) {
        let known: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
        let reason = format!("`{}` is not known: use {}", shorten_name(text), known.join(" or "));
        let kind = ConfigErrorKind::InvalidValue { key: fields.path(key), reason };
        fields.error(fields.at_of(key), kind);
    }
    Some(text.to_owned())
}

fn is_service_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

fn check_issuers(issuers: &BTreeMap<String, IssuerConfig>) -> Result<(), String> {
    if issuers.len() > 1 {
        return Err("only one issuer can sign users in".to_owned());
    }
    for (name, issuer) in issuers {
        check_issuer(name, issuer)
            .map_err(|reason| format!("`{}`: {reason}", shorten_name(name)))?;
    }
    Ok(())
}

fn check_issuer(name: &str, issuer: &IssuerConfig) -> Result<(), String> {
    if !is_issuer_name(name) {
        return Err(
            "a name has 1 to 64 lower-case letters, digits or `-`, and is none of the words of \
            rules, such as `client`, `role` or `local`"
                .to_owned(),
        );
    }
    let is_secure = issuer.issuer.starts_with("https://");
    let host = issuer.issuer.strip_prefix("http://").unwrap_or_default();
    let host = host.split('/').next().unwrap_or_default();
    let is_local = ["localhost", "127.0.0.1", "[::1]"].iter().any(|local| {
        host.strip_prefix(local).is_some_and(|end| end.is_empty() || end.starts_with(':'))
    });
    if !is_secure && !is_local || issuer.issuer.contains(['?', '#', ' ']) {
        return Err("`issuer` is the https URL in the metadata of the issuer".to_owned());
    }
    if issuer.client_id.is_empty() {
        return Err("`client_id` is missing".to_owned());
    }
    check_reference("client_secret", issuer.client_secret.as_deref())?;
    check_proxy("proxy", issuer.proxy.as_deref())?;
    if let Some(claim) =
        issuer.username_claim.as_deref().filter(|it| !matches!(*it, "email" | "sub"))
    {
        let claim = shorten_name(claim);
        return Err(format!(
            "`username_claim`: users may change `{claim}` themselves; use `email` or `sub`"
        ));
    }
    if let Some(RecheckInterval::Every(interval)) = issuer.recheck_interval {
        check_time("recheck_interval", Some(interval), MINUTE, DAY)?;
    }
    check_time("max_stale", issuer.max_stale, MINUTE, 30 * DAY)
}

const MINUTE: u64 = 60;
const DAY: u64 = 86_400;

fn check_authorization(authorization: &AuthorizationConfig) -> Result<(), String> {
    check_time("access_token_ttl", authorization.access_token_ttl, MINUTE, DAY)?;
    check_time("refresh_token_ttl", authorization.refresh_token_ttl, 10 * MINUTE, 365 * DAY)?;
    check_time("grant_ttl", authorization.grant_ttl, 10 * MINUTE, 3650 * DAY)?;
    check_time("refresh_token_grace", authorization.refresh_token_grace, 1, DAY)?;
    if let Some(word) =
        authorization.api_keys.as_deref().filter(|it| !matches!(*it, "users" | "admins" | "off"))
    {
        let word = shorten_name(word);
        return Err(format!("`api_keys`: `{word}` is not known: use `users`, `admins` or `off`"));
    }
    check_proxy("client_metadata_proxy", authorization.client_metadata_proxy.as_deref())?;
    let hosts = authorization.allowed_client_hosts.as_deref().unwrap_or(&[]);
    if let Some(host) = hosts.iter().find(|host| !is_host_pattern(host)) {
        let host = shorten_name(host);
        return Err(format!(
            "`allowed_client_hosts`: `{host}` is not a host such as `claude.ai` or `*.example.com`, nor `*`"
        ));
    }
    // The proxy resolves the name, so nothing here sees where it leads.
    let is_open = hosts.is_empty() || hosts.iter().any(|host| host == "*");
    if authorization.client_metadata_proxy.is_some() && is_open {
        return Err(
            "`client_metadata_proxy` needs `allowed_client_hosts` with the hosts it may reach"
                .to_owned(),
        );
    }
    for (id, client) in &authorization.clients {
        let id = shorten_name(id);
        if client.redirect_uris.is_empty() {
            return Err(format!("`clients.{id}`: `redirect_uris` is missing"));
        }
        check_reference(&format!("clients.{id}.secret"), client.secret.as_deref())?;
    }
    Ok(())
}

fn is_host_pattern(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    text == "*" || (!name.is_empty() && name.bytes().all(plain) && !name.starts_with('.'))
}

fn check_time(key: &str, time: Option<LongDuration>, least: u64, most: u64) -> Result<(), String> {
    let range = Duration::from_secs(least)..=Duration::from_secs(most);
    match time {
        Some(time) if !range.contains(&time.get()) => {
            let units = |seconds: u64| match seconds {
                _ if seconds.is_multiple_of(DAY) => format!("{}d", seconds / DAY),
                _ if seconds.is_multiple_of(MINUTE) => format!("{}m", seconds / MINUTE),
                _ => format!("{seconds}s"),
            };
            let (least, most) = (units(least), units(most));
            Err(format!("`{key}`: {time} is out of range: use {least} to {most}"))
        }
        _ => Ok(()),
    }
}

fn check_reference(key: &str, reference: Option<&str>) -> Result<(), String> {
    match reference {
        Some(text) if !text.starts_with("env:") && !text.starts_with("file:") => {
            Err(format!("`{key}` is a reference to a secret: `env:NAME` or `file:PATH`"))
        }
        _ => Ok(()),
    }
}

fn check_proxy(key: &str, proxy: Option<&str>) -> Result<(), String> {
    let Some(text) = proxy else { return Ok(()) };
    if text.starts_with("env:") || text.starts_with("file:") || text == NO_PROXY {
        return Ok(());
    }
    if text.contains('@') {
        return Err(format!(
            "`{key}`: a URL with credentials must be a reference: `env:NAME` or `file:PATH`"
        ));
    }
    ProxyUrl::parse(text).map(drop).map_err(|error| format!("`{key}`: {error}"))
}

/// Checks links of callers to users: each user has at most one, and nobody becomes the owner.
fn check_callers(callers: &BTreeMap<String, CallerSpec>, issuers: &[String]) -> Result<(), String> {
    let mut linked = BTreeSet::new();
    for (name, caller) in callers {
        let Some(subject) = &caller.subject else { continue };
        let name = shorten_name(name);
        if name.trim_start_matches("client:") == Caller::OWNER {
            return Err(format!("`{name}.subject`: no user is linked to the owner"));
        }
        if name.contains(['*', '?', ':']) {
            return Err(format!(
                "`{name}.subject`: a user is linked to one caller by its name alone"
            ));
        }
        let issuer = subject.split_once('/').filter(|(_, subject)| !subject.is_empty());
        if !issuer.is_some_and(|(issuer, _)| issuers.iter().any(|known| known == issuer)) {
            return Err(format!(
                "`{name}.subject`: expected `ISSUER/SUBJECT` with an issuer of `[consort.issuers]`"
            ));
        }
        if !linked.insert(subject) {
            return Err(format!("`{name}.subject`: another caller is linked to this user"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::Config;

    fn errors(text: &str) -> Vec<String> {
        let config = Config::parse(Path::new("consort.toml"), text).unwrap();
        config.errors.iter().map(ToString::to_string).collect()
    }

    const ISSUER: &str =
        "[consort.issuers.acme]\nissuer = 'https://idp.example'\nclient_id = 'x'\n";

    #[test]
    fn the_example_of_every_table_is_read() {
        let text = format!(
            "[consort]\npublic_url = 'https://mcp.acme.example'\nowner_listen = 'unix:/run/owner.sock'\n\
             owner_access = 'any'\n[consort.tls]\ncertificate = 'c.pem'\nkey = 'k.pem'\n{ISSUER}\
             client_secret = 'env:S'\nusername_claim = 'sub'\ntrust_email = true\n\
             subject_claims = ['tid', 'oid']\ngroups_claim = 'groups'\n\
             required_claims = {{ hd = 'acme.example' }}\nscopes = ['profile']\n\
             authorization_params = {{ prompt = 'consent' }}\nrecheck_interval = 'off'\nmax_stale = '12h'\n\
             proxy = 'none'\nca_file = 'ca.pem'\n[consort.authorization]\ndynamic_registration = false\n\
             allowed_client_hosts = ['claude.ai', '*.acme.example']\n\
             client_metadata_proxy = 'http://proxy.example:3128'\nallowed_redirect_schemes = []\n\
             allowed_redirect_uris = ['https://x.example/*']\naccess_token_ttl = '15m'\n\
             refresh_token_ttl = '30d'\ngrant_ttl = '90d'\nrefresh_token_grace = '2m'\napi_keys = 'admins'\n\
             [consort.authorization.clients.ide]\nname = 'IDE'\nredirect_uris = ['https://vscode.dev/redirect']\n\
             secret = 'file:s'\n[consort.services.ci]\ndescription = 'build pipeline'\n\
             [consort.callers.ada]\nsubject = 'acme/00u1'\n[consort.roles]\n\
             admin = ['group:acme/g', 'user:service/ci', 'ada']\n[consort.policy]\n\
             [[consort.policy.rules]]\ncallers = ['role:admin', 'user:acme/*']\nthen = 'allow'\n"
        );
        assert_eq!(errors(&text), [""; 0]);
        let config = Config::parse(Path::new("consort.toml"), &text).unwrap();
        assert!(config.options.has_authorization_server());
        let policy = config.options.policy.unwrap();
        assert_eq!(policy.issuers, ["acme"]);
        assert_eq!(policy.roles["admin"].len(), 3);
    }

    #[test]
    fn a_mistake_in_any_table_is_an_error_that_says_what_is_right() {
        for (text, told) in [
            ("[consort]\npublic_url = 'https://a.example/mcp'\n".to_owned(), "without a path"),
            ("[consort]\npublic_url = 'http://a.example'\n".to_owned(), "expected `https`"),
            ("[consort]\nowner_access = 'all'\n".to_owned(), "use `owner_listen` or `any`"),
            ("[consort.tls]\nkey = 'k'\n".to_owned(), "`certificate` is missing"),
            (ISSUER.replace("acme", "role"), "none of the words of rules"),
            (ISSUER.replace("acme", "Acme"), "lower-case letters"),
            (ISSUER.replace("https:", "http:"), "`issuer` is the https URL"),
            (ISSUER.replace("client_id = 'x'", ""), "`client_id` is missing"),
            (format!("{ISSUER}{}", ISSUER.replace("acme", "other")), "only one issuer"),
            (format!("{ISSUER}client_secret = 'hunter2'\n"), "`env:NAME` or `file:PATH`"),
            (format!("{ISSUER}username_claim = 'preferred_username'\n"), "use `email` or `sub`"),
            (format!("{ISSUER}recheck_interval = '10s'\n"), "10s is out of range: use 1m to 1d"),
            (format!("{ISSUER}recheck_intervall = '1m'\n"), "recheck_intervall"),
            ("[consort.authorization]\naccess_token_ttl = '2d'\n".to_owned(), "use 1m to 1d"),
            ("[consort.authorization]\napi_keys = 'on'\n".to_owned(), "`users`, `admins` or `off`"),
            (
                "[consort.authorization]\nclient_metadata_proxy = 'http://p.example:1'\n"
                    .to_owned(),
                "needs `allowed_client_hosts`",
            ),
            (
                "[consort.authorization]\nallowed_client_hosts = ['https://claude.ai']\n"
                    .to_owned(),
                "is not a host",
            ),
            (
                "[consort.authorization.clients.x]\nname = 'x'\n".to_owned(),
                "`redirect_uris` is missing",
            ),
            ("[consort.services.'a b']\n".to_owned(), "use 1 to 64 letters"),
            (format!("{ISSUER}[consort.callers.owner]\nsubject = 'acme/x'\n"), "no user is linked"),
            (format!("{ISSUER}[consort.callers.'a*']\nsubject = 'acme/x'\n"), "by its name alone"),
            ("[consort.callers.ada]\nsubject = 'acme/x'\n".to_owned(), "expected `ISSUER/SUBJECT`"),
            (
                format!(
                    "{ISSUER}[consort.callers.ada]\nsubject = 'acme/x'\n[consort.callers.bob]\nsubject = 'acme/x'\n"
                ),
                "another caller is linked",
            ),
            ("[consort.roles]\nadmin = ['group:acme/x']\n".to_owned(), "unknown issuer `acme`"),
            (format!("{ISSUER}[consort.roles]\nadmin = ['group:acme/*']\n"), "no wildcards"),
            (
                "[[consort.policy.rules]]\ncallers = ['user:acme/x']\nthen = 'allow'\n".to_owned(),
                "unknown issuer `acme`",
            ),
        ] {
            let found = errors(&text);
            assert!(found.iter().any(|error| error.contains(told)), "{text}\n{found:#?}");
        }
    }
}
