//! W3C trace context: `traceparent`, `tracestate` and `baggage`, read, continued and written.

mod meta;

use std::cell::Cell;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::json::Object;
use crate::splice::ObjectWriter;

pub use meta::{meta_with, of_meta, of_params, params_with};

const TRACEPARENT: HeaderName = HeaderName::from_static(TraceContext::KEYS[0]);

/// The longest `tracestate` that is passed on; the specification asks for at least this.
const LONGEST_STATE: usize = 512;

/// Maximum number of members of a `tracestate`.
const MOST_MEMBERS: usize = 32;

/// The longest `baggage` that is passed on; the specification asks for at least this.
const LONGEST_BAGGAGE: usize = 8192;

/// The flag of a recorded trace.
const SAMPLED: u8 = 1;

/// The id of a trace: 16 bytes, not all zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId([u8; 16]);

/// The id of a span in a trace: 8 bytes, not all zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId([u8; 8]);

/// Trace context of a request, with its `tracestate` and `baggage`.
///
/// ```
/// use consort_protocol::trace::TraceContext;
///
/// let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let context = TraceContext::read(|key| (key == "traceparent").then_some(traceparent)).unwrap();
/// assert!(context.sampled());
/// assert_eq!(context.traceparent(), traceparent);
/// assert_eq!(context.child().trace, context.trace);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: TraceId,
    /// The span that the next one is a child of.
    pub span: SpanId,
    flags: u8,
    /// `tracestate` of vendors, as received.
    pub state: Option<String>,
    /// `baggage` of applications, as received.
    pub baggage: Option<String>,
}

impl TraceContext {
    /// The keys of the context, in headers and in `_meta` alike.
    pub const KEYS: [&str; 3] = ["traceparent", "tracestate", "baggage"];

    /// A new trace.
    pub fn new(sampled: bool) -> Self {
        Self {
            trace: TraceId::random(),
            span: SpanId::random(),
            flags: u8::from(sampled) * SAMPLED,
            state: None,
            baggage: None,
        }
    }

    /// Reads the context of a request, given its value for each of [`Self::KEYS`]. An invalid `traceparent` is ignored,
    /// as the specification requires.
    pub fn read<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let mut context: Self = get("traceparent")?.parse().ok()?;
        context.state = get("tracestate").and_then(state);
        context.baggage = get("baggage").and_then(baggage);
        Some(context)
    }

    /// The same trace with a new span.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { span: SpanId::random(), ..self.clone() }
    }

    /// Returns true if the trace is recorded.
    pub fn sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The same trace context, recorded or not.
    #[must_use]
    pub fn with_sampled(mut self, sampled: bool) -> Self {
        self.flags = (self.flags & !SAMPLED) | (u8::from(sampled) * SAMPLED);
        self
    }

    /// Returns the value of `traceparent`.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace, self.span, self.flags)
    }

    /// Returns the values to send, with their keys.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        let [traceparent, tracestate, baggage] = Self::KEYS;
        let state = self.state.clone().map(|state| (tracestate, state));
        let baggage = self.baggage.clone().map(|items| (baggage, items));
        [(traceparent, self.traceparent())].into_iter().chain(state).chain(baggage)
    }
}

/// Returns the trace context in the headers of a request.
pub fn of_headers(headers: &HeaderMap) -> Option<TraceContext> {
    // More than one is as good as none, as the specification says.
    let mut named = headers.get_all(TRACEPARENT).iter();
    let (Some(_), None) = (named.next(), named.next()) else { return None };
    // Those of several headers are one list, in their order, as the specifications say.
    let joined = |key: &str| {
        let values = headers.get_all(key).iter().map(HeaderValue::to_str);
        let values = values.collect::<Result<Vec<&str>, _>>().ok()?;
        let values: Vec<&str> = values.into_iter().filter(|it| !it.trim().is_empty()).collect();
        (!values.is_empty()).then(|| values.join(","))
    };
    let texts = TraceContext::KEYS.map(joined);
    let at = |key: &str| TraceContext::KEYS.iter().position(|known| *known == key);
    TraceContext::read(|key| texts[at(key)?].as_deref())
}

/// Returns the trace context in the headers of a request, as members of `_meta`.
pub fn meta_of(headers: &HeaderMap) -> Option<Object> {
    let mut writer = ObjectWriter::new();
    for (key, value) in of_headers(headers)?.fields() {
        writer.text(key, &value);
    }
    Some(writer.finish_object())
}

/// A `traceparent` that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid `traceparent`: expected `00-` 32 hex digits `-` 16 hex digits `-` 2 hex digits")]
pub struct InvalidTraceparent;

impl FromStr for TraceContext {
    type Err = InvalidTraceparent;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim_matches([' ', '\t']).as_bytes();
        // Later versions may add fields behind a dash; this one has none.
        let (known, rest) = text.split_at_checked(55).ok_or(InvalidTraceparent)?;
        let [version] = hex::<1>(&known[..2]).ok_or(InvalidTraceparent)?;
        let rest_is_fine =
            if version == 0 { rest.is_empty() } else { matches!(rest, [] | [b'-', ..]) };
        let dashes = [2, 35, 52].iter().all(|at| known[*at] == b'-');
        if version == 0xff || !rest_is_fine || !dashes {
            return Err(InvalidTraceparent);
        }
        let trace = hex(&known[3..35]).filter(|id| *id != [0; 16]).ok_or(InvalidTraceparent)?;
        let span = hex(&known[36..52]).filter(|id| *id != [0; 8]).ok_or(InvalidTraceparent)?;
        let [flags] = hex(&known[53..55]).ok_or(InvalidTraceparent)?;
        // Of the flags only those that this version knows are passed on.
        let flags = flags & 0b11;
        Ok(Self { trace: TraceId(trace), span: SpanId(span), flags, state: None, baggage: None })
    }
}

/// Returns a valid `tracestate` to pass on.
fn state(text: &str) -> Option<String> {
    let members = text.split(',').map(str::trim).filter(|member| !member.is_empty());
    let fine = members.clone().all(|member| {
        member.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty())
    });
    let count = members.count();
    let fits = text.len() <= LONGEST_STATE && (1..=MOST_MEMBERS).contains(&count);
    (fine && fits && printable(text)).then(|| text.to_owned())
}

/// Returns a valid `baggage` to pass on.
fn baggage(text: &str) -> Option<String> {
    let fits = !text.is_empty() && text.len() <= LONGEST_BAGGAGE;
    (fits && printable(text) && text.contains('=')).then(|| text.to_owned())
}

/// Returns true if a text cannot split a header.
fn printable(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
}

/// Decodes lower-case hex, as the specification requires.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    (text.len() == 2 * N).then_some(bytes)
}

impl TraceId {
    /// Creates an id from bytes that are not all zero.
    pub fn of(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    fn random() -> Self {
        let (high, low) = (random(), random());
        Self((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The half that samplers use.
    pub fn low(self) -> u64 {
        u64::from_be_bytes(self.0[8..].try_into().expect("half of 16 bytes"))
    }
}

impl SpanId {
    fn random() -> Self {
        Self(random().to_be_bytes())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

/// A non-zero random number. Ids must be unique, not hard to guess; so the random keys of the standard library's hash
/// maps suffice.
fn random() -> u64 {
    thread_local! {
        static SOURCE: (RandomState, Cell<u64>) = (RandomState::new(), Cell::new(0));
    }
    SOURCE.with(|(keys, counter)| {
        counter.set(counter.get() + 1);
        keys.hash_one(counter.get()).max(1)
    })
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_traceparent_is_read_as_it_is_written() {
        let context: TraceContext = PARENT.parse().unwrap();
        assert_eq!(context.trace.to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(context.span.to_string(), "b7ad6b7169203331");
        assert_eq!(context.traceparent(), PARENT);
        let later = format!("{}-more", PARENT.replacen("00", "cc", 1));
        assert_eq!(later.parse::<TraceContext>().unwrap().traceparent(), PARENT);
    }

    #[test]
    fn a_broken_traceparent_is_as_good_as_none() {
        let wrong = [
            String::new(),
            PARENT[..54].to_owned(),
            format!("{PARENT}-"),
            PARENT.replacen("00", "ff", 1),
            PARENT.to_uppercase(),
            PARENT.replace('-', "_"),
            PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            PARENT.replace("b7ad6b7169203331", &"0".repeat(16)),
            PARENT.replace("b7ad", "b7a\u{e9}"),
            PARENT.replacen("00-", "01-", 1) + "x",
        ];
        for text in wrong {
            assert_eq!(text.parse::<TraceContext>(), Err(InvalidTraceparent), "{text}");
            assert_eq!(TraceContext::read(|_| Some(&text)), None);
        }
    }

    #[test]
    fn what_travels_with_a_request_is_passed_on_if_it_is_sound() {
        let read = |state: &'static str, items: &'static str| {
            let context = TraceContext::read(|key| match key {
                "traceparent" => Some(PARENT),
                "tracestate" => Some(state),
                _ => Some(items),
            });
            let context = context.unwrap();
            (context.state, context.baggage)
        };
        assert_eq!(
            read("a=1, b@c=2", "user=x"),
            (Some("a=1, b@c=2".into()), Some("user=x".into()))
        );
        assert_eq!(read("a", ""), (None, None));
        assert_eq!(read("a=1\r\nX: y", "k=\u{e9}"), (None, None));
        let many: &'static str = vec!["a=1"; 33].join(",").leak();
        let long: &'static str = format!("k={}", "x".repeat(8192)).leak();
        assert_eq!(read(many, long), (None, None));
    }

    #[test]
    fn several_headers_are_one_list_and_several_parents_are_none() {
        let of = |lines: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            of_headers(&headers)
        };
        let parent = ("traceparent", PARENT);
        let state = |more: &[(&'static str, &str)]| of(&[&[parent], more].concat()).unwrap();
        let both = state(&[("tracestate", "a=1, b=2"), ("tracestate", ""), ("tracestate", "c=3")]);
        assert_eq!(both.state.as_deref(), Some("a=1, b=2,c=3"));
        let items = state(&[("baggage", "user=x"), ("baggage", "region=y;p=1")]);
        assert_eq!(items.baggage.as_deref(), Some("user=x,region=y;p=1"));
        assert_eq!(state(&[("tracestate", "a=1"), ("tracestate", "b")]).state, None);
        assert_eq!(state(&[("tracestate", "a=1"), ("tracestate", "\u{e9}=1")]).state, None);
        let many = vec![("tracestate", "a=1"); 33];
        assert_eq!(state(&many).state, None);
        assert_eq!(of(&[parent, parent]), None);
        assert_eq!(of(&[("tracestate", "a=1")]), None);
    }

    #[test]
    fn a_child_is_in_the_same_trace_with_a_span_of_its_own() {
        let context = TraceContext::new(true);
        let child = context.child();
        assert_eq!((child.trace, child.sampled()), (context.trace, true));
        assert_ne!(child.span, context.span);
        assert!(!child.with_sampled(false).sampled());
        let spans: HashSet<SpanId> = (0..10_000).map(|_| context.child().span).collect();
        assert_eq!(spans.len(), 10_000);
    }
}
