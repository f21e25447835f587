//! What was done before a call was handed to a client, remembered until it comes back with the result: the
//! client knows nothing of it, and it must not be done twice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::message::{Call, CallResult, Kind, Message, Part, Role};
use crate::run::{CallState, Run};

/// How many calls handed to clients are remembered at once.
const MOST: usize = 1024;

/// What was done in a run before its calls were handed out.
#[derive(Clone, Debug, PartialEq)]
pub struct Handed {
    /// What the client had said.
    before: Vec<Message>,
    /// What the model said and what came of our calls, up to the message with the calls.
    hidden: Vec<Arc<Message>>,
    /// The results of our calls beside those that were handed out.
    done: Vec<CallResult>,
}

impl Handed {
    /// What a run did that ended by handing calls out, with the calls; nothing if it did not end so. The
    /// client said `said`, and the run was given so many messages for it.
    pub fn of(run: &Run, given: usize, said: Vec<Message>) -> Option<(Vec<Call>, Self)> {
        let open = run.pending().iter().filter_map(|pending| match &pending.state {
            CallState::Done(_) => None,
            _ => Some(pending.call.clone()),
        });
        let calls: Vec<Call> = open.collect();
        let done = run.pending().iter().filter_map(|pending| match &pending.state {
            CallState::Done(result) => Some(result.clone()),
            _ => None,
        });
        let hidden = run.messages().get(given..)?.to_vec();
        let handed = Self { hidden, done: done.collect(), before: said };
        (!calls.is_empty()).then_some((calls, handed))
    }
}

/// What is remembered of calls that were handed out, by client and call.
#[derive(Debug, Default)]
pub struct HandedOut(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    kept: HashMap<(String, String), Arc<Handed>>,
    order: VecDeque<(String, String)>,
}

impl HandedOut {
    /// Remembers what was done before these calls were handed to this client.
    pub fn keep(&self, client: &str, calls: &[Call], handed: Handed) {
        let handed = Arc::new(handed);
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for call in calls {
            let key = (client.to_owned(), call.id.clone());
            shelf.order.retain(|known| *known != key);
            shelf.order.push_back(key.clone());
            shelf.kept.insert(key, Arc::clone(&handed));
        }
        while shelf.order.len() > MOST {
            if let Some(oldest) = shelf.order.pop_front() {
                shelf.kept.remove(&oldest);
            }
        }
    }

    /// What a client says, with what we did before it was handed its calls put back where it was.
    pub fn restored(&self, client: &str, messages: &[Message]) -> Vec<Message> {
        let calls = |message: &Message| message.calls().next().map(|call| call.id.clone());
        let mut made: Vec<Message> = Vec::new();
        let mut owed: Vec<CallResult> = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            let handed = match calls(message) {
                Some(id) if message.role == Role::Assistant => self.find(client, id),
                _ => None,
            };
            match handed.filter(|handed| handed.before == messages[..at]) {
                Some(handed) => {
                    made.extend(handed.hidden.iter().map(|hidden| Message::clone(hidden)));
                    owed.clone_from(&handed.done);
                }
                None if message.role == Role::Tool && !owed.is_empty() => {
                    let mine = owed.drain(..).map(|result| Part::from(Kind::ToolResult(result)));
                    let mut message = message.clone();
                    message.parts.splice(0..0, mine);
                    made.push(message);
                }
                None => made.push(message.clone()),
            }
        }
        made
    }

    fn find(&self, client: &str, call: String) -> Option<Arc<Handed>> {
        let shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.kept.get(&(client.to_owned(), call)).cloned()
    }
}
