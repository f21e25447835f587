//! Stored conversations.

use consort_agent::transcript::conversation_title;
use consort_agent::{Conversation, ConversationStore};

use crate::exit::CommandError;
use crate::output::note;

/// Store of conversations, if they are stored.
#[derive(Debug)]
pub(crate) struct ConversationStorage(Option<ConversationStore>);

/// A conversation, and its id in the store.
#[derive(Debug, Default)]
pub(crate) struct StoredConversation {
    pub(crate) id: Option<String>,
    pub(crate) conversation: Conversation,
}

/// A conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedConversation {
    pub(crate) id: String,
    pub(crate) state: &'static str,
    pub(crate) messages: usize,
    pub(crate) about: String,
}

impl ConversationStorage {
    /// Opens the store; none if nothing is to be stored.
    pub(crate) fn new(keep: bool) -> Result<Self, CommandError> {
        if !keep {
            return Ok(Self(None));
        }
        let folder = consort_config::conversations_folder().ok_or_else(|| {
            CommandError::usage("no home folder: the conversation cannot be stored")
                .hint("set `HOME`, or use --no-store")
        })?;
        Ok(Self(Some(ConversationStore::new(folder))))
    }

    /// Starts a conversation about this.
    pub(crate) fn begin(&self, about: &str) -> Result<StoredConversation, CommandError> {
        let Some(store) = &self.0 else { return Ok(StoredConversation::default()) };
        let (id, journal) = store.create(&conversation_title(about))?;
        let conversation = Conversation::with_journal(&[], Box::new(journal));
        Ok(StoredConversation { id: Some(id.to_string()), conversation })
    }

    /// Opens a stored conversation: by its id, or the `last`.
    pub(crate) fn open(&self, id: &str) -> Result<StoredConversation, CommandError> {
        let store = self.store()?;
        let id = store.find(id)?;
        let opened = store.open(&id)?;
        if opened.torn_bytes > 0 {
            note(format!(
                "warning: discarded {} bytes of an incomplete record at the end of `{id}`",
                opened.torn_bytes
            ));
        }
        let conversation = Conversation::with_journal(&opened.steps, Box::new(opened.journal));
        Ok(StoredConversation { id: Some(id.to_string()), conversation })
    }

    /// Copies a conversation, or only its first messages.
    pub(crate) fn fork(
        &self,
        kept: &StoredConversation,
        messages: Option<usize>,
    ) -> Result<StoredConversation, CommandError> {
        let store = self.store()?;
        let id = kept
            .id
            .as_deref()
            .ok_or_else(|| CommandError::usage("the conversation has no messages"))?;
        let fork = store.fork(&store.find(id)?, messages)?;
        self.open(fork.as_str())
    }

    /// Lists the last conversations, the latest first.
    pub(crate) fn list(&self, most: usize) -> Result<Vec<ListedConversation>, CommandError> {
        let mut all = self.store()?.list()?;
        all.sort_by_key(|summary| std::cmp::Reverse(summary.last));
        let listed = all.into_iter().take(most).map(|summary| ListedConversation {
            id: summary.id.to_string(),
            state: summary.state.as_str(),
            messages: summary.messages,
            about: summary.title,
        });
        Ok(listed.collect())
    }

    fn store(&self) -> Result<&ConversationStore, CommandError> {
        self.0
            .as_ref()
            .ok_or_else(|| CommandError::usage("no conversation is stored").hint("omit --no-store"))
    }
}
