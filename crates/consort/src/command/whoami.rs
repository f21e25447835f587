//! `consort whoami`: the caller that the user of the command is, and explanations of tokens.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use consort_core::Caller;
use consort_core::escape::{escape_line, escape_text};
use consort_identity::{CheckResult, TokenExplanation, TokenUser};
use serde::Deserialize;
use serde_json::json;
use zeroize::Zeroizing;

use super::identity::moment;
use super::{ReadableTokens, roles_of};
use crate::cli::{GlobalArguments, WhoamiArguments};
use crate::exit::{CommandError, ExitStatus};
use crate::identity_admin::{explain_at, gateway_of, get, open_store, usable_config};
use crate::output::{TableCell, TextStyle, TextTable, json, line, note, styled, width};
use crate::user;

/// Limit of bytes that `consort whoami` reads from the file of a token.
const TOKEN_BYTES: u64 = 16 << 10;

pub(super) async fn run(
    common: &GlobalArguments,
    options: &WhoamiArguments,
) -> Result<ExitStatus, CommandError> {
    match &options.token_file {
        Some(file) => explain(common, &read_token(file)?, &options.at).await,
        None => describe(common).await,
    }
}

/// The part of `/api/whoami` that is shown.
#[derive(Deserialize)]
struct CallerFacts {
    caller: TokenUser,
}

/// Shows the caller that the owner's token and the config make.
async fn describe(common: &GlobalArguments) -> Result<ExitStatus, CommandError> {
    let config = usable_config(common)?;
    let options = config.as_ref().map(|config| config.options.clone()).unwrap_or_default();
    let gateway = gateway_of(common)?;
    let caller = match &gateway {
        Some(gateway) => get::<CallerFacts>(gateway, "/api/whoami").await?.caller,
        None => TokenUser::new(&Caller::owner(), roles_of(&options, &Caller::owner())),
    };
    let usual = consort_config::state_folder().map(|folder| folder.join("token"));
    let token_file = match &gateway {
        Some(gateway) => gateway.token_file.clone(),
        None => usual.filter(|file| file.exists()),
    };
    let local = user::caller();
    let local = TokenUser::new(&local, roles_of(&options, &local));
    let address = gateway.as_ref().map(|gateway| gateway.local_address().to_string());
    if common.json {
        json(&json!({
            "caller": caller, "gateway": address, "token_file": token_file,
            "config": config.map(|config| config.file), "command_caller": local,
        }));
        return Ok(ExitStatus::Ok);
    }
    let mut table = TextTable::new(&["", ""]);
    let mut row = |name: &str, value: String| {
        table.row([TableCell::from(name), TableCell::from(value)]);
    };
    row("admin API", means(&caller));
    row("commands", means(&local));
    row("gateway", address.unwrap_or_else(|| "not running".to_owned()));
    let file = token_file.map(|file| escape_line(&file.display().to_string()));
    row("owner's token", file.unwrap_or_else(|| "none".to_owned()));
    show(&table);
    Ok(ExitStatus::Ok)
}

/// A caller by its name in rules, with its rights and roles.
fn means(user: &TokenUser) -> String {
    let roles = match user.roles.as_slice() {
        [] => String::new(),
        roles => format!(", with the roles {}", roles.join(", ")),
    };
    format!("{} ({}{roles})", user.rule, user.rights)
}

/// Prints a table without its headings.
fn show(table: &TextTable) {
    let text = table.render(width());
    text.indented("").into_iter().skip(1).for_each(line);
}

/// Explains a token at an endpoint.
async fn explain(
    common: &GlobalArguments,
    token: &str,
    at: &str,
) -> Result<ExitStatus, CommandError> {
    let explanation = match gateway_of(common)? {
        Some(gateway) => explain_at(&gateway, token, at).await?,
        None => explain_offline(common, token, at).await?,
    };
    if common.json {
        json(&explanation);
    } else {
        tell(&explanation);
    }
    Ok(if explanation.valid { ExitStatus::Ok } else { ExitStatus::Denied })
}

async fn explain_offline(
    common: &GlobalArguments,
    token: &str,
    at: &str,
) -> Result<TokenExplanation, CommandError> {
    let config = usable_config(common)?;
    let options = config.as_ref().map(|config| config.options.clone()).unwrap_or_default();
    let file = config.as_ref().map(|config| config.file.as_path());
    let tokens = ReadableTokens::read(&options, file);
    for failure in &tokens.failures {
        note(format!("warning: {}", failure.message));
    }
    if !options.has_authorization_server() {
        let known = tokens.tokens.iter().find(|known| known.secret == token);
        return Ok(match known.map(|known| &known.caller) {
            Some(caller) => {
                let user = TokenUser::new(caller, roles_of(&options, caller));
                TokenExplanation::configured(user, caller.is_owner(), false, at)
            }
            None => TokenExplanation::unknown(at),
        });
    }
    let opened = open_store(config.as_ref(), Some(tokens)).await?;
    let offline = opened.ok_or_else(|| CommandError::usage("users are not configured"))?;
    let explained = offline.service().explain(token, at).await;
    offline.close().await;
    explained.map_err(|error| CommandError {
        exit: ExitStatus::Unreachable,
        ..CommandError::usage(escape_text(&error.to_string()))
    })
}

fn tell(explanation: &TokenExplanation) {
    let mut table = TextTable::new(&["", ""]);
    let mut row = |name: &str, value: String| {
        table.row([TableCell::from(name), TableCell::from(value)]);
    };
    row("kind", explanation.kind.as_str().to_owned());
    if let Some(id) = &explanation.id {
        let name = explanation.name.as_deref().map(|name| format!(" ({name})"));
        row("id", format!("{id}{}", name.unwrap_or_default()));
    }
    if let Some(user) = &explanation.user {
        let label = user.label.as_deref().map(|label| format!(" ({label})"));
        row("user", format!("{}{}", user.name, label.unwrap_or_default()));
        row("user id", user.id.clone());
        row("in rules", user.rule.clone());
        row("rights", user.rights.clone());
        row("roles", or_none(&user.roles));
        let groups = user.groups.as_ref().map(|groups| or_none(groups));
        row("groups", groups.unwrap_or_else(|| "unknown".to_owned()));
    }
    if let Some(audience) = &explanation.audience {
        row("issued for", or_none(audience));
    }
    if let Some(at) = explanation.expires_at {
        row("expires", moment(at));
    }
    show(&table);
    line("");
    let mut checks = TextTable::wrapping(&["CHECK", "RESULT", "DETAIL"]);
    for check in &explanation.checks {
        let result = match check.result {
            CheckResult::Passed => TableCell::styled(TextStyle::Good, "passed"),
            CheckResult::Failed => TableCell::styled(TextStyle::Bad, "failed"),
            CheckResult::Skipped => TableCell::styled(TextStyle::Faint, "skipped"),
        };
        checks.row([TableCell::from(&check.check), result, TableCell::from(&check.detail)]);
    }
    line(checks.render(width()));
    line("");
    let endpoint = escape_line(&explanation.endpoint);
    line(match &explanation.error {
        Some(error) => styled(TextStyle::Bad, format!("{endpoint}: {}", escape_line(error))),
        None => styled(TextStyle::Good, format!("{endpoint}: valid")),
    });
}

fn or_none(words: &[String]) -> String {
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// Reads a token from a file, or from standard input.
fn read_token(file: &Path) -> Result<Zeroizing<String>, CommandError> {
    let failed = |error: std::io::Error| {
        let file = escape_line(&file.display().to_string());
        CommandError::usage(format!("cannot read the token from `{file}`: {error}"))
    };
    let mut text = Zeroizing::new(String::new());
    let read = if file.as_os_str() == "-" {
        std::io::stdin().lock().take(TOKEN_BYTES).read_to_string(&mut text)
    } else {
        File::open(file).and_then(|file| file.take(TOKEN_BYTES).read_to_string(&mut text))
    };
    read.map_err(failed)?;
    let token = text.trim();
    let token = token.strip_prefix("Bearer ").unwrap_or(token).trim();
    if token.is_empty() {
        return Err(CommandError::usage("the file contains no token"));
    }
    if token.contains(char::is_whitespace) {
        let message = "the file contains more than one word";
        return Err(CommandError::usage(message).hint("a token has no spaces or line breaks"));
    }
    Ok(Zeroizing::new(token.to_owned()))
}
