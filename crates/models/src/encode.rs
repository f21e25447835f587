//! Requests in each wire format.

use crate::endpoint::{Endpoint, HttpRequest};
use crate::formats::{anthropic, chat, gemini, responses};
use crate::request::Ask;
use crate::tool_list::Offered;
use crate::wire_format::Wire;

impl Wire {
    /// Builds the request for this question at this endpoint.
    pub fn request(self, ask: &Ask, endpoint: &Endpoint) -> HttpRequest {
        self.request_with(ask, endpoint, &Offered::new(self, ask))
    }

    /// Builds the request with tool definitions that were prepared before.
    pub(crate) fn request_with(
        self,
        ask: &Ask,
        endpoint: &Endpoint,
        offered: &Offered,
    ) -> HttpRequest {
        let names = &*offered.names;
        let mut members = match self {
            Self::OpenAiChat => chat::body(ask, names, endpoint),
            Self::OpenAiResponses => responses::body(ask, names),
            Self::Anthropic => anthropic::body(ask, names),
            Self::Gemini => gemini::body(ask, names),
        };
        endpoint.amend(&mut members);
        let mut body = Vec::with_capacity(offered.tools.len() + 4096);
        serde_json::to_writer(&mut body, &members).expect("a map of values always serialises");
        if !offered.tools.is_empty() && !endpoint.body.contains_key("tools") {
            body.pop();
            body.extend_from_slice(if members.is_empty() { b"\"tools\":" } else { b",\"tools\":" });
            body.extend_from_slice(&offered.tools);
            body.push(b'}');
        }
        HttpRequest {
            method: "POST",
            url: endpoint.url(&self.path(ask, endpoint)),
            headers: endpoint.headers_for(self, ask.delivery),
            body,
        }
    }

    fn path(self, ask: &Ask, endpoint: &Endpoint) -> String {
        match self {
            Self::OpenAiChat => "/chat/completions".to_owned(),
            Self::OpenAiResponses => "/responses".to_owned(),
            Self::Anthropic if endpoint.ends_in_version() => "/messages".to_owned(),
            Self::Anthropic => "/v1/messages".to_owned(),
            Self::Gemini => gemini::path(ask),
        }
    }
}
