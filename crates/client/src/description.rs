//! A server's description of itself.

use consort_protocol::{Json, Object, Revision};
use serde::{Deserialize, Serialize};

use crate::transport::UpstreamTransport;

/// A server's description of itself, from the handshake.
#[derive(Clone, Debug)]
pub struct ServerDescription {
    /// Negotiated protocol: worth storing for the next connection.
    pub protocol: NegotiatedProtocol,
    /// Its capabilities.
    pub capabilities: Object,
    /// Its name and version. Unverified: for display only.
    pub server: Option<Json>,
    /// Its `instructions` for a model.
    pub instructions: Option<String>,
    /// The whole result.
    pub raw: Object,
}

impl Default for ServerDescription {
    fn default() -> Self {
        Self {
            protocol: NegotiatedProtocol {
                revision: Revision::NEWEST_MODERN,
                transport: UpstreamTransport::default(),
            },
            capabilities: Object::empty(),
            server: None,
            instructions: None,
            raw: Object::empty(),
        }
    }
}

impl ServerDescription {
    pub(crate) fn new(protocol: NegotiatedProtocol, raw: Object) -> Self {
        const SERVER: &str = "io.modelcontextprotocol/serverInfo";
        Self {
            protocol,
            capabilities: raw
                .get("capabilities")
                .and_then(|json| json.to_object())
                .unwrap_or_else(Object::empty),
            server: raw.meta().and_then(|meta| meta.get(SERVER)).or_else(|| raw.get("serverInfo")),
            instructions: raw.text("instructions"),
            raw,
        }
    }

    /// Returns true if it has a capability: a path, as in `resources.subscribe`. A member set to
    /// `false` counts as absent.
    pub fn offers(&self, path: &str) -> bool {
        let mut object = self.capabilities.clone();
        let mut names = path.split('.').peekable();
        while let Some(name) = names.next() {
            let Some(value) = object.get(name) else {
                return false;
            };
            if value.boolean() == Some(false) {
                return false;
            }
            match value.to_object() {
                Some(inner) => object = inner,
                None => return names.peek().is_none(),
            }
        }
        true
    }
}

/// Negotiated protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NegotiatedProtocol {
    /// The protocol revision.
    pub revision: Revision,
    /// The transport that worked.
    pub transport: UpstreamTransport,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_found_by_its_path() {
        let raw = Json::parse(
            r#"{"capabilities":{"tools":{},"resources":{"subscribe":true,"listChanged":false}}}"#,
        )
        .unwrap();
        let found = NegotiatedProtocol {
            revision: Revision::V2025_11_25,
            transport: UpstreamTransport::Http,
        };
        let about = ServerDescription::new(found, raw.to_object().unwrap());
        assert!(about.offers("tools"));
        assert!(about.offers("resources.subscribe"));
        assert!(!about.offers("resources.listChanged"));
        assert!(!about.offers("tools.listChanged"));
        assert!(!about.offers("resources.subscribe.deeper"));
        assert!(!about.offers("prompts"));
    }
}
