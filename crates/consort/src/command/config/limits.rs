//! `consort config limits`: every limit, and the value in force.

use consort_config::{LIMIT_SECTIONS, LimitSettings, LimitSpec, LimitUnit, LimitsConfig};
use serde_json::{Value, json};

use crate::cli::GlobalArguments;
use crate::command_hub::read_untrusted;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{TableCell, TerminalText, TextStyle, TextTable, json, note, page, width};

/// Shows all limits, or those with a word in their key or description.
pub(super) fn show(
    common: &GlobalArguments,
    word: Option<&str>,
) -> Result<ExitStatus, CommandError> {
    let config = read_untrusted(common)?;
    let written = config.map(|config| config.options.limits).unwrap_or_default();
    let settings = written.settings();
    let word = word.map(str::to_lowercase);
    let fits = |limit: &&LimitSpec| match &word {
        Some(word) => limit.key.contains(word) || limit.about.to_lowercase().contains(word),
        None => true,
    };
    if common.json {
        let rows = LIMIT_SECTIONS.iter().flat_map(|section| {
            let limits = section.limits.iter().filter(fits);
            limits.map(|limit| row(section.heading, limit, &written, &settings))
        });
        json(&json!({ "limits": rows.collect::<Vec<_>>() }));
        return Ok(ExitStatus::Ok);
    }
    let mut shown: Vec<TerminalText> = Vec::new();
    for section in LIMIT_SECTIONS {
        let limits: Vec<&LimitSpec> = section.limits.iter().filter(fits).collect();
        if limits.is_empty() {
            continue;
        }
        if !shown.is_empty() {
            shown.push("".into());
        }
        shown.push(section.heading.into());
        let mut table = TextTable::wrapping(&["KEY", "VALUE", "DEFAULT", "ALLOWED", "DESCRIPTION"]);
        for limit in limits {
            let text = |value: Option<u64>| match value {
                Some(value) => limit.format_value(value),
                None => "none".to_owned(),
            };
            let (value, default) = (limit.value_in(&settings), limit.default());
            let cell = if value == default {
                TableCell::from(text(value))
            } else {
                TableCell::styled(TextStyle::Good, text(value))
            };
            table.row([
                TableCell::from(limit.key),
                cell,
                TableCell::from(text(default)),
                TableCell::from(limit.format_range()),
                TableCell::from(limit.about.trim_end_matches('.')),
            ]);
        }
        shown.push(table.render(width()));
    }
    if shown.is_empty() {
        note("no limit has this text in its key or description");
    } else {
        page(TerminalText::join(shown, "\n"));
    }
    Ok(ExitStatus::Ok)
}

/// A limit as JSON: durations are in milliseconds.
fn row(
    section: &str,
    limit: &LimitSpec,
    written: &LimitsConfig,
    settings: &LimitSettings,
) -> Value {
    let unit = match limit.unit {
        LimitUnit::Time => "milliseconds",
        LimitUnit::Bytes => "bytes",
        LimitUnit::Count => "count",
    };
    json!({
        "key": limit.key,
        "section": section,
        "unit": unit,
        "value": limit.value_in(settings),
        "default": limit.default(),
        "min": limit.min,
        "max": limit.max,
        "set": written.get(limit).is_some(),
        "about": limit.about,
        "reached": limit.reached,
        "needs_restart": limit.needs_restart(),
    })
}
