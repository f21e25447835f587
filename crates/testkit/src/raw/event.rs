//! Raw events of a stream, with their ids.

use serde_json::Value;

use super::Exchange;

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct RawEvent {
    /// Its id.
    pub id: Option<String>,
    /// The message; a priming event has none.
    pub message: Option<Value>,
    /// The `retry` field, in milliseconds.
    pub retry: Option<u64>,
}

impl Exchange {
    /// Reads the next event of a stream, with or without a message; `None` when it ends or breaks off.
    pub async fn event(&mut self) -> Option<RawEvent> {
        loop {
            if let Some(at) = self.text.find("\n\n") {
                let rest = self.text.split_off(at + 2);
                let event = std::mem::replace(&mut self.text, rest);
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                let (id, data) = (field("id: ").map(ToOwned::to_owned), field("data:"));
                let retry = field("retry: ").map(|retry| retry.parse().unwrap());
                if id.is_none() && data.is_none() && retry.is_none() {
                    continue;
                }
                let message = data.and_then(|data| serde_json::from_str(data).ok());
                return Some(RawEvent { id, message, retry });
            }
            let chunk = self.wire.chunk().await?;
            self.text.push_str(&String::from_utf8(chunk).unwrap());
        }
    }
}
