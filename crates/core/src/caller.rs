//! Who is calling.

use serde::Serialize;

/// The member of `_meta` by which servers tell sessions apart.
pub const SESSION: &str = "consort/session";

/// A person, an agent or an MCP client, with what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Caller {
    /// What it is.
    pub kind: Kind,
    /// Who it is, for the record.
    pub name: String,
}

/// What a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Somebody at a terminal or in the console.
    Person,
    /// A model over a toolbox.
    Agent,
    /// A program that speaks MCP to us.
    Client,
}

impl Caller {
    /// The identity of whoever runs Consort.
    pub const OWNER: &'static str = "owner";

    /// Somebody at a terminal.
    pub fn person(name: impl Into<String>) -> Self {
        Self { kind: Kind::Person, name: name.into() }
    }

    /// A program that speaks MCP to us, by the identity it showed.
    pub fn client(name: impl Into<String>) -> Self {
        Self { kind: Kind::Client, name: name.into() }
    }

    /// A model over a toolbox.
    pub fn agent(name: impl Into<String>) -> Self {
        Self { kind: Kind::Agent, name: name.into() }
    }
}
