//! Recording of models and tools as they are used.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use consort_core::{
    Asked as Question, Call, CallObserver, Caller, Catalog, Changes, Emitting, Event, Events,
    Reply as Answering, Toolbox,
};
use serde_json::Value;

use super::line::{
    self, Answer, Asked, Called, End, Finish, Happening, Line, Raw, Request, Saying, Shown,
};
use super::redact::Redactor;
use consort_models::{ChatMessage, ModelProvider, ModelRequest, ProviderEvent, ReplyDelta};

/// Output of a recording.
pub(super) struct Tape {
    redactor: Redactor,
    inner: Mutex<Inner>,
}

struct Inner {
    out: Box<dyn Write + Send>,
    failed: Option<io::Error>,
    /// Number of model requests.
    asked: usize,
    /// Number of calls.
    called: usize,
    /// Messages of the last recorded model request.
    last: Vec<(Arc<ChatMessage>, Value)>,
    /// Last catalog of each caller.
    shown: HashMap<Caller, (Arc<Catalog>, Shown)>,
}

impl Tape {
    pub(super) fn new(out: impl Write + Send + 'static, redactor: Redactor) -> Self {
        let inner = Inner {
            out: Box::new(out),
            failed: None,
            asked: 0,
            called: 0,
            last: Vec::new(),
            shown: HashMap::new(),
        };
        let tape = Self { redactor, inner: Mutex::new(inner) };
        let format = line::FORMAT.to_owned();
        tape.lock().write(&Line::Head { format, version: line::VERSION });
        tape
    }

    pub(super) fn finish(&self) -> io::Result<()> {
        let mut inner = self.lock();
        let flushed = inner.out.flush();
        inner.failed.take().map_or(flushed, Err)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clean_all<T: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        items: Vec<T>,
    ) -> Vec<T> {
        items.into_iter().filter_map(|item| self.redactor.clean(item)).collect()
    }

    /// Records a caller's catalog, if it is new.
    fn show(&self, caller: &Caller, catalog: &Arc<Catalog>) {
        let mut inner = self.lock();
        let last = inner.shown.get(caller);
        if last.is_some_and(|(last, _)| Arc::ptr_eq(last, catalog)) {
            return;
        }
        let shown = Shown::of(caller, inner.asked, catalog, &self.redactor);
        let is_new = last.is_none_or(|(_, last)| !last.is_same(&shown));
        if is_new {
            inner.write(&Line::Catalog(shown.clone()));
        }
        inner.shown.insert(caller.clone(), (Arc::clone(catalog), shown));
    }
}

impl Inner {
    /// Writes a line with one write. Errors are reported at the end: a run does not fail because of them.
    fn write(&mut self, line: &Line) {
        let written = serde_json::to_vec(line).map_err(io::Error::from).and_then(|mut bytes| {
            bytes.push(b'\n');
            self.out.write_all(&bytes)
        });
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}

/// A provider that is recorded.
pub(super) struct Heard {
    pub(super) tape: Arc<Tape>,
    pub(super) inner: Arc<dyn ModelProvider>,
}

impl ModelProvider for Heard {
    fn request(&self, ask: ModelRequest) -> Emitting<ProviderEvent> {
        let mut listening = Listening {
            tape: Arc::clone(&self.tape),
            turn: None,
            model: ask.model.clone(),
            messages: ask.messages.clone(),
            tools: ask.tools.iter().map(consort_core::Tool::name).collect(),
            said: Vec::new(),
            end: None,
        };
        let mut said = self.inner.request(ask);
        Emitting::new(|emitter| async move {
            listening.begin();
            loop {
                match said.next().await {
                    Some(ProviderEvent::End(end)) => {
                        listening.end = Some(match &end {
                            Ok(reply) => Finish::Reply(reply.clone()),
                            Err(error) => Finish::Error(error.clone()),
                        });
                        drop(listening);
                        return ProviderEvent::End(end);
                    }
                    Some(said) => {
                        listening.hear(&said);
                        emitter.emit(said).await;
                    }
                    None => unreachable!("an end comes before nothing"),
                }
            }
        })
    }
}

/// A model request, recorded when it ends or is cancelled.
struct Listening {
    tape: Arc<Tape>,
    turn: Option<usize>,
    model: String,
    messages: Vec<Arc<ChatMessage>>,
    tools: Vec<String>,
    said: Vec<Saying>,
    end: Option<Finish>,
}

impl Listening {
    fn begin(&mut self) {
        let mut inner = self.tape.lock();
        inner.asked += 1;
        self.turn = Some(inner.asked);
    }

    /// Takes an item of the answer. Deltas are joined: half a secret cannot be recognized.
    fn hear(&mut self, said: &ProviderEvent) {
        match said {
            ProviderEvent::Delta(delta) => {
                let is_usage =
                    |said: &&mut Saying| matches!(said, Saying::Delta(ReplyDelta::Usage(_)));
                let earlier = self.said.iter_mut().rev().skip_while(is_usage);
                // Arguments of several calls may come side by side, words do not.
                let far = if matches!(delta, ReplyDelta::ToolCallArguments { .. }) {
                    usize::MAX
                } else {
                    1
                };
                if !earlier.take(far).any(|last| joined(last, delta)) {
                    self.said.push(Saying::Delta(delta.clone()));
                }
            }
            ProviderEvent::Retry { error, after } => {
                let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                self.said.push(Saying::Again { error: error.clone(), after_ms });
            }
            ProviderEvent::End(_) => {}
        }
    }
}

/// Appends a delta to the previous one, if it continues it.
fn joined(last: &mut Saying, delta: &ReplyDelta) -> bool {
    let Saying::Delta(last) = last else { return false };
    match (last, delta) {
        (ReplyDelta::Text(text), ReplyDelta::Text(more))
        | (ReplyDelta::Thinking(text), ReplyDelta::Thinking(more))
        | (ReplyDelta::Refusal(text), ReplyDelta::Refusal(more)) => text.push_str(more),
        (
            ReplyDelta::ToolCallArguments { index, fragment },
            ReplyDelta::ToolCallArguments { index: same, fragment: more },
        ) if index == same => fragment.push_str(more),
        _ => return false,
    }
    true
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Never read, never asked.
        let Some(turn) = self.turn else { return };
        let redactor = &self.tape.redactor;
        let said = self.tape.clean_all(std::mem::take(&mut self.said));
        let end = self.end.take().and_then(|end| redactor.clean(end));
        let mut inner = self.tape.lock();
        let mut messages = Vec::with_capacity(self.messages.len());
        for (at, message) in self.messages.iter().enumerate() {
            let known = inner.last.get(at).filter(|(last, _)| Arc::ptr_eq(last, message));
            let value = known.map_or_else(|| value_of(message, redactor), |(_, it)| it.clone());
            messages.push((Arc::clone(message), value));
        }
        let pairs = inner.last.iter().zip(&messages);
        let same = pairs.take_while(|((_, last), (_, now))| last == now).count();
        let line = Asked {
            turn,
            model: std::mem::take(&mut self.model),
            same,
            messages: messages[same..].iter().map(|(_, value)| value.clone()).collect(),
            tools: std::mem::take(&mut self.tools),
            said,
            end,
        };
        inner.last = messages;
        inner.write(&Line::Ask(line));
    }
}

/// Returns a message without secrets.
pub(super) fn value_of(message: &ChatMessage, redactor: &Redactor) -> Value {
    let mut value = serde_json::to_value(message).unwrap_or_default();
    redactor.value(&mut value);
    value
}

/// A toolbox that is recorded.
pub(super) struct Watched {
    pub(super) tape: Arc<Tape>,
    pub(super) inner: Arc<dyn Toolbox>,
}

impl Toolbox for Watched {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        let catalog = self.inner.catalog(caller);
        self.tape.show(caller, &catalog);
        catalog
    }

    fn call(&self, call: Call) -> Events {
        let (tape, request) = (Arc::clone(&self.tape), Request::of(&call));
        let watching =
            Watching { tape, request, number: None, happened: Arc::default(), end: None };
        self.inner.call(call).observed(watching)
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> Changes {
        self.inner.changes()
    }
}

/// A call, recorded when it ends or is cancelled.
struct Watching {
    tape: Arc<Tape>,
    request: Request,
    /// Number of the call, once it began; `None` once it is recorded.
    number: Option<usize>,
    happened: Arc<Mutex<Vec<Happening>>>,
    end: Option<End>,
}

impl CallObserver for Watching {
    /// Assigns the number on the first read: a call whose events are never read is never made.
    fn begin(&mut self) {
        let mut inner = self.tape.lock();
        inner.called += 1;
        self.number = Some(inner.called);
    }

    fn event(&mut self, event: &mut Event) {
        if let Event::End(end) = event {
            self.end = Some(End::of(end));
            self.write();
        } else {
            self.note(event);
        }
    }
}

impl Watching {
    fn note(&self, event: &mut Event) {
        let mut happened = self.happened.lock().unwrap_or_else(PoisonError::into_inner);
        let at = happened.len();
        happened.push(match event {
            Event::Progress(progress) => Happening::Progress(Raw(progress.params().json().clone())),
            Event::Log(log) => Happening::Log(Raw(log.json().clone())),
            Event::Task(task) => Happening::Task(Raw(task.json().clone())),
            Event::Notification { method, params } => {
                let params = Raw(params.json().clone());
                Happening::Notification { method: method.clone(), params }
            }
            Event::Skipped(count) => Happening::Skipped(*count),
            Event::Question(asked) => Happening::Question(self.ask(at, asked)),
            Event::Approval(asked) => Happening::Approval(self.ask(at, asked)),
            // An end does not come here; what is added later is passed on and not recorded.
            _ => return,
        });
    }

    /// Records the answer to a question when it arrives.
    fn ask(&self, at: usize, asked: &mut Question) -> line::Question {
        let question = line::Question {
            method: asked.method.clone(),
            params: Raw(asked.params.json().clone()),
            open: asked.reply.is_some(),
            answer: None,
        };
        asked.reply = asked.reply.take().map(|reply| {
            let happened = Arc::clone(&self.happened);
            Answering::new(move |answer| {
                let noted = match &answer {
                    Ok(given) => Answer::Given(given.read().unwrap_or_default()),
                    Err(refusal) => {
                        let (code, message) = (refusal.code, refusal.message.clone());
                        Answer::Refused { code, message }
                    }
                };
                let mut happened = happened.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(Happening::Question(it) | Happening::Approval(it)) =
                    happened.get_mut(at)
                {
                    it.answer = Some(noted);
                }
                drop(happened);
                reply.send(answer);
            })
        });
        question
    }

    /// Records the call, once.
    fn write(&mut self) {
        let happened =
            std::mem::take(&mut *self.happened.lock().unwrap_or_else(PoisonError::into_inner));
        let happened = self.tape.clean_all(happened);
        let end = self.end.take().and_then(|end| self.tape.redactor.clean(end));
        let Some(number) = self.number.take() else { return };
        if let Some(request) = self.tape.redactor.clean(self.request.clone()) {
            self.tape.lock().write(&Line::Call(Called { number, request, happened, end }));
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.write();
    }
}
