//! Results too large to return whole: spilled, and read in parts as a resource.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use consort_core::{
    Call, CallError, Caller, CatalogEntry, CatalogRoute, ContentBlock, Json, Object, Operation,
    ServerId, ToolResult,
};
use parking_lot::Mutex;
use serde_json::json;

use crate::limits::ResultLimits;
use crate::transform::ResultCap;

/// The server id of items that Consort adds itself.
pub(crate) static OWNER: LazyLock<ServerId> = LazyLock::new(|| ServerId::derive("consort"));

/// URI prefix of spilled results.
const URI_PREFIX: &str = "consort://results/";

/// Bytes of a part, unless the request says otherwise.
const DEFAULT_PART: usize = 64 << 10;

/// Spilled results. Each is readable by the caller that received its beginning.
#[derive(Debug)]
pub(crate) struct SpillStore {
    results: Mutex<VecDeque<SpilledResult>>,
    random: RandomState,
    /// Bytes spilled at once; the oldest results are dropped first.
    bytes: usize,
    /// Time for which each result is kept.
    time: Duration,
}

impl Default for SpillStore {
    fn default() -> Self {
        Self::new(ResultLimits::default())
    }
}

#[derive(Debug)]
struct SpilledResult {
    id: String,
    caller: Caller,
    text: String,
    since: Instant,
}

/// Resource template for reading spilled results.
pub(crate) fn template() -> CatalogEntry {
    let pattern = format!("{URI_PREFIX}{{id}}{{?from,bytes}}");
    let definition = json!({
        "uriTemplate": pattern,
        "name": "results",
        "description": "The rest of a result that was too large: `from` is the byte offset, `bytes` the \
                        number of bytes to read.",
        "mimeType": "text/plain",
    });
    let definition = Json::from(definition).to_object().expect("it was written as one");
    let route = CatalogRoute { server: OWNER.clone(), name: pattern.clone() };
    CatalogEntry { route, name: pattern, definition }
}

/// Returns the URI of the result that a call reads, if it reads one.
pub(crate) fn spilled_uri(call: &Call) -> Option<&str> {
    match &call.operation {
        Operation::ReadResource { server, uri } if *server == *OWNER => {
            uri.starts_with(URI_PREFIX).then_some(uri)
        }
        _ => None,
    }
}

impl SpillStore {
    pub(crate) fn new(limits: ResultLimits) -> Self {
        let (bytes, time) = (limits.spilled_bytes, limits.spill_time);
        Self { results: Mutex::default(), random: RandomState::new(), bytes, time }
    }

    /// Returns the result, or its beginning and the URI of the rest.
    pub(crate) fn cap(
        &self,
        cap: ResultCap,
        caller: &Caller,
        tool: &str,
        result: ToolResult,
    ) -> ToolResult {
        let size = result.object().as_bytes().len();
        if size <= cap.bytes {
            return result;
        }
        let text = match (result.content().as_slice(), result.structured_content()) {
            ([ContentBlock::Text(text)], _) => text.text.clone(),
            (_, Some(structured)) => structured.as_str().to_owned(),
            _ => result.json().as_str().to_owned(),
        };
        let shown = text.floor_char_boundary(cap.preview).min(text.len());
        let (preview, bytes) = (text[..shown].to_owned(), text.len());
        let uri = format!("{URI_PREFIX}{}", self.spill(caller, text));
        let note = format!(
            "[the first {shown} of {bytes} bytes; the rest is the resource {uri}?from={shown}]"
        );
        let link = json!({
            "type": "resource_link", "uri": uri, "name": format!("result of {tool}"),
            "mimeType": "text/plain", "size": bytes,
        });
        let content = [
            ContentBlock::text(preview),
            ContentBlock::text(note),
            ContentBlock::from_json(&link.into()),
        ];
        ToolResult::new(&content, None, result.is_error())
    }

    fn spill(&self, caller: &Caller, text: String) -> String {
        let mut results = self.results.lock();
        let now = Instant::now();
        results.retain(|spilled| now.duration_since(spilled.since) < self.time);
        let mut held: usize =
            results.iter().map(|spilled| spilled.text.len()).sum::<usize>() + text.len();
        while held > self.bytes
            && let Some(oldest) = results.pop_front()
        {
            held -= oldest.text.len();
        }
        let seed = (now, results.len(), text.len());
        let id = format!("{:016x}", self.random.hash_one(seed));
        let (id_again, caller) = (id.clone(), caller.clone());
        results.push_back(SpilledResult { id, caller, text, since: now });
        id_again
    }

    /// Returns a part of a spilled result to the caller that received its beginning.
    pub(crate) fn read(&self, caller: &Caller, uri: &str) -> Result<Object, CallError> {
        let unknown = || {
            CallError::Execution {
            server: OWNER.clone(),
            message: format!("unknown result `{}`", uri.escape_debug()),
            code: -32002,
            raw: json!({
                "code": -32002,
                "message": "unknown result: it may have expired (`aside_time` in `[consort.limits]`)",
                "data": { "uri": uri },
            })
            .into(),
        }
        };
        let path = uri.strip_prefix(URI_PREFIX);
        let (id, query) = match path.ok_or_else(unknown)?.split_once('?') {
            Some((id, query)) => (id, query),
            None => (path.unwrap_or_default(), ""),
        };
        let number = |wanted: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(name, _)| *name == wanted)?.1.parse::<usize>().ok()
        };
        let (from, bytes) = (number("from").unwrap_or(0), number("bytes").unwrap_or(DEFAULT_PART));
        let results = self.results.lock();
        let mine = |spilled: &&SpilledResult| {
            spilled.id == id
                && spilled.caller.is_same_party(caller)
                && spilled.since.elapsed() < self.time
        };
        let spilled = results.iter().find(mine).ok_or_else(unknown)?;
        let from = spilled.text.floor_char_boundary(from);
        let to = spilled.text.floor_char_boundary(from.saturating_add(bytes)).max(from);
        let part = &spilled.text[from..to];
        let contents = json!({ "contents": [{
            "uri": uri, "mimeType": "text/plain", "text": part,
            "_meta": { "consort/from": from, "consort/to": to, "consort/size": spilled.text.len() },
        }] });
        Ok(Json::from(contents).to_object().expect("it was written as one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(store: &SpillStore, who: &str, uri: &str) -> Result<Object, CallError> {
        store.read(&Caller::client(who), uri)
    }

    fn text(result: &Object) -> String {
        let contents: serde_json::Value = result.json().read().unwrap();
        contents["contents"][0]["text"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_large_result_is_shown_in_part_and_read_in_parts_by_its_caller_alone() {
        let store = SpillStore::default();
        let (alice, cap) = (Caller::client("alice"), ResultCap { bytes: 100, preview: 10 });
        let small = ToolResult::text("x".repeat(10));
        assert_eq!(store.cap(cap, &alice, "t", small.clone()), small);
        // The tenth byte is in the middle of a letter.
        let long = format!("{}äöü{}", "a".repeat(9), "z".repeat(200));
        let capped = store.cap(cap, &alice, "t", ToolResult::text(long.clone()));
        let shown: serde_json::Value = capped.json().read().unwrap();
        assert_eq!(shown["content"][0]["text"], "a".repeat(9));
        let uri = shown["content"][2]["uri"].as_str().unwrap();
        let rest = read(&store, "alice", &format!("{uri}?from=9")).unwrap();
        assert_eq!(text(&rest), long[9..]);
        let part = read(&store, "alice", &format!("{uri}?from=9&bytes=2")).unwrap();
        assert_eq!(text(&part), "ä");
        assert!(read(&store, "mallory", uri).is_err());
        assert!(read(&store, "alice", "consort://results/0").is_err());
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let store = SpillStore { bytes: 1_000, ..SpillStore::default() };
        let (alice, cap) = (Caller::client("alice"), ResultCap { bytes: 1, preview: 1 });
        let put = || {
            let capped = store.cap(cap, &alice, "t", ToolResult::text("x".repeat(500)));
            let shown: serde_json::Value = capped.json().read().unwrap();
            shown["content"][2]["uri"].as_str().unwrap().to_owned()
        };
        let (first, _, third) = (put(), put(), put());
        assert!(read(&store, "alice", &first).is_err());
        assert!(read(&store, "alice", &third).is_ok());
    }
}
