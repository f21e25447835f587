//! OAuth settings of a server.

use crate::error::ConfigErrorKind;
use crate::server::{OAuthConfig, OAuthGrant};
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::SyntaxValue;
use crate::template::SecretMasking;

/// Reads `oauth`, with Consort's keys or Claude Code's: `{client_id, client_secret, scope, callback_port, …}`.
pub(crate) fn read(fields: &TableReader<'_>) -> Option<OAuthConfig> {
    // OpenCode writes `false` for a server without OAuth.
    if matches!(fields.get("oauth")?.value, SyntaxValue::Bool(false)) {
        return None;
    }
    let fields = fields.table("oauth")?;
    let grants =
        [("code", OAuthGrant::Code), ("client_credentials", OAuthGrant::ClientCredentials)];
    let port = ["callback_port", "callbackPort"]
        .into_iter()
        .find_map(|key| Some((key, fields.count(key)?)));
    let callback_port = port.and_then(|(key, port)| {
        let found = u16::try_from(port).ok();
        found.or_else(|| fields.report_wrong_type(key, fields.get(key)?, "a port from 1 to 65535"))
    });
    let oauth = OAuthConfig {
        client_id: fields.text(&["client_id", "clientId"], SecretMasking::LikelySecrets),
        client_secret: fields.text(&["client_secret", "clientSecret"], SecretMasking::Everything),
        client_metadata: fields.string("client_metadata").map(str::to_owned),
        scope: scope(&fields, "scope").or_else(|| scope(&fields, "scopes")),
        issuer: fields.string("issuer").map(str::to_owned),
        grant: fields.word("grant", &grants, &[]).unwrap_or_default(),
        callback_port,
    };
    if oauth.client_id.is_none()
        && (oauth.client_secret.is_some() || oauth.grant != OAuthGrant::Code)
    {
        let hint = "it is the client id registered at the authorization server";
        fields.error(fields.at(), ConfigErrorKind::Missing { key: "oauth.client_id", hint });
    }
    fields.finish();
    Some(oauth)
}

/// Reads Cursor's `auth`: `{CLIENT_ID, CLIENT_SECRET, scopes}`.
pub(crate) fn of_cursor(fields: &TableReader<'_>) -> Option<OAuthConfig> {
    let fields = fields.table("auth")?;
    let oauth = OAuthConfig {
        client_id: fields.text(&["CLIENT_ID"], SecretMasking::LikelySecrets),
        client_secret: fields.text(&["CLIENT_SECRET"], SecretMasking::Everything),
        scope: scope(&fields, "scopes"),
        ..OAuthConfig::default()
    };
    fields.finish();
    Some(oauth)
}

/// Scopes, as a string or as a list.
fn scope(fields: &TableReader<'_>, key: &'static str) -> Option<String> {
    match &fields.get(key)?.value {
        SyntaxValue::List(_) => Some(fields.strings(key).join(" ")),
        _ => fields.string(key).map(str::to_owned),
    }
}
