//! Resolution of secrets in options.

use std::error::Error;
use std::path::Path;

use consort_core::OperatorText;

use crate::error::ConfigErrorKind;
use crate::resolve::{ReferenceResolver, ValueSource};
use crate::server::origin::ServerOrigin;
use crate::template::secret_reference::SecretReference;

/// The reason why a secret cannot be resolved.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct UnreadableSecret {
    /// Problem.
    pub message: String,
    /// The way out, if one is known.
    pub hint: Option<String>,
    /// Standard error of the program, for the operator only.
    pub detail: OperatorText,
}

impl SecretReference {
    /// Resolves it. Paths are relative to the folder of the config, and programs run there. It may block.
    pub fn resolve(
        &self,
        key: &str,
        config: &Path,
        values: &dyn ValueSource,
    ) -> Result<String, UnreadableSecret> {
        let origin = ServerOrigin { file: config.to_owned(), ..ServerOrigin::default() };
        let resolver = ReferenceResolver::of_options(&origin, values);
        resolver.parts(key, self.parts()).map_err(UnreadableSecret::from)
    }
}

impl From<ConfigErrorKind> for UnreadableSecret {
    fn from(error: ConfigErrorKind) -> Self {
        let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        let (message, hint) = (format!("{error}{source}"), error.hint());
        match error {
            ConfigErrorKind::Printed(value) => Self { message, hint, detail: value.detail },
            // A reference to a secret has no default.
            ConfigErrorKind::UnsetVariable { .. } => {
                Self { message, hint: Some("set it".to_owned()), detail: OperatorText::default() }
            }
            _ => Self { message, hint, detail: OperatorText::default() },
        }
    }
}
