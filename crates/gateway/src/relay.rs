//! A request passed on to its server, and what happens there passed back, in the client's own era.

use std::sync::Arc;
use std::time::Duration;

use consort_core::{
    Asked, CallError, Emitter, Event, Events, Json, Logs, Object, Outcome, Passage, Questions,
    Refusal, ServerId, Tasks,
};
use consort_wire::splice::{self, Writer};
use consort_wire::{Era, Id};

use crate::answer::{self, Answer, Failure, INTERNAL, INVALID_PARAMS, URL_REQUIRED};
use crate::gateway::Inner;
use crate::ledger::Class;
use crate::park::{self, Found, Kind, Parked, input_required};
use crate::pieces::Pieces;
use crate::request::{Modern, Out, Request, Speaker};
use crate::retold::{logged, report, under_our_names, wanted};
use crate::seal::secret;
use crate::seek;
use crate::serve::route;
use crate::session::Session;
use crate::tasks;

/// How long to wait for further questions after a first.
const TOGETHER: Duration = Duration::from_millis(10);

/// Passes a request on to whoever has what it names.
pub(crate) async fn relay(
    gateway: &Arc<Inner>,
    request: &Request,
    emitter: &Emitter<Out>,
) -> Result<Answer, Failure> {
    let (server, renamed) = match route(&request.menu(), request) {
        Ok(way) => way,
        Err(failure) => Box::pin(seek::found(gateway, request, failure)).await?,
    };
    pass(gateway, request, server, renamed, emitter).await
}

/// Passes a request on to a server.
pub(crate) async fn pass(
    gateway: &Arc<Inner>,
    request: &Request,
    server: ServerId,
    renamed: Option<(&'static str, Json)>,
    emitter: &Emitter<Out>,
) -> Result<Answer, Failure> {
    let (caller, params) = (request.caller.clone(), tasks::without_hint(request));
    let mut passage = Passage::new(caller, server, request.method.clone(), params);
    passage.replaced.extend(renamed);
    match &request.speaker {
        Speaker::Legacy(session) => {
            passage.offers = Arc::clone(&session.offers);
            passage.questions = Questions::Hand;
            let as_task = request.params.get_bytes("task").is_some();
            passage.tasks = if as_task { Tasks::Return } else { Tasks::Follow };
            passage.log = session.level().map_or(Logs::Usual, Logs::From);
            let server = passage.server.clone();
            let result = answered_in_session(gateway, request, session, passage, emitter).await?;
            let result = under_our_names(&request.menu(), &server, result);
            let result = answer::legacy(session.revision, &result);
            Ok(Answer::result(&request.id, result))
        }
        Speaker::Modern(modern) => {
            passage.offers = Arc::clone(&modern.offers);
            passage.capabilities = Some(modern.capabilities.clone());
            passage.questions = Questions::Return;
            passage.tasks = if modern.knows_tasks() { Tasks::Return } else { Tasks::Follow };
            passage.log = modern.log.map_or(Logs::None, Logs::From);
            Relay { gateway, request, modern, emitter }.go(passage).await
        }
    }
}

/// The result of a legacy client's request: what the server asks, the client is asked on the way.
pub(crate) async fn answered_in_session(
    gateway: &Arc<Inner>,
    request: &Request,
    session: &Arc<Session>,
    passage: Passage,
    emitter: &Emitter<Out>,
) -> Result<Object, Failure> {
    let token = request.token();
    let level = session.level();
    let server = passage.server.clone();
    let mut asked = Open { session, numbers: Vec::new(), hears: request.hears };
    let names = tasks::Names { gateway, caller: &request.caller, server: &server };
    let about_task = |params: Object| names.related(&session.offers, params);
    let mut events = request.front.pass(passage);
    loop {
        let message = match next(&mut events).await {
            Event::Progress(progress) => token.as_ref().map(|token| report(token, &progress)),
            Event::Log(params) => wanted(&params, level).then(|| logged(&about_task(params))),
            Event::Question(Asked { method, params, reply })
            | Event::Approval(Asked { method, params, reply }) => {
                asked.put(Asked { method, params: about_task(params), reply })
            }
            Event::Notification { method, params } => {
                Some(splice::notification(&method, Some(about_task(params).json())))
            }
            Event::End(end) => {
                let _ = request.outcome.set(Class::of(&end));
                for withdrawn in asked.withdraw() {
                    emitter.emit(Out::Message(withdrawn.into())).await;
                }
                return match end {
                    Ok(Outcome::Task(task)) => Ok(tasks::created(gateway, request, &server, &task)),
                    Ok(outcome) => Ok(outcome.object().clone()),
                    Err(error) => answer::failed(Era::Legacy, &error),
                };
            }
            _ => None,
        };
        if let Some(message) = message {
            emitter.emit(Out::Message(message.into())).await;
        }
    }
}

/// The questions a legacy client was asked in the course of one request. With it, they are over.
struct Open<'a> {
    session: &'a Arc<Session>,
    numbers: Vec<u64>,
    /// A client that takes no events cannot be asked.
    hears: bool,
}

impl Open<'_> {
    /// The message that asks the client, if it may be asked.
    fn put(&mut self, question: Asked) -> Option<bytes::Bytes> {
        let Asked { method, params, reply } = question;
        let reply = reply?;
        if !self.hears || !self.session.offers.allow(&method, &params) {
            reply.send(Err(Refusal::not_offered(&method)));
            return None;
        }
        let number = self.session.ask(reply);
        self.numbers.push(number);
        let url = params.text("mode").as_deref() == Some("url");
        let lacks_id = url && params.get_bytes("elicitationId").is_none();
        Some(splice::request(&Id::from(number), &method, params.as_bytes().len(), |writer| {
            writer.members(&params, &[]);
            if lacks_id {
                writer.text("elicitationId", &secret());
            }
        }))
    }

    /// The messages that take back what the client did not answer.
    fn withdraw(&mut self) -> Vec<bytes::Bytes> {
        let open = self.session.forget(&std::mem::take(&mut self.numbers));
        let cancelled = |number: u64| {
            let mut params = Writer::new();
            params.raw("requestId", number.to_string().as_bytes());
            params.text("reason", "no longer asked");
            splice::notification("notifications/cancelled", Some(&params.finish()))
        };
        open.into_iter().map(cancelled).collect()
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.session.forget(&self.numbers);
    }
}

/// A request of a modern client on its way.
struct Relay<'a> {
    gateway: &'a Arc<Inner>,
    request: &'a Request,
    modern: &'a Modern,
    emitter: &'a Emitter<Out>,
}

impl Relay<'_> {
    async fn go(&self, mut passage: Passage) -> Result<Answer, Failure> {
        let request = self.request;
        if let Some(state) = request.params.get("requestState") {
            let invalid = |reason: String| Failure::new(INVALID_PARAMS, reason);
            let state =
                state.text().ok_or_else(|| invalid("`requestState` is no text".to_owned()))?;
            let bound = self.bound();
            let state = park::open(&self.gateway.seal, &request.caller.name, &bound, &state)
                .map_err(|refused| invalid(refused.to_string()))?;
            match state.kind {
                Kind::Parked { call, turn } => return Box::pin(self.resume(call, turn)).await,
                Kind::Wrapped(original) => {
                    let mut writer = Writer::new();
                    writer.members(&request.params, &["requestState"]);
                    writer.raw("requestState", original.as_bytes());
                    passage.params = writer.finish_object();
                }
                Kind::Again => {
                    let mut writer = Writer::new();
                    writer.members(&request.params, &["requestState", "inputResponses"]);
                    passage.params = writer.finish_object();
                }
            }
        }
        let server = passage.server.clone();
        let parked = Parked {
            events: self.request.front.pass(passage),
            server,
            log: self.modern.log,
            questions: park::Questions::default(),
        };
        self.follow(None, parked).await
    }

    /// Goes on with a call that waited for answers.
    async fn resume(&self, call: u64, turn: u32) -> Result<Answer, Failure> {
        let gone = |reason: &str| Failure::new(INVALID_PARAMS, reason);
        let mut parked = match self.gateway.park.take(call, turn) {
            Found::Waiting(parked) => *parked,
            Found::Running => return Err(gone("`requestState` was used already")),
            Found::Ended(Some(result)) => {
                let result = Json::parse(result).expect("it was a result");
                return Ok(Answer::result(&self.request.id, &result));
            }
            Found::Ended(None) | Found::Gone => {
                return Err(gone("`requestState` belongs to a call that is over"));
            }
        };
        let responses = self.request.params.get("inputResponses");
        let responses = responses.and_then(|responses| responses.to_object());
        parked.questions.answer(&responses.unwrap_or_else(Object::empty));
        if !parked.questions.is_empty() {
            return self.park(Some(call), parked);
        }
        let guard = park::Forget { gateway: self.gateway, call };
        let answer = self.follow(Some(call), parked).await;
        std::mem::forget(guard);
        answer
    }

    /// Follows a call to its end, or to the next thing its server asks.
    async fn follow(&self, place: Option<u64>, mut parked: Parked) -> Result<Answer, Failure> {
        let token = self.request.token();
        let mut ahead = None;
        loop {
            let event = match ahead.take() {
                Some(event) => event,
                None => next(&mut parked.events).await,
            };
            let message = match event {
                Event::Progress(progress) => token.as_ref().map(|token| report(token, &progress)),
                Event::Log(params) => {
                    let wanted = parked.log.is_some() && wanted(&params, parked.log);
                    wanted.then(|| logged(&params))
                }
                Event::Question(asked) | Event::Approval(asked) => {
                    let allowed = self.modern.offers.allow(&asked.method, &asked.params);
                    if allowed {
                        parked.questions.add(asked);
                        ahead = Box::pin(self.gather(&mut parked)).await;
                        if ahead.is_none() {
                            return self.park(place, parked);
                        }
                        parked.questions.refuse("the call went on without an answer");
                        continue;
                    }
                    if let Some(reply) = asked.reply {
                        reply.send(Err(Refusal::not_offered(&asked.method)));
                    }
                    None
                }
                Event::Notification { method, params } => {
                    Some(splice::notification(&method, Some(params.json())))
                }
                Event::End(end) => {
                    let _ = self.request.outcome.set(Class::of(&end));
                    let result = self.end(end, &parked.server);
                    if let Some(call) = place {
                        let kept = result.as_ref().ok().map(|result| result.clone().whole());
                        self.gateway.park.ended(call, kept);
                    }
                    return Ok(Answer::result(&self.request.id, result?));
                }
                _ => None,
            };
            if let Some(message) = message {
                self.emitter.emit(Out::Message(message.into())).await;
            }
        }
    }

    /// Waits a moment for what the server asks along with its first question, so that a client is
    /// asked everything at once. Returns the end, should the server not wait for an answer.
    async fn gather(&self, parked: &mut Parked) -> Option<Event> {
        let until = tokio::time::Instant::now() + TOGETHER;
        loop {
            match tokio::time::timeout_at(until, next(&mut parked.events)).await {
                Ok(Event::Question(asked) | Event::Approval(asked)) => {
                    if self.modern.offers.allow(&asked.method, &asked.params) {
                        parked.questions.add(asked);
                    } else if let Some(reply) = asked.reply {
                        reply.send(Err(Refusal::not_offered(&asked.method)));
                    }
                }
                Ok(event @ Event::End(_)) => return Some(event),
                Ok(Event::Progress(progress)) => {
                    if let Some(token) = self.request.token() {
                        self.emitter.emit(Out::Message(report(&token, &progress).into())).await;
                    }
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// Parks a call and asks the client.
    fn park(&self, place: Option<u64>, parked: Parked) -> Result<Answer, Failure> {
        let requests = parked.questions.requests();
        let server = parked.server.clone();
        let kind = self.gateway.park.put(place, Box::new(parked)).map_err(|mut parked| {
            parked.questions.refuse("too many calls wait for an answer");
            Failure::new(INTERNAL, "too many calls wait for an answer")
        })?;
        Ok(Answer::result(&self.request.id, &input_required(&requests, &self.seal(&server, kind))))
    }

    fn seal(&self, server: &ServerId, kind: Kind) -> String {
        let lasts = self.gateway.settings.limits.park;
        let caller = &self.request.caller.name;
        park::seal(&self.gateway.seal, caller, &self.bound(), server, lasts, kind)
    }

    fn bound(&self) -> park::Request<'_> {
        park::Request { method: &self.request.method, params: &self.request.params }
    }

    /// How a call ended, as a modern client hears it.
    fn end(&self, end: Result<Outcome, CallError>, server: &ServerId) -> Result<Pieces, Failure> {
        let result = match end {
            Ok(Outcome::InputRequired(result)) => {
                return Ok((&self.wrapped(&result, server)).into());
            }
            Ok(Outcome::Task(task)) => {
                let created = tasks::created(self.gateway, self.request, server, &task);
                return Ok(created.json().into());
            }
            Ok(outcome) => outcome.object().clone(),
            Err(CallError::Execution { code: URL_REQUIRED, raw, message, .. }) => {
                let urls =
                    self.urls(&raw, server).ok_or_else(|| Failure::new(INTERNAL, message))?;
                return Ok((&urls).into());
            }
            Err(error) => answer::failed(Era::Modern, &error)?,
        };
        let result = under_our_names(&self.request.menu(), server, result);
        Ok(answer::modern(&self.request.method, &result))
    }

    /// A modern server's question, with its state in our envelope.
    fn wrapped(&self, result: &Object, server: &ServerId) -> Json {
        let Some(state) = result.get("requestState") else { return result.json().clone() };
        let sealed = self.seal(server, Kind::Wrapped(state.to_string()));
        let mut writer = Writer::with_capacity(result.as_bytes().len() + sealed.len());
        writer.members(result, &["requestState"]);
        writer.text("requestState", &sealed);
        writer.finish()
    }

    /// A legacy server's error that wants URLs opened, as questions.
    fn urls(&self, raw: &Json, server: &ServerId) -> Option<Json> {
        let data = raw.to_object()?.get("data")?.to_object()?;
        let wanted = data.get("elicitations")?.to_items()?;
        if wanted.is_empty() || !self.modern.offers.url {
            return None;
        }
        let mut requests = Writer::new();
        for (at, elicitation) in wanted.iter().enumerate() {
            let elicitation = elicitation.to_object()?;
            requests.object(&format!("q{}", at + 1), |request| {
                request.text("method", "elicitation/create");
                request.object("params", |params| {
                    params.members(&elicitation, &["elicitationId"]);
                });
            });
        }
        Some(input_required(&requests.finish(), &self.seal(server, Kind::Again)))
    }
}

async fn next(events: &mut Events) -> Event {
    match events.next().await {
        Some(event) => event,
        None => unreachable!("a call is not read behind its end"),
    }
}
