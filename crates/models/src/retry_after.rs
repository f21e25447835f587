//! Waits that providers request before a retry. Dates are relative to the response's `date`: no clock is read.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use crate::response_head::ResponseHead;

/// Maximum wait that is taken from a provider's response headers.
const MAX_WAIT: Duration = Duration::from_hours(24);

/// Rate limits that providers report in headers, as the parts before and after `remaining` and `reset`.
const LIMITS: [(&str, &str); 8] = [
    ("x-ratelimit-", "-requests"),
    ("x-ratelimit-", "-tokens"),
    ("x-ratelimit-", ""),
    ("ratelimit-", ""),
    ("anthropic-ratelimit-requests-", ""),
    ("anthropic-ratelimit-tokens-", ""),
    ("anthropic-ratelimit-input-tokens-", ""),
    ("anthropic-ratelimit-output-tokens-", ""),
];

/// Returns the wait, if the headers or the error contain one.
pub(crate) fn requested_wait(head: &ResponseHead, error: &Value) -> Option<Duration> {
    let milliseconds = head.get("retry-after-ms").and_then(seconds).map(|wait| wait / 1000);
    let wait = milliseconds
        .or_else(|| head.get("retry-after").and_then(|text| parse_wait(text, head)))
        .or_else(|| retry_info(error))
        .or_else(|| limit_reset(head))?;
    Some(wait.min(MAX_WAIT))
}

/// Returns the wait until the last of the exhausted limits resets.
fn limit_reset(head: &ResponseHead) -> Option<Duration> {
    let used_up = LIMITS.iter().filter(|(before, behind)| {
        head.get(&format!("{before}remaining{behind}")).is_some_and(|left| left.trim() == "0")
    });
    let waits = used_up.filter_map(|(before, behind)| {
        parse_wait(head.get(&format!("{before}reset{behind}"))?, head)
    });
    waits.max()
}

/// Returns Google's `RetryInfo` from an error's details.
fn retry_info(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    details.iter().find_map(|detail| duration(detail.get("retryDelay")?.as_str()?))
}

/// Parses seconds, a duration such as `1m30s`, a time since 1970 or a date.
fn parse_wait(text: &str, head: &ResponseHead) -> Option<Duration> {
    let text = text.trim();
    let now = || head.get("date").and_then(date);
    if let Some(wait) = seconds(text) {
        return match wait.as_secs() {
            // A wait of thirty years is a point in time, in seconds or milliseconds.
            1_000_000_000..100_000_000_000 => Some(wait.saturating_sub(now()?)),
            100_000_000_000.. => Some((wait / 1000).saturating_sub(now()?)),
            _ => Some(wait),
        };
    }
    duration(text).or_else(|| Some(date(text)?.saturating_sub(now()?)))
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

/// Parses `6m0s`, `1.5s`, `120ms` or `1h`.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut sum = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|one: char| !one.is_ascii_digit() && one != '.')?;
        let number = seconds(&rest[..digits])?;
        rest = &rest[digits..];
        let end = rest.find(|one: char| one.is_ascii_digit()).unwrap_or(rest.len());
        let part = match &rest[..end] {
            "ms" => number / 1000,
            "s" => number,
            "m" => number.checked_mul(60)?,
            "h" => number.checked_mul(3600)?,
            "d" => number.checked_mul(86_400)?,
            _ => return None,
        };
        sum = sum.checked_add(part)?;
        rest = &rest[end..];
    }
    Some(sum)
}

/// Parses an HTTP date or `1994-11-06T08:49:37Z` as the time since 1970.
fn date(text: &str) -> Option<Duration> {
    if let Some(seconds) = consort_core::parse_utc(text) {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn head(headers: &[(&str, &str)]) -> ResponseHead {
        ResponseHead::new(429, headers.iter().copied())
    }

    fn waited(headers: &[(&str, &str)]) -> Option<Duration> {
        requested_wait(&head(headers), &Value::Null)
    }

    #[test]
    fn seconds_and_dates_are_understood() {
        let date = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(waited(&[("retry-after", "20")]), Some(Duration::from_secs(20)));
        assert_eq!(waited(&[("Retry-After-Ms", "1500")]), Some(Duration::from_millis(1500)));
        assert_eq!(
            waited(&[date, ("Retry-After", "Sun, 06 Nov 1994 08:50:07 GMT")]),
            Some(Duration::from_secs(30))
        );
        assert_eq!(waited(&[("Retry-After", "Sun, 06 Nov 1994 08:50:07 GMT")]), None);
        assert_eq!(waited(&[("retry-after", "-1")]), None);
        assert_eq!(waited(&[("retry-after", "1e300")]), None);
        assert_eq!(waited(&[("retry-after", "soon")]), None);
        assert_eq!(waited(&[("retry-after", "999999999")]), Some(MAX_WAIT));
    }

    #[test]
    fn a_limit_with_nothing_left_tells_when_it_is_lifted() {
        assert_eq!(
            waited(&[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "1m0.5s"),
                ("x-ratelimit-remaining-tokens", "17"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ]),
            Some(Duration::from_millis(60_500))
        );
        assert_eq!(
            waited(&[
                ("date", "Fri, 01 Mar 2024 00:00:00 GMT"),
                ("anthropic-ratelimit-tokens-remaining", "0"),
                ("anthropic-ratelimit-tokens-reset", "2024-03-01T00:00:12Z"),
            ]),
            Some(Duration::from_secs(12))
        );
        assert_eq!(
            waited(&[
                ("date", "Fri, 01 Mar 2024 00:00:00 GMT"),
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", "1709251203000"),
            ]),
            Some(Duration::from_secs(3))
        );
    }

    #[test]
    fn what_google_puts_into_the_error_counts() {
        let error = json!({ "details": [
            { "@type": "type.googleapis.com/google.rpc.QuotaFailure" },
            { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s" }
        ] });
        assert_eq!(requested_wait(&head(&[]), &error), Some(Duration::from_millis(34_500)));
    }

    #[test]
    fn dates_are_counted_from_1970() {
        assert_eq!(date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(date("Sunday, 06-Nov-94 08:49:37 GMT"), date("Sun Nov  6 08:49:37 1994"));
        assert_eq!(date("2000-02-29T00:00:00Z"), Some(Duration::from_hours(264_384)));
        for wrong in ["2000-13-01T00:00:00Z", "0000-00-00T00:00:00Z", "Sun, 99 Nov 1994", ""] {
            assert_eq!(date(wrong), None, "{wrong}");
        }
    }
}
