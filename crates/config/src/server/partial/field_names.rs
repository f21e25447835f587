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

/// The keys that are for programs only, in any format.
pub(super) const FOR_PROGRAMS: [&str; 10] = [
    "args",
    "arguments",
    "env",
    "environment",
    "env_file",
    "envFile",
    "env_vars",
    "inherit_env",
    "cwd",
    "directory",
];

/// The keys that are for URLs only, in any format.
pub(super) const FOR_ADDRESSES: [&str; 12] = [
    "headers",
    "headers_helper",
    "headersHelper",
    "http_headers",
    "env_http_headers",
    "auth",
    "bearer_token_env_var",
    "oauth",
    "proxy",
    "ca_file",
    "client_certificate_file",
    "client_key_file",
];
