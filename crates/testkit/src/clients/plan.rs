//! Plan of a client's actions at a server, with the expected results.

use std::collections::BTreeMap;

use consort_protocol::Era;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Plan of a client's actions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// List the tools.
    pub list: List,
    /// Call a tool that reports its progress.
    pub call: Call,
    /// Call a tool that requests input from the user.
    pub elicitation: Part<Ask>,
    /// Read a resource.
    pub resources: Read,
    /// Subscribe to a resource.
    pub subscription: Part<Watch>,
    /// Get a prompt.
    pub prompts: Prompt,
    /// Complete an argument of a prompt.
    pub completion: Part<Complete>,
    /// Cancel a call.
    pub cancellation: Part<Cancel>,
}

/// An action, unless the server does not support it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Part<T> {
    /// The server does not support it.
    Unsupported {
        /// The reason.
        unsupported: String,
    },
    /// The action.
    Do(T),
}

impl<T> Part<T> {
    /// Creates an action that the server does not support, with the reason.
    pub fn unsupported(why: impl Into<String>) -> Self {
        Self::Unsupported { unsupported: why.into() }
    }
}

/// List the tools, on all pages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct List {
    /// A tool that is there.
    pub tool: String,
}

/// Call a tool that reports its progress.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// Number of progress notifications, each with a higher value than the one before.
    pub progress: usize,
    /// A part of its result.
    pub contains: String,
}

/// Call a tool that requests input from the user.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ask {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The user's input.
    pub answer: Map<String, Value>,
    /// A part of its result that depends on the answer.
    pub contains: String,
}

/// Read a resource.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Read {
    /// Its URI.
    pub uri: String,
    /// A part of its contents.
    pub contains: String,
}

/// Subscribe to a resource.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Watch {
    /// Its URI.
    pub uri: String,
    /// A tool that makes the server send an update.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// Get a prompt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prompt {
    /// Its name.
    pub prompt: String,
    /// Its arguments.
    pub arguments: BTreeMap<String, String>,
    /// A part of its messages.
    pub contains: String,
}

/// Complete an argument of a prompt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Complete {
    /// The prompt.
    pub prompt: String,
    /// The argument.
    pub argument: String,
    /// Prefix of the value.
    pub value: String,
    /// One of the suggested values.
    pub contains: String,
}

/// Cancel a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cancel {
    /// A tool that takes long, and reports progress once it has begun.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// A tool that returns what the server observed.
    pub sign: String,
    /// A part of its result after the server observed the cancellation.
    pub contains: String,
}

/// A name in a plan, which a gateway between client and server may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// Of a tool.
    Tool(&'a str),
    /// Of a prompt.
    Prompt(&'a str),
    /// Of a resource.
    Uri(&'a str),
}

impl Plan {
    /// The plan for a server whose names are changed by a gateway.
    #[must_use]
    pub fn renamed(mut self, rename: impl Fn(Name<'_>) -> String) -> Self {
        let tool = |name: &mut String| *name = rename(Name::Tool(name));
        let prompt = |name: &mut String| *name = rename(Name::Prompt(name));
        let uri = |name: &mut String| *name = rename(Name::Uri(name));
        tool(&mut self.list.tool);
        tool(&mut self.call.tool);
        uri(&mut self.resources.uri);
        prompt(&mut self.prompts.prompt);
        if let Part::Do(ask) = &mut self.elicitation {
            tool(&mut ask.tool);
        }
        if let Part::Do(watch) = &mut self.subscription {
            uri(&mut watch.uri);
            tool(&mut watch.tool);
        }
        if let Part::Do(complete) = &mut self.completion {
            prompt(&mut complete.prompt);
        }
        if let Part::Do(cancel) = &mut self.cancellation {
            tool(&mut cancel.tool);
            tool(&mut cancel.sign);
        }
        self
    }

    /// Serializes it for a driver.
    pub(super) fn text(&self, era: Era) -> String {
        let mut plan = json!(self);
        plan["era"] = json!(era);
        plan.to_string()
    }
}
