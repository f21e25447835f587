//! Stored conversations.

use consort_agent::{Conversation, ConversationStore};

use crate::command::conversations;
use crate::exit::Failure;
use crate::output::{note, shortened};

/// Limit of characters of the title, taken from the first message.
const TITLE: usize = 80;

/// Store of conversations, if they are stored.
#[derive(Debug)]
pub(crate) struct Keeping(Option<ConversationStore>);

/// A conversation, and its id in the store.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) id: Option<String>,
    pub(crate) conversation: Conversation,
}

/// A conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) state: &'static str,
    pub(crate) messages: usize,
    pub(crate) about: String,
}

impl Keeping {
    /// Opens the store; none if nothing is to be stored.
    pub(crate) fn new(keep: bool) -> Result<Self, Failure> {
        if !keep {
            return Ok(Self(None));
        }
        let folder = conversations::folder().ok_or_else(|| {
            Failure::usage("there is no home folder to keep the conversation in")
                .hint("keep nothing with --no-store")
        })?;
        Ok(Self(Some(ConversationStore::new(folder))))
    }

    /// Starts a conversation about this.
    pub(crate) fn begin(&self, about: &str) -> Result<Kept, Failure> {
        let Some(store) = &self.0 else { return Ok(Kept::default()) };
        let (id, journal) = store.create(&title(about))?;
        let conversation = Conversation::with_journal(&[], Box::new(journal));
        Ok(Kept { id: Some(id.to_string()), conversation })
    }

    /// Opens a stored conversation: by its id, or the `last`.
    pub(crate) fn open(&self, id: &str) -> Result<Kept, Failure> {
        let store = self.store()?;
        let id = store.find(id)?;
        let opened = store.open(&id)?;
        if opened.torn_bytes > 0 {
            note(format!(
                "warning: {} bytes at the end of `{id}` were not whole",
                opened.torn_bytes
            ));
        }
        let conversation = Conversation::with_journal(&opened.steps, Box::new(opened.journal));
        Ok(Kept { id: Some(id.to_string()), conversation })
    }

    /// Copies a conversation, or only its first messages.
    pub(crate) fn fork(&self, kept: &Kept, messages: Option<usize>) -> Result<Kept, Failure> {
        let store = self.store()?;
        let id = kept.id.as_deref().ok_or_else(|| Failure::usage("nothing was said yet"))?;
        let fork = store.fork(&store.find(id)?, messages)?;
        self.open(fork.as_str())
    }

    /// Lists the last conversations, the latest first.
    pub(crate) fn list(&self, most: usize) -> Result<Vec<Listed>, Failure> {
        let mut all = self.store()?.list()?;
        all.sort_by_key(|summary| std::cmp::Reverse(summary.last));
        let listed = all.into_iter().take(most).map(|summary| Listed {
            id: summary.id.to_string(),
            state: summary.state.as_str(),
            messages: summary.messages,
            about: summary.title,
        });
        Ok(listed.collect())
    }

    fn store(&self) -> Result<&ConversationStore, Failure> {
        self.0
            .as_ref()
            .ok_or_else(|| Failure::usage("no conversation is kept").hint("leave out --no-store"))
    }
}

/// Title of a conversation, from its first message.
pub(crate) fn title(about: &str) -> String {
    shortened(about, TITLE)
}
