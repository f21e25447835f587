//! The client half: one server reached, listed, called and heard.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::DropGuard;

pub(crate) mod about;
pub(crate) mod call;
pub(crate) mod connect;
pub(crate) mod dialect;
pub(crate) mod error;
pub(crate) mod exchange;
pub(crate) mod facts;
pub(crate) mod faults;
pub(crate) mod gate;
pub(crate) mod host;
pub(crate) mod link;
pub(crate) mod list;
pub(crate) mod listen;
pub(crate) mod logs;
pub(crate) mod mailbox;
pub(crate) mod notices;
pub(crate) mod owner;
pub(crate) mod pulse;
pub(crate) mod request;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod task;

use crate::ask::LogLevel;
use crate::budget::MemoryBudget;
use about::{About, Found};
use call::{Answer, Call, Event};
use dialect::ClientInfo;
use error::{CallError, Closed, ConnectError};
use facts::Facts;
use faults::Faults;
use host::{Host, Silent};
use link::Link;
use list::{ListError, Listing};
use listen::{Filter, Subscription};
use notices::Notices;
use request::Request;

use crate::json::Json;
use crate::limits::{Limits, Times};
use crate::operator::OperatorText;
use crate::revision::Era;
use crate::shelf::ShelfKind;
use crate::splice;
use crate::transport::Transport;
use crate::transport::credentials::Credentials;
use crate::transport::process::Command;
use crate::transport::url::Endpoint;

/// Where a server is.
#[derive(Clone, Debug, PartialEq)]
pub enum Server {
    /// On the standard input and output of a program.
    Command(Command),
    /// At a URL: Streamable HTTP of any revision or, failing that, HTTP+SSE.
    Http(Endpoint),
    /// At a URL, by HTTP+SSE.
    Sse(Endpoint),
}

impl Server {
    /// What lets us in there, if anything does.
    pub fn credentials(&self) -> Option<&Arc<dyn Credentials>> {
        match self {
            Self::Http(endpoint) | Self::Sse(endpoint) => endpoint.credentials.as_ref(),
            Self::Command(_) => None,
        }
    }
}

/// Which era to speak to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speak {
    /// Find out.
    #[default]
    Auto,
    /// Only with a handshake.
    Legacy,
    /// Only without.
    Modern,
}

/// Time limits of one tool, where they differ from the server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolTimes {
    /// See [`Times::idle`].
    pub idle: Option<Duration>,
    /// See [`Times::total`].
    pub total: Option<Duration>,
}

/// How to treat a server.
#[derive(Clone)]
pub struct Settings {
    /// The name of the server in log lines.
    pub label: String,
    /// Which era to speak.
    pub speak: Speak,
    /// How the server was found the last time, to skip the search; looked up anew if it fails.
    pub found: Option<Found>,
    /// How much.
    pub limits: Limits,
    /// How long.
    pub times: Times,
    /// How long, for single tools.
    pub tools: BTreeMap<String, ToolTimes>,
    /// Who answers the server's questions.
    pub host: Arc<dyn Host>,
    /// Who we say we are.
    pub client: ClientInfo,
    /// How many bytes of large messages may be in memory, together with whoever shares it.
    pub budget: MemoryBudget,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            label: String::new(),
            speak: Speak::default(),
            found: None,
            limits: Limits::default(),
            times: Times::default(),
            tools: BTreeMap::new(),
            host: Arc::new(Silent),
            client: ClientInfo::default(),
            budget: MemoryBudget::default(),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("speak", &self.speak)
            .field("found", &self.found)
            .finish_non_exhaustive()
    }
}

/// One server, reached. Clones share the connection; the last one closes it.
#[derive(Clone, Debug)]
pub struct Client {
    link: Arc<Link>,
    _guard: Arc<DropGuard>,
}

impl Client {
    /// Reaches a server, finds out what it speaks and shakes hands.
    pub async fn connect(server: &Server, settings: Settings) -> Result<Self, ConnectError> {
        connect::connect(server, settings).await.map(Self::of)
    }

    /// Who holds a connection.
    pub(crate) fn of(link: Arc<Link>) -> Self {
        let guard = Arc::new(link.stop.clone().drop_guard());
        Self { link, _guard: guard }
    }

    /// What the server says of itself.
    pub fn about(&self) -> Arc<About> {
        self.link.about()
    }

    /// Asks a modern server again what it says of itself. A legacy one says that in its handshake only.
    pub async fn rediscover(&self) -> Result<(), ConnectError> {
        match self.about().found {
            Found { revision, way } if revision.era() == Era::Modern => {
                connect::modern(&self.link, way).await
            }
            _ => Ok(()),
        }
    }

    /// The number of the session in force: another one once the server forgot it, or 0 if it has none.
    pub fn session(&self) -> u64 {
        session::current(&self.link)
    }

    /// Everything on one of the server's shelves, all pages of it, or nothing.
    pub async fn list(&self, shelf: ShelfKind) -> Result<Listing, ListError> {
        list::list(&self.link, shelf).await
    }

    /// Begins a call. It runs while it is polled.
    pub fn call(&self, request: Request) -> Call {
        let id = self.link.next_id();
        let client = self.clone();
        Call::new(id, move |events| async move {
            Event::End(run::run(&client.link, id, &request, &events).await)
        })
    }

    /// Makes a call and leaves its events out.
    pub async fn request(&self, request: Request) -> Result<Answer, CallError> {
        self.call(request).end().await
    }

    /// The same without a limit of time, and without a place among the calls in flight.
    fn subscribe(&self, request: Request) -> Call {
        let id = self.link.next_id();
        let client = self.clone();
        Call::new(id, move |events| async move {
            Event::End(run::endless(&client.link, id, &request, &events).await)
        })
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Option<&Json>) -> Result<(), CallError> {
        self.link.send(splice::notification(method, params)).await
    }

    /// What the server says from now on that belongs to no call. A modern server says nothing here
    /// unless it is asked to: see [`listen`](Client::listen).
    pub fn notices(&self) -> Notices {
        Notices { received: self.link.notices.subscribe(), stop: self.link.stop.clone() }
    }

    /// Asks to be told of changes, in the way of the server's era.
    pub async fn listen(&self, filter: Filter) -> Result<Subscription, CallError> {
        listen::listen(self, filter).await
    }

    /// Which log messages a legacy server shall send, for the whole connection.
    pub async fn log_level(&self, level: LogLevel) -> Result<(), CallError> {
        let request = Request::new("logging/setLevel").with("level", Json::string(level.as_str()));
        self.request(request).await.map(|_| ())
    }

    /// What went wrong so far without ending anything.
    pub fn faults(&self) -> Faults {
        self.link.counts.faults()
    }

    /// Returns the end of what a stdio server wrote to its standard error.
    pub fn stderr(&self) -> OperatorText {
        match &self.link.transport {
            Transport::Stdio(stdio) => stdio.tail.text(),
            Transport::Http(_) | Transport::Sse(_) => OperatorText::default(),
        }
    }

    /// Takes over what another client of the same server learnt of its tools.
    pub fn learn_from(&self, other: &Self) {
        self.link.learn(Facts::clone(&other.link.facts()));
    }

    /// Whether the connection is over.
    pub fn is_closed(&self) -> bool {
        self.link.stop.is_cancelled()
    }

    /// Waits until the connection is over and says why.
    pub async fn closed(&self) -> Closed {
        self.link.stop.cancelled().await;
        self.link.calls.closed().unwrap_or(Closed::Ours)
    }

    /// Closes the connection and waits until nothing of it is left: tasks, session, process.
    pub async fn close(self) {
        if let Transport::Http(http) = &self.link.transport {
            let dialect = self.link.dialect();
            let goodbye = http.leave(&dialect);
            let _ = tokio::time::timeout(self.link.settings.times.close, goodbye).await;
            self.link.close(&Closed::Ours);
        }
        self.link.end().await;
    }
}
