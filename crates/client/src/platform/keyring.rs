//! Programs of the system's keyring: `security` on macOS, elsewhere `secret-tool` of libsecret.
//!
//! A value never is an argument of these programs, because other users see arguments.

use super::is_macos;
use crate::helper_program::{HelperError, HelperProgram};

/// Exit status of `security` for an absent entry.
const NOT_FOUND: i32 = 44;

/// The name of the program.
pub fn program() -> &'static str {
    if is_macos() { "security" } else { "secret-tool" }
}

/// Advice for a system without the program.
pub fn install_hint() -> &'static str {
    if is_macos() {
        "`security` is part of macOS: check the PATH, or use `env:`, `file:` or `cmd:`"
    } else {
        "install `secret-tool` (Debian: `libsecret-tools`), or use `env:`, `file:` or `cmd:`"
    }
}

/// Returns true if a text can be part of an entry. `security` reads one line.
pub fn accepts(text: &str) -> bool {
    let refused: &[char] = if is_macos() { &['\0', '\n', '\r'] } else { &['\0'] };
    !text.contains(refused)
}

/// Prints the value of an entry.
pub fn lookup(service: &str, name: &str) -> HelperProgram {
    let program = HelperProgram::new(program());
    if is_macos() {
        program.arguments(["find-generic-password", "-s", service, "-a", name, "-w"])
    } else {
        program.arguments(["lookup", "service", service, "account", name])
    }
}

/// Stores an entry, or replaces it. The value is passed on standard input.
pub fn store(service: &str, name: &str, value: &str) -> HelperProgram {
    let program = HelperProgram::new(program());
    if is_macos() {
        // It asks for the value on a terminal, or reads whole commands from its standard input.
        let quote = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let (service, name, value) = (quote(service), quote(name), quote(value));
        let line = format!("add-generic-password -U -s {service} -a {name} -w {value}\n");
        program.arguments(["-i"]).input(line)
    } else {
        let label = format!("{service}/{name}");
        let words = ["store", "--label", &label, "service", service, "account", name];
        program.arguments(words).input(value)
    }
}

/// Removes an entry.
pub fn remove(service: &str, name: &str) -> HelperProgram {
    let program = HelperProgram::new(program());
    if is_macos() {
        program.arguments(["delete-generic-password", "-s", service, "-a", name])
    } else {
        program.arguments(["clear", "service", service, "account", name])
    }
}

/// Returns true if the program ran and found no entry: `secret-tool` then fails without a word.
pub fn is_absent(error: &HelperError) -> bool {
    match error {
        HelperError::Failed { status, .. } if is_macos() => status.code() == Some(NOT_FOUND),
        HelperError::Failed { status, stderr, .. } => {
            status.code() == Some(1) && stderr.lines_for_operator().next().is_none()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_never_an_argument() {
        let command = format!("{:?}", store("service", "name", "s3cret"));
        assert!(command.starts_with(program()) && !command.contains("s3cret"), "{command}");
    }
}
