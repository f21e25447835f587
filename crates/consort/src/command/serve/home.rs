//! The folders that a gateway writes to, checked before anything is written. All problems are reported at once.

use std::io;
use std::path::{Path, PathBuf};

use consort_config::{catalog_folder, data_folder, state_folder};
use consort_core::escape::escape_line;

use crate::cli::ServeArguments;
use crate::exit::CommandError;
use crate::output::note;

/// Folders that cannot be written to.
#[derive(Default)]
pub(super) struct UnwritableFolders {
    /// The folder of the token, the ledger, names and logins.
    pub(super) state: bool,
    /// The folder of stored catalogs.
    pub(super) cache: bool,
}

/// Finds the folders that cannot be written to. Fails if a requested option needs one of them; else reports the data
/// that is not stored.
pub(super) fn check(serve: &ServeArguments) -> Result<UnwritableFolders, CommandError> {
    let folders = [
        (state_folder(), "token, ledger, names, logins and server logs"),
        (catalog_folder(), "cached listings of servers"),
        (data_folder(), "conversations"),
    ];
    let wrong = folders.map(|(folder, holds)| {
        let folder = folder?;
        let error = try_to_write(&folder).err()?;
        Some(format!("`{}` for {holds}: {error}", folder.display()))
    });
    let unwritable = UnwritableFolders { state: wrong[0].is_some(), cache: wrong[1].is_some() };
    let told: Vec<String> = wrong.into_iter().flatten().collect();
    if told.is_empty() {
        return Ok(unwritable);
    }
    let message = escape_line(&format!("cannot write to {}", told.join("; ")));
    let mut flags = Vec::new();
    if serve.token_file.is_none() && !serve.stdio && !serve.allow_unauthenticated {
        flags.push("--token-file FILE");
    }
    if serve.ledger.is_none() && !serve.no_ledger {
        flags.push("--ledger FILE (or --no-ledger)");
    }
    if unwritable.state && !flags.is_empty() {
        let hint = format!(
            "set XDG_STATE_HOME, XDG_CACHE_HOME and XDG_DATA_HOME to writable folders, or set other paths: \
             {}",
            flags.join(", ")
        );
        return Err(CommandError::usage(message).hint(hint));
    }
    note(format!("warning: {message}: nothing is stored there"));
    Ok(unwritable)
}

/// Creates a folder if needed, and a file in it that is removed again.
fn try_to_write(folder: &Path) -> io::Result<()> {
    consort_files::create_private_folder(folder)?;
    let probe: PathBuf = folder.join(format!(".probe-{}", std::process::id()));
    std::fs::File::create(&probe)?;
    std::fs::remove_file(&probe)
}
