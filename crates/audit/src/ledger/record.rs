//! The records of a call, and the hash that chains each to the one before.

use std::str::FromStr;

use consort_core::{Caller, RejectReason};
use rusqlite::types::ValueRef;
use sha2::{Digest as _, Sha256};

use super::intent::{CallIntent, OutcomeClass};
use super::usage::{ModelUsage, UsageCost};

/// The columns that a record's hash covers, in this order.
pub(super) const COLUMNS: &str = "seq, kind, time, run, call, caller_kind, caller, front, server, \
     method, name, trace, digest, bytes_in, class, code, sent, duration, bytes_out, count, \
     agent, model, tokens_in, tokens_out, cached_read, cached_write, reasoning, cost, caller_id";

/// The same columns in a file of version 2, which has no ids of users.
pub(super) const COLUMNS_V2: &str = "seq, kind, time, run, call, caller_kind, caller, front, server, \
     method, name, trace, digest, bytes_in, class, code, sent, duration, bytes_out, count, \
     agent, model, tokens_in, tokens_out, cached_read, cached_write, reasoning, cost, \
     NULL AS caller_id";

/// The same columns in a file of version 1, which has none about models either.
pub(super) const COLUMNS_V1: &str = "seq, kind, time, run, call, caller_kind, caller, front, server, \
     method, name, trace, digest, bytes_in, class, code, sent, duration, bytes_out, count, \
     NULL AS agent, NULL AS model, NULL AS tokens_in, NULL AS tokens_out, NULL AS cached_read, \
     NULL AS cached_write, NULL AS reasoning, NULL AS cost, NULL AS caller_id";

/// Number of columns.
pub(super) const WIDTH: usize = 29;

/// Number of columns in version 2.
pub(super) const WIDTH_V2: usize = 28;

/// Number of columns in version 1. The hash of a record covers the columns of a later version only if one of them has a
/// value: records of earlier versions keep their hashes.
pub(super) const WIDTH_V1: usize = 20;

/// The hash of a record, which covers the hash of the one before.
pub(super) type RecordHash = [u8; 32];

/// The hash that the first record follows.
pub(super) const GENESIS: RecordHash = [0; 32];

impl OutcomeClass {
    /// Returns the value of the column `code`: the server's code, or the number of the reason for a refusal.
    pub(super) fn written_code(self) -> Option<i64> {
        match self {
            Self::Rejected { reason } => reason.map(number_of),
            other => other.code(),
        }
    }

    /// Reads a class from its columns.
    pub(super) fn read(word: &str, code: Option<i64>, sent: Option<bool>) -> Option<Self> {
        let all = [
            Self::Ok,
            Self::ToolError,
            Self::Rejected { reason: code.and_then(reason_of) },
            Self::NotSent,
            Self::OutcomeUnknown,
            Self::Cancelled { sent },
            Self::Error { code },
        ];
        all.into_iter().find(|class| class.as_str() == word)
    }
}

/// The numbers of the reasons in the column `code`. They are on disk and must never change.
const REASONS: [(i64, RejectReason); 8] = [
    (1, RejectReason::PolicyHidden),
    (2, RejectReason::PolicyDenied),
    (3, RejectReason::LockWithheld),
    (4, RejectReason::UnknownName),
    (5, RejectReason::AmbiguousName),
    (6, RejectReason::InvalidArguments),
    (7, RejectReason::OverLimit),
    (8, RejectReason::LedgerUnavailable),
];

fn number_of(reason: RejectReason) -> i64 {
    REASONS.iter().find(|(_, known)| *known == reason).map_or(0, |(number, _)| *number)
}

fn reason_of(number: i64) -> Option<RejectReason> {
    REASONS.iter().find(|(known, _)| *known == number).map(|(_, reason)| *reason)
}

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// A process began to write.
    Opened,
    /// A call is about to be made.
    Intent,
    /// An intent whose record was dropped while the call was in progress.
    Carried,
    /// A call ended.
    Outcome,
    /// A call that began and ended before it was written.
    Call,
    /// A number of calls could not be written.
    Lost,
    /// All records up to `call`, whose hash is `digest`, were dropped.
    Checkpoint,
}

impl RecordKind {
    const ALL: [Self; 7] = [
        Self::Opened,
        Self::Intent,
        Self::Carried,
        Self::Outcome,
        Self::Call,
        Self::Lost,
        Self::Checkpoint,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Intent => "intent",
            Self::Carried => "carried",
            Self::Outcome => "outcome",
            Self::Call => "call",
            Self::Lost => "lost",
            Self::Checkpoint => "checkpoint",
        }
    }
}

impl FromStr for RecordKind {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word).ok_or(())
    }
}

/// One record, before it has its hash. Members that its kind does not use are absent.
#[derive(Clone, Copy, Debug)]
pub(super) struct LedgerRecord<'a> {
    pub(super) sequence: i64,
    pub(super) kind: RecordKind,
    pub(super) time: i64,
    pub(super) run: i64,
    pub(super) call: Option<i64>,
    pub(super) intent: Option<&'a CallIntent>,
    pub(super) digest: Option<&'a [u8]>,
    pub(super) class: Option<OutcomeClass>,
    pub(super) duration: Option<i64>,
    pub(super) bytes_out: Option<i64>,
    pub(super) count: Option<i64>,
    pub(super) usage: Option<ModelUsage>,
}

impl<'a> LedgerRecord<'a> {
    pub(super) fn new(kind: RecordKind, time: i64, run: i64) -> Self {
        Self {
            sequence: 0,
            kind,
            time,
            run,
            call: None,
            intent: None,
            digest: None,
            class: None,
            duration: None,
            bytes_out: None,
            count: None,
            usage: None,
        }
    }

    /// The values of [`COLUMNS`], with texts cut to `longest` bytes.
    pub(super) fn values(&self, longest: usize) -> [ValueRef<'_>; WIDTH] {
        let text = |text: &'a str| ValueRef::Text(cut(text, longest).as_bytes());
        let number = |number: Option<i64>| number.map_or(ValueRef::Null, ValueRef::Integer);
        let of = |get: fn(&'a CallIntent) -> &'a str| {
            self.intent.map_or(ValueRef::Null, |it| text(get(it)))
        };
        let digest = self.digest.or(self.intent.map(|it| it.arguments.sha256.as_slice()));
        let agent = self.intent.and_then(|it| it.agent.as_deref());
        let tokens =
            |get: fn(&ModelUsage) -> u64| number(self.usage.as_ref().map(get).map(to_integer));
        [
            ValueRef::Integer(self.sequence),
            ValueRef::Text(self.kind.as_str().as_bytes()),
            ValueRef::Integer(self.time),
            ValueRef::Integer(self.run),
            number(self.call),
            of(|it| it.caller.kind.as_str()),
            of(|it| it.caller.name()),
            of(|it| &it.endpoint),
            self.intent
                .and_then(|it| it.server.as_ref())
                .map_or(ValueRef::Null, |it| text(it.as_str())),
            of(|it| &it.method),
            of(|it| &it.name),
            self.intent
                .and_then(|it| it.trace.as_ref())
                .map_or(ValueRef::Null, |trace| ValueRef::Blob(trace.as_bytes())),
            digest.map_or(ValueRef::Null, ValueRef::Blob),
            number(self.intent.map(|it| to_integer(it.arguments.bytes))),
            self.class.map_or(ValueRef::Null, |class| text(class.as_str())),
            number(self.class.and_then(OutcomeClass::written_code)),
            number(self.class.and_then(OutcomeClass::sent).map(i64::from)),
            number(self.duration),
            number(self.bytes_out),
            number(self.count),
            agent.map_or(ValueRef::Null, |agent| text(&agent.name)),
            agent.map_or(ValueRef::Null, |agent| text(&agent.model)),
            tokens(|usage| usage.input),
            tokens(|usage| usage.output),
            tokens(|usage| usage.cached_read),
            tokens(|usage| usage.cached_write),
            tokens(|usage| usage.reasoning),
            number(self.usage.and_then(|usage| usage.cost).map(UsageCost::as_nanos)),
            self.intent.and_then(|it| user_id(&it.caller)).map_or(ValueRef::Null, text),
        ]
    }
}

/// Returns the id of a caller whose name may change: of a user. The ids of others are made of their kinds and names.
fn user_id(caller: &Caller) -> Option<&str> {
    Some(caller.id().as_str()).filter(|id| id.starts_with("user:"))
}

/// The values of a record without those of later versions, if it has none of those.
pub(super) fn known<'a, 'b>(values: &'a [ValueRef<'b>; WIDTH]) -> &'a [ValueRef<'b>] {
    let last = values.iter().rposition(|value| *value != ValueRef::Null).unwrap_or_default();
    let width = [WIDTH_V1, WIDTH_V2].into_iter().find(|width| last < *width);
    &values[..width.unwrap_or(WIDTH)]
}

/// The hash of a record: it covers the one before, and every column with its type and length.
pub(super) fn chained(before: &RecordHash, values: &[ValueRef<'_>; WIDTH]) -> RecordHash {
    let values = known(values);
    let mut all = Vec::with_capacity(640);
    all.extend_from_slice(before);
    let mut long = |tag: u8, bytes: &[u8]| {
        all.push(tag);
        all.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        all.extend_from_slice(bytes);
    };
    for value in values {
        match value {
            ValueRef::Null => long(0, &[]),
            ValueRef::Integer(number) => long(1, &number.to_be_bytes()),
            ValueRef::Real(number) => long(2, &number.to_be_bytes()),
            ValueRef::Text(text) => long(3, text),
            ValueRef::Blob(bytes) => long(4, bytes),
        }
    }
    Sha256::digest(&all).into()
}

/// Converts a number to the integer type of the database.
pub(super) fn to_integer(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn cut(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_number_of_its_own_and_is_read_back() {
        for reason in RejectReason::ALL {
            let class = OutcomeClass::Rejected { reason: Some(reason) };
            assert_eq!(OutcomeClass::read("rejected", class.written_code(), None), Some(class));
        }
        // As earlier versions wrote it.
        assert_eq!(
            OutcomeClass::read("rejected", None, None),
            Some(OutcomeClass::Rejected { reason: None })
        );
        assert_eq!(OutcomeClass::Rejected { reason: Some(RejectReason::OverLimit) }.code(), None);
    }
}
