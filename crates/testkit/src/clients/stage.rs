//! The servers that plans are made for.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

use super::Target;
use super::plan::{Ask, Call, Cancel, Complete, List, Part, Plan, Prompt, Read, Watch};
use crate::everything::{Everything, everything};
use crate::fastmcp::fastmcp;
use crate::fixtures;
use crate::listening::Listening;
use crate::reference::{self, Http, Speaks};

/// A server that a plan is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fixture {
    /// `@modelcontextprotocol/server-everything`, TypeScript, legacy only.
    Everything,
    /// The `FastMCP` server, Python, of both eras.
    FastMcp,
    /// [`crate::reference`], Rust, of both eras.
    Reference,
}

impl Fixture {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Everything, Self::FastMcp, Self::Reference];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::FastMcp => "fastmcp",
            Self::Reference => "reference",
        }
    }

    /// Its program and arguments, on standard input and output.
    pub fn command(self) -> Vec<String> {
        let words = match self {
            Self::Everything => {
                vec![fixtures::node(), fixtures::server_everything(), "stdio".into()]
            }
            Self::FastMcp => vec![fixtures::python("python3"), fixtures::fastmcp_server()],
            Self::Reference => vec![crate::bin("rmcp-server"), "everything".into()],
        };
        words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// Starts it on a free port. Each stage has a server of its own.
    pub async fn http(self) -> Stage {
        let running = match self {
            Self::Everything => Running::Process(everything(Everything::StreamableHttp)),
            Self::FastMcp => Running::Process(fastmcp()),
            Self::Reference => Running::Here(reference::http(Speaks::Everything).await),
        };
        Stage(running)
    }

    /// Returns its plan. Each plan is unique at the server.
    pub fn plan(self) -> Plan {
        match self {
            Self::Everything => everything_plan(),
            Self::FastMcp => fastmcp_plan(),
            Self::Reference => reference_plan(),
        }
    }
}

/// A fixture that listens. Dropping it ends it.
#[derive(Debug)]
pub struct Stage(Running);

#[derive(Debug)]
enum Running {
    Process(Listening),
    Here(Http),
}

impl Stage {
    /// Returns its URL.
    pub fn url(&self) -> String {
        match &self.0 {
            Running::Process(listening) => listening.url("/mcp"),
            Running::Here(http) => http.url(),
        }
    }

    /// Returns it as the target of a driver.
    pub fn target(&self) -> Target {
        Target::http(self.url())
    }
}

fn everything_plan() -> Plan {
    let document = "demo://resource/static/document/features.md";
    Plan {
        list: List { tool: "echo".to_owned() },
        call: Call {
            tool: "trigger-long-running-operation".to_owned(),
            arguments: object(json!({ "duration": 0.2, "steps": 4 })),
            progress: 4,
            contains: "Steps: 4".to_owned(),
        },
        elicitation: Part::Do(Ask {
            tool: "trigger-elicitation-request".to_owned(),
            arguments: Map::new(),
            answer: object(json!({ "name": "Ada" })),
            contains: "Name: Ada".to_owned(),
        }),
        resources: Read { uri: document.to_owned(), contains: "Everything Server".to_owned() },
        subscription: Part::Do(Watch {
            uri: document.to_owned(),
            tool: "toggle-subscriber-updates".to_owned(),
            arguments: Map::new(),
        }),
        prompts: Prompt {
            prompt: "args-prompt".to_owned(),
            arguments: [("city".to_owned(), "Paris".to_owned())].into(),
            contains: "Paris".to_owned(),
        },
        completion: Part::Do(Complete {
            prompt: "completable-prompt".to_owned(),
            argument: "department".to_owned(),
            value: "E".to_owned(),
            contains: "Engineering".to_owned(),
        }),
        cancellation: Part::unsupported(
            "no tool of server-everything stops when its call is cancelled",
        ),
    }
}

fn fastmcp_plan() -> Plan {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let label = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    Plan {
        list: List { tool: "journal".to_owned() },
        call: Call {
            tool: "compute".to_owned(),
            arguments: object(json!({ "steps": 4, "milliseconds": 50 })),
            progress: 4,
            contains: "4 steps".to_owned(),
        },
        elicitation: Part::Do(Ask {
            tool: "ask".to_owned(),
            arguments: Map::new(),
            answer: object(json!({ "value": "Ada" })),
            contains: "accept Ada".to_owned(),
        }),
        resources: Read { uri: "note://today".to_owned(), contains: "nothing to note".to_owned() },
        subscription: Part::unsupported("servers written with FastMCP offer no subscriptions"),
        prompts: greet("hello to Ada"),
        completion: Part::Do(complete_greet()),
        cancellation: Part::Do(Cancel {
            tool: "compute".to_owned(),
            arguments: object(json!({ "steps": 1000, "milliseconds": 50, "label": label })),
            sign: "journal".to_owned(),
            contains: format!("cancelled {label}"),
        }),
    }
}

fn reference_plan() -> Plan {
    let note = "memo://note";
    Plan {
        // On the last of several pages.
        list: List { tool: "journal".to_owned() },
        call: Call {
            tool: "slow".to_owned(),
            arguments: object(json!({ "steps": 4, "ms": 50 })),
            progress: 4,
            contains: "4 steps".to_owned(),
        },
        elicitation: Part::Do(Ask {
            tool: "ask".to_owned(),
            arguments: Map::new(),
            answer: object(json!({ "name": "Ada" })),
            contains: "accept Ada".to_owned(),
        }),
        resources: Read { uri: note.to_owned(), contains: "milk".to_owned() },
        subscription: Part::Do(Watch {
            uri: note.to_owned(),
            tool: "change".to_owned(),
            arguments: object(json!({ "what": "note" })),
        }),
        prompts: greet("Greet Ada."),
        completion: Part::Do(complete_greet()),
        cancellation: Part::Do(Cancel {
            tool: "slow".to_owned(),
            arguments: object(json!({ "steps": 1000, "ms": 50 })),
            sign: "journal".to_owned(),
            contains: "slow is cancelled".to_owned(),
        }),
    }
}

fn greet(contains: &str) -> Prompt {
    Prompt {
        prompt: "greet".to_owned(),
        arguments: [("name".to_owned(), "Ada".to_owned())].into(),
        contains: contains.to_owned(),
    }
}

fn complete_greet() -> Complete {
    Complete {
        prompt: "greet".to_owned(),
        argument: "name".to_owned(),
        value: "A".to_owned(),
        contains: "Ada".to_owned(),
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => unreachable!("{other} is no object"),
    }
}
