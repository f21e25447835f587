//! The requests answered by an unreadable message: one that is nested too deep still names them.

/// The most requests that one unreadable message can end.
const ANSWERED: usize = 64;

/// Returns the ids of the requests that a message answers, read leniently: only strings and brackets count, at
/// any depth. A batch answers several. A request, or a message with two ids, answers none.
pub(crate) fn answered_ids(bytes: &[u8]) -> Vec<u64> {
    let mut ids = Vec::new();
    let mut at = blank(bytes, 0);
    let is_batch = bytes.get(at) == Some(&b'[');
    at += usize::from(is_batch);
    loop {
        at = blank(bytes, at);
        if bytes.get(at) != Some(&b'{') {
            return ids;
        }
        let (envelope, end) = read_envelope(bytes, at + 1);
        ids.extend(envelope.answered());
        at = blank(bytes, end);
        if !is_batch || ids.len() >= ANSWERED || bytes.get(at) != Some(&b',') {
            return ids;
        }
        at += 1;
    }
}

/// The members of an envelope that identify the answered request.
#[derive(Default)]
struct PartialEnvelope {
    id: Option<u64>,
    ids: usize,
    is_answer: bool,
    is_question: bool,
}

impl PartialEnvelope {
    fn answered(&self) -> Option<u64> {
        self.id.filter(|_| self.ids == 1 && self.is_answer && !self.is_question)
    }
}

/// Reads the members of an object whose first one is at `at`, as far as possible. Returns its end.
fn read_envelope(bytes: &[u8], mut at: usize) -> (PartialEnvelope, usize) {
    let mut envelope = PartialEnvelope::default();
    loop {
        at = blank(bytes, at);
        if bytes.get(at) != Some(&b'"') {
            // The end, or nothing that could be read on.
            return (envelope, at + 1);
        }
        let end = string_end(bytes, at);
        let key = &bytes[at + 1..end.saturating_sub(1).max(at + 1)];
        at = blank(bytes, end);
        if bytes.get(at) != Some(&b':') {
            return (envelope, bytes.len());
        }
        let start = blank(bytes, at + 1);
        at = value_end(bytes, start);
        match key {
            b"id" => {
                envelope.ids += 1;
                let id = std::str::from_utf8(&bytes[start..at]).ok();
                envelope.id = id.and_then(|id| id.trim_end().parse().ok());
            }
            b"result" | b"error" => envelope.is_answer = true,
            b"method" => envelope.is_question = true,
            _ => {}
        }
        if bytes.get(at) != Some(&b',') {
            return (envelope, (at + 1).min(bytes.len()));
        }
        at += 1;
    }
}

fn blank(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Returns the position after the string that starts at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        if bytes[at + found] == b'"' {
            return at + found + 1;
        }
        at += found + 2;
    }
    bytes.len()
}

/// Returns the position of the comma or bracket after the value that starts at `at`.
fn value_end(bytes: &[u8], mut at: usize) -> usize {
    let mut level = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => level += 1,
            b'}' | b']' if level > 0 => level -= 1,
            b'}' | b']' | b',' if level == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_however_deep_it_is_and_wherever_its_id_stands() {
        let deep = ["[".repeat(500), "]".repeat(500)].concat();
        for text in [
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"x":{deep}}}}}"#),
            format!(
                r#"{{"result":{{"id":1,"x":{deep},"s":"}},\"id\":2"}},"jsonrpc":"2.0","id":7}}"#
            ),
            format!(" {{ \"error\" : {deep} , \"id\" : 7 }} "),
            r#"{"id":7,"result":5}"#.to_owned(),
            r#"{"id":7,"result":{"cut off"#.to_owned(),
        ] {
            assert_eq!(answered_ids(text.as_bytes()), [7], "{text}");
        }
    }

    #[test]
    fn what_asks_or_is_ambiguous_answers_nobody() {
        for text in [
            r#"{"id":7,"method":"ping","params":{}}"#,
            r#"{"id":7,"result":{},"method":"x"}"#,
            r#"{"id":7,"id":8,"result":{}}"#,
            r#"{"id":"7","result":{}}"#,
            r#"{"id":7}"#,
            r#"{"result":{}}"#,
            r#"{"result":{"id":7}}"#,
            "[7]",
            "{",
            "",
            r#"{"id"#,
            r#"{"id\"#,
        ] {
            assert_eq!(answered_ids(text.as_bytes()), [0; 0], "{text}");
        }
    }

    #[test]
    fn a_batch_answers_several() {
        let text = br#"[{"id":1,"result":{}}, {"id":2,"error":{}}, {"method":"x"}, {"id":3,"result":[[]]}]"#;
        assert_eq!(answered_ids(text), [1, 2, 3]);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let text = br#" [{"result":{"a":"\"}"},"id":7},{"id":8,"error":[{}]}]"#;
        for start in 0..text.len() {
            for end in start..text.len() {
                let _ = answered_ids(&text[start..end]);
            }
        }
    }
}
