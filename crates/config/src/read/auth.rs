//! Authentication at a server.

use crate::error::Mistake;
use crate::fields::Fields;
use crate::server::Auth;
use crate::text::{Secrecy, Text};

/// The default header of an API key.
const API_KEY: &str = "X-API-Key";

/// Reads `auth`: `{bearer}`, `{api_key, header}`, or `{type: bearer|api_key|custom, token, header}`.
pub(super) fn read(fields: &Fields<'_>) -> Option<Auth> {
    let fields = fields.table("auth")?;
    let auth = short(&fields).or_else(|| long(&fields));
    fields.finish();
    auth
}

fn short(fields: &Fields<'_>) -> Option<Auth> {
    if let Some(token) = fields.text(&["bearer"], Secrecy::Secret) {
        return Some(Auth::Bearer(token));
    }
    let key = fields.text(&["api_key"], Secrecy::Secret)?;
    Some(api_key(fields, key, API_KEY))
}

fn long(fields: &Fields<'_>) -> Option<Auth> {
    type Make = fn(&Fields<'_>, Text) -> Auth;
    const KINDS: [(&str, Make); 3] = [
        ("bearer", |_, token| Auth::Bearer(token)),
        ("api_key", |fields, token| api_key(fields, token, API_KEY)),
        // Nothing is added to it: whoever wrote it knows what the server wants.
        ("custom", |fields, token| api_key(fields, token, "Authorization")),
    ];
    let make = fields.word("type", &KINDS, &[]);
    let token = fields.text(&["token"], Secrecy::Secret);
    match (make, token) {
        (Some(make), Some(token)) => Some(make(fields, token)),
        (_, None) if fields.get("token").is_none() && fields.get("bearer").is_none() => {
            let hint = "write `bearer = \"env:NAME\"`, or `type` and `token`";
            fields.error(fields.at(), Mistake::Missing { key: "auth.token", hint });
            None
        }
        (None, Some(_)) if fields.get("type").is_none() => {
            let hint = "use `bearer`, `api_key` or `custom`";
            fields.error(fields.at(), Mistake::Missing { key: "auth.type", hint });
            None
        }
        _ => None,
    }
}

fn api_key(fields: &Fields<'_>, key: Text, usual: &str) -> Auth {
    Auth::ApiKey { header: fields.string("header").unwrap_or(usual).to_owned(), key }
}
