//! Programs that print values: those of `cmd:`, and those of the system's keyring.

use std::path::Path;

use consort_client::platform::keyring;
use consort_client::{HelperError, HelperLimits, HelperProgram, UnreadableValue};

/// A program that prints the value of a reference.
#[derive(Clone, Debug)]
pub(crate) struct SecretProgram {
    helper: HelperProgram,
    /// The entry of the keyring, if it prints one.
    entry: Option<String>,
}

impl SecretProgram {
    /// The value of an entry of the system's keyring.
    pub(crate) fn keyring(service: &str, name: &str) -> Self {
        let entry = Some(format!("{service}/{name}"));
        Self { helper: keyring::lookup(service, name), entry }
    }

    /// The output of a command, run in a folder.
    pub(crate) fn command(words: &[String], folder: &Path) -> Self {
        let (program, arguments) =
            words.split_first().map_or(("", words), |(first, rest)| (first.as_str(), rest));
        let mut helper = HelperProgram::new(program).arguments(arguments);
        if !folder.as_os_str().is_empty() {
            helper = helper.directory(folder);
        }
        Self { helper, entry: None }
    }

    pub(crate) fn helper(&self) -> &HelperProgram {
        &self.helper
    }

    /// Identifies it: equal programs print the same.
    pub(crate) fn key(&self) -> String {
        format!("{:?} {:?}", self.entry, self.helper)
    }

    /// Runs it.
    pub(crate) async fn read(
        &self,
        key: &str,
        limits: &HelperLimits,
    ) -> Result<String, UnreadableValue> {
        self.interpret(key, self.helper.run(limits).await)
    }

    /// Returns the value of the key from the result of a run, without its last line end.
    pub(crate) fn interpret(
        &self,
        key: &str,
        result: Result<String, HelperError>,
    ) -> Result<String, UnreadableValue> {
        let failed = |reason: String, hint| {
            UnreadableValue::new(format!("cannot read `{key}`: {reason}"), hint)
        };
        let mut value = match (result, &self.entry) {
            (Ok(value), _) => value,
            (Err(error), Some(entry)) => {
                let (reason, hint) = keyring_failure(entry, &error);
                return Err(UnreadableValue { detail: error.detail(), ..failed(reason, hint) });
            }
            (Err(error), None) => {
                let hint = "run the command of `cmd:` yourself to see why it fails";
                let detail = error.detail();
                return Err(UnreadableValue { detail, ..failed(error.to_string(), hint) });
            }
        };
        if value.ends_with('\n') {
            value.truncate(value.len() - if value.ends_with("\r\n") { 2 } else { 1 });
        }
        if value.is_empty() {
            return Err(match &self.entry {
                Some(entry) => {
                    let reason = format!("the keyring entry `{entry}` is empty");
                    failed(reason, "store a value with `consort secret set SERVICE/NAME`")
                }
                None => failed(
                    "the command of `cmd:` printed nothing".to_owned(),
                    "run the command yourself: its standard output is the value",
                ),
            });
        }
        Ok(value)
    }
}

/// Returns the reason why the keyring did not print an entry, and a hint.
pub(crate) fn keyring_failure(entry: &str, error: &HelperError) -> (String, &'static str) {
    if keyring::is_absent(error) {
        let hint =
            "store it with `consort secret set SERVICE/NAME`, or use `env:`, `file:` or `cmd:`";
        return (format!("the keyring has no entry `{entry}`"), hint);
    }
    let reason = format!("the keyring cannot be used for `{entry}`: {error}");
    if error.is_missing() {
        return (reason, keyring::install_hint());
    }
    (reason, "unlock the keyring of this login session, or use `env:`, `file:` or `cmd:`")
}
