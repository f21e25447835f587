//! Forwards a request to its server, and the events back in the client's own era.

mod asked;

use std::sync::Arc;
use std::time::Duration;

use consort_core::{
    Asked, Call, CallError, ClientContext, Emitter, Event, Events, Json, Logs, Object, Operation,
    Outcome, Questions, Refusal, ServerId, Tasks,
};
use consort_wire::Era;
use consort_wire::splice::{self, Writer};

use crate::answer::{self, Answer, Failure, INTERNAL, INVALID_PARAMS, URL_REQUIRED};
use crate::gateway::Inner;
use crate::ledger::Class;
use crate::park::{self, Found, Kind, Parked, input_required};
use crate::pieces::Pieces;
use crate::request::{Modern, Out, Request, Speaker};
use crate::retold::{logged, report, under_our_names, wanted};
use crate::seek;
use crate::serve::route;
use crate::session::Session;
use crate::tasks;
use asked::Open;

/// Time to wait for further questions after the first.
const TOGETHER: Duration = Duration::from_millis(10);

/// Forwards a request to the server of the item it names.
pub(crate) async fn relay(
    gateway: &Arc<Inner>,
    request: &Request,
    emitter: &Emitter<Out>,
) -> Result<Answer, Failure> {
    let (operation, renamed) = match route(&request.menu(), request) {
        Ok(way) => way,
        Err(failure) => Box::pin(seek::found(gateway, request, failure)).await?,
    };
    pass(gateway, request, operation, renamed, emitter).await
}

/// Forwards a request to a server.
pub(crate) async fn pass(
    gateway: &Arc<Inner>,
    request: &Request,
    operation: Operation,
    renamed: Option<(&'static str, Json)>,
    emitter: &Emitter<Out>,
) -> Result<Answer, Failure> {
    match &request.speaker {
        Speaker::Legacy(session) => {
            let made = MadeCall::new(request, call_of(request, operation, renamed));
            let server = made.server.clone();
            let result = answered_in_session(gateway, request, session, made, emitter).await?;
            let result = under_our_names(&request.menu(), &server, result);
            let result = answer::legacy(session.revision, &result);
            Ok(Answer::result(&request.id, result))
        }
        Speaker::Modern(modern) => {
            let relay = Relay { gateway, request, modern, emitter };
            match relay.begin(call_of(request, operation, renamed))? {
                Begun::Made(made) => relay.follow(None, relay.parked(made)).await,
                Begun::Parked { call, turn } => Box::pin(relay.resume(call, turn)).await,
            }
        }
    }
}

/// Returns the call that a request asks for. It is made before anything is awaited, since it is large.
fn call_of(request: &Request, operation: Operation, renamed: Option<(&'static str, Json)>) -> Call {
    let (caller, params) = (request.caller.clone(), tasks::without_hint(request));
    let mut call = Call::new(caller, operation, params);
    call.replaced.extend(renamed);
    let (offers, capabilities, questions, tasks) = match &request.speaker {
        Speaker::Legacy(session) => {
            let as_task = request.params.get_bytes("task").is_some();
            call.log = session.level().map_or(Logs::Usual, Logs::From);
            (&session.offers, session.capabilities(), Questions::Hand, as_task)
        }
        Speaker::Modern(modern) => {
            call.log = modern.log.map_or(Logs::None, Logs::From);
            let capabilities = modern.capabilities.clone();
            (&modern.offers, capabilities, Questions::Return, modern.knows_tasks())
        }
    };
    call.client = Some(ClientContext {
        offers: Arc::clone(offers),
        capabilities: Some(capabilities),
        questions,
        tasks: if tasks { Tasks::Return } else { Tasks::Follow },
        session: request.session(),
        is_local: false,
    });
    call
}

/// A call that was made, and whose events are not read yet.
pub(crate) struct MadeCall {
    server: ServerId,
    events: Events,
}

impl MadeCall {
    /// Makes a call at the endpoint of a request.
    pub(crate) fn new(request: &Request, call: Call) -> Self {
        Self { server: call.server().clone(), events: request.front.call(call) }
    }
}

/// Returns the result of a legacy client's request; questions of the server are sent to the client meanwhile.
pub(crate) async fn answered_in_session(
    gateway: &Arc<Inner>,
    request: &Request,
    session: &Arc<Session>,
    made: MadeCall,
    emitter: &Emitter<Out>,
) -> Result<Object, Failure> {
    let token = request.token();
    let level = session.level();
    let MadeCall { server, mut events } = made;
    let mut asked = Open { session, numbers: Vec::new(), hears: request.hears };
    let names = tasks::Names { gateway, caller: &request.caller, server: &server };
    let about_task = |params: Object| names.related(&session.offers, params);
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

/// A request of a modern client in progress.
struct Relay<'a> {
    gateway: &'a Arc<Inner>,
    request: &'a Request,
    modern: &'a Modern,
    emitter: &'a Emitter<Out>,
}

/// The call of a modern client's request.
enum Begun {
    Made(MadeCall),
    /// One that waits for the client's answer.
    Parked {
        call: u64,
        turn: u32,
    },
}

impl Relay<'_> {
    /// Makes a call, unless the request goes on with one that waits.
    fn begin(&self, mut call: Call) -> Result<Begun, Failure> {
        let request = self.request;
        if let Some(state) = request.params.get("requestState") {
            let invalid = |reason: String| Failure::new(INVALID_PARAMS, reason);
            let state =
                state.text().ok_or_else(|| invalid("`requestState` is no text".to_owned()))?;
            let bound = self.bound();
            let state = park::open(&self.gateway.seal, request.caller.id(), &bound, &state)
                .map_err(|refused| invalid(refused.to_string()))?;
            match state.kind {
                Kind::Parked { call, turn } => return Ok(Begun::Parked { call, turn }),
                Kind::Wrapped(original) => {
                    let mut writer = Writer::new();
                    writer.members(&request.params, &["requestState"]);
                    writer.raw("requestState", original.as_bytes());
                    call.params = writer.finish_object();
                }
                Kind::Again => {
                    let mut writer = Writer::new();
                    writer.members(&request.params, &["requestState", "inputResponses"]);
                    call.params = writer.finish_object();
                }
            }
        }
        Ok(Begun::Made(MadeCall::new(request, call)))
    }

    /// A call that may come to wait for its client.
    fn parked(&self, MadeCall { server, events }: MadeCall) -> Parked {
        Parked {
            events,
            server,
            log: self.modern.log,
            questions: park::Questions::default(),
            caller: self.request.caller.id().clone(),
        }
    }

    /// Resumes a call that waited for input.
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

    /// Follows a call to its end, or to the next question of its server.
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

    /// Waits briefly for further questions of the server after its first, so that a client gets all of them at once.
    /// Returns the end, if the server does not wait for an answer.
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

    /// Suspends a call and requests input from the client.
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
        let caller = self.request.caller.id();
        park::seal(&self.gateway.seal, caller, &self.bound(), server, lasts, kind)
    }

    fn bound(&self) -> park::Request<'_> {
        park::Request { method: &self.request.method, params: &self.request.params }
    }

    /// Returns the end of a call as a modern client expects it.
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

    /// A modern server's `input_required` result, with its state sealed by the gateway.
    fn wrapped(&self, result: &Object, server: &ServerId) -> Json {
        let Some(state) = result.get("requestState") else { return result.json().clone() };
        let sealed = self.seal(server, Kind::Wrapped(state.to_string()));
        let mut writer = Writer::with_capacity(result.as_bytes().len() + sealed.len());
        writer.members(result, &["requestState"]);
        writer.text("requestState", &sealed);
        writer.finish()
    }

    /// A legacy server's error that requires URLs to be opened, as input requests.
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
