//! Authentication at a server.

use crate::error::ConfigErrorKind;
use crate::server::AuthConfig;
use crate::syntax::table_reader::TableReader;
use crate::template::{SecretMasking, TemplateString};

/// The default header of an API key.
const API_KEY: &str = "X-API-Key";

/// Reads `auth`: `{bearer}`, `{api_key, header}`, or `{type: bearer|api_key|custom, token, header}`.
pub(super) fn read(fields: &TableReader<'_>) -> Option<AuthConfig> {
    let fields = fields.table("auth")?;
    let auth = short(&fields).or_else(|| long(&fields));
    fields.finish();
    auth
}

fn short(fields: &TableReader<'_>) -> Option<AuthConfig> {
    if let Some(token) = fields.text(&["bearer"], SecretMasking::Everything) {
        return Some(AuthConfig::Bearer(token));
    }
    let key = fields.text(&["api_key"], SecretMasking::Everything)?;
    Some(api_key(fields, key, API_KEY))
}

fn long(fields: &TableReader<'_>) -> Option<AuthConfig> {
    type Make = fn(&TableReader<'_>, TemplateString) -> AuthConfig;
    const KINDS: [(&str, Make); 3] = [
        ("bearer", |_, token| AuthConfig::Bearer(token)),
        ("api_key", |fields, token| api_key(fields, token, API_KEY)),
        // Nothing is added: the header is sent as written.
        ("custom", |fields, token| api_key(fields, token, "Authorization")),
    ];
    let make = fields.word("type", &KINDS, &[]);
    let token = fields.text(&["token"], SecretMasking::Everything);
    match (make, token) {
        (Some(make), Some(token)) => Some(make(fields, token)),
        (_, None) if fields.get("token").is_none() && fields.get("bearer").is_none() => {
            let hint = "set `bearer = \"env:NAME\"`, or `type` and `token`";
            fields.error(fields.at(), ConfigErrorKind::Missing { key: "auth.token", hint });
            None
        }
        (None, Some(_)) if fields.get("type").is_none() => {
            let hint = "use `bearer`, `api_key` or `custom`";
            fields.error(fields.at(), ConfigErrorKind::Missing { key: "auth.type", hint });
            None
        }
        _ => None,
    }
}

fn api_key(fields: &TableReader<'_>, key: TemplateString, usual: &str) -> AuthConfig {
    AuthConfig::ApiKey { header: fields.string("header").unwrap_or(usual).to_owned(), key }
}
