//! Metadata of a client: the members that count, of a registration or of a client metadata document.

use serde_json::{Map, Value};

use super::redirect_uri;
use crate::settings::AuthorizationSettings;

/// Maximum characters of a client's name.
const NAME: usize = 100;

/// Metadata of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientMetadata {
    pub(crate) name: Option<String>,
    /// Those that are sound.
    pub(crate) redirect_uris: Vec<String>,
}

impl ClientMetadata {
    /// Reads metadata with at most so many redirect URIs. Unknown grant types, response types and unusable URIs are left
    /// out; the error says what is missing then.
    pub(crate) fn read(
        members: &Map<String, Value>,
        settings: &AuthorizationSettings,
        most_uris: usize,
    ) -> Result<Self, MetadataError> {
        if let Some(grants) = members.get("grant_types") {
            let has_code = |grants: &Vec<Value>| grants.iter().any(|it| it == "authorization_code");
            if !grants.as_array().is_some_and(has_code) {
                return Err(MetadataError::Metadata("`grant_types` has no `authorization_code`"));
            }
        }
        if let Some(types) = members.get("response_types") {
            let has_code = |types: &Vec<Value>| types.iter().any(|it| it == "code");
            if !types.as_array().is_some_and(has_code) {
                return Err(MetadataError::Metadata("`response_types` has no `code`"));
            }
        }
        let name = members.get("client_name").and_then(Value::as_str);
        let name = name.map(|name| name.chars().take(NAME).collect::<String>());
        let uris = members.get("redirect_uris").and_then(Value::as_array);
        let uris = uris.ok_or(MetadataError::RedirectUri("`redirect_uris` is missing"))?;
        let sound = uris.iter().filter_map(Value::as_str);
        let sound = sound.filter(|uri| redirect_uri::is_sound(uri, settings));
        let redirect_uris: Vec<String> = sound.take(most_uris).map(str::to_owned).collect();
        if redirect_uris.is_empty() {
            return Err(MetadataError::RedirectUri(
                "no redirect URI can be used: expected https, or http on a loopback address",
            ));
        }
        Ok(Self { name: name.filter(|name| !name.trim().is_empty()), redirect_uris })
    }
}

/// The reason why metadata is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MetadataError {
    /// No redirect URI remains.
    #[error("{0}")]
    RedirectUri(&'static str),
    /// Anything else.
    #[error("{0}")]
    Metadata(&'static str),
}

impl MetadataError {
    /// Returns the error code of RFC 7591.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::RedirectUri(_) => "invalid_redirect_uri",
            Self::Metadata(_) => "invalid_client_metadata",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(members: &Value) -> Result<ClientMetadata, MetadataError> {
        ClientMetadata::read(members.as_object().unwrap(), &AuthorizationSettings::default(), 10)
    }

    #[test]
    fn unusable_members_are_left_out_and_the_rest_counts() {
        let read_uris = |members: &Value| read(members).map(|metadata| metadata.redirect_uris);
        let vscode = json!({
            "client_name": "Visual Studio Code",
            "grant_types": ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
            "response_types": ["code"],
            "redirect_uris": ["http://127.0.0.1:33418/", "https://vscode.dev/redirect", "vscode://x", 7],
        });
        let expected = ["http://127.0.0.1:33418/", "https://vscode.dev/redirect"];
        assert_eq!(read_uris(&vscode).unwrap(), expected);
        let many = vec!["https://a.example/cb"; 20];
        assert_eq!(read_uris(&json!({ "redirect_uris": many })).unwrap().len(), 10);
        let long =
            json!({ "redirect_uris": ["https://a.example/cb"], "client_name": "x".repeat(1000) });
        assert_eq!(read(&long).unwrap().name.unwrap().len(), 100);
        for (members, code) in [
            (json!({}), "invalid_redirect_uri"),
            (json!({ "redirect_uris": [] }), "invalid_redirect_uri"),
            (json!({ "redirect_uris": ["http://c.example/"] }), "invalid_redirect_uri"),
            (json!({ "redirect_uris": "https://a.example/cb" }), "invalid_redirect_uri"),
            (
                json!({ "redirect_uris": ["https://a.example/cb"], "grant_types": ["implicit"] }),
                "invalid_client_metadata",
            ),
            (
                json!({ "redirect_uris": ["https://a.example/cb"], "response_types": ["token"] }),
                "invalid_client_metadata",
            ),
        ] {
            assert_eq!(read(&members).unwrap_err().code(), code, "{members}");
        }
    }
}
