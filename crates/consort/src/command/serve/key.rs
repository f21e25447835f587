//! The key that seals state carried by clients, and the ended sessions, stored between runs.

use std::path::Path;

use consort_core::escape::escape_line;
use consort_gateway::GatewaySettings;
use consort_server::{SealingKey, SealingKeyError};

use super::names;
use crate::cli::GlobalArguments;
use crate::exit::CommandError;

/// Makes session ids, task ids and `requestState` survive a restart. They are valid only for the same config, or the
/// same profile served alone. Without a state folder they end with the process.
pub(super) fn set_state_key(
    settings: &mut GatewaySettings,
    common: &GlobalArguments,
    file: Option<&Path>,
) -> Result<(), CommandError> {
    let Some(state) = consort_config::state_folder() else { return Ok(()) };
    let path = state.join("key");
    let key = SealingKey::load_or_create(&path).map_err(|error| {
        let hint = match &error {
            SealingKeyError::Unreadable { .. } => {
                "make it readable for this user, or delete it: earlier sessions, tasks and pending requests \
                    become invalid"
            }
            SealingKeyError::Damaged { .. } => {
                "delete it to create a new one: earlier sessions, tasks and pending requests become invalid"
            }
        };
        CommandError::usage(escape_line(&error.to_string())).hint(hint)
    })?;
    let mut scope = names::of_config(file);
    if let Some(profile) = &common.profile {
        scope = format!("{scope}-only-{}", consort_core::ServerId::derive(profile));
    }
    settings.transports.key = key.derive(&scope);
    settings.transports.ended_sessions =
        Some(state.join("sessions").join(format!("{scope}.ended")));
    Ok(())
}
