//! Responses of an issuer: errors, and the headers about time.

use std::time::Duration;

use consort_oauth::{FetchedResponse, LoginError};
use http::HeaderMap;
use http::header::CACHE_CONTROL;
use serde::Deserialize;

use super::provider::IssuerError;

#[derive(Deserialize)]
struct OAuthErrorBody {
    error: String,
    #[serde(default)]
    error_description: Option<String>,
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` calls it")]
pub(super) fn unavailable(error: LoginError) -> IssuerError {
    IssuerError::Unavailable(error.to_string())
}

/// A refusal, or a mistake in our settings that a later request may find corrected.
pub(super) fn refusal(response: &FetchedResponse) -> IssuerError {
    let Ok(body) = serde_json::from_slice::<OAuthErrorBody>(&response.body) else {
        return IssuerError::Unavailable(format!("HTTP {}", response.status));
    };
    let description = body.error_description.map(|it| format!(": {it}")).unwrap_or_default();
    let told: String = format!("{}{description}", body.error).chars().take(300).collect();
    match body.error.as_str() {
        "invalid_grant" => IssuerError::Refused(told),
        _ => IssuerError::Unavailable(told),
    }
}

/// The `max-age` of a response.
pub(crate) fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut directives = values.flat_map(|value| value.split(',')).map(str::trim);
    directives.find_map(|directive| {
        if directive.eq_ignore_ascii_case("no-store") || directive.eq_ignore_ascii_case("no-cache")
        {
            return Some(Duration::ZERO);
        }
        let (name, seconds) = directive.split_once('=')?;
        let seconds = seconds.trim_matches('"').parse().ok()?;
        name.eq_ignore_ascii_case("max-age").then(|| Duration::from_secs(seconds))
    })
}

/// The seconds since 1970 of a date in the form of HTTP, as in `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(super) fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(", ")?.1.split(' ');
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    consort_core::parse_utc(&format!("{year}-{month:02}-{day}T{}Z", words.next()?))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_age_of_a_document_is_read_from_its_headers() {
        let age = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static(value));
            max_age(&headers).map(|age| age.as_secs())
        };
        assert_eq!(age("public, max-age=600"), Some(600));
        assert_eq!(age("Max-Age=\"5\""), Some(5));
        assert_eq!(age("no-store"), Some(0));
        assert_eq!(age("public"), None);
        assert_eq!(age("max-age=x"), None);
        assert_eq!(max_age(&HeaderMap::new()), None);
    }

    #[test]
    fn the_time_of_the_issuer_is_read() {
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date("yesterday"), None);
    }
}
