//! OAuth settings of a server.

use crate::error::Mistake;
use crate::fields::Fields;
use crate::server::{Grant, OAuth};
use crate::text::Secrecy;

/// Reads `oauth`, with Consort's keys or Claude Code's: `{client_id, client_secret, scope, callback_port, …}`.
pub(crate) fn read(fields: &Fields<'_>) -> Option<OAuth> {
    let fields = fields.table("oauth")?;
    let grants = [("code", Grant::Code), ("client_credentials", Grant::ClientCredentials)];
    let port = ["callback_port", "callbackPort"]
        .into_iter()
        .find_map(|key| Some((key, fields.count(key)?)));
    let callback_port = port.and_then(|(key, port)| {
        let found = u16::try_from(port).ok();
        found.or_else(|| fields.wrong(key, fields.get(key)?, "a port: 1 to 65535"))
    });
    let oauth = OAuth {
        client_id: fields.text(&["client_id", "clientId"], Secrecy::Looks),
        client_secret: fields.text(&["client_secret", "clientSecret"], Secrecy::Secret),
        client_metadata: fields.string("client_metadata").map(str::to_owned),
        scope: scope(&fields, "scope").or_else(|| scope(&fields, "scopes")),
        issuer: fields.string("issuer").map(str::to_owned),
        grant: fields.word("grant", &grants, &[]).unwrap_or_default(),
        callback_port,
    };
    if oauth.client_id.is_none() && (oauth.client_secret.is_some() || oauth.grant != Grant::Code) {
        let hint = "it is the name under which the authorization server knows you";
        fields.error(fields.at(), Mistake::Missing { key: "oauth.client_id", hint });
    }
    fields.finish();
    Some(oauth)
}

/// Reads Cursor's `auth`: `{CLIENT_ID, CLIENT_SECRET, scopes}`.
pub(crate) fn of_cursor(fields: &Fields<'_>) -> Option<OAuth> {
    let fields = fields.table("auth")?;
    let oauth = OAuth {
        client_id: fields.text(&["CLIENT_ID"], Secrecy::Looks),
        client_secret: fields.text(&["CLIENT_SECRET"], Secrecy::Secret),
        scope: scope(&fields, "scopes"),
        ..OAuth::default()
    };
    fields.finish();
    Some(oauth)
}

/// Scopes, as a string or as a list.
fn scope(fields: &Fields<'_>, key: &'static str) -> Option<String> {
    use crate::tree::Value;
    match &fields.get(key)?.value {
        Value::List(_) => Some(fields.strings(key).join(" ")),
        _ => fields.string(key).map(str::to_owned),
    }
}
