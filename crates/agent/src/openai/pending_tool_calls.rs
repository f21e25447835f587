//! Steps of a run before a call was handed to a client, kept until the client returns the result: the client does not
//! know them, and they must not be repeated.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::run::{CallState, RunState};
use consort_models::{
    ChatMessage, MessagePart, MessageRole, PartContent, ToolCall, ToolCallResult,
};
use parking_lot::Mutex;

/// Steps of a run before its calls were handed to the client.
#[derive(Clone, Debug, PartialEq)]
pub struct SuspendedRun {
    /// Messages of the client.
    before: Vec<ChatMessage>,
    /// Messages of the model and results of Consort's calls, up to the message with the calls.
    hidden: Vec<Arc<ChatMessage>>,
    /// Results of Consort's calls beside those that were handed out.
    results: Vec<ToolCallResult>,
}

impl SuspendedRun {
    /// Returns the calls that a run handed out at its end, with the steps before; `None` if it handed out none. `said`
    /// are the client's messages, and `given` is the number of messages that the run received for them.
    pub fn from_run(
        run: &RunState,
        received: usize,
        client_messages: Vec<ChatMessage>,
    ) -> Option<(Vec<ToolCall>, Self)> {
        let open = run.pending().iter().filter_map(|pending| match &pending.state {
            CallState::Done(_) => None,
            _ => Some(pending.call.clone()),
        });
        let calls: Vec<ToolCall> = open.collect();
        let done = run.pending().iter().filter_map(|pending| match &pending.state {
            CallState::Done(result) => Some(result.clone()),
            _ => None,
        });
        let hidden = run.messages().get(received..)?.to_vec();
        let suspended = Self { hidden, results: done.collect(), before: client_messages };
        (!calls.is_empty()).then_some((calls, suspended))
    }
}

/// Calls that were handed to clients, by client and call.
#[derive(Debug)]
pub struct PendingToolCalls {
    runs: Mutex<SuspendedRuns>,
    /// Maximum number of calls kept.
    most: usize,
}

impl Default for PendingToolCalls {
    fn default() -> Self {
        Self::new(Self::CALLS)
    }
}

#[derive(Debug, Default)]
struct SuspendedRuns {
    by_call: HashMap<(String, String), Arc<SuspendedRun>>,
    order: VecDeque<(String, String)>,
}

impl PendingToolCalls {
    /// Default maximum number of calls kept.
    pub const CALLS: usize = 1024;

    /// Creates a store of at most this many calls.
    pub fn new(most: usize) -> Self {
        Self { runs: Mutex::default(), most }
    }

    /// Keeps the steps before these calls were handed to this client.
    pub fn store(&self, client: &str, calls: &[ToolCall], suspended: SuspendedRun) {
        let suspended = Arc::new(suspended);
        let mut runs = self.runs.lock();
        for call in calls {
            let key = (client.to_owned(), call.id.clone());
            runs.order.retain(|known| *known != key);
            runs.order.push_back(key.clone());
            runs.by_call.insert(key, Arc::clone(&suspended));
        }
        while runs.order.len() > self.most {
            if let Some(oldest) = runs.order.pop_front() {
                runs.by_call.remove(&oldest);
            }
        }
    }

    /// Returns the client's messages, with the hidden steps before its calls inserted.
    pub fn restore(&self, client: &str, messages: &[ChatMessage]) -> Vec<ChatMessage> {
        let calls = |message: &ChatMessage| message.calls().next().map(|call| call.id.clone());
        let mut made: Vec<ChatMessage> = Vec::new();
        let mut owed: Vec<ToolCallResult> = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            let suspended = match calls(message) {
                Some(id) if message.role == MessageRole::Assistant => self.find(client, id),
                _ => None,
            };
            match suspended.filter(|suspended| suspended.before == messages[..at]) {
                Some(suspended) => {
                    made.extend(suspended.hidden.iter().map(|hidden| ChatMessage::clone(hidden)));
                    owed.clone_from(&suspended.results);
                }
                None if message.role == MessageRole::Tool && !owed.is_empty() => {
                    let mine = owed
                        .drain(..)
                        .map(|result| MessagePart::from(PartContent::ToolResult(result)));
                    let mut message = message.clone();
                    message.parts.splice(0..0, mine);
                    made.push(message);
                }
                None => made.push(message.clone()),
            }
        }
        made
    }

    fn find(&self, client: &str, call: String) -> Option<Arc<SuspendedRun>> {
        let runs = self.runs.lock();
        runs.by_call.get(&(client.to_owned(), call)).cloned()
    }
}
