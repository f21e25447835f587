//! The protocol revision in force for one server, and the members that every request carries in it.

use consort_protocol::splice::ObjectWriter;
use consort_protocol::{ClientCapabilities, Era, Json, Revision, TASKS_EXTENSION, TaskHandling};
use serde::{Deserialize, Serialize};

use crate::request::OutgoingRequest;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Name and version of the client, sent to servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientInfo {
    /// For example `consort`.
    pub name: String,
    /// For example `0.1.0`.
    pub version: String,
}

impl Default for ClientInfo {
    fn default() -> Self {
        Self { name: "consort".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// The protocol revision in force, and the members that every request carries in it.
#[derive(Clone, Debug)]
pub(crate) struct RequestDialect {
    pub(crate) revision: Revision,
    pub(crate) client: Json,
    /// Declared capabilities, without and with tasks.
    capabilities: [Json; 2],
    /// The members of `_meta` that are the same on every modern request.
    pub(crate) meta: Vec<u8>,
}

impl RequestDialect {
    /// The members of `_meta` that this client sets itself.
    pub(crate) const RESERVED: [&str; 5] =
        ["progressToken", VERSION, CLIENT, CAPABILITIES, LOG_LEVEL];

    pub(crate) fn new(
        revision: Revision,
        client: &ClientInfo,
        offers: &ClientCapabilities,
    ) -> Self {
        let client = Json::from_value(client).expect("two strings always serialise");
        let plain = offers.capabilities(revision);
        let mut with_tasks = offers.clone();
        with_tasks
            .extensions
            .entry(TASKS_EXTENSION.to_owned())
            .or_insert_with(|| Json::from(serde_json::json!({})));
        let capabilities = [plain, with_tasks.capabilities(revision)];
        let mut meta = Vec::new();
        if revision.era() == Era::Modern {
            meta = format!(r#""{VERSION}":"{revision}","{CLIENT}":{client}"#).into_bytes();
        }
        Self { revision, client, capabilities, meta }
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.revision.era() == Era::Modern
    }

    /// Capabilities declared in `initialize`.
    pub(crate) fn initial_capabilities(&self) -> &Json {
        &self.capabilities[0]
    }

    /// Writes the members of `_meta` that this era requires.
    pub(crate) fn write_meta(&self, meta: &mut ObjectWriter, request: &OutgoingRequest) {
        if !self.is_modern() {
            return;
        }
        meta.spliced(&self.meta);
        let own = &self.capabilities[usize::from(request.tasks != TaskHandling::Never)];
        meta.raw(CAPABILITIES, request.capabilities.as_ref().unwrap_or(own).as_bytes());
        if let Some(level) = request.log {
            meta.text(LOG_LEVEL, level.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::FollowUpRound;
    use consort_protocol::LogLevel;

    fn dialect(revision: Revision) -> RequestDialect {
        let client = ClientInfo { name: "c".to_owned(), version: "1".to_owned() };
        RequestDialect::new(
            revision,
            &client,
            &ClientCapabilities { form: true, ..ClientCapabilities::default() },
        )
    }

    fn written(
        request: &OutgoingRequest,
        revision: Revision,
        round: Option<&FollowUpRound>,
    ) -> String {
        String::from_utf8(request.write(7, &dialect(revision), round, false).to_vec()).unwrap()
    }

    #[test]
    fn a_legacy_request_carries_a_progress_token_and_no_more() {
        let arguments = Json::parse(r#"{"a": 1.0}"#).unwrap();
        assert_eq!(
            written(&OutgoingRequest::tool("echo", &arguments), Revision::V2025_11_25, None),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a": 1.0},"_meta":{"progressToken":7}}}"#
        );
        assert_eq!(
            written(&OutgoingRequest::new("tools/list"), Revision::V2025_11_25, None),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}"#
        );
    }

    #[test]
    fn a_modern_request_says_who_asks_and_what_it_offers() {
        assert_eq!(
            written(
                &OutgoingRequest::new("tools/list").tasks(TaskHandling::Never).log(LogLevel::Info),
                Revision::V2026_07_28,
                None
            ),
            concat!(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"#,
                r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"#,
                r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"#,
                r#""io.modelcontextprotocol/logLevel":"info"}}}"#,
            )
        );
        let text = written(&OutgoingRequest::resource("file:///a"), Revision::V2026_07_28, None);
        assert!(text.contains(r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#), "{text}");
    }

    #[test]
    fn forwarded_parameters_keep_everything_but_what_is_ours() {
        let params = Json::parse(r#"{"odd": 1e2,"_meta":{"progressToken":"theirs","traceparent":"00-1"},"name":"a","arguments":{}}"#)
            .unwrap()
            .to_object()
            .unwrap();
        let round = FollowUpRound { responses: None, state: Some(Json::string("s\u{e9}")) };
        assert_eq!(
            written(
                &OutgoingRequest::forward("tools/call", &params).with("name", Json::string("b")),
                Revision::V2025_11_25,
                Some(&round)
            ),
            concat!(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"odd":1e2,"name":"b","arguments":{},"#,
                "\"requestState\":\"s\u{e9}\",",
                r#""_meta":{"traceparent":"00-1","progressToken":7}}}"#,
            )
        );
    }
}
