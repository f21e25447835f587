//! Cost of an agent beside its model and its tools: processor time per turn, with many tools, over HTTP and in process,
//! and over a long run.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use bytes::Bytes;
use consort_agent::{Agent, AgentSettings, Conversation, RunEvent};
use consort_core::{
    Call, CallEvents, Caller, Catalog, CatalogChanges, DrivenStream, Json, PrimitiveKind,
    ServerCatalog, ServerId, Target, ToolResult, Toolbox, end,
};
use consort_models::{
    ChatMessage, HttpProvider, Model, ModelFacts, ModelProvider, ModelReply, ModelRequest,
    ProviderEndpoint, ProviderEvent, ProviderTimeouts, StopReason, TokenUsage, WireFormat,
};
use serde::Serialize;
use serde_json::json;

use crate::options::{Format, USAGE, number};
use crate::report::table;
use crate::statistics::{in_turns, median, process_time};
use crate::{Failure, results};

/// Turns of one run.
const TURNS: u32 = 10;

/// Turns of the long run.
const LONG: u32 = 1000;

/// Options of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    format: Format,
    rounds: u32,
    tools: u32,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self { format: Format::People, rounds: 9, tools: 500 };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.format = Format::Json,
                "--rounds" => options.rounds = number(&word, words.next(), 1000)?,
                "--tools" => options.tools = number(&word, words.next(), 100_000)?,
                _ => return Err(format!("unknown option `{word}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

/// Results, in microseconds of processor time per turn.
#[derive(Debug, Serialize)]
struct Report {
    tools: u32,
    /// The request sent as prepared bytes, its answer read, the tool called.
    direct: f64,
    /// The same by an agent.
    agent: f64,
    /// The agent's overhead.
    added: f64,
    /// An agent whose model is in the same process.
    in_process: f64,
    /// The first and the last hundred turns of a run of a thousand.
    first: f64,
    last: f64,
}

/// Measures and prints the report.
pub(crate) fn agent(options: &Options) -> Result<(), Failure> {
    let report = measured(options)?;
    let text = match options.format {
        Format::Json => serde_json::to_string(&report)?,
        Format::People => {
            let row = |what: &str, micros: f64| [what.to_owned(), format!("{micros:.0}")];
            table(
                &format!("A turn with one call, {} tools on offer", report.tools),
                ["what", "µs of processor"],
                1,
                [
                    row("direct: prepared request, answer read, tool called", report.direct),
                    row("an agent, its model over HTTP", report.agent),
                    row("what the agent adds", report.added),
                    row("an agent, its model in the process", report.in_process),
                    row("a run of 1,000 turns: turns 1 to 100", report.first),
                    row("a run of 1,000 turns: turns 901 to 1,000", report.last),
                ]
                .into_iter(),
            )
        }
    };
    results::publish(&text)
}

fn measured(options: &Options) -> Result<Report, Failure> {
    let address = serve()?;
    let endpoint = ProviderEndpoint::new(format!("http://{address}/v1"));
    let provider =
        HttpProvider::new(WireFormat::OpenAiChat, endpoint.clone(), ProviderTimeouts::default())?;
    let tools: Arc<dyn Toolbox> = Arc::new(Tools::new(options.tools));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let over_http = agent_of(Arc::new(provider), &tools);
    let in_process = agent_of(Arc::new(Calling), &tools);
    let prepared = prepared(&tools, &endpoint);
    let direct = || runtime.block_on(direct(&address, &prepared, &tools));
    let seconds = in_turns(
        vec![
            Box::new(direct),
            Box::new(|| runtime.block_on(run(&over_http))),
            Box::new(|| runtime.block_on(run(&in_process))),
        ],
        options.rounds,
    );
    let micros = |seconds: &[f64]| median(seconds.iter().copied()) * 1e6 / f64::from(TURNS);
    let (direct, agent) = (micros(&seconds[0]), micros(&seconds[1]));
    let added = median(seconds[1].iter().zip(&seconds[0]).map(|(agent, direct)| agent - direct));
    let (first, last) = runtime.block_on(long(&in_process));
    Ok(Report {
        tools: options.tools,
        direct,
        agent,
        added: added * 1e6 / f64::from(TURNS),
        in_process: micros(&seconds[2]),
        first,
        last,
    })
}

fn agent_of(provider: Arc<dyn ModelProvider>, tools: &Arc<dyn Toolbox>) -> Agent {
    let facts = ModelFacts { window: Some(200_000), ..ModelFacts::default() };
    let model = Model { id: "bench:model".into(), name: "model".into(), provider, facts };
    let mut agent = Agent::new(model, Arc::clone(tools), AgentSettings::new("bench"));
    agent.settings.limits.turns = TURNS;
    agent.settings.limits.repeats = u32::MAX;
    agent
}

async fn run(agent: &Agent) {
    let mut events = agent.run(&Conversation::new(), vec![ChatMessage::user("go")]);
    while let Some(event) = events.next().await {
        if let RunEvent::Ended { report } = event {
            assert_eq!(report.turns, TURNS, "{report:?}");
        }
    }
}

/// Returns the processor time of the first and the last hundred turns of a long run.
async fn long(agent: &Agent) -> (f64, f64) {
    let mut agent = agent.clone();
    agent.settings.limits.turns = LONG;
    agent.settings.limits.calls = LONG;
    let mut marks = BTreeMap::new();
    let mut events = agent.run(&Conversation::new(), vec![ChatMessage::user("go")]);
    while let Some(event) = events.next().await {
        if let RunEvent::Requesting { turn } = event {
            marks.insert(turn, process_time());
        }
    }
    let between = |from: u32, to: u32| marks[&to].saturating_sub(marks[&from]).as_secs_f64() * 1e4;
    (between(1, 101), between(LONG - 100, LONG))
}

/// The body of a request as the agent would write it.
fn prepared(tools: &Arc<dyn Toolbox>, endpoint: &ProviderEndpoint) -> Bytes {
    let catalog = tools.catalog(&Caller::agent("bench"));
    let mut ask = ModelRequest::new("model", vec![ChatMessage::user("go")]);
    ask.tools = catalog.tools.entries().iter().map(consort_core::CatalogEntry::tool).collect();
    WireFormat::OpenAiChat.request(&ask, endpoint).body.into()
}

/// Does the work of an agent's run without an agent.
async fn direct(address: &str, body: &Bytes, tools: &Arc<dyn Toolbox>) {
    let origin = consort_client::HttpOrigin::new(
        &format!("http://{address}/v1"),
        &consort_client::Limits::default(),
        &consort_client::Times::default(),
    );
    let origin = origin.expect("it is an address of our own");
    for _ in 0..TURNS {
        let request = http::Request::post(format!("http://{address}/v1/chat/completions"))
            .header("content-type", "application/json")
            .body(body.clone())
            .expect("it is a request");
        let mut response = origin.send(request).await.expect("our own server answers");
        while let Some(chunk) = response.chunk().await {
            std::hint::black_box(chunk.expect("our own server goes on"));
        }
        let target: Target = "s.tool_7".parse().expect("it is `server.tool`");
        let call = Call::tool(Caller::agent("bench"), target, json!({}).into());
        end(tools.call(call)).await.expect("the tool answers");
    }
}

/// Response of a model that calls a tool.
const ANSWER: &str = concat!(
    "data: {\"id\":\"1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":",
    "[{\"index\":0,\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"tool_7\",\"arguments\":\"{}\"}}]}}]}\n\n",
    "data: {\"id\":\"1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: [DONE]\n\n"
);

/// Starts a provider on a thread of its own that always gives the same answer.
fn serve() -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    Ok(address)
}

fn answer(stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let mut body = Vec::new();
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.is_empty() {
                break;
            }
        }
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            ANSWER.len()
        );
        writer.write_all([head.as_bytes(), ANSWER.as_bytes()].concat().as_slice())?;
    }
}

/// A model in the process that always calls the same tool.
struct Calling;

impl ModelProvider for Calling {
    fn request(&self, _: ModelRequest) -> DrivenStream<ProviderEvent> {
        let call = consort_models::ToolCall {
            id: "c1".into(),
            name: "tool_7".into(),
            arguments: "{}".into(),
        };
        let message = ChatMessage::new(
            consort_models::MessageRole::Assistant,
            vec![consort_models::PartContent::ToolCall(call).into()],
        );
        let reply = ModelReply {
            message,
            stop: StopReason::ToolCalls,
            usage: TokenUsage::default(),
            model: "m".into(),
            id: String::new(),
        };
        DrivenStream::new(|_| std::future::ready(ProviderEvent::End(Ok(reply))))
    }
}

/// A toolbox whose tools all answer immediately.
struct Tools(Arc<Catalog>);

impl Tools {
    fn new(count: u32) -> Self {
        let tool = |n: u32| {
            let name = format!("tool_{n}");
            let definition = json!({
                "name": name,
                "description": format!("Does what tool {n} does, for whoever asks it to, and says what came of it."),
                "inputSchema": { "type": "object", "properties": {
                    "path": { "type": "string", "description": "Where to look." },
                    "limit": { "type": "integer", "minimum": 1, "description": "How many at most." },
                    "mode": { "type": "string", "enum": ["fast", "whole"] },
                }},
            });
            (name, Json::from(definition).to_object().expect("it is an object"))
        };
        let shelves = BTreeMap::from([(PrimitiveKind::Tools, (0..count).map(tool).collect())]);
        let offer = ServerCatalog { lists: shelves, ..ServerCatalog::default() };
        Self(Arc::new(Catalog::build(&BTreeMap::from([(ServerId::derive("s"), offer)]))))
    }
}

impl Toolbox for Tools {
    fn catalog(&self, _: &Caller) -> Arc<Catalog> {
        Arc::clone(&self.0)
    }

    fn call(&self, _: Call) -> CallEvents {
        CallEvents::answered(ToolResult::text("done"))
    }

    fn changes(&self) -> CatalogChanges {
        DrivenStream::new(|_| std::future::pending())
    }
}
