//! Answers that are told as they happen.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::serve::Serving;

/// A stream of events. Dropped, the client leaves.
pub(super) struct Stream {
    reader: BufReader<TcpStream>,
    pub(super) status: u16,
    text: String,
}

impl Stream {
    pub(super) fn get(serving: &Serving, path: &str) -> Self {
        Self::open(serving, &format!("GET {path} HTTP/1.1"), "")
    }

    pub(super) fn post(serving: &Serving, path: &str, body: &Value) -> Self {
        Self::open(serving, &format!("POST {path} HTTP/1.1"), &body.to_string())
    }

    pub(super) fn call(serving: &Serving, tool: &str, arguments: &Value) -> Self {
        let body = serde_json::json!({ "tool": tool, "arguments": arguments });
        Self::post(serving, "/api/calls", &body)
    }

    pub(super) fn open(serving: &Serving, line: &str, body: &str) -> Self {
        let mut stream = TcpStream::connect(&serving.address).unwrap();
        stream.set_read_timeout(Some(super::PATIENCE)).unwrap();
        let token = serving.token.as_deref().unwrap();
        let request = format!(
            "{line}\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            line
        };
        let status = line()[9..12].parse().unwrap();
        while !line().trim().is_empty() {}
        Self { reader, status, text: String::new() }
    }

    /// The next event as it was written: its name and its data.
    pub(super) fn written(&mut self) -> Option<(String, String)> {
        loop {
            if let Some(at) = self.text.find("\n\n") {
                let rest = self.text.split_off(at + 2);
                let event = std::mem::replace(&mut self.text, rest);
                let Some((name, data)) = event.trim_end().split_once('\n') else { continue };
                let name = name.strip_prefix("event: ").unwrap().to_owned();
                return Some((name, data.strip_prefix("data: ").unwrap().to_owned()));
            }
            let mut size = String::new();
            self.reader.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.reader.read_exact(&mut chunk).unwrap();
            if size == 0 {
                return None;
            }
            self.text.push_str(std::str::from_utf8(&chunk[..size]).unwrap());
        }
    }

    /// The next event.
    pub(super) fn next(&mut self) -> Option<(String, Value)> {
        self.written().map(|(name, data)| (name, serde_json::from_str(&data).unwrap()))
    }

    /// The next event of this name.
    pub(super) fn until(&mut self, name: &str) -> Value {
        loop {
            let (known, data) = self.next().expect("it comes");
            if known == name {
                return data;
            }
        }
    }

    /// All events, the end last.
    pub(super) fn all(mut self) -> Vec<(String, Value)> {
        std::iter::from_fn(|| self.next()).collect()
    }
}
