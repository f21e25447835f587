//! Recording of models and tools as they are used.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use consort_core::{
    Call, CallEvent, CallEvents, CallObserver, Caller, Catalog, CatalogChanges, DrivenStream,
    PendingServerRequest as Question, RequestResponder as Answering, Toolbox,
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::line::{
    self, RawJson, RecordLine, RecordedAnswer, RecordedCall, RecordedCatalog, RecordedDelta,
    RecordedEnd, RecordedEvent, RecordedFinish, RecordedModelRequest, RecordedOperation,
};
use super::redact::Redactor;
use consort_models::{ChatMessage, ModelProvider, ModelRequest, ProviderEvent, ReplyDelta};

/// Output of a recording.
pub(super) struct RecordingOutput {
    redactor: Redactor,
    inner: Mutex<Inner>,
}

struct Inner {
    out: Box<dyn Write + Send>,
    failed: Option<io::Error>,
    /// Number of model requests.
    model_requests: usize,
    /// Number of calls.
    calls: usize,
    /// Messages of the last recorded model request.
    last: Vec<(Arc<ChatMessage>, Value)>,
    /// Last catalog of each caller.
    catalogs: HashMap<Caller, (Arc<Catalog>, RecordedCatalog)>,
}

impl RecordingOutput {
    pub(super) fn new(out: impl Write + Send + 'static, redactor: Redactor) -> Self {
        let inner = Inner {
            out: Box::new(out),
            failed: None,
            model_requests: 0,
            calls: 0,
            last: Vec::new(),
            catalogs: HashMap::new(),
        };
        let output = Self { redactor, inner: Mutex::new(inner) };
        let format = line::FORMAT.to_owned();
        output.lock().write(&RecordLine::Head { format, version: line::VERSION });
        output
    }

    pub(super) fn finish(&self) -> io::Result<()> {
        let mut inner = self.lock();
        let flushed = inner.out.flush();
        inner.failed.take().map_or(flushed, Err)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    fn clean_all<T: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        items: Vec<T>,
    ) -> Vec<T> {
        items.into_iter().filter_map(|item| self.redactor.clean(item)).collect()
    }

    /// Records a caller's catalog, if it is new.
    fn record_catalog(&self, caller: &Caller, catalog: &Arc<Catalog>) {
        let mut inner = self.lock();
        let last = inner.catalogs.get(caller);
        if last.is_some_and(|(last, _)| Arc::ptr_eq(last, catalog)) {
            return;
        }
        let recorded = RecordedCatalog::of(caller, inner.model_requests, catalog, &self.redactor);
        let is_new = last.is_none_or(|(_, last)| !last.is_same(&recorded));
        if is_new {
            inner.write(&RecordLine::Catalog(recorded.clone()));
        }
        inner.catalogs.insert(caller.clone(), (Arc::clone(catalog), recorded));
    }
}

impl Inner {
    /// Writes a line with one write. Errors are reported at the end: a run does not fail because of them.
    fn write(&mut self, line: &RecordLine) {
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
pub(super) struct RecordingProvider {
    pub(super) output: Arc<RecordingOutput>,
    pub(super) inner: Arc<dyn ModelProvider>,
}

impl ModelProvider for RecordingProvider {
    fn request(&self, request: ModelRequest) -> DrivenStream<ProviderEvent> {
        let mut recording = ModelRecording {
            output: Arc::clone(&self.output),
            turn: None,
            model: request.model.clone(),
            messages: request.messages.clone(),
            tools: request.tools.iter().map(consort_core::Tool::name).collect(),
            deltas: Vec::new(),
            end: None,
        };
        let mut events = self.inner.request(request);
        DrivenStream::new(|emitter| async move {
            recording.begin();
            loop {
                match events.next().await {
                    Some(ProviderEvent::End(end)) => {
                        recording.end = Some(match &end {
                            Ok(reply) => RecordedFinish::Reply(reply.clone()),
                            Err(error) => RecordedFinish::Error(error.clone()),
                        });
                        drop(recording);
                        return ProviderEvent::End(end);
                    }
                    Some(event) => {
                        recording.record_event(&event);
                        emitter.emit(event).await;
                    }
                    None => unreachable!("an end comes before nothing"),
                }
            }
        })
    }
}

/// A model request, recorded when it ends or is cancelled.
struct ModelRecording {
    output: Arc<RecordingOutput>,
    turn: Option<usize>,
    model: String,
    messages: Vec<Arc<ChatMessage>>,
    tools: Vec<String>,
    deltas: Vec<RecordedDelta>,
    end: Option<RecordedFinish>,
}

impl ModelRecording {
    fn begin(&mut self) {
        let mut inner = self.output.lock();
        inner.model_requests += 1;
        self.turn = Some(inner.model_requests);
    }

    /// Takes an item of the answer. Deltas are joined: half a secret cannot be recognized.
    fn record_event(&mut self, event: &ProviderEvent) {
        match event {
            ProviderEvent::Delta(delta) => {
                let is_usage = |delta: &&mut RecordedDelta| {
                    matches!(delta, RecordedDelta::Delta(ReplyDelta::Usage(_)))
                };
                let earlier = self.deltas.iter_mut().rev().skip_while(is_usage);
                // Arguments of several calls may come side by side, words do not.
                let far = if matches!(delta, ReplyDelta::ToolCallArguments { .. }) {
                    usize::MAX
                } else {
                    1
                };
                if !earlier.take(far).any(|last| append_delta(last, delta)) {
                    self.deltas.push(RecordedDelta::Delta(delta.clone()));
                }
            }
            ProviderEvent::Retry { error, after } => {
                let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                self.deltas.push(RecordedDelta::Retry { error: error.clone(), after_ms });
            }
            ProviderEvent::End(_) => {}
        }
    }
}

/// Appends a delta to the previous one, if it continues it.
fn append_delta(last: &mut RecordedDelta, delta: &ReplyDelta) -> bool {
    let RecordedDelta::Delta(last) = last else { return false };
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

impl Drop for ModelRecording {
    fn drop(&mut self) {
        // Never read, never asked.
        let Some(turn) = self.turn else { return };
        let redactor = &self.output.redactor;
        let deltas = self.output.clean_all(std::mem::take(&mut self.deltas));
        let end = self.end.take().and_then(|end| redactor.clean(end));
        let mut inner = self.output.lock();
        let mut messages = Vec::with_capacity(self.messages.len());
        for (at, message) in self.messages.iter().enumerate() {
            let known = inner.last.get(at).filter(|(last, _)| Arc::ptr_eq(last, message));
            let value =
                known.map_or_else(|| clean_message(message, redactor), |(_, it)| it.clone());
            messages.push((Arc::clone(message), value));
        }
        let pairs = inner.last.iter().zip(&messages);
        let same = pairs.take_while(|((_, last), (_, now))| last == now).count();
        let line = RecordedModelRequest {
            turn,
            model: std::mem::take(&mut self.model),
            same,
            messages: messages[same..].iter().map(|(_, value)| value.clone()).collect(),
            tools: std::mem::take(&mut self.tools),
            deltas,
            end,
        };
        inner.last = messages;
        inner.write(&RecordLine::Ask(line));
    }
}

/// Returns a message without secrets.
pub(super) fn clean_message(message: &ChatMessage, redactor: &Redactor) -> Value {
    let mut value = serde_json::to_value(message).unwrap_or_default();
    redactor.value(&mut value);
    value
}

/// A toolbox that is recorded.
pub(super) struct RecordingToolbox {
    pub(super) output: Arc<RecordingOutput>,
    pub(super) inner: Arc<dyn Toolbox>,
}

impl Toolbox for RecordingToolbox {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        let catalog = self.inner.catalog(caller);
        self.output.record_catalog(caller, &catalog);
        catalog
    }

    fn call(&self, call: Call) -> CallEvents {
        let (output, request) = (Arc::clone(&self.output), RecordedOperation::of(&call));
        let recording =
            CallRecording { output, request, number: None, events: Arc::default(), end: None };
        self.inner.call(call).observed(recording)
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> CatalogChanges {
        self.inner.changes()
    }
}

/// A call, recorded when it ends or is cancelled.
struct CallRecording {
    output: Arc<RecordingOutput>,
    request: RecordedOperation,
    /// Number of the call, once it began; `None` once it is recorded.
    number: Option<usize>,
    events: Arc<Mutex<Vec<RecordedEvent>>>,
    end: Option<RecordedEnd>,
}

impl CallObserver for CallRecording {
    /// Assigns the number on the first read: a call whose events are never read is never made.
    fn begin(&mut self) {
        let mut inner = self.output.lock();
        inner.calls += 1;
        self.number = Some(inner.calls);
    }

    fn event(&mut self, event: &mut CallEvent) {
        if let CallEvent::End(end) = event {
            self.end = Some(RecordedEnd::of(end));
            self.write();
        } else {
            self.record_event(event);
        }
    }
}

impl CallRecording {
    fn record_event(&self, event: &mut CallEvent) {
        let mut events = self.events.lock();
        let at = events.len();
        events.push(match event {
            CallEvent::Progress(progress) => {
                RecordedEvent::Progress(RawJson(progress.params().json().clone()))
            }
            CallEvent::Log(log) => RecordedEvent::Log(RawJson(log.json().clone())),
            CallEvent::Task(task) => RecordedEvent::Task(RawJson(task.json().clone())),
            CallEvent::Notification { method, params } => {
                let params = RawJson(params.json().clone());
                RecordedEvent::Notification { method: method.clone(), params }
            }
            CallEvent::Skipped(count) => RecordedEvent::Skipped(*count),
            CallEvent::Question(question) => {
                RecordedEvent::Question(self.record_question(at, question))
            }
            CallEvent::Approval(question) => {
                RecordedEvent::Approval(self.record_question(at, question))
            }
            // An end does not come here; what is added later is passed on and not recorded.
            _ => return,
        });
    }

    /// Records the answer to a question when it arrives.
    fn record_question(&self, at: usize, question: &mut Question) -> line::RecordedQuestion {
        let recorded = line::RecordedQuestion {
            method: question.method.clone(),
            params: RawJson(question.params.json().clone()),
            open: question.reply.is_some(),
            answer: None,
        };
        question.reply = question.reply.take().map(|reply| {
            let events = Arc::clone(&self.events);
            Answering::new(move |answer| {
                let recorded = match &answer {
                    Ok(result) => RecordedAnswer::Result(result.read().unwrap_or_default()),
                    Err(refusal) => {
                        let (code, message) = (refusal.code, refusal.message.clone());
                        RecordedAnswer::Error { code, message }
                    }
                };
                let mut events = events.lock();
                if let Some(RecordedEvent::Question(it) | RecordedEvent::Approval(it)) =
                    events.get_mut(at)
                {
                    it.answer = Some(recorded);
                }
                drop(events);
                reply.send(answer);
            })
        });
        recorded
    }

    /// Records the call, once.
    fn write(&mut self) {
        let events = std::mem::take(&mut *self.events.lock());
        let events = self.output.clean_all(events);
        let end = self.end.take().and_then(|end| self.output.redactor.clean(end));
        let Some(number) = self.number.take() else { return };
        if let Some(request) = self.output.redactor.clean(self.request.clone()) {
            self.output.lock().write(&RecordLine::Call(RecordedCall {
                number,
                request,
                events,
                end,
            }));
        }
    }
}

impl Drop for CallRecording {
    fn drop(&mut self) {
        self.write();
    }
}
