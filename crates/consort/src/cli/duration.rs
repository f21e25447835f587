//! Times as people write them.

use std::time::Duration;

/// A time as people write it: `500ms`, `30s`, `5m`, `1h`; a bare number means seconds.
pub(crate) fn read(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit.trim() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a number with ms, s, m or h, such as 30s".to_owned()),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "expected a number with ms, s, m or h, such as 30s".to_owned())?;
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("expected a duration above zero".to_owned()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(read("30"), Ok(Duration::from_secs(30)));
        assert_eq!(read("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(read("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(read("2h"), Ok(Duration::from_hours(2)));
        for text in ["", "x", "5 parsecs", "-3s", "0"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
