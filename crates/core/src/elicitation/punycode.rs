//! The host of a URL, as ASCII, which exposes look-alike letters (RFC 3492).

/// Returns the host of an `http` or `https` URL, in lower case and ASCII; `None` for other URLs.
pub(super) fn web_host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    // Browsers take a backslash for a slash.
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(address) => format!("[{}]", address.split_once(']')?.0),
        None => host.split(':').next().unwrap_or_default().to_owned(),
    };
    let host = host.to_lowercase();
    // These end a label like a dot.
    let labels = host.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']).map(label);
    let host = labels.collect::<Option<Vec<_>>>()?.join(".");
    let fits =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']' | ':');
    (!host.is_empty() && host.chars().all(fits)).then_some(host)
}

fn label(label: &str) -> Option<String> {
    if label.is_ascii() {
        return Some(label.to_owned());
    }
    Some(format!("xn--{}", encoded(label)?))
}

const BASE: u32 = 36;
const LEAST: u32 = 1;
const MOST: u32 = 26;

/// Encodes a label in punycode; `None` if it is too long.
fn encoded(label: &str) -> Option<String> {
    let letters: Vec<u32> = label.chars().map(u32::from).collect();
    let mut written: String = label.chars().filter(char::is_ascii).collect();
    let basic = u32::try_from(written.len()).ok()?;
    if basic > 0 {
        written.push('-');
    }
    let total = u32::try_from(letters.len()).ok()?;
    let (mut next, mut delta, mut bias, mut done) = (0x80_u32, 0_u32, 72_u32, basic);
    while done < total {
        let least = letters.iter().copied().filter(|letter| *letter >= next).min()?;
        delta = delta.checked_add((least - next).checked_mul(done + 1)?)?;
        next = least;
        for &letter in &letters {
            if letter < next {
                delta = delta.checked_add(1)?;
            }
            if letter == next {
                write_number(&mut written, delta, bias);
                bias = adapted(delta, done + 1, done == basic);
                delta = 0;
                done += 1;
            }
        }
        delta = delta.checked_add(1)?;
        next += 1;
    }
    Some(written)
}

fn write_number(written: &mut String, mut number: u32, bias: u32) {
    let mut k = BASE;
    loop {
        let threshold = k.saturating_sub(bias).clamp(LEAST, MOST);
        if number < threshold {
            written.push(digit(number));
            return;
        }
        written.push(digit(threshold + (number - threshold) % (BASE - threshold)));
        number = (number - threshold) / (BASE - threshold);
        k += BASE;
    }
}

fn digit(number: u32) -> char {
    const DIGITS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    char::from(DIGITS[(number % BASE) as usize])
}

fn adapted(delta: u32, points: u32, first: bool) -> u32 {
    let mut delta = if first { delta / 700 } else { delta / 2 };
    delta += delta / points;
    let mut k = 0;
    while delta > ((BASE - LEAST) * MOST) / 2 {
        delta /= BASE - LEAST;
        k += BASE;
    }
    k + (BASE - LEAST + 1) * delta / (delta + 38)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_written_in_ascii() {
        for (url, host) in [
            ("https://Example.COM/a?b", Some("example.com")),
            ("http://user:pw@evil.example:80/", Some("evil.example")),
            ("https://bank.example\\@evil.example/", Some("bank.example")),
            ("https://[::1]:8/", Some("[::1]")),
            ("https://bücher.example/", Some("xn--bcher-kva.example")),
            ("https://münchen。de/", Some("xn--mnchen-3ya.de")),
            ("https://пример.испытание/", Some("xn--e1afmkfd.xn--80akhbyknj4f")),
            ("https://例え.テスト/", Some("xn--r8jz45g.xn--zckzah")),
            ("javascript:alert(1)", None),
            ("file:///etc/passwd", None),
            ("https://", None),
            ("https://a b/", None),
            ("nonsense", None),
        ] {
            assert_eq!(web_host(url).as_deref(), host, "{url}");
        }
    }
}
