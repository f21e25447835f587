//! Files of environment variables, as `dotenv` and editors read them.

use crate::template::is_name;

/// Reads `NAME=value` lines. Blank lines and comments are skipped, `export` is allowed, and a value may be quoted:
/// `'…'` is literal, in `"…"` a backslash escapes `n`, `r`, `t`, `"` and itself. Quoted values may have several lines.
/// The error is the number of the line that is none of these.
pub(crate) fn parse(text: &str) -> Result<Vec<(String, String)>, usize> {
    let mut variables = Vec::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    let mut line = 1;
    while !rest.is_empty() {
        let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let (written, after) = rest.split_at(end);
        let trimmed = written.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            (rest, line) = (after, line + 1);
            continue;
        }
        let trimmed = trimmed.strip_prefix("export ").unwrap_or(trimmed);
        let (name, _) = trimmed.split_once('=').ok_or(line)?;
        let name = name.trim();
        if !is_name(name) {
            return Err(line);
        }
        let start = rest.find('=').ok_or(line)? + 1;
        let (value, length) = value(&rest[start..]).ok_or(line)?;
        variables.push((name.to_owned(), value));
        let consumed = start + length;
        line += rest[..consumed].matches('\n').count();
        rest = &rest[consumed..];
    }
    Ok(variables)
}

/// Reads a value and returns its length with the rest of its last line; `None` if a quote has no end, or text follows.
fn value(text: &str) -> Option<(String, usize)> {
    let blanks = text.len() - text.trim_start_matches([' ', '\t']).len();
    let inside = &text[blanks..];
    let quote = inside.chars().next().filter(|c| ['"', '\''].contains(c));
    let Some(quote) = quote else {
        let end = inside.find('\n').map_or(inside.len(), |end| end + 1);
        let plain = inside[..end].trim_end();
        let comment = if plain.starts_with('#') { Some(0) } else { plain.find(" #") };
        let plain = comment.map_or(plain, |start| plain[..start].trim_end());
        return Some((plain.to_owned(), blanks + end));
    };
    let (mut value, mut letters) = (String::new(), inside.char_indices().skip(1));
    let end = loop {
        match letters.next()? {
            (end, c) if c == quote => break end + 1,
            (_, '\\') if quote == '"' => match letters.next()?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                c @ ('"' | '\\') => value.push(c),
                c => value.extend(['\\', c]),
            },
            (_, c) => value.push(c),
        }
    };
    let rest = &inside[end..];
    let line = rest.find('\n').map_or(rest.len(), |end| end + 1);
    let after = rest[..line].trim();
    (after.is_empty() || after.starts_with('#')).then_some((value, blanks + end + line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_dotenv_reads_them() {
        let text = "\u{feff}# tokens\nA=1\n\nexport B = two words  # note\nC='x # y' # z\nD=\"a\\n\\\"b\\\"\"\r\nE=\nF=a#b\n\
                    G='one\ntwo'\nH=last";
        let read = parse(text).unwrap();
        let read: Vec<(&str, &str)> = read.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "x # y"),
            ("D", "a\n\"b\""),
            ("E", ""),
            ("F", "a#b"),
            ("G", "one\ntwo"),
            ("H", "last"),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn a_line_that_is_no_variable_is_named() {
        for (text, line) in
            [("A=1\nB", 2), ("a-b=1", 1), ("A='x\ny", 1), ("\n\nA='x' y", 3), ("=x", 1)]
        {
            assert_eq!(parse(text), Err(line), "{text}");
        }
    }
}
