use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::Config;

/// The limits of a config with these lines in `[consort.limits]`, and what is wrong with it.
fn read_limits(lines: &str) -> (LimitsConfig, Vec<String>) {
    let text = format!("[consort.limits]\n{lines}\n");
    let config = Config::parse(Path::new("consort.toml"), &text).unwrap();
    (config.options.limits, config.errors.iter().map(ToString::to_string).collect())
}

/// A value that a limit takes and that is not its default.
fn other(limit: &LimitSpec) -> u64 {
    let default = limit.default().unwrap_or(limit.min);
    if default < limit.max { default + 1 } else { default - 1 }
}

fn line(limit: &LimitSpec, value: u64) -> String {
    match limit.unit {
        LimitUnit::Time => format!("{} = \"{value}ms\"\n", limit.key),
        LimitUnit::Bytes | LimitUnit::Count => format!("{} = {value}\n", limit.key),
    }
}

/// The fields of settings, as `Debug` shows them.
fn shown(settings: &LimitSettings) -> Vec<String> {
    format!("{settings:#?}").lines().map(str::to_owned).collect()
}

#[test]
fn every_key_sets_its_limit_and_no_other() {
    let usual = LimitSettings::default();
    for limit in limits() {
        let (config, errors) = read_limits(&line(limit, other(limit)));
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(config.get(limit), Some(other(limit)));
        let settings = config.settings();
        assert_eq!(limit.value_in(&settings), Some(other(limit)), "{}", limit.key);
        let others = limits().filter(|other| other.value_in(&settings) != other.value_in(&usual));
        let keys: Vec<&str> = others.map(|limit| limit.key).collect();
        assert_eq!(keys, [limit.key]);
    }
}

/// Fields of the settings that are set elsewhere than in `[consort.limits]`.
const ELSEWHERE: &[(&str, &str)] = &[
    ("idle", "timeout.idle of a server; silence of a provider"),
    ("total", "timeout.total of a server"),
    ("handshake", "timeout.connect of a server"),
    ("lame_duck", "of the gateway: made of the limit of this name"),
    ("mode", "serve.ledger_strict"),
    ("role", "the process that writes: a gateway or a command"),
    ("age", "serve.ledger_days"),
    ("archive", "serve.ledger_archive"),
    ("cost", "max_cost of an agent"),
    ("max_attempts", "tries of a provider"),
];

#[test]
fn every_field_of_a_crates_limits_has_a_key() {
    let usual = LimitSettings::default();
    let lines: String = limits().map(|limit| line(limit, other(limit))).collect();
    let (config, errors) = read_limits(&lines);
    assert!(errors.is_empty(), "{errors:?}");
    let (before, after) = (shown(&usual), shown(&config.settings()));
    let unset = before.iter().filter(|line| after.contains(line)).filter_map(|line| {
        let (field, value) = line.trim().split_once(": ")?;
        let is_value = !value.ends_with('{') && !value.ends_with('(');
        let elsewhere = ELSEWHERE.iter().any(|(name, _)| *name == field);
        (is_value && !elsewhere).then(|| line.trim().to_owned())
    });
    let unset: BTreeSet<String> = unset.collect();
    assert!(unset.is_empty(), "declare a key for each in `config/limits/`: {unset:#?}");
}

#[test]
fn a_field_that_is_read_at_the_start_is_the_field_of_a_limit() {
    for read in settings::READ_AT_START {
        let named = |field: &str| {
            field.strip_prefix(read).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        assert!(limits().any(|limit| named(&limit.field[1..])), "{read}");
    }
}

#[test]
fn a_declaration_is_complete() {
    let mut keys = BTreeSet::new();
    for limit in limits() {
        assert!(keys.insert(limit.key), "`{}` is declared twice", limit.key);
        assert!(limit.min < limit.max, "{}", limit.key);
        if let Some(default) = limit.default() {
            assert!((limit.min..=limit.max).contains(&default), "{}: {default}", limit.key);
        }
        assert!(limit.about.ends_with('.') && limit.about.len() > 20, "{}", limit.key);
        assert!(!limit.reached.is_empty() && !limit.reached.ends_with('.'), "{}", limit.key);
        assert!(limit.key.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", limit.key);
    }
}

#[test]
fn a_value_out_of_range_is_refused_with_the_key_the_value_and_the_range() {
    for (line, told) in [
        ("message_bytes = 1", "`limits.message_bytes`: 1 is out of range: use 64KiB to 1GiB"),
        (
            "request_body_timeout = \"2h\"",
            "`limits.request_body_timeout`: 2h is out of range: use 1ms to 1h",
        ),
        (
            "request_body_timeout = -1",
            "`limits.request_body_timeout`: -1 is out of range: use 1ms to 1h",
        ),
        (
            "held_bytes = 99999999999999999999",
            "`limits.held_bytes`: 99999999999999999999 is out of range: use 1 to 1024GiB",
        ),
        (
            "queue_wait = \"soon\"",
            "`limits.queue_wait` is a string: expected a duration, such as `30` or `\"30s\"`",
        ),
        ("sessions = \"5s\"", "`limits.sessions` is a string: expected an integer"),
        ("sessions = 1.5", "`limits.sessions` is a number: expected an integer"),
        ("mesage_bytes = 65536", "unknown key `limits.mesage_bytes`"),
    ] {
        let (config, errors) = read_limits(line);
        assert!(config.is_empty());
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].ends_with(told), "{}", errors[0]);
    }
}

#[test]
fn sizes_and_times_are_written_with_or_without_a_unit() {
    for (line, key, value) in [
        ("message_bytes = \"64MiB\"", "message_bytes", 64 << 20),
        ("message_bytes = 1_048_576", "message_bytes", 1 << 20),
        ("queue_wait = 1.5", "queue_wait", 1_500),
        ("queue_wait = \"2m\"", "queue_wait", 120_000),
        ("stream_ping = 0", "stream_ping", 0),
        ("name_grace = \"7d\"", "name_grace", 7 * 24 * 3_600_000),
    ] {
        let (config, errors) = read_limits(line);
        assert!(errors.is_empty(), "{errors:?}");
        let limit = limits().find(|limit| limit.key == key).unwrap();
        assert_eq!(config.get(limit), Some(value), "{line}");
    }
}

#[test]
fn what_is_shown_of_a_limit_can_be_read_again() {
    for limit in limits() {
        let (config, _) = read_limits(&line(limit, other(limit)));
        let shown = toml::to_string(&config).unwrap();
        let (again, errors) = read_limits(&shown);
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(again, config, "{shown}");
        for value in [limit.min, limit.max] {
            let quoted = match limit.unit {
                LimitUnit::Count => limit.format_value(value),
                LimitUnit::Time | LimitUnit::Bytes => format!("{:?}", limit.format_value(value)),
            };
            let (again, errors) = read_limits(&format!("{} = {quoted}", limit.key));
            assert!(errors.is_empty(), "{errors:?}");
            assert_eq!(again.get(limit), Some(value), "{quoted}");
        }
    }
}

#[test]
fn a_limit_of_serving_is_read_in_either_table_and_not_in_both() {
    let parse = |text: &str| Config::parse(Path::new("consort.toml"), text).unwrap();
    let config = parse("[consort.serve]\nlinger = \"7s\"\n");
    assert!(config.errors.is_empty(), "{:?}", config.errors);
    assert_eq!(config.options.limits.settings().transports.linger, Duration::from_secs(7));
    let config = parse("[consort.limits]\nlinger = 7\n[consort.serve]\nlinger = 8\n");
    let told = config.errors[0].to_string();
    assert!(told.ends_with("`limits.linger` and `serve.linger` are mutually exclusive"), "{told}");
}
