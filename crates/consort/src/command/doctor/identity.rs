//! The users of a config in `consort doctor`: their issuer, and the files of their keys.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use consort_config::{Config, ConsortOptions};
use consort_core::Problem;
use consort_core::escape::escape_line;
use consort_identity::{IssuerReport, IssuerSettings, check_issuer};
use serde::Serialize;

use crate::command::serve::{configured_issuer, redirect_uri};
use crate::output::{TableCell, TerminalText, TextTable, width};

/// Difference of clocks in seconds that sign-ins tolerate.
const TOLERATED: u64 = 60;

/// Difference of clocks in seconds that is worth a warning.
const NOTABLE: u64 = 15;

/// Time limit of `consort doctor` for the responses of an issuer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The parameter by which some issuers grant refresh tokens without the scope `offline_access`.
const OFFLINE_PARAMETER: &str = "access_type";

/// The issuer of a config, with the settings to make there.
#[derive(Debug, Serialize)]
pub(super) struct IssuerDiagnosis {
    name: String,
    issuer: String,
    client_id: String,
    /// True if the gateway has a secret at the issuer.
    confidential: bool,
    /// The redirect URI to register.
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect_uri: Option<String>,
    /// The state of the issuer, if it responded.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<IssuerReport>,
}

/// Problems of the users of a config.
#[derive(Default)]
pub(super) struct UserDiagnosis {
    pub(super) issuer: Option<IssuerDiagnosis>,
    pub(super) problems: Vec<Problem>,
}

impl UserDiagnosis {
    /// Asks the issuer of a config, and checks the files of keys.
    pub(super) async fn of(config: Option<&Config>) -> Self {
        let mut diagnosis = Self::default();
        let Some(config) = config else { return diagnosis };
        let options = &config.options;
        match configured_issuer(options, Some(&config.file)) {
            Some(Ok(settings)) => diagnosis.ask(options, settings).await,
            Some(Err(error)) => {
                let problem = Problem::error(error.message);
                diagnosis.problems.push(error.hint.into_iter().fold(problem, Problem::hint));
            }
            None => {}
        }
        if options.has_authorization_server()
            && let Some(state) = consort_config::state_folder()
        {
            let files = ["identity.key", "identity.db"].map(|name| state.join(name));
            diagnosis.problems.extend(files.iter().filter_map(|file| exposed(file, 0o077)));
        }
        if let Some(tls) = &options.tls {
            let folder = config.file.parent().unwrap_or(Path::new(""));
            let key = tls.key.strip_prefix("file:").unwrap_or(&tls.key);
            // A group may share it, such as `ssl-cert` of Debian.
            diagnosis.problems.extend(exposed(&folder.join(key), 0o007));
        }
        diagnosis
    }

    async fn ask(&mut self, options: &ConsortOptions, settings: IssuerSettings) {
        let name = settings.name.clone();
        let redirect_uri = redirect_uri(options, &name);
        let redirect_uri =
            redirect_uri.map_err(|error| self.problems.push(Problem::error(error.message))).ok();
        if options.public_url.is_none() {
            let message = format!(
                "`public_url` is not set: users of the issuer `{name}` can sign in on this machine only"
            );
            self.problems.push(Problem::warning(message).hint(
                "set `public_url = \"https://HOST\"` in `[consort]`; the redirect URI depends on it",
            ));
        }
        let mut diagnosis = IssuerDiagnosis {
            name: name.clone(),
            issuer: settings.issuer.clone(),
            client_id: settings.client_id.clone(),
            confidential: settings.client_secret.is_some(),
            redirect_uri,
            report: None,
        };
        let needs_offline = settings.recheck_interval.is_some()
            && !settings.authorization_params.contains_key(OFFLINE_PARAMETER);
        let asked = tokio::time::timeout(TIMEOUT, check_issuer(settings)).await;
        let silent = || Err(format!("no response within {} s", TIMEOUT.as_secs()));
        match asked.unwrap_or_else(|_| silent()) {
            Ok(report) => {
                self.problems.extend(findings(&name, &report, needs_offline));
                diagnosis.report = Some(report);
            }
            Err(reason) => {
                let problem = Problem::error(format!("issuer `{name}`: {reason}"));
                self.problems.push(problem.hint(format!(
                    "nobody can sign in: check `issuer`, `proxy` and `ca_file` in `[consort.issuers.{name}]`"
                )));
            }
        }
        self.issuer = Some(diagnosis);
    }
}

/// The problems of an issuer that responded.
fn findings(name: &str, report: &IssuerReport, needs_offline: bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !report.announces_pkce {
        let message = format!("issuer `{name}`: PKCE with `S256` is not announced");
        problems.push(
            Problem::warning(message)
                .hint("enable PKCE for the gateway at the issuer: each sign-in uses it"),
        );
    }
    if needs_offline && !report.scopes.iter().any(|scope| scope == "offline_access") {
        let message = format!(
            "issuer `{name}`: `offline_access` is not requested, so it may return no refresh token"
        );
        problems.push(Problem::warning(message).hint(format!(
            "without one, users are not rechecked and must sign in every 12 hours; set `scopes` or \
             `authorization_params` in `[consort.issuers.{name}]`"
        )));
    }
    if let Some(difference) = report.clock_difference {
        let seconds = difference.unsigned_abs();
        let side = if difference > 0 { "ahead of" } else { "behind" };
        let message =
            format!("issuer `{name}`: its clock is {seconds} s {side} the clock of this machine");
        let problem = match seconds {
            ..NOTABLE => None,
            NOTABLE..=TOLERATED => Some(Problem::warning(message)),
            _ => Some(Problem::error(message)),
        };
        let hint = format!("synchronize the clock: sign-ins tolerate {TOLERATED} s");
        problems.extend(problem.map(|problem| problem.hint(hint)));
    }
    problems
}

/// The problem of a file with secrets that others may read, if it exists.
fn exposed(file: &Path, others: u32) -> Option<Problem> {
    let mode = fs::metadata(file).ok()?.permissions().mode() & 0o777;
    let file = escape_line(&file.display().to_string());
    (mode & others != 0).then(|| {
        let message = format!("`{file}` is accessible to other users (mode {mode:03o})");
        Problem::error(message).hint(format!("run `chmod 600 {file}`"))
    })
}

impl IssuerDiagnosis {
    /// Returns the state of the issuer, and the settings to make there.
    pub(super) fn render(&self) -> TerminalText {
        let mut state = TextTable::wrapping(&["ISSUER", "URL", "KEYS", "PKCE", "CLOCK"]);
        let (mut keys, mut pkce, mut clock) = ("-".to_owned(), "-", "-".to_owned());
        if let Some(report) = &self.report {
            keys = report.keys.to_string();
            pkce = if report.announces_pkce { "S256" } else { "not announced" };
            let difference = report.clock_difference.map(|seconds| format!("{seconds:+} s"));
            clock = difference.unwrap_or_else(|| "unknown".to_owned());
        }
        state.row([
            TableCell::from(&self.name),
            TableCell::from(&self.issuer),
            TableCell::from(keys),
            TableCell::from(pkce),
            TableCell::from(clock),
        ]);
        let mut settings = TextTable::wrapping(&["SETTING AT THE ISSUER", "VALUE"]);
        let mut row = |name: &str, value: &str| {
            settings.row([TableCell::from(name), TableCell::from(value)]);
        };
        let kind = if self.confidential { "web, with a secret" } else { "public, with PKCE" };
        row("application type", kind);
        row("client id", &self.client_id);
        row("grant types", "authorization_code, refresh_token");
        row("redirect URI", self.redirect_uri.as_deref().unwrap_or("-"));
        if let Some(report) = &self.report {
            row("scopes", &report.scopes.join(" "));
        }
        state.render(width()) + "\n\n" + settings.render(width())
    }
}

#[cfg(test)]
mod tests {
    use consort_core::Severity::{Error, Warning};

    use super::*;

    fn report(clock_difference: Option<i64>) -> IssuerReport {
        IssuerReport {
            keys: 1,
            scopes: vec!["openid".to_owned(), "offline_access".to_owned()],
            announces_pkce: true,
            announces_offline_access: true,
            clock_difference,
        }
    }

    #[test]
    fn a_wrong_clock_is_told_of_before_it_prevents_sign_ins() {
        for (difference, expected) in [
            (None, None),
            (Some(0), None),
            (Some(-14), None),
            (Some(15), Some(Warning)),
            (Some(-60), Some(Warning)),
            (Some(61), Some(Error)),
            (Some(-86_400), Some(Error)),
        ] {
            let problems = findings("acme", &report(difference), true);
            let severity = problems.first().map(|problem| problem.severity);
            assert_eq!(severity, expected, "{difference:?}");
        }
    }

    #[test]
    fn refresh_tokens_are_missed_only_where_rechecks_need_them() {
        let report = IssuerReport { scopes: vec!["openid".to_owned()], ..report(None) };
        assert!(findings("acme", &report, false).is_empty());
        assert_eq!(findings("acme", &report, true).len(), 1);
    }
}
