//! Log events as JSON Lines, without duplicate keys.

use std::fmt;

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::output::now;

/// Writes each event as a JSON object on its own line.
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut members = EventFields::default();
        event.record(&mut members);
        writeln!(
            writer,
            "{}",
            members.object(event.metadata().level().as_str(), event.metadata().target())
        )
    }
}

/// The fields of an event, in the order in which they were given.
#[derive(Default)]
struct EventFields(Vec<(String, Value)>);

impl EventFields {
    fn object(self, level: &str, target: &str) -> String {
        let mut all: Vec<(String, Value)> =
            vec![("timestamp".to_owned(), now().into()), ("level".to_owned(), level.into())];
        let (message, fields): (Vec<_>, Vec<_>) =
            self.0.into_iter().partition(|(key, _)| key == "message");
        all.extend(message.into_iter().next_back());
        for (key, value) in fields {
            // A field named like a key of every event gets a prefix.
            let taken = key == "target" || all.iter().any(|(known, _)| *known == key);
            all.push((if taken { format!("field_{key}") } else { key }, value));
        }
        all.push(("target".to_owned(), target.into()));
        let mut seen = std::collections::HashSet::new();
        all.retain(|(key, _)| seen.insert(key.clone()));
        let members: Vec<String> = all
            .iter()
            .map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())))
            .collect();
        format!("{{{}}}", members.join(","))
    }

    fn add(&mut self, field: &Field, value: Value) {
        let name = field.name();
        self.0.push((name.strip_prefix("r#").unwrap_or(name).to_owned(), value));
    }
}

impl Visit for EventFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_there_twice() {
        let fields = ["message", "target", "level", "server", "server", "message"];
        let members = fields.iter().map(|key| ((*key).to_owned(), Value::from("x"))).collect();
        let text = EventFields(members).object("INFO", "consort");
        let (_, rest) = text.split_once(",\"level\"").unwrap();
        assert_eq!(
            rest,
            ":\"INFO\",\"message\":\"x\",\"field_target\":\"x\",\"field_level\":\"x\",\
             \"server\":\"x\",\"field_server\":\"x\",\"target\":\"consort\"}"
        );
    }
}
