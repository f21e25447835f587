//! YAML 1.2, with the types of its core schema.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};

use super::{SyntaxEntry, SyntaxError, SyntaxNode, SyntaxTable, SyntaxValue};

/// Limit of nested lists and tables.
const DEEPEST: usize = 64;

/// Limit of values, with those that aliases repeat: a few nested aliases may stand for billions.
const MOST_VALUES: usize = 100_000;

/// The key of tables whose entries are added to a table.
const MERGE: &str = "<<";

pub(crate) fn parse(text: &str) -> Result<SyntaxNode, SyntaxError> {
    let mut reader = YamlReader {
        events: Parser::new_from_str(text),
        offsets: CharOffsets::new(text),
        anchors: BTreeMap::new(),
        values: 0,
    };
    reader.document()
}

/// Builds the tree from the events of a parser.
struct YamlReader<'a> {
    events: Parser<'a, StrInput<'a>>,
    offsets: CharOffsets,
    /// The value of each anchor that is complete, by its number.
    anchors: BTreeMap<usize, SyntaxNode>,
    values: usize,
}

impl<'a> YamlReader<'a> {
    /// Reads the only document. Nothing written is a table with nothing in it.
    fn document(&mut self) -> Result<SyntaxNode, SyntaxError> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(_) if root.is_some() => {
                    return self.fail(span, "more than one document in a file");
                }
                Event::DocumentStart(_) => {
                    let (event, span) = self.next()?;
                    root = Some(self.node(event, span, 0)?);
                }
                _ => {}
            }
        }
        let empty = SyntaxNode { value: SyntaxValue::Table(SyntaxTable::default()), at: 0 };
        Ok(root.filter(|root| !matches!(root.value, SyntaxValue::Null)).unwrap_or(empty))
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), SyntaxError> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(SyntaxError {
                at: self.offsets.of(*error.marker()),
                message: error.info().to_owned(),
            }),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(
        &mut self,
        event: Event<'a>,
        span: Span,
        depth: usize,
    ) -> Result<SyntaxNode, SyntaxError> {
        let at = self.offsets.of(span.start);
        self.count(1, span)?;
        if depth > DEEPEST {
            return self.fail(span, "lists and tables are nested too deeply");
        }
        let (anchor, value) = match event {
            Event::Alias(id) => return self.alias(id, span),
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, self.scalar(&text, style, tag.as_deref(), span)?)
            }
            Event::SequenceStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), &["seq"], span)?;
                (anchor, SyntaxValue::List(self.list(depth)?))
            }
            Event::MappingStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), &["map"], span)?;
                (anchor, SyntaxValue::Table(self.table(depth)?))
            }
            _ => return self.fail(span, "a value is missing"),
        };
        let node = SyntaxNode { value, at };
        if anchor > 0 {
            let copy = node.clone();
            self.count(count_values(&copy), span)?;
            self.anchors.insert(anchor, copy);
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<SyntaxNode>, SyntaxError> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok(items);
            }
            items.push(self.node(event, span, depth + 1)?);
        }
    }

    fn table(&mut self, depth: usize) -> Result<SyntaxTable, SyntaxError> {
        let mut entries: Vec<SyntaxEntry> = Vec::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.next()?;
            let (key, style) = match event {
                Event::MappingEnd => break,
                Event::Scalar(key, style, ..) => (key.into_owned(), style),
                _ => return self.fail(span, "a key is not a string"),
            };
            let at = self.offsets.of(span.start);
            let (event, span) = self.next()?;
            let node = self.node(event, span, depth + 1)?;
            if key == MERGE && style == ScalarStyle::Plain {
                self.merge(&mut merged, node, span)?;
            } else {
                entries.push(SyntaxEntry { key, at, node });
            }
        }
        // Its own entries win, and of the merged ones the first.
        for entry in merged {
            if !entries.iter().any(|own| own.key == entry.key) {
                entries.push(entry);
            }
        }
        Ok(SyntaxTable(entries))
    }

    /// Reads the value of a merge key: a table, or a list of tables.
    fn merge(
        &mut self,
        merged: &mut Vec<SyntaxEntry>,
        node: SyntaxNode,
        span: Span,
    ) -> Result<(), SyntaxError> {
        match node.value {
            SyntaxValue::Table(table) => merged.extend(table.0),
            SyntaxValue::List(items) => {
                for item in items {
                    let SyntaxValue::Table(table) = item.value else {
                        return self.fail(span, "`<<` requires a table or a list of tables");
                    };
                    merged.extend(table.0);
                }
            }
            _ => return self.fail(span, "`<<` requires a table or a list of tables"),
        }
        Ok(())
    }

    /// Repeats the value of an anchor. Problems in it are reported where it is written.
    fn alias(&mut self, id: usize, span: Span) -> Result<SyntaxNode, SyntaxError> {
        let Some(node) = self.anchors.get(&id) else {
            return self.fail(span, "an alias refers to the value that it is part of");
        };
        let node = node.clone();
        self.count(count_values(&node), span)?;
        Ok(node)
    }

    fn scalar(
        &self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> Result<SyntaxValue, SyntaxError> {
        self.check_tag(tag, &["str", "int", "float", "bool", "null"], span)?;
        let is_string = tag.is_some_and(|tag| tag.suffix == "str" || is_plain_mark(tag));
        Ok(match style {
            ScalarStyle::Plain if !is_string => plain_scalar(text),
            _ => SyntaxValue::Text(text.to_owned()),
        })
    }

    /// Refuses tags that only a client understands, such as `!include`.
    fn check_tag(&self, tag: Option<&Tag>, known: &[&str], span: Span) -> Result<(), SyntaxError> {
        let is_known = |tag: &Tag| {
            is_plain_mark(tag) || tag.is_yaml_core_schema() && known.contains(&tag.suffix.as_str())
        };
        if tag.is_none_or(is_known) { Ok(()) } else { self.fail(span, "unsupported tag") }
    }

    fn count(&mut self, values: usize, span: Span) -> Result<(), SyntaxError> {
        self.values = self.values.saturating_add(values);
        if self.values > MOST_VALUES {
            return self.fail(span, "too many values, with those that aliases repeat");
        }
        Ok(())
    }

    fn fail<T>(&self, span: Span, message: &str) -> Result<T, SyntaxError> {
        Err(SyntaxError { at: self.offsets.of(span.start), message: message.to_owned() })
    }
}

/// Returns true for `!`, which makes a plain scalar a string.
fn is_plain_mark(tag: &Tag) -> bool {
    tag.handle.is_empty() && tag.suffix == "!" || tag.handle == "!" && tag.suffix.is_empty()
}

fn count_values(node: &SyntaxNode) -> usize {
    1 + match &node.value {
        SyntaxValue::List(items) => items.iter().map(count_values).sum(),
        SyntaxValue::Table(table) => table.0.iter().map(|entry| count_values(&entry.node)).sum(),
        _ => 0,
    }
}

/// The value of an unquoted scalar by YAML's core schema.
fn plain_scalar(text: &str) -> SyntaxValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => SyntaxValue::Null,
        "true" | "True" | "TRUE" => SyntaxValue::Bool(true),
        "false" | "False" | "FALSE" => SyntaxValue::Bool(false),
        _ => match number(text) {
            Some(number) => SyntaxValue::Number(number),
            None => SyntaxValue::Text(text.to_owned()),
        },
    }
}

/// The decimal digits of a number.
fn number(text: &str) -> Option<String> {
    let integer = |digits: &str, radix| {
        let is_digits = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
        // A number too large for this is too large for anything.
        is_digits.then(|| i128::from_str_radix(digits, radix).unwrap_or(i128::MAX).to_string())
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return integer(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return integer(digits, 8);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let starts = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let is_number = starts(unsigned) || unsigned.strip_prefix('.').is_some_and(starts);
    (is_number && text.parse::<f64>().is_ok_and(f64::is_finite))
        .then(|| text.strip_prefix('+').unwrap_or(text).to_owned())
}

/// Byte offsets of characters: the parser counts characters.
struct CharOffsets {
    /// Nothing if every character is one byte.
    bytes: Option<Vec<usize>>,
    length: usize,
}

impl CharOffsets {
    fn new(text: &str) -> Self {
        let bytes = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self { bytes, length: text.len() }
    }

    fn of(&self, marker: Marker) -> usize {
        let at = match &self.bytes {
            Some(bytes) => bytes.get(marker.index()).copied(),
            None => Some(marker.index()),
        };
        at.unwrap_or(self.length).min(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        parse(text).unwrap().value.to_json().to_string()
    }

    fn error(text: &str) -> (usize, String) {
        let error = parse(text).unwrap_err();
        (error.at, error.message)
    }

    #[test]
    fn values_have_the_types_of_the_core_schema() {
        let text = "a: [1, -2, 0x1F, 0o17, 1.5, 1e3, +4, 1.2.3, .inf]\nb: [true, False, yes, on, ~, null, '', \"1\"]\n\
                    c: [2024-01-01, !!str 5, ! 6, 0b1, 1_000]\nd:\ne: |\n  x\n  y\n";
        assert_eq!(
            json(text),
            r#"{"a":[1,-2,31,15,1.5,1000.0,4,"1.2.3",".inf"],"b":[true,false,"yes","on",null,null,"","1"],"c":["2024-01-01","5","6","0b1","1_000"],"d":null,"e":"x\ny\n"}"#
        );
        assert_eq!(json(""), "{}");
        assert_eq!(json("# nothing\n"), "{}");
        assert_eq!(json("---\na: 1\n...\n"), r#"{"a":1}"#);
    }

    #[test]
    fn a_place_is_counted_in_bytes() {
        let text = "ä: ö\r\nname: [x]\r\n";
        let SyntaxValue::Table(table) = parse(text).unwrap().value else { panic!("no table") };
        let places: Vec<(usize, usize)> =
            table.0.iter().map(|entry| (entry.at, entry.node.at)).collect();
        assert_eq!(&text[places[0].1..][..2], "ö");
        assert_eq!(&text[places[1].0..][..4], "name");
        assert_eq!(&text[places[1].1..][..3], "[x]");
    }

    #[test]
    fn an_alias_repeats_its_anchor_and_a_merge_keeps_what_is_written() {
        let text = "base: &b {type: stdio, args: [1]}\nx: *b\ny: {<<: *b, type: http}\nz: {<<: [{a: 1}, {a: 2, b: 3}]}\n";
        assert_eq!(
            json(text),
            r#"{"base":{"args":[1],"type":"stdio"},"x":{"args":[1],"type":"stdio"},"y":{"args":[1],"type":"http"},"z":{"a":1,"b":3}}"#
        );
    }

    #[test]
    fn aliases_that_multiply_are_refused_before_they_fill_the_memory() {
        let line = |n: usize| {
            let repeated = vec![format!("*a{}", n - 1); 10].join(", ");
            format!("a{n}: &a{n} [{repeated}]\n")
        };
        let first = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        let text: String = std::iter::once(first).chain((1..12).map(line)).collect();
        assert_eq!(error(&text).1, "too many values, with those that aliases repeat");
        assert_eq!(error("a: &a [*a]\n").1, "an alias refers to the value that it is part of");
        let deep = "[".repeat(200);
        assert_eq!(error(&deep).1, "lists and tables are nested too deeply");
    }

    #[test]
    fn what_is_no_config_is_refused_with_its_place() {
        assert_eq!(error("a: 1\n---\nb: 2\n").1, "more than one document in a file");
        assert_eq!(error("a: !include x.yaml\n"), (3, "unsupported tag".to_owned()));
        assert_eq!(error("? [a]\n: 1\n").1, "a key is not a string");
        assert_eq!(error("<<: 1\n").1, "`<<` requires a table or a list of tables");
        assert_eq!(error("a: *b\n").0, 3);
        assert!(parse("a: [1\nb: 2\n").is_err());
        assert!(parse("a: 1\n b: 2\n").is_err());
        assert!(parse("a:\n\t- b\n").is_err());
    }
}
