//! Calls of earlier times, read from the ledger.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use consort_core::{Caller, CallingAgent};

use super::{CallFeed, LiveCall, LiveCallEnd, lock};
use crate::ledger::{CallIntent, CallRow, ValueDigest};
use consort_protocol::trace::TraceId;

/// The caller that a record names.
fn recorded_caller(kind: &str, name: String) -> Caller {
    match kind {
        "person" => Caller::person(name),
        "agent" => Caller::agent(name),
        _ if name == Caller::OWNER => Caller::owner(),
        _ => Caller::client(name),
    }
}

impl CallFeed {
    /// Adds calls of earlier times behind the known ones, the oldest first.
    pub fn seed(&self, rows: Vec<CallRow>) {
        let Some(inner) = &self.0 else { return };
        let calls: Vec<LiveCall> = rows.into_iter().map(LiveCall::from).collect();
        let mut known: HashSet<i64> = self.running().iter().map(LiveCall::id).collect();
        let mut past = lock(&inner.past);
        known.extend(past.iter().map(LiveCall::id));
        for call in calls.into_iter().rev() {
            if past.len() < inner.most && call.end().is_some() && known.insert(call.id()) {
                past.push_front(call);
            }
        }
    }
}

impl From<CallRow> for LiveCall {
    fn from(row: CallRow) -> Self {
        let sha256 = bytes(&row.digest);
        let intent = CallIntent {
            caller: recorded_caller(&row.caller_kind, row.caller),
            endpoint: row.endpoint.into(),
            server: row.server.and_then(|server| server.parse().ok()),
            method: row.method.into(),
            name: row.name,
            arguments: ValueDigest {
                bytes: row.bytes_in.try_into().unwrap_or(0),
                sha256: sha256.unwrap_or_default(),
            },
            trace: row.trace.as_deref().and_then(bytes).and_then(TraceId::of),
            agent: row
                .agent
                .zip(row.model)
                .map(|(name, model)| Arc::new(CallingAgent { name, model })),
        };
        let call = Self::new(row.micros, Instant::now(), Arc::new(intent), sha256.is_some());
        if let Some(class) = row.outcome {
            let number = |number: Option<i64>| number.and_then(|it| u64::try_from(it).ok());
            let took = number(row.duration_us).map(Duration::from_micros);
            call.finish(LiveCallEnd { class, took, bytes: number(row.bytes_out) });
        }
        call
    }
}

/// Decodes bytes from hexadecimal digits, if there are exactly `N`.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|it| u8::try_from(it).ok());
    let mut read = [0; N];
    let text = text.as_bytes();
    for (byte, pair) in read.iter_mut().zip(text.chunks(2)) {
        *byte = digit(pair[0])? << 4 | digit(*pair.get(1)?)?;
    }
    (text.len() == 2 * N).then_some(read)
}
