//! OAuth logins at servers, and their store.

use std::sync::Arc;

use consort_config::{ConfigError, LimitSettings, ServerConfig, ValueSource, state_folder};
use consort_hub::ServerSettings;
use consort_oauth::{LoginStore, ServerLogin};

/// Returns the store of logins, if there is a state folder.
pub fn store() -> Option<LoginStore> {
    Some(LoginStore::new(state_folder()?.join("logins")))
}

/// Settings of a server for the hub, with its login and the limits of the config.
pub fn server_settings(
    server: &ServerConfig,
    resolve: &dyn ValueSource,
    limits: &LimitSettings,
) -> Result<ServerSettings, ConfigError> {
    let mut made = server.to_settings(resolve)?;
    limits.apply_to_server(&mut made);
    if let Some(login) = server.to_login(resolve)? {
        let login = consort_oauth::LoginSettings { limits: limits.login, ..login };
        let login = Arc::new(ServerLogin::new(login, store(), None));
        made.server = made.server.with_credentials(login);
    }
    Ok(made)
}
