//! The `OpenID` Connect provider that signs users in.

pub(crate) mod id_token;
pub(crate) mod issuer_metadata;
pub(crate) mod json_web_key;
pub(crate) mod provider;
mod remembered_document;
pub(crate) mod response;
mod signature_check;
pub(crate) mod strict_json;
pub(crate) mod user_claims;
