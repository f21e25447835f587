//! The token that clients show, kept in a file only its owner reads.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::exit::Failure;
use crate::running;

/// A shorter token could be guessed.
const SHORTEST: usize = 16;

/// A token as it is kept.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) secret: String,
    pub(crate) file: PathBuf,
    /// Whether it was made just now.
    pub(crate) created: bool,
}

/// The token in this file, or where it is kept by default; made if there is none.
pub(crate) fn kept(file: Option<&Path>) -> Result<Kept, Failure> {
    let file = match file {
        Some(file) => file.to_owned(),
        None => running::state_folder()
            .ok_or_else(|| {
                Failure::usage("no home folder to keep a token in").hint("use --token-file FILE")
            })?
            .join("token"),
    };
    let failed = |error: io::Error| {
        Failure::usage(format!("cannot keep a token in {}: {error}", file.display()))
            .hint("use --token-file FILE")
    };
    match read(&file) {
        Ok(Some(secret)) => Ok(Kept { secret, file, created: false }),
        Ok(None) => {
            let secret = create(&file).map_err(failed)?;
            Ok(Kept { secret, file, created: true })
        }
        Err(error) => Err(failed(error)),
    }
}

/// The secret of one of those who may use the gateway: `env:NAME` or `file:PATH`.
pub(crate) fn read_from(name: &str, place: &str) -> Result<String, Failure> {
    let whose = name.escape_debug();
    let secret = if let Some(variable) = place.strip_prefix("env:") {
        std::env::var(variable).map_err(|_| {
            Failure::usage(format!("the token of `{whose}`: `{variable}` is not set"))
        })?
    } else {
        let file = place.strip_prefix("file:").unwrap_or(place);
        fs::read_to_string(file).map_err(|error| {
            Failure::usage(format!("the token of `{whose}`: cannot read `{file}`: {error}"))
        })?
    };
    let secret = secret.trim().to_owned();
    if secret.len() < SHORTEST {
        let message = format!("the token of `{whose}` is shorter than {SHORTEST} characters");
        return Err(Failure::usage(message));
    }
    Ok(secret)
}

fn read(file: &Path) -> io::Result<Option<String>> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mode = fs::metadata(file)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(io::Error::other("others can read it; run `chmod 600` on it"));
    }
    let secret = text.trim().to_owned();
    if secret.len() < SHORTEST {
        return Err(io::Error::other("it holds no token of at least 16 characters"));
    }
    Ok(Some(secret))
}

fn create(file: &Path) -> io::Result<String> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut random = [0; 24];
    fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    let secret = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, random);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(file, "{secret}")?;
    file.sync_all()?;
    Ok(secret)
}
