//! Formatting and parsing of times.

/// Seconds since 1970 as UTC: `2026-07-28T12:00:00Z`.
///
/// ```
/// assert_eq!(consort_core::utc(0), "1970-01-01T00:00:00Z");
/// assert_eq!(consort_core::utc(1_785_240_000), "2026-07-28T12:00:00Z");
/// ```
pub fn utc(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 1 March of year 0, so that leap days come last; 400 years are an era.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}Z",
        time / 3600,
        time / 60 % 60,
        time % 60
    )
}

/// Parses a date, or a date and a time, in UTC as seconds since 1970. Fractions of a second are dropped.
///
/// ```
/// assert_eq!(consort_core::parse_utc("2026-07-28T12:00:00.5Z"), Some(1_785_240_000));
/// assert_eq!(consort_core::parse_utc("2026-07-28 12:00"), Some(1_785_240_000));
/// assert_eq!(consort_core::parse_utc("1970-01-02"), Some(86_400));
/// ```
pub fn parse_utc(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, "00:00"));
    let time = ["Z", "z", "+00:00"].iter().find_map(|zone| time.strip_suffix(zone)).unwrap_or(time);
    let number = |part: Option<&str>, digits: usize, most: u64| {
        let part = part.filter(|part| part.len() == digits)?;
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u64>().ok().filter(|number| is_number && *number <= most)
    };
    let mut parts = date.split('-');
    let year = number(parts.next(), 4, 9999).filter(|year| *year >= 1970)?;
    let month = number(parts.next(), 2, 12).filter(|month| *month > 0)?;
    let day = number(parts.next(), 2, 31).filter(|day| *day > 0)?;
    let mut clock = time.split('.').next()?.split(':');
    let hour = number(clock.next(), 2, 23)?;
    let minute = number(clock.next(), 2, 59)?;
    let second = clock.next().map_or(Some(0), |part| number(Some(part), 2, 60))?;
    if parts.next().is_some() || clock.next().is_some() {
        return None;
    }
    // Years begin in March here, so that leap days come last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leap_days_fall_where_they_should() {
        for (seconds, text) in [
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
        ] {
            assert_eq!(utc(seconds), text);
            assert_eq!(parse_utc(text), Some(seconds));
        }
    }

    #[test]
    fn a_text_that_is_no_time_in_utc_is_refused() {
        for wrong in [
            "",
            "2000-13-01T00:00:00Z",
            "0000-00-00T00:00:00Z",
            "2026-1-1",
            "2026-01-01T25:00",
            "2026-01-01T12:00:00+02:00",
            "2026-01-01T12:00:00:00",
        ] {
            assert_eq!(parse_utc(wrong), None, "{wrong}");
        }
    }
}
