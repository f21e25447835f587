//! A request, read by hand.

use std::collections::HashMap;
use std::io;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufStream};

use super::Wire;

/// The head of a request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// `POST`, `GET` or `DELETE`.
    pub method: String,
    /// With its query.
    pub path: String,
    /// By lower-case name.
    pub headers: HashMap<String, String>,
}

pub(super) async fn read(
    stream: &mut BufStream<impl Wire>,
) -> io::Result<Option<(Request, Vec<u8>)>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, path) =
        (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some((Request { method, path, headers }, body)))
}
