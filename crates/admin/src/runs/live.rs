//! A run in progress: its events so far, for subscribers, and its stop signal.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use consort_agent::{Conversation, QuestionOrigin, RunEvent};
use consort_config::ConsoleLimits;
use consort_core::{DrivenStream, RequestResponder};
use consort_models::ChatMessage;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::events::{RunStreamEvent, TextKind, delta_text, run_event};
use crate::pending_requests::{PendingEntry, PendingRequest, PendingRequests};
use crate::response::encode_event;

/// A run in progress.
pub(crate) struct LiveRun {
    state: Mutex<LiveRunState>,
    pending: Arc<PendingRequests>,
    /// Wakes subscribers.
    changes: watch::Sender<u64>,
    stop: watch::Sender<bool>,
}

struct LiveRunState {
    /// The conversation while the run is in progress. It holds the lock on the file.
    conversation: Option<Conversation>,
    events: Vec<StoredEvent>,
    /// Memory size of the pieces in bytes.
    size: usize,
    /// Number of messages of the conversation before the first event here.
    base: Option<usize>,
    /// Number of messages of the conversation before the run, and its input until that is stored.
    input: (usize, Vec<Arc<ChatMessage>>),
    /// Index of the first piece of the turn.
    turn: usize,
    /// Index of the last progress piece of each call.
    progress: HashMap<String, usize>,
    logs: VecDeque<usize>,
    tools: HashMap<String, String>,
    requests: Vec<OpenRequest>,
    ended: bool,
    limits: ConsoleLimits,
}

/// A stored event.
enum StoredEvent {
    /// Dropped: a later event supersedes it.
    Dropped,
    Event(Bytes),
    /// Text received so far.
    Text(TextKind, String),
    /// A request to a person, sent only while it is pending.
    Request(String, Bytes),
}

/// A pending request of the run.
struct OpenRequest {
    call: String,
    kind: QuestionOrigin,
    entry: PendingEntry,
}

/// Read position of a subscriber.
#[derive(Default)]
struct ReadCursor {
    piece: usize,
    /// Bytes read of the text of this piece.
    words: usize,
}

impl LiveRun {
    /// Creates a run of a conversation with these messages as its input.
    pub(crate) fn new(
        conversation: Conversation,
        input: Vec<ChatMessage>,
        pending: Arc<PendingRequests>,
        limits: ConsoleLimits,
    ) -> Self {
        let input = input.into_iter().map(Arc::new).collect();
        let state = LiveRunState {
            input: (conversation.messages().len(), input),
            conversation: Some(conversation),
            events: Vec::new(),
            size: 0,
            base: None,
            turn: 0,
            progress: HashMap::new(),
            logs: VecDeque::new(),
            tools: HashMap::new(),
            requests: Vec::new(),
            ended: false,
            limits,
        };
        let (changes, stop) = (watch::Sender::new(0), watch::Sender::new(false));
        Self { state: Mutex::new(state), pending, changes, stop }
    }

    /// Stops the run gracefully.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// A channel that turns true when the run must stop.
    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Returns the number of messages of the conversation before the first event here, once known.
    pub(crate) fn base(&self) -> Option<usize> {
        self.lock().base
    }

    /// Returns the number of messages before the run and those it was started with, until it has stored them: it may
    /// wait for servers first.
    pub(crate) fn unstored_input(&self) -> Option<(usize, Vec<Arc<ChatMessage>>)> {
        let state = self.lock();
        state.base.is_none().then(|| state.input.clone())
    }

    /// Stores an event.
    pub(crate) fn record(&self, event: RunEvent) {
        let mut state = self.lock();
        match event {
            RunEvent::Delta { delta } if delta_text(&delta).is_some() => {
                let Some((kind, text)) = delta_text(&delta) else { return };
                state.append_text(kind, text);
            }
            event => state.take(event),
        }
        drop(state);
        self.notify();
    }

    /// Adds a pending request, and an event for it. `asks` builds the request, given the name of its tool.
    pub(crate) fn ask(
        &self,
        question: &consort_agent::UserQuestion,
        reply: RequestResponder,
        asks: impl FnOnce(Option<&str>) -> PendingRequest,
    ) {
        let context = asks(self.lock().tools.get(&question.call).map(String::as_str));
        let entry = self.pending.add(context, reply);
        let event = encode_event(&RunStreamEvent::Request(Box::new(entry.request.clone())));
        let mut state = self.lock();
        state.put(StoredEvent::Request(entry.request.id.clone(), event));
        state.requests.push(OpenRequest {
            call: question.call.clone(),
            kind: question.kind,
            entry,
        });
        drop(state);
        self.notify();
    }

    /// Withdraws the pending requests of the run if it can be suspended for all of them: it ends, and resumes when they
    /// are answered. Returns false if there are none, or some of another kind.
    pub(crate) fn suspend(&self) -> bool {
        let mut state = self.lock();
        let pending = &self.pending;
        state.requests.retain(|open| pending.waits(&open.entry.request.id));
        let keeps = |open: &OpenRequest| {
            matches!(open.kind, QuestionOrigin::Approval | QuestionOrigin::Model)
        };
        if state.requests.is_empty() || !state.requests.iter().all(keeps) {
            return false;
        }
        let questions = std::mem::take(&mut state.requests);
        drop(state);
        drop(questions);
        true
    }

    /// Releases the conversation after the run.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        let (conversation, questions) =
            (state.conversation.take(), std::mem::take(&mut state.requests));
        drop(state);
        drop((conversation, questions));
    }

    /// Sends an optional last event and ends the stream of subscribers.
    pub(crate) fn end(&self, last: Option<RunEvent>) {
        if let Some(last) = last.and_then(run_event) {
            self.lock().put(StoredEvent::Event(encode_event(&last)));
        }
        self.lock().ended = true;
        self.notify();
    }

    /// Returns the events of the run from the beginning to the end.
    pub(crate) fn follow(self: &Arc<Self>) -> DrivenStream<Bytes> {
        let live = Arc::clone(self);
        DrivenStream::new(|emitter| async move {
            let (mut cursor, mut changes) = (ReadCursor::default(), live.changes.subscribe());
            loop {
                changes.mark_unchanged();
                let (mut read, over) = live.read(&mut cursor);
                let last = read.pop();
                for event in read {
                    emitter.emit(event).await;
                }
                match last {
                    Some(last) if over => return last,
                    None if over => return encode_event(&RunStreamEvent::Idle {}),
                    Some(last) => emitter.emit(last).await,
                    None => {}
                }
                // The sender lives in what is held here.
                let _ = changes.changed().await;
            }
        })
    }

    /// Returns the unread events of a subscriber, and true if they are the last.
    fn read(&self, cursor: &mut ReadCursor) -> (Vec<Bytes>, bool) {
        let state = self.lock();
        let mut read = Vec::new();
        while let Some(piece) = state.events.get(cursor.piece) {
            match piece {
                StoredEvent::Event(event) => read.push(event.clone()),
                StoredEvent::Request(id, event) if self.pending.waits(id) => {
                    read.push(event.clone());
                }
                StoredEvent::Dropped | StoredEvent::Request(..) => {}
                StoredEvent::Text(kind, text) => {
                    if let Some(more) = text.get(cursor.words..).filter(|more| !more.is_empty()) {
                        read.push(encode_event(&kind.to_event(more)));
                    }
                    cursor.words = text.len();
                    if cursor.piece + 1 == state.events.len() {
                        // More may come.
                        break;
                    }
                }
            }
            cursor.piece += 1;
            cursor.words = 0;
        }
        (read, state.ended)
    }

    fn notify(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, LiveRunState> {
        self.state.lock()
    }
}

impl LiveRunState {
    /// Stores an event, and drops those that it supersedes.
    fn take(&mut self, event: RunEvent) {
        let messages = self.conversation.as_ref().map(|conversation| conversation.messages().len());
        let at = self.events.len();
        match &event {
            RunEvent::Started { .. } => {
                self.base = messages;
                self.input.1 = Vec::new();
            }
            RunEvent::Requesting { .. } => self.turn = at,
            RunEvent::Reply { .. } => {
                for piece in self.turn..at {
                    if matches!(self.events[piece], StoredEvent::Text(..)) {
                        self.forget(piece);
                    }
                }
                if self.size > self.limits.run_bytes {
                    // All earlier messages are in the conversation.
                    self.base = messages.map(|messages| messages.saturating_sub(1));
                    (0..at).for_each(|piece| self.forget(piece));
                }
            }
            RunEvent::CallStarted { call, tool } => {
                self.tools.insert(call.id.clone(), tool.clone());
            }
            RunEvent::Progress { call, .. } => {
                if let Some(before) = self.progress.insert(call.clone(), at) {
                    self.forget(before);
                }
            }
            RunEvent::Log { .. } => {
                self.logs.push_back(at);
                if self.logs.len() > self.limits.run_logs
                    && let Some(first) = self.logs.pop_front()
                {
                    self.forget(first);
                }
            }
            RunEvent::Result { result, .. } => {
                if let Some(progress) = self.progress.remove(&result.call) {
                    self.forget(progress);
                }
                self.tools.remove(&result.call);
                // Its request is no longer pending.
                self.requests.retain(|open| open.call != result.call);
            }
            _ => {}
        }
        if let Some(event) = run_event(event) {
            self.put(StoredEvent::Event(encode_event(&event)));
        }
    }

    fn append_text(&mut self, kind: TextKind, text: &str) {
        self.size += text.len();
        match self.events.last_mut() {
            Some(StoredEvent::Text(last, words)) if *last == kind => words.push_str(text),
            _ => self.events.push(StoredEvent::Text(kind, text.to_owned())),
        }
    }

    fn put(&mut self, piece: StoredEvent) {
        self.size += piece.size();
        self.events.push(piece);
    }

    fn forget(&mut self, at: usize) {
        // A request is reported while it is pending.
        if !matches!(self.events[at], StoredEvent::Request(..)) {
            let piece = std::mem::replace(&mut self.events[at], StoredEvent::Dropped);
            self.size -= piece.size();
        }
    }
}

impl StoredEvent {
    fn size(&self) -> usize {
        match self {
            Self::Dropped => 0,
            Self::Event(event) | Self::Request(_, event) => event.len(),
            Self::Text(_, words) => words.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use consort_models::{ChatMessage, ReplyDelta, TokenUsage};

    use super::*;

    fn live() -> Arc<LiveRun> {
        let limits = ConsoleLimits { run_bytes: 1 << 20, ..ConsoleLimits::default() };
        Arc::new(LiveRun::new(Conversation::new(), Vec::new(), Arc::default(), limits))
    }

    fn text(text: &str) -> RunEvent {
        RunEvent::Delta { delta: ReplyDelta::Text(text.to_owned()) }
    }

    fn read(live: &LiveRun, cursor: &mut ReadCursor) -> String {
        let (read, _) = live.read(cursor);
        read.iter().map(|event| String::from_utf8_lossy(event)).collect()
    }

    #[test]
    fn words_are_told_once_however_they_are_read() {
        let (live, mut early, mut late) = (live(), ReadCursor::default(), ReadCursor::default());
        live.record(RunEvent::Requesting { turn: 1 });
        live.record(text("Good "));
        assert!(read(&live, &mut early).contains("\"Good \""));
        live.record(text("morn"));
        live.record(text("ing"));
        let more = read(&live, &mut early);
        assert!(more.starts_with("event: delta\n") && more.contains("\"morning\""), "{more}");
        assert_eq!(read(&live, &mut early), "");
        assert!(read(&live, &mut late).contains("Good morning"));
        let message = Arc::new(ChatMessage::assistant("Good morning"));
        live.record(RunEvent::Reply { turn: 1, message, usage: TokenUsage::default() });
        assert!(read(&live, &mut early).starts_with("event: message"));
        // A new subscriber reads it once.
        let event = read(&live, &mut ReadCursor::default());
        assert_eq!(event.matches("Good morning").count(), 1, "{event}");
    }

    #[test]
    fn what_is_kept_of_a_run_has_a_bound() {
        let live = live();
        let progress = |done: f64| RunEvent::Progress {
            call: "c".to_owned(),
            progress: done,
            total: None,
            message: None,
        };
        (0..1000).for_each(|done| live.record(progress(f64::from(done))));
        let event = read(&live, &mut ReadCursor::default());
        assert_eq!(event, "event: progress\ndata: {\"call\":\"c\",\"progress\":999.0}\n\n");
        let most = live.lock().limits.run_bytes;
        let large = "x".repeat(most);
        for turn in 1..4 {
            live.record(RunEvent::Requesting { turn });
            let message = Arc::new(ChatMessage::assistant(&large));
            live.record(RunEvent::Reply { turn, message, usage: TokenUsage::default() });
        }
        assert!(live.lock().size < 2 * most + 1000);
        assert!(live.base().is_some());
    }

    #[tokio::test]
    async fn those_who_follow_hear_all_of_it_and_then_the_end() {
        let live = live();
        live.record(RunEvent::Requesting { turn: 1 });
        let mut followed = live.follow();
        assert!(followed.next().await.unwrap().starts_with(b"event: turn"));
        let note = RunEvent::Note { text: "hm".to_owned() };
        live.end(Some(note));
        assert!(followed.next().await.unwrap().starts_with(b"event: note"));
        assert!(followed.next().await.is_none());
    }
}
