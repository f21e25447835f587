//! Encoding of `application/x-www-form-urlencoded`.

use std::fmt::Write;

/// Encodes fields as `a=b&c=d`, with everything escaped but unreserved characters.
pub fn encode<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut form = String::new();
    for (name, value) in fields {
        if !form.is_empty() {
            form.push('&');
        }
        escape(&mut form, name);
        form.push('=');
        escape(&mut form, value);
    }
    form
}

/// Escapes one value.
pub fn escape_value(text: &str) -> String {
    let mut escaped = String::new();
    escape(&mut escaped, text);
    escaped
}

fn escape(form: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            form.push(char::from(byte));
        } else {
            write!(form, "%{byte:02X}").expect("a string takes everything");
        }
    }
}

/// Decodes the fields of a query or form, in order.
pub fn decode(form: &str) -> Vec<(String, String)> {
    let fields = form.split('&').filter(|field| !field.is_empty());
    fields
        .map(|field| {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            (unescape(name), unescape(value))
        })
        .collect()
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        match (first, after) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [a, b, behind @ ..]) if hex(&[*a, *b]).is_some() && *a != b'+' => {
                bytes.extend(hex(&[*a, *b]));
                rest = behind;
                continue;
            }
            (byte, _) => bytes.push(*byte),
        }
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_escaped() {
        assert_eq!(encode([("a b", "ä&="), ("c", "")]), "a%20b=%C3%A4%26%3D&c=");
        let read = decode("a+b=%C3%A4%2&&c%+1");
        assert_eq!(read, [("a b".into(), "ä%2".into()), ("c% 1".to_owned(), String::new())]);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(fields in prop::collection::vec(("\\PC{1,9}", "\\PC*"), 0..5)) {
            let written = encode(fields.iter().map(|(name, value)| (name.as_str(), value.as_str())));
            prop_assert_eq!(decode(&written), fields);
        }

        #[test]
        fn any_text_is_survived(text in "\\PC*") {
            decode(&text);
        }
    }
}
