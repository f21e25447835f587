//! A run in progress: its events so far, for subscribers, and its stop signal.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use consort_agent::{Conversation, QuestionOrigin, RunEvent};
use consort_core::{Emitting, Reply};
use tokio::sync::watch;

use super::told::{Told, Words, told, words};
use crate::console::desk::{Desk, Question, Slip};
use crate::console::route::event;

/// Size in bytes of the stored events above which earlier ones are dropped: the conversation has their messages.
const LARGE: usize = 4 << 20;

/// Limit of stored log messages of servers.
const LOGS: usize = 200;

/// A run in progress.
pub(super) struct Live {
    state: Mutex<State>,
    desk: Arc<Desk>,
    /// Wakes subscribers.
    stirred: watch::Sender<u64>,
    stop: watch::Sender<bool>,
}

struct State {
    /// The conversation while the run is in progress. It holds the lock on the file.
    conversation: Option<Conversation>,
    pieces: Vec<Piece>,
    /// Memory size of the pieces in bytes.
    size: usize,
    /// Number of messages of the conversation before the first event here.
    base: Option<usize>,
    /// Index of the first piece of the turn.
    turn: usize,
    /// Index of the last progress piece of each call.
    progress: HashMap<String, usize>,
    logs: VecDeque<usize>,
    tools: HashMap<String, String>,
    questions: Vec<Open>,
    over: bool,
}

/// A stored event.
enum Piece {
    /// Dropped: a later event supersedes it.
    Gone,
    Told(Bytes),
    /// Text received so far.
    Words(Words, String),
    /// A request to a person, sent only while it is pending.
    Question(String, Bytes),
}

/// A pending request of the run.
struct Open {
    call: String,
    kind: QuestionOrigin,
    slip: Slip,
}

/// Read position of a subscriber.
#[derive(Default)]
struct Cursor {
    piece: usize,
    /// Bytes read of the text of this piece.
    words: usize,
}

impl Live {
    pub(super) fn new(conversation: Conversation, desk: Arc<Desk>) -> Self {
        let state = State {
            conversation: Some(conversation),
            pieces: Vec::new(),
            size: 0,
            base: None,
            turn: 0,
            progress: HashMap::new(),
            logs: VecDeque::new(),
            tools: HashMap::new(),
            questions: Vec::new(),
            over: false,
        };
        let (stirred, stop) = (watch::Sender::new(0), watch::Sender::new(false));
        Self { state: Mutex::new(state), desk, stirred, stop }
    }

    /// Stops the run gracefully.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// A channel that turns true when the run must stop.
    pub(super) fn stopped(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Returns the number of messages of the conversation before the first event here, once known.
    pub(super) fn base(&self) -> Option<usize> {
        self.lock().base
    }

    /// Stores an event.
    pub(super) fn tell(&self, happened: RunEvent) {
        let mut state = self.lock();
        match happened {
            RunEvent::Delta { delta } if words(&delta).is_some() => {
                let Some((kind, text)) = words(&delta) else { return };
                state.flow(kind, text);
            }
            happened => state.take(happened),
        }
        drop(state);
        self.stir();
    }

    /// Adds a pending request, and an event for it. `asks` builds the request, given the name of its tool.
    pub(super) fn ask(
        &self,
        question: &consort_agent::UserQuestion,
        reply: Reply,
        asks: impl FnOnce(Option<&str>) -> Question,
    ) {
        let asked = asks(self.lock().tools.get(&question.call).map(String::as_str));
        let slip = self.desk.put(asked, reply);
        let told = event(&Told::Question(Box::new(slip.question.clone())));
        let mut state = self.lock();
        state.put(Piece::Question(slip.question.id.clone(), told));
        state.questions.push(Open { call: question.call.clone(), kind: question.kind, slip });
        drop(state);
        self.stir();
    }

    /// Withdraws the pending requests of the run if it can be suspended for all of them: it ends, and resumes when they
    /// are answered. Returns false if there are none, or some of another kind.
    pub(super) fn put_off(&self) -> bool {
        let mut state = self.lock();
        let desk = &self.desk;
        state.questions.retain(|open| desk.waits(&open.slip.question.id));
        let keeps =
            |open: &Open| matches!(open.kind, QuestionOrigin::Approval | QuestionOrigin::Model);
        if state.questions.is_empty() || !state.questions.iter().all(keeps) {
            return false;
        }
        let questions = std::mem::take(&mut state.questions);
        drop(state);
        drop(questions);
        true
    }

    /// Releases the conversation after the run.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        let (conversation, questions) =
            (state.conversation.take(), std::mem::take(&mut state.questions));
        drop(state);
        drop((conversation, questions));
    }

    /// Sends an optional last event and ends the stream of subscribers.
    pub(super) fn end(&self, last: Option<RunEvent>) {
        if let Some(last) = last.and_then(told) {
            self.lock().put(Piece::Told(event(&last)));
        }
        self.lock().over = true;
        self.stir();
    }

    /// Returns the events of the run from the beginning to the end.
    pub(super) fn follow(self: &Arc<Self>) -> Emitting<Bytes> {
        let live = Arc::clone(self);
        Emitting::new(|emitter| async move {
            let (mut cursor, mut stirred) = (Cursor::default(), live.stirred.subscribe());
            loop {
                stirred.mark_unchanged();
                let (mut read, over) = live.read(&mut cursor);
                let last = read.pop();
                for told in read {
                    emitter.emit(told).await;
                }
                match last {
                    Some(last) if over => return last,
                    None if over => return event(&Told::Idle {}),
                    Some(last) => emitter.emit(last).await,
                    None => {}
                }
                // The sender lives in what is held here.
                let _ = stirred.changed().await;
            }
        })
    }

    /// Returns the unread events of a subscriber, and true if they are the last.
    fn read(&self, cursor: &mut Cursor) -> (Vec<Bytes>, bool) {
        let state = self.lock();
        let mut read = Vec::new();
        while let Some(piece) = state.pieces.get(cursor.piece) {
            match piece {
                Piece::Told(told) => read.push(told.clone()),
                Piece::Question(id, told) if self.desk.waits(id) => read.push(told.clone()),
                Piece::Gone | Piece::Question(..) => {}
                Piece::Words(kind, text) => {
                    if let Some(more) = text.get(cursor.words..).filter(|more| !more.is_empty()) {
                        read.push(event(&kind.told(more)));
                    }
                    cursor.words = text.len();
                    if cursor.piece + 1 == state.pieces.len() {
                        // More may come.
                        break;
                    }
                }
            }
            cursor.piece += 1;
            cursor.words = 0;
        }
        (read, state.over)
    }

    fn stir(&self) {
        self.stirred.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Stores an event, and drops those that it supersedes.
    fn take(&mut self, happened: RunEvent) {
        let messages = self.conversation.as_ref().map(|conversation| conversation.messages().len());
        let at = self.pieces.len();
        match &happened {
            RunEvent::Started { .. } => self.base = messages,
            RunEvent::Requesting { .. } => self.turn = at,
            RunEvent::Reply { .. } => {
                for piece in self.turn..at {
                    if matches!(self.pieces[piece], Piece::Words(..)) {
                        self.forget(piece);
                    }
                }
                if self.size > LARGE {
                    // All that was said before is in the conversation.
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
                if self.logs.len() > LOGS
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
                // Nobody waits for an answer about it.
                self.questions.retain(|open| open.call != result.call);
            }
            _ => {}
        }
        if let Some(told) = told(happened) {
            self.put(Piece::Told(event(&told)));
        }
    }

    fn flow(&mut self, kind: Words, text: &str) {
        self.size += text.len();
        match self.pieces.last_mut() {
            Some(Piece::Words(last, words)) if *last == kind => words.push_str(text),
            _ => self.pieces.push(Piece::Words(kind, text.to_owned())),
        }
    }

    fn put(&mut self, piece: Piece) {
        self.size += piece.size();
        self.pieces.push(piece);
    }

    fn forget(&mut self, at: usize) {
        // A question is told as long as it waits.
        if !matches!(self.pieces[at], Piece::Question(..)) {
            let piece = std::mem::replace(&mut self.pieces[at], Piece::Gone);
            self.size -= piece.size();
        }
    }
}

impl Piece {
    fn size(&self) -> usize {
        match self {
            Self::Gone => 0,
            Self::Told(told) | Self::Question(_, told) => told.len(),
            Self::Words(_, words) => words.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use consort_models::{ChatMessage, ReplyDelta, TokenUsage};

    use super::*;

    fn live() -> Arc<Live> {
        Arc::new(Live::new(Conversation::new(), Arc::default()))
    }

    fn text(text: &str) -> RunEvent {
        RunEvent::Delta { delta: ReplyDelta::Text(text.to_owned()) }
    }

    fn read(live: &Live, cursor: &mut Cursor) -> String {
        let (read, _) = live.read(cursor);
        read.iter().map(|told| String::from_utf8_lossy(told)).collect()
    }

    #[test]
    fn words_are_told_once_however_they_are_read() {
        let (live, mut early, mut late) = (live(), Cursor::default(), Cursor::default());
        live.tell(RunEvent::Requesting { turn: 1 });
        live.tell(text("Good "));
        assert!(read(&live, &mut early).contains("\"Good \""));
        live.tell(text("morn"));
        live.tell(text("ing"));
        let more = read(&live, &mut early);
        assert!(more.starts_with("event: delta\n") && more.contains("\"morning\""), "{more}");
        assert_eq!(read(&live, &mut early), "");
        assert!(read(&live, &mut late).contains("Good morning"));
        let message = Arc::new(ChatMessage::assistant("Good morning"));
        live.tell(RunEvent::Reply { turn: 1, message, usage: TokenUsage::default() });
        assert!(read(&live, &mut early).starts_with("event: said"));
        // Whoever comes now reads it once.
        let told = read(&live, &mut Cursor::default());
        assert_eq!(told.matches("Good morning").count(), 1, "{told}");
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
        (0..1000).for_each(|done| live.tell(progress(f64::from(done))));
        let told = read(&live, &mut Cursor::default());
        assert_eq!(told, "event: progress\ndata: {\"call\":\"c\",\"progress\":999.0}\n\n");
        let large = "x".repeat(LARGE);
        for turn in 1..4 {
            live.tell(RunEvent::Requesting { turn });
            let message = Arc::new(ChatMessage::assistant(&large));
            live.tell(RunEvent::Reply { turn, message, usage: TokenUsage::default() });
        }
        assert!(live.lock().size < 2 * LARGE + 1000);
        assert!(live.base().is_some());
    }

    #[tokio::test]
    async fn those_who_follow_hear_all_of_it_and_then_the_end() {
        let live = live();
        live.tell(RunEvent::Requesting { turn: 1 });
        let mut followed = live.follow();
        assert!(followed.next().await.unwrap().starts_with(b"event: asking"));
        let note = RunEvent::Note { text: "hm".to_owned() };
        live.end(Some(note));
        assert!(followed.next().await.unwrap().starts_with(b"event: note"));
        assert!(followed.next().await.is_none());
    }
}
