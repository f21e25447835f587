//! `consort login` and `consort logout`: OAuth authorization with servers.

use std::sync::Arc;

use consort::logins;
use consort::trust::TrustedConfig;
use consort_client::{Client, ClientSettings, Times};
use consort_config::{InputStore, LimitSettings, ServerConfig, SystemValues};
use consort_core::escape::escape_text;
use consort_oauth::ServerLogin;
use consort_protocol::PrimitiveKind;
use serde_json::json;

use crate::browser::LoginBrowser;
use crate::cli::{self, GlobalArguments};
use crate::command_hub;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{json, line};

/// Runs the login flow with a person and stores the result.
pub(super) async fn login(
    common: &GlobalArguments,
    wanted: &cli::LoginArguments,
) -> Result<ExitStatus, CommandError> {
    let (server, limits) = configured(common, &wanted.server)?;
    let resolve =
        SystemValues::asking(command_hub::prompt_for_input).with_store(InputStore::of_user());
    let wrong = |error| command_hub::config_failure(&error);
    let Some(login) = server.to_login(&resolve).map_err(wrong)? else {
        return Err(nothing_to_do(&server));
    };
    let login = consort_oauth::LoginSettings { limits: limits.login, ..login };
    let settings = server.to_settings(&resolve).map_err(wrong)?;
    let port = wanted.port.or(port(&server)).unwrap_or(0);
    let browser = LoginBrowser::new(port, !wanted.no_browser, limits.login_browser);
    let browser = browser.await.map_err(|error| {
        CommandError::usage(format!("cannot listen on port {port} for the browser: {error}"))
    })?;
    let login = Arc::new(ServerLogin::new(login, logins::store(), Some(Arc::new(browser))));
    let times = Times {
        handshake: limits.login_browser * 2,
        total: limits.login_browser * 2,
        idle: limits.login_browser * 2,
        ..settings.times
    };
    let server_with_login = settings.server.with_credentials(Arc::clone(&login) as _);
    let reaching = async {
        // What a refused call wanted is asked for before the server says again that it lets us in.
        let missing = login.step_up().await.map_err(|error| not_granted(&error))?;
        let settings = ClientSettings { times, ..ClientSettings::default() };
        let client = Client::connect(&server_with_login, settings)
            .await
            .map_err(|error| unreached(&error))?;
        let tools = client.list(PrimitiveKind::Tools).await;
        client.close().await;
        let tools = tools.map_err(|error| CommandError::usage(escape_text(&error.to_string())))?;
        Ok::<_, CommandError>((tools.items.len(), missing))
    };
    let (tools, missing) = tokio::select! {
        reached = reaching => reached?,
        _ = tokio::signal::ctrl_c() => return Ok(ExitStatus::Interrupted),
    };
    told(common, &server, &login, tools);
    if !missing.is_empty() && !common.json {
        let missing = escape_text(&missing.join(" "));
        line(format!("warning: scopes not granted by the authorization server: {missing}"));
    }
    Ok(ExitStatus::Ok)
}

/// Deletes a stored login.
pub(super) fn logout(common: &GlobalArguments, wanted: &str) -> Result<ExitStatus, CommandError> {
    // A server that was removed from the config is known by its URL.
    if cli::is_url(wanted) {
        let removed = remove_login(wanted)?;
        if common.json {
            json(&json!({ "server": wanted, "removed": removed }));
        } else {
            told_logout(&escape_text(wanted), removed);
        }
        return Ok(ExitStatus::Ok);
    }
    let (server, _) = configured(common, wanted)?;
    let login = server
        .to_login(&SystemValues::silent().with_store(InputStore::of_user()))
        .map_err(|error| command_hub::config_failure(&error))?;
    let Some(login) = login else { return Err(nothing_to_do(&server)) };
    let removed = remove_login(&login.server)?;
    if common.json {
        json(&json!({ "server": server.name, "removed": removed }));
    } else {
        told_logout(server.name.as_str(), removed);
    }
    Ok(ExitStatus::Ok)
}

/// Removes the login at a URL; returns false if there was none.
fn remove_login(url: &str) -> Result<bool, CommandError> {
    let Some(store) = logins::store() else { return Ok(false) };
    let failed = |error| CommandError::usage(format!("cannot remove the login: {error}"));
    store.remove(url).map_err(failed)
}

fn told_logout(server: &str, removed: bool) {
    let state = if removed { "logged out of" } else { "not logged in to" };
    line(format!("{state} `{server}`"));
}

fn told(common: &GlobalArguments, server: &ServerConfig, login: &ServerLogin, tools: usize) {
    let kept = login.stored();
    if common.json {
        let kept = kept.as_deref();
        json(&json!({
            "server": server.name,
            "issuer": kept.map(|kept| &kept.issuer),
            "scope": kept.and_then(|kept| kept.tokens.scope.as_ref()),
            "expires": kept.and_then(|kept| kept.tokens.expires_at),
            "renewable": kept.is_some_and(|kept| kept.tokens.refresh_token.is_some()),
            "tools": tools,
        }));
        return;
    }
    match kept {
        Some(kept) => {
            let by = escape_text(&kept.issuer);
            line(format!("logged in to `{}` with {by}: {tools} tools", server.name));
            if kept.tokens.refresh_token.is_none() && kept.tokens.expires_at.is_some() {
                line("the access token cannot be refreshed: log in again when it expires");
            }
        }
        None => line(format!("`{}` requires no login: {tools} tools", server.name)),
    }
}

/// The server of this name, and the limits of its config.
fn configured(
    common: &GlobalArguments,
    name: &str,
) -> Result<(ServerConfig, LimitSettings), CommandError> {
    let config = command_hub::read_usable(common)?.map(TrustedConfig::into_inner);
    let limits = config.as_ref().map(|config| config.options.limits.settings()).unwrap_or_default();
    let servers = config.map(|config| config.servers).unwrap_or_default();
    match servers.iter().find(|server| server.name.as_str() == name) {
        Some(server) => Ok((server.clone(), limits)),
        None => Err(command_hub::unknown_server(
            name,
            servers.iter().map(|server| server.name.as_str()),
        )),
    }
}

fn nothing_to_do(server: &ServerConfig) -> CommandError {
    let name = &server.name;
    if server.transport.program().is_some() {
        return CommandError::usage(format!("`{name}` is a local process and needs no login"))
            .hint("set its credentials in `env`");
    }
    if server.disabled {
        return CommandError::usage(format!("`{name}` is disabled"));
    }
    CommandError::usage(format!("the config already has credentials for `{name}`"))
        .hint("remove its `auth` and its `Authorization` header to log in")
}

fn unreached(error: &consort_client::ConnectError) -> CommandError {
    let message = error.detail().explain_for_operator(&error.to_string());
    let failure = CommandError {
        exit: ExitStatus::Unreachable,
        ..CommandError::usage(escape_text(&message))
    };
    match error.hint() {
        Some(hint) => failure.hint(escape_text(hint)),
        None => failure,
    }
}

/// The failure for scopes that a server requires and that were not granted.
fn not_granted(error: &consort_oauth::LoginError) -> CommandError {
    let message = format!("cannot request the scopes that the server requires: {error}");
    CommandError { exit: ExitStatus::Unreachable, ..CommandError::usage(escape_text(&message)) }
}

fn port(server: &ServerConfig) -> Option<u16> {
    server.transport.remote()?.oauth.as_ref()?.callback_port
}
