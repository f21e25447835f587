//! Requests in each wire format.

use crate::endpoint::{HttpRequest, ProviderEndpoint};
use crate::formats::{anthropic, chat, gemini, responses};
use crate::request::ModelRequest;
use crate::tool_list::PreparedTools;
use crate::wire_format::WireFormat;

impl WireFormat {
    /// Builds the request for this question at this endpoint.
    pub fn request(self, request: &ModelRequest, endpoint: &ProviderEndpoint) -> HttpRequest {
        self.request_with(request, endpoint, &PreparedTools::new(self, request))
    }

    /// Builds the request with tool definitions that were prepared before.
    pub(crate) fn request_with(
        self,
        request: &ModelRequest,
        endpoint: &ProviderEndpoint,
        prepared: &PreparedTools,
    ) -> HttpRequest {
        let names = &*prepared.names;
        let mut members = match self {
            Self::OpenAiChat => chat::body(request, names, endpoint),
            Self::OpenAiResponses => responses::body(request, names),
            Self::Anthropic => anthropic::body(request, names),
            Self::Gemini => gemini::body(request, names),
        };
        endpoint.apply_body(&mut members);
        let mut body = Vec::with_capacity(prepared.tools.len() + 4096);
        serde_json::to_writer(&mut body, &members).expect("a map of values always serialises");
        if !prepared.tools.is_empty() && !endpoint.body.contains_key("tools") {
            body.pop();
            body.extend_from_slice(if members.is_empty() { b"\"tools\":" } else { b",\"tools\":" });
            body.extend_from_slice(&prepared.tools);
            body.push(b'}');
        }
        HttpRequest {
            method: "POST",
            url: endpoint.url(&self.path(request, endpoint)),
            headers: endpoint.headers_for(self, request.delivery),
            body,
        }
    }

    fn path(self, request: &ModelRequest, endpoint: &ProviderEndpoint) -> String {
        match self {
            Self::OpenAiChat => "/chat/completions".to_owned(),
            Self::OpenAiResponses => "/responses".to_owned(),
            Self::Anthropic if endpoint.ends_in_version() => "/messages".to_owned(),
            Self::Anthropic => "/v1/messages".to_owned(),
            Self::Gemini => gemini::path(request),
        }
    }
}
