//! The owner's token, in a file that only its owner can read.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use consort_files::FileReaders;

/// Minimum length of a token in characters: a shorter one could be guessed.
pub const SHORTEST: usize = 16;

/// Returns the token in this file, created if there is none, and true if it was just created.
pub fn read_or_create(file: &Path) -> io::Result<(String, bool)> {
    if let Some(secret) = read(file)? {
        return Ok((secret, false));
    }
    if let Some(folder) = file.parent() {
        consort_files::create_private_folder(folder)?;
    }
    let random = consort_server::sealing::random::<24>();
    let secret = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, random);
    if consort_files::create(file, format!("{secret}\n").as_bytes(), FileReaders::Owner)? {
        return Ok((secret, true));
    }
    // Another process created one at the same time; that one is used.
    let secret =
        read(file)?.ok_or_else(|| io::Error::other("it was removed while it was being created"))?;
    Ok((secret, false))
}

/// Returns the token in this file, if there is one.
pub fn read(file: &Path) -> io::Result<Option<String>> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mode = fs::metadata(file)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(io::Error::other("it is readable by other users; run `chmod 600` on it"));
    }
    let secret = text.trim().to_owned();
    if secret.len() < SHORTEST {
        return Err(io::Error::other("it contains no token of at least 16 characters"));
    }
    Ok(Some(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_start_at_once_have_one_token() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/token");
        let tokens: Vec<(String, bool)> = std::thread::scope(|scope| {
            let starters: Vec<_> =
                (0..8).map(|_| scope.spawn(|| read_or_create(&file).unwrap())).collect();
            starters.into_iter().map(|starter| starter.join().unwrap()).collect()
        });
        assert!(tokens.iter().all(|(secret, _)| *secret == tokens[0].0));
        assert_eq!(tokens.iter().filter(|(_, created)| *created).count(), 1);
        assert_eq!(read_or_create(&file).unwrap(), (tokens[0].0.clone(), false));
    }
}
