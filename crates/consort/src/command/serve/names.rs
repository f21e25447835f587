//! Folders that store the names of tools, prompts and resources.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use consort_config::state_name;
use consort_core::ServerId;
use consort_files::FileReaders;

use crate::cli::GlobalArguments;

/// The folder of a config's names. A profile served alone has its own names.
pub(crate) fn folder(common: &GlobalArguments, file: Option<&Path>) -> Option<PathBuf> {
    let folder = consort_config::state_folder()?.join("names").join(of_config(file));
    Some(of_profile(common, folder))
}

/// Copies the names that earlier versions stored for all configs together, if none are stored for this one, so that
/// names stay the same. Names of servers that this config lacks are freed after the usual grace period.
pub(super) fn adopt_earlier(common: &GlobalArguments, folder: &Path) -> io::Result<()> {
    let Some(state) = consort_config::state_folder() else { return Ok(()) };
    adopt(&of_profile(common, state.join("names")), folder)
}

/// Directory name for the data of a config.
pub(super) fn of_config(file: Option<&Path>) -> String {
    file.map_or_else(|| "demo".to_owned(), state_name)
}

fn of_profile(common: &GlobalArguments, folder: PathBuf) -> PathBuf {
    match &common.profile {
        Some(profile) => folder.join(format!("only-{}", ServerId::derive(profile))),
        None => folder,
    }
}

fn adopt(earlier: &Path, folder: &Path) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    let entries = match fs::read_dir(earlier) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if Path::new(&name).extension().is_some_and(|ending| ending == "json") {
            consort_files::create_private_folder(folder)?;
            consort_files::create(
                &folder.join(&name),
                &fs::read(entry.path())?,
                FileReaders::Owner,
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_earlier_versions_are_adopted_once() {
        let home = tempfile::tempdir().unwrap();
        let (names, folder) = (home.path().join("names"), home.path().join("names/config-1"));
        adopt(&names, &folder).unwrap();
        assert!(!folder.exists(), "there was nothing to adopt");
        fs::create_dir_all(names.join("config-0")).unwrap();
        fs::write(names.join("whole.json"), "{}").unwrap();
        fs::write(names.join("whole.json.tmp"), "half").unwrap();
        adopt(&names, &folder).unwrap();
        let adopted = || fs::read_dir(&folder).unwrap().count();
        assert_eq!(fs::read_to_string(folder.join("whole.json")).unwrap(), "{}");
        assert_eq!(adopted(), 1);
        fs::write(names.join("servers-a.json"), "{}").unwrap();
        adopt(&names, &folder).unwrap();
        assert_eq!(adopted(), 1, "names of this config are not overwritten or added to");
    }
}
