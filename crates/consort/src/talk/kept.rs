//! Conversations, kept as they happen.

use consort_agent::Conversation;

use crate::exit::Failure;

/// Where conversations are kept, if they are.
#[derive(Debug)]
pub(crate) struct Keeping(Option<()>);

/// A conversation, and the id it is kept under.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) id: Option<String>,
    pub(crate) conversation: Conversation,
}

/// A conversation among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) messages: usize,
    pub(crate) about: String,
}

impl Keeping {
    pub(crate) fn new(_keep: bool) -> Result<Self, Failure> {
        Ok(Self(None))
    }

    /// A new conversation.
    pub(crate) fn begin(&self, _title: &str) -> Result<Kept, Failure> {
        Ok(Kept { id: None, conversation: Conversation::new() })
    }

    /// A conversation of before: the last, or that of an id.
    pub(crate) fn open(&self, _id: Option<&str>) -> Result<Kept, Failure> {
        Err(nothing())
    }

    /// A copy of a conversation, of its first messages if that is said.
    pub(crate) fn fork(&self, _kept: &Kept, _messages: Option<usize>) -> Result<Kept, Failure> {
        Err(nothing())
    }

    /// The last conversations, the latest first.
    pub(crate) fn list(&self, _most: usize) -> Result<Vec<Listed>, Failure> {
        Err(nothing())
    }

    /// Forgets a conversation in which nothing was said.
    pub(crate) fn tidy(&self, _kept: Kept) {}
}

fn nothing() -> Failure {
    Failure::usage("no conversation is kept").hint("leave out --no-store")
}
