//! Keys that have a new name. The old one is still read, with a warning.

/// The old and the new name of each renamed key.
pub(crate) const RENAMED_KEYS: &[(&str, &str)] = &[("environment", "env"), ("directory", "cwd")];

/// Returns true if a key was renamed to another.
pub(crate) fn is_renamed(old: &str, new: &str) -> bool {
    RENAMED_KEYS.contains(&(old, new))
}
