//! The pages of sign-in and consent. They work without scripts.

pub(crate) mod account;
pub(crate) mod consent;
pub(crate) mod html;
pub(crate) mod sign_in;
