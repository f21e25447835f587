//! Requests of a load, and checks of their answers.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use consort_protocol::{Json, Object};
use parking_lot::Mutex;
use serde_json::Value;

use super::client::{Ask, Client, Progress, Refused};
use crate::{Failure, samples};

/// More pages than a listing of any server here has.
const PAGES: usize = 100;

/// Request that is repeated.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// Echoes a text that is unique to each call, with each of the tools in turn.
    Echo { tools: Arc<[String]>, filling: Arc<str> },
    /// Returns a large text.
    Big { tool: String, params: Arc<str>, content: Arc<[u8]> },
    /// Takes a while, and reports progress in this many steps.
    Slow { tool: String, params: Arc<str>, steps: u32 },
    /// Lists all tools.
    List(Arc<Listing>),
}

impl Work {
    pub(crate) fn echo(prefix: &str, bytes: usize) -> Self {
        // As JSON without its first quote; what is put before it needs no escaping.
        let filling = Json::string(&samples::text(bytes.saturating_sub(128)));
        Self::Echo {
            tools: [format!("{prefix}echo")].into(),
            filling: filling.as_str()[1..].into(),
        }
    }

    /// The same, of many servers.
    pub(crate) fn echoes(prefixes: &[String], bytes: usize) -> Self {
        let tools = prefixes.iter().map(|prefix| format!("{prefix}echo")).collect();
        match Self::echo("", bytes) {
            Self::Echo { filling, .. } => Self::Echo { tools, filling },
            other => other,
        }
    }

    /// A call of this many milliseconds that reports `steps` steps of progress; none if 0.
    pub(crate) fn slow(prefix: &str, milliseconds: u32, steps: u32) -> Self {
        let tool = format!("{prefix}slow");
        let params = format!(
            r#""name":"{tool}","arguments":{{"ms":{milliseconds},"steps":{}}}"#,
            steps.max(1)
        );
        Self::Slow { tool, params: params.into(), steps }
    }

    pub(crate) fn big(prefix: &str, bytes: usize) -> Self {
        let tool = format!("{prefix}big");
        let params = format!(r#""name":"{tool}","arguments":{{"bytes":{bytes}}}"#);
        let content = content(Json::string(&samples::text(bytes)).as_str());
        Self::Big { tool, params: params.into(), content: content.into_bytes().into() }
    }

    /// Makes one request. `client` and `call` make it unique.
    pub(crate) async fn once(
        &self,
        asker: &mut Client,
        client: u32,
        call: u64,
    ) -> Result<(), Failure> {
        match self {
            Self::Echo { tools, filling } => {
                let turn = usize::try_from(u64::from(client) + call).unwrap_or_default();
                let tool = &tools[turn % tools.len()];
                let text = format!("\"client {client}, call {call}: {filling}");
                let params = format!(r#""name":"{tool}","arguments":{{"text":{text}}}"#);
                let ask = Ask { name: Some(tool), ..Ask::new("tools/call", &params) };
                let result = asker.ask(ask, |_| {}).await?;
                right(&result, content(&text).as_bytes())
            }
            Self::Big { tool, params, content } => {
                let ask = Ask { name: Some(tool), ..Ask::new("tools/call", params) };
                let result = asker.ask(ask, |_| {}).await?;
                right(&result, content)
            }
            Self::Slow { tool, params, steps } => {
                let progress = if *steps == 0 { Progress::Quiet } else { Progress::Reported };
                let ask = Ask { name: Some(tool), progress, ..Ask::new("tools/call", params) };
                let mut seen = 0;
                let mut ordered = true;
                let result = asker
                    .ask(ask, |event| {
                        seen += 1;
                        let step = event.params.get("progress").and_then(|step| step.number());
                        ordered &= step == Some(f64::from(seen));
                    })
                    .await?;
                if seen != *steps || !ordered {
                    return Err(format!("expected {steps} steps in order, got {seen}").into());
                }
                right(&result, content("\"done\"").as_bytes())
            }
            Self::List(listing) => match listing.missing(asker).await? {
                None => Ok(()),
                Some(tool) => Err(format!("the list is without `{tool}`, or changed it").into()),
            },
        }
    }
}

fn content(text: &str) -> String {
    let mut content = String::with_capacity(text.len() + 32);
    // A string takes everything.
    let _ = write!(content, r#"[{{"type":"text","text":{text}}}]"#);
    content
}

/// Checks a result; other bytes with the same meaning are right as well.
pub(crate) fn right(result: &Object, content: &[u8]) -> Result<(), Failure> {
    let failed = result.get_bytes("isError").is_some_and(|failed| failed != b"false");
    let got = result.get_bytes("content").unwrap_or_default();
    let same = || -> Result<bool, serde_json::Error> {
        let (got, expected): (Value, Value) =
            (serde_json::from_slice(got)?, serde_json::from_slice(content)?);
        Ok(got == expected)
    };
    if !failed && (got == content || same().unwrap_or(false)) {
        return Ok(());
    }
    let cut = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    if failed && result.get("_meta").is_some_and(|meta| meta.as_str().contains("consort/call")) {
        // The gateway says that the call failed, and how.
        return Err(Refused { status: 200, message: cut(got), overloaded: false }.into());
    }
    let (got, expected) = (cut(result.as_bytes()), cut(content));
    Err(Wrong(format!("a wrong answer: expected {expected}, got {got}")).into())
}

/// A wrong answer: one to another request, or one that no request should get.
#[derive(Debug)]
pub(crate) struct Wrong(String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Wrong {}

/// The tools that a listing must have, and a result that had them.
#[derive(Debug)]
pub(crate) struct Listing {
    tools: BTreeMap<String, Value>,
    accepted: Mutex<Option<Bytes>>,
}

impl Listing {
    pub(crate) fn new(definitions: impl IntoIterator<Item = Value>) -> Self {
        let named = |tool: Value| (tool["name"].as_str().unwrap_or_default().to_owned(), tool);
        Self { tools: definitions.into_iter().map(named).collect(), accepted: Mutex::default() }
    }

    /// Lists all tools and returns one that is missing or differs from its server's definition.
    pub(crate) async fn missing(&self, client: &mut Client) -> Result<Option<String>, Failure> {
        let mut listed = Vec::new();
        let mut params = String::new();
        for page in 0..PAGES {
            let result = client.ask(Ask::new("tools/list", &params), |_| {}).await?;
            if page == 0 && self.is_accepted(&result) {
                return Ok(None);
            }
            let tools = result.get("tools").ok_or("a list without `tools`")?;
            listed.extend(tools.read::<Vec<Value>>()?);
            match result.get("nextCursor") {
                Some(cursor) => params = format!(r#""cursor":{}"#, cursor.as_str()),
                None => {
                    let missing = self.compare(&listed)?;
                    if page == 0 && missing.is_none() {
                        self.accept(&result);
                    }
                    return Ok(missing);
                }
            }
        }
        Err(format!("a list of more than {PAGES} pages").into())
    }

    /// Compares a listing. Additional tools are the gateway's own; a duplicate name is an error.
    fn compare(&self, listed: &[Value]) -> Result<Option<String>, Failure> {
        let mut found = BTreeMap::new();
        for tool in listed {
            let name = tool["name"].as_str().ok_or("a tool without a name")?;
            if found.insert(name, tool).is_some() {
                return Err(format!("`{name}` is listed twice").into());
            }
        }
        let changed = |tool: &Value, expected: &Value| {
            let members = ["description", "inputSchema"];
            members.iter().any(|member| {
                expected.get(member).is_some_and(|value| tool.get(member) != Some(value))
            })
        };
        let missing = self.tools.iter().find(|(name, expected)| {
            found.get(name.as_str()).is_none_or(|tool| changed(tool, expected))
        });
        Ok(missing.map(|(name, _)| name.clone()))
    }

    fn is_accepted(&self, result: &Object) -> bool {
        let accepted = self.accepted.lock();
        accepted.as_deref() == Some(result.as_bytes())
    }

    fn accept(&self, result: &Object) {
        let bytes = Bytes::copy_from_slice(result.as_bytes());
        *self.accepted.lock() = Some(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(value: Value) -> Object {
        Json::from(value).to_object().unwrap()
    }

    #[test]
    fn only_the_text_of_this_very_call_is_right() {
        let expected = content("\"caf\\u00e9\"");
        let answer = |text: &str, failed: bool| {
            let value = json!({"content": [{"type": "text", "text": text}], "isError": failed});
            right(&result(value), expected.as_bytes()).is_ok()
        };
        assert!(answer("caf\u{e9}", false));
        assert!(!answer("cafe", false));
        assert!(!answer("caf\u{e9}", true));
        assert!(right(&result(json!({})), expected.as_bytes()).is_err());
    }

    #[test]
    fn a_list_may_have_more_but_not_less_and_not_twice() {
        let tool = |name: &str, kind: &str| json!({"name": name, "inputSchema": {"type": kind}});
        let listing = Listing::new([tool("a", "object"), tool("b", "object")]);
        let compare = |tools: &[Value]| listing.compare(tools).map_err(|error| error.to_string());
        let (a, b) = (tool("a", "object"), tool("b", "object"));
        assert_eq!(compare(&[b.clone(), tool("c", "x"), a.clone()]), Ok(None));
        assert_eq!(compare(&[a.clone(), tool("b", "string")]), Ok(Some("b".to_owned())));
        assert_eq!(compare(std::slice::from_ref(&b)), Ok(Some("a".to_owned())));
        assert_eq!(compare(&[a.clone(), b, a]), Err("`a` is listed twice".to_owned()));
    }
}
