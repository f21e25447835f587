//! Atomic rewriting of users' files, with a backup.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use consort_core::{Problem, ServerId, utc};

use crate::config::Config;
use crate::config::include::ConfigFiles;
use crate::edit::{EditError, EditedConfig};
use crate::error::UnusableFile;
use crate::folders::UserFolders;
use crate::trust;

/// File name of pasted text in messages.
const PASTED: &str = "pasted";

/// Result of rewriting a config.
#[derive(Debug)]
pub struct RewrittenConfig {
    /// The backup.
    pub backup: Option<PathBuf>,
    /// Settings of the added servers that the format cannot express.
    pub problems: Vec<Problem>,
}

/// The reason why a config was not changed.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// The config cannot be edited.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The new config would be rejected.
    #[error("{0}")]
    Refused(Problem),
    /// The file was changed by somebody else.
    #[error("`{}` was changed by another process", .0.display())]
    Changed(PathBuf),
    /// A file operation failed.
    #[error("cannot {what} `{}`: {source}", .file.display())]
    File {
        /// The operation: `read`, `copy` or `write`.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
}

impl RewriteError {
    /// Returns a suggestion for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Edit(error) => error.hint(),
            Self::Refused(problem) => problem.hint.clone(),
            Self::Changed(_) => Some("review the file and retry".to_owned()),
            Self::File { .. } => None,
        }
    }
}

/// Changes a config, or creates it: the target if it is a link, and only if it is unchanged since it was read.
pub fn rewrite_config(
    file: &Path,
    edit: impl FnOnce(&str) -> Result<EditedConfig, RewriteError>,
) -> Result<RewrittenConfig, RewriteError> {
    let (named, file) = (file, fs::canonicalize(file).unwrap_or_else(|_| file.to_owned()));
    let failed = |what| {
        let file = file.clone();
        move |source| RewriteError::File { what, file, source }
    };
    let before = read(&file).map_err(failed("read"))?;
    let EditedConfig { text, problems } = edit(before.as_deref().unwrap_or_default())?;
    if before.as_ref() == Some(&text) {
        return Ok(RewrittenConfig { backup: None, problems });
    }
    let backup = match before {
        Some(_) => Some(back_up_file(&file).map_err(failed("copy"))?),
        None => None,
    };
    // The copy is of what would be replaced.
    if read(backup.as_ref().unwrap_or(&file)).map_err(failed("read"))? != before {
        if let Some(backup) = &backup {
            let _ = fs::remove_file(backup);
        }
        return Err(RewriteError::Changed(file));
    }
    // Before it is there: a gateway that follows the file looks at it at once.
    let carried = trust::carry_over(named, before.as_deref(), &text);
    if let Err(error) = replace_file(&file, &text) {
        if let Some(carried) = carried {
            carried.undo();
        }
        return Err(failed("write")(error));
    }
    Ok(RewrittenConfig { backup, problems })
}

/// Fails if a server of one of these names is in a file that a config includes: it is not changed from here.
pub fn check_not_included<'a>(
    file: &Path,
    text: &str,
    names: impl IntoIterator<Item = &'a ServerId>,
) -> Result<(), RewriteError> {
    let files = ConfigFiles::of_text(file, text.to_owned()).map_err(EditError::from)?;
    let config = files.parse().map_err(EditError::from)?;
    for name in names {
        let place = config.places_of(name).into_iter().find(|place| place.file != file);
        if let Some(place) = place {
            let there = place.file.display();
            let message =
                format!("`{name}` is defined in `{there}`, which `{}` includes", file.display());
            let hint = format!("edit that file with `--config {there}`");
            return Err(RewriteError::Refused(Problem::error(message).hint(hint)));
        }
    }
    Ok(())
}

/// Parses pasted servers as if they were in a config already: their paths are relative to it.
pub fn parse_pasted(config: &Path, text: &str) -> Result<Config, UnusableFile> {
    Config::parse_pasted(&config.with_file_name(PASTED), text)
}

/// Removes the folder of the pasted text, which is no file, from the message of a problem.
pub fn strip_pasted_path(config: &Path, mut problem: Problem) -> Problem {
    let name = config.with_file_name(PASTED).display().to_string();
    problem.message = problem.message.replace(&format!("{name}:"), &format!("{PASTED}:"));
    problem
}

/// Path at which a config is created if there is none.
pub fn default_config_path() -> Option<PathBuf> {
    Some(UserFolders::of_process().settings?.join("consort").join("consort.toml"))
}

fn read(file: &Path) -> io::Result<Option<String>> {
    match fs::metadata(file) {
        Ok(about) if !about.is_file() => Err(io::Error::other("not a regular file")),
        Ok(_) => fs::read_to_string(file).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Copies a file to a name that contains the time.
pub fn back_up_file(file: &Path) -> io::Result<PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let digits: String = utc(now).chars().filter(char::is_ascii_digit).collect();
    let (date, time) = digits.split_at(8);
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let named = |more: &str| file.with_file_name(format!("{name}.bak-{date}-{time}{more}"));
    let again = (2..).map(|count| format!("-{count}"));
    let backup = std::iter::once(String::new())
        .chain(again)
        .map(|more| named(&more))
        .find(|backup| !backup.exists())
        .expect("numbers do not run out");
    fs::copy(file, &backup)?;
    Ok(backup)
}

/// Writes a file atomically.
pub fn replace_file(file: &Path, text: &str) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // There may be a token in it.
    let mode = fs::metadata(file).map_or(0o600, |file| file.permissions().mode());
    let draft = file.with_extension(format!("{}.new", std::process::id()));
    let written = (|| {
        let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        new.write_all(text.as_bytes())?;
        new.set_permissions(Permissions::from_mode(mode & 0o777))?;
        new.sync_all()?;
        fs::rename(&draft, file)?;
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}
