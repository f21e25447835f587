//! Names that config formats give to the fields of a server.

/// Names of the keys in a format.
pub(crate) struct FieldNames {
    pub(crate) transport: &'static [&'static str],
    pub(crate) arguments: &'static [&'static str],
    pub(crate) env: &'static [&'static str],
    pub(crate) cwd: &'static [&'static str],
    pub(crate) url: &'static [&'static str],
    pub(crate) headers: &'static [&'static str],
}

/// The usual names.
pub(crate) const COMMON_NAMES: FieldNames = FieldNames {
    transport: &["type"],
    arguments: &["args"],
    env: &["env"],
    cwd: &["cwd"],
    url: &["url"],
    headers: &["headers"],
};
