//! A browser and a client, as far as the tests need them: requests, cookies, redirects, forms.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn location(&self) -> String {
        self.header("location").unwrap_or_else(|| panic!("no redirect: {self:?}")).to_owned()
    }

    /// The value of a hidden field.
    #[track_caller]
    pub(crate) fn hidden(&self, name: &str) -> String {
        let mark = format!("name=\"{name}\" value=\"");
        let (_, rest) =
            self.body.split_once(&mark).unwrap_or_else(|| panic!("no `{name}`: {self:?}"));
        rest.split('"').next().unwrap().to_owned()
    }
}

/// Sends a request, and returns the response.
pub(crate) async fn send(
    url: &str,
    method: &str,
    headers: &[(&str, &str)],
    body: Option<(&str, &str)>,
) -> Answer {
    let behind = url.strip_prefix("http://").unwrap_or_else(|| panic!("not local: {url}"));
    let (authority, path) = behind.split_once('/').unwrap_or((behind, ""));
    let mut stream = TcpStream::connect(authority).await.unwrap();
    let mut head = format!("{method} /{path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        write!(head, "host: {authority}\r\n").unwrap();
    }
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    if let Some((kind, body)) = body {
        write!(head, "content-type: {kind}\r\ncontent-length: {}\r\n", body.len()).unwrap();
    }
    head += "\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    if let Some((_, body)) = body {
        stream.write_all(body.as_bytes()).await.unwrap();
    }
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let is_chunked =
        headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if is_chunked { unchunked(body) } else { body.to_owned() };
    Answer { status, headers, body }
}

fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, behind)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
        if size == 0 || behind.len() < size {
            break;
        }
        body += &behind[..size];
        rest = behind[size..].trim_start_matches("\r\n");
    }
    body
}

/// Encodes a form.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    consort_oauth::form::encode(fields.iter().copied())
}

/// The parameters of a URL.
pub(crate) fn parameters(url: &str) -> BTreeMap<String, String> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    consort_oauth::form::decode(query).into_iter().collect()
}

/// A browser with its cookies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Browser {
    pub(crate) cookies: BTreeMap<String, String>,
}

impl Browser {
    fn cookie_header(&self) -> String {
        let pairs = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("; ")
    }

    fn keep(&mut self, answer: &Answer) {
        for (_, value) in answer.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (name, rest) = value.split_once('=').unwrap();
            let content = rest.split(';').next().unwrap();
            if value.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), content.to_owned());
            }
        }
    }

    pub(crate) async fn request(
        &mut self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        let cookies = self.cookie_header();
        let mut all = headers.to_vec();
        if !cookies.is_empty() {
            all.push(("cookie", &cookies));
        }
        let body = body.map(|body| ("application/x-www-form-urlencoded", body));
        let answer = send(url, method, &all, body).await;
        self.keep(&answer);
        answer
    }

    /// Opens a page, as by a link.
    pub(crate) async fn open(&mut self, url: &str) -> Answer {
        let headers = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        self.request("GET", url, &headers, None).await
    }

    /// Sends a form of a page at the same origin.
    pub(crate) async fn submit(&mut self, url: &str, fields: &[(&str, &str)]) -> Answer {
        let origin: String = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        let headers = [
            ("origin", origin.as_str()),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        self.request("POST", url, &headers, Some(&form(fields))).await
    }

    /// Opens a page and follows redirects as long as they stay at this origin.
    pub(crate) async fn follow(&mut self, url: &str, origin: &str) -> (String, Answer) {
        let mut url = url.to_owned();
        for _ in 0..10 {
            let answer = self.open(&url).await;
            match answer.header("location") {
                Some(next) if next.starts_with(origin) => next.clone_into(&mut url),
                _ => return (url, answer),
            }
        }
        panic!("redirects without end: {url}");
    }
}
