//! One spelling for every definition that says the same.

use consort_core::Json;

use crate::visible_text::hidden_character;

/// Encoding of invisible characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HiddenEncoding {
    AsTheyAre,
    Escaped,
}

/// The canonical form: members sorted at every depth, no white space, one spelling for each string
/// and number.
///
/// It is that of RFC 8785, with two differences where that would lose something: a number keeps all
/// of its digits, so that two large integers stay two, and half a surrogate pair is written as its
/// escape. Of two members with the same name both stay, in their order, as readers differ in which
/// of them counts.
pub fn canonical(json: &Json) -> String {
    write(json, HiddenEncoding::AsTheyAre)
}

/// The same value with every invisible character escaped, for files people read.
pub(super) fn legible(json: &Json) -> String {
    write(json, HiddenEncoding::Escaped)
}

fn write(json: &Json, hide: HiddenEncoding) -> String {
    let mut out = String::with_capacity(json.as_bytes().len());
    value(json, hide, &mut out);
    out
}

fn value(json: &Json, hide: HiddenEncoding, out: &mut String) {
    let text = json.as_str();
    match text.as_bytes()[0] {
        b'{' => object(json, hide, out),
        b'[' => {
            out.push('[');
            for (n, item) in json.to_items().unwrap_or_default().iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                value(item, hide, out);
            }
            out.push(']');
        }
        b'"' => string(&code_units(&text[1..text.len() - 1]), hide, out),
        b'-' | b'0'..=b'9' => out.push_str(&number(text)),
        _ => out.push_str(text),
    }
}

fn object(json: &Json, hide: HiddenEncoding, out: &mut String) {
    let object = json.to_object().expect("it starts with a brace");
    let mut members: Vec<(Vec<u16>, Json)> =
        object.members().map(|(key, value)| (code_units(key), value)).collect();
    // A stable sort: members with one name stay in their order.
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    out.push('{');
    for (n, (key, member)) in members.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        string(key, hide, out);
        out.push(':');
        value(member, hide, out);
    }
    out.push('}');
}

/// The UTF-16 code units of the inside of a checked JSON string. RFC 8785 sorts by them, and an
/// unpaired surrogate has no other form.
pub(crate) fn code_units(inner: &str) -> Vec<u16> {
    let mut units = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        units.extend(rest[..at].encode_utf16());
        let escape = rest.as_bytes()[at + 1];
        let mut length = 2;
        units.push(match escape {
            b'b' => 8,
            b't' => 9,
            b'n' => 10,
            b'f' => 12,
            b'r' => 13,
            b'u' => {
                length = 6;
                u16::from_str_radix(&rest[at + 2..at + 6], 16).expect("the scan checked it")
            }
            other => u16::from(other),
        });
        rest = &rest[at + length..];
    }
    units.extend(rest.encode_utf16());
    units
}

fn string(units: &[u16], hide: HiddenEncoding, out: &mut String) {
    out.push('"');
    for c in char::decode_utf16(units.iter().copied()) {
        match c {
            Ok('"') => out.push_str("\\\""),
            Ok('\\') => out.push_str("\\\\"),
            Ok('\u{8}') => out.push_str("\\b"),
            Ok('\t') => out.push_str("\\t"),
            Ok('\n') => out.push_str("\\n"),
            Ok('\u{c}') => out.push_str("\\f"),
            Ok('\r') => out.push_str("\\r"),
            Ok(c)
                if c < ' ' || hide == HiddenEncoding::Escaped && hidden_character(c).is_some() =>
            {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|&unit| escape(unit, out));
            }
            Ok(c) => out.push(c),
            Err(half) => escape(half.unpaired_surrogate(), out),
        }
    }
    out.push('"');
}

fn escape(unit: u16, out: &mut String) {
    use std::fmt::Write;
    write!(out, "\\u{unit:04x}").expect("a string takes everything");
}

/// A number by its value, in the layout of ECMAScript, which RFC 8785 asks for: `1.50` and `15e-1`
/// are `1.5`, `-0` is `0`, `1e21` is `1e+21`. All digits count.
fn number(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    let Some(exponent) = exponent.parse::<i64>().ok().filter(|e| e.abs() < 1 << 40) else {
        // Beyond every use; as it is written is one spelling too.
        return text.to_ascii_lowercase();
    };
    let leading = digits.len() - significant.len();
    let place = |length: usize| i64::try_from(length).expect("a message is below 4 GiB");
    // The value is 0.DIGITS times ten to the power of `point`.
    let point = place(whole.len()) - place(leading) + exponent;
    let digits = significant.trim_end_matches('0');
    format!("{sign}{}", place_point(digits, point))
}

fn place_point(digits: &str, point: i64) -> String {
    let count = i64::try_from(digits.len()).expect("a message is below 4 GiB");
    let zeros = |n: i64| "0".repeat(usize::try_from(n).unwrap_or(0));
    match point {
        1..=21 if count <= point => format!("{digits}{}", zeros(point - count)),
        1..=21 => {
            let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
            format!("{whole}.{fraction}")
        }
        -5..=0 => format!("0.{}{digits}", zeros(-point)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{first}{dot}{rest}e{:+}", point - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> String {
        canonical(&Json::parse(text.to_owned()).unwrap())
    }

    #[test]
    fn members_are_sorted_by_utf_16_at_every_depth() {
        // The example of RFC 8785, section 3.2.3.
        let text = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":{"b":0,"a":0}}"#;
        assert_eq!(
            form(text),
            "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":{\"a\":0,\"b\":0},\"€\":1,\"😀\":5,\"\u{fb33}\":3}"
        );
    }

    #[test]
    fn a_string_has_one_spelling() {
        assert_eq!(form(r#""\u0061\/\u000a\u0022\u001f\ud83d\ude00""#), "\"a/\\n\\\"\\u001f😀\"");
        assert_eq!(form(r#""\uD800x""#), r#""\ud800x""#);
    }

    #[test]
    fn a_number_has_one_spelling_and_all_its_digits() {
        for (text, expected) in [
            ("0", "0"),
            ("-0.0e7", "0"),
            ("1.0", "1"),
            ("1.50", "1.5"),
            ("15e-1", "1.5"),
            ("100", "100"),
            ("1E2", "100"),
            ("0.000001", "0.000001"),
            ("1e-7", "1e-7"),
            ("0.00000012", "1.2e-7"),
            ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("1234567890123456789012", "1.234567890123456789012e+21"),
            ("1234567890123456789013", "1.234567890123456789013e+21"),
            ("12345e1000000000", "1.2345e+1000000004"),
            ("9007199254740993", "9007199254740993"),
            ("-333333333.33333329", "-333333333.33333329"),
            ("1e99999999999999999999", "1e99999999999999999999"),
            ("12.5E+1", "125"),
            ("0.1e1", "1"),
        ] {
            assert_eq!(form(text), expected, "{text}");
            assert_eq!(form(&form(text)), form(text), "{text}");
        }
    }

    #[test]
    fn of_two_members_with_one_name_both_stay_in_their_order() {
        assert_eq!(form(r#"{"b":0,"a":2,"\u0061":1}"#), r#"{"a":2,"a":1,"b":0}"#);
    }

    #[test]
    fn what_does_not_show_is_escaped_for_people_and_means_the_same() {
        let json = Json::parse("\"a\u{202e}b\u{e0041}\u{7f}\"").unwrap();
        let text = legible(&json);
        assert_eq!(text, r#""a\u202eb\udb40\udc41\u007f""#);
        assert_eq!(canonical(&Json::parse(text).unwrap()), canonical(&json));
    }
}
