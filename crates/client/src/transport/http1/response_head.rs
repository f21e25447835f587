//! Heads of responses.

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::body_decoder::{BodyDecoder, ChunkDecoder};
use super::request_message::RequestMessage;

/// Headers of a response for which the parser has room in the first try.
const USUAL_HEADERS: usize = 24;
/// Limit of headers of one response of a server.
const MOST_HEADERS: usize = 100;

/// The head of a response.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: StatusCode,
    pub(crate) content: ResponseContent,
    /// Headers of a response that is no success, has unexpected content, or answers a request that wants them; empty
    /// otherwise.
    pub(crate) headers: HeaderMap,
    pub(super) keep_alive: bool,
    pub(super) body: BodyDecoder,
}

/// Content of a response, by its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseContent {
    Json,
    Events,
    Other,
}

impl ResponseContent {
    fn of(content_type: &str) -> Self {
        if content_type == "application/json" {
            return Self::Json;
        }
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/json") {
            Self::Json
        } else if essence.eq_ignore_ascii_case("text/event-stream") {
            Self::Events
        } else {
            Self::Other
        }
    }
}

/// Facts of the headers.
#[derive(Default)]
struct Framing {
    content_type: Option<ResponseContent>,
    is_encoded: bool,
    length: Option<u64>,
    has_transfer_encoding: bool,
    closes: bool,
}

impl Framing {
    fn read(headers: &[httparse::Header<'_>]) -> Result<Self, String> {
        let mut framing = Self::default();
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            // Names of other lengths are not compared.
            match header.name.len() {
                10 if is("connection") => {
                    framing.closes |=
                        tokens(header.value).any(|token| token.eq_ignore_ascii_case(b"close"));
                }
                12 if is("content-type") && framing.content_type.is_none() => {
                    let text = std::str::from_utf8(header.value).unwrap_or_default();
                    framing.content_type = Some(ResponseContent::of(text));
                }
                14 if is("content-length") => framing.add_length(header.value)?,
                16 if is("content-encoding") => framing.is_encoded = true,
                17 if is("transfer-encoding") => framing.add_coding(header.value)?,
                _ => {}
            }
        }
        Ok(framing)
    }

    fn add_length(&mut self, value: &[u8]) -> Result<(), String> {
        let digits = value.trim_ascii();
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let number = is_number.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten();
        match (number, self.length.replace(number.unwrap_or_default())) {
            (Some(_), None) => Ok(()),
            (Some(_), Some(_)) => Err("its response has more than one Content-Length".to_owned()),
            (None, _) => Err("its response has an invalid Content-Length".to_owned()),
        }
    }

    fn add_coding(&mut self, value: &[u8]) -> Result<(), String> {
        let is_chunked = value.trim_ascii().eq_ignore_ascii_case(b"chunked");
        if self.has_transfer_encoding || !is_chunked {
            return Err("its response has a Transfer-Encoding other than `chunked`".to_owned());
        }
        self.has_transfer_encoding = true;
        Ok(())
    }

    /// Returns the content: a small encoded body could decode to a large one, and none was asked for.
    fn content(&self) -> ResponseContent {
        match self.content_type {
            Some(content) if !self.is_encoded => content,
            _ => ResponseContent::Other,
        }
    }
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

impl ResponseHead {
    /// Parses a head. Returns it with its length, or `None` if it is incomplete.
    pub(super) fn parse(
        bytes: &[u8],
        request: &RequestMessage,
    ) -> Result<Option<(Self, usize)>, String> {
        let mut headers = [httparse::EMPTY_HEADER; USUAL_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        match response.parse(bytes) {
            Ok(httparse::Status::Partial) => Ok(None),
            Ok(httparse::Status::Complete(length)) => {
                Ok(Some((Self::new(&response, request)?, length)))
            }
            Err(httparse::Error::TooManyHeaders) => {
                let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
                let mut response = httparse::Response::new(&mut headers);
                match response.parse(bytes) {
                    Ok(httparse::Status::Partial) => Ok(None),
                    Ok(httparse::Status::Complete(length)) => {
                        Ok(Some((Self::new(&response, request)?, length)))
                    }
                    Err(error) => Err(format!("its response is invalid: {error}")),
                }
            }
            Err(error) => Err(format!("its response is invalid: {error}")),
        }
    }

    fn new(
        response: &httparse::Response<'_, '_>,
        request: &RequestMessage,
    ) -> Result<Self, String> {
        let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
        let status = status.ok_or("its response has an invalid status")?;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err("it switches to another protocol, which was not asked for".to_owned());
        }
        let is_1_1 = response.version == Some(1);
        let framing = Framing::read(response.headers)?;
        let content = framing.content();
        let has_no_body = request.is_head
            || status.is_informational()
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if framing.has_transfer_encoding && !is_1_1 {
            return Err("its response of HTTP/1.0 has a Transfer-Encoding".to_owned());
        }
        // Both lengths: the chunked one counts, and the connection ends (RFC 9112, section 6.3).
        let is_ambiguous = framing.has_transfer_encoding && framing.length.is_some();
        let body = match framing.length {
            _ if has_no_body => BodyDecoder::Done,
            _ if framing.has_transfer_encoding => BodyDecoder::Chunked(ChunkDecoder::default()),
            Some(length) => BodyDecoder::Length(length),
            None => BodyDecoder::UntilClose,
        };
        let keeps = request.keep_headers
            || !status.is_success()
            || (content == ResponseContent::Other && !body.is_done());
        Ok(Self {
            status,
            content,
            headers: if keeps { to_map(response.headers) } else { HeaderMap::new() },
            keep_alive: is_1_1 && !framing.closes && !is_ambiguous,
            body,
        })
    }

    /// Returns the content type, for an error message.
    pub(crate) fn content_type(&self) -> &str {
        let value = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        value.unwrap_or("no content type")
    }
}

fn to_map(headers: &[httparse::Header<'_>]) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(headers.len());
    for header in headers {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(header.value)) {
            map.append(name, value);
        }
    }
    map
}
