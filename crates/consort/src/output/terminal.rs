//! The only type of printed text: its only control sequences are Consort's own styles.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::{Add, AddAssign};

use consort_core::escape::{escape_model_text, escape_text, is_unprintable};

use super::style::TextStyle;

/// Text that is safe to show on a terminal. Its input always passes the sanitizer; only [`styled`] adds escape
/// sequences. It has no `Display`, so that it cannot be put into other text and lose its type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TerminalText(String);

impl TerminalText {
    /// Text of a model, in which joiner characters are kept.
    pub(crate) fn model_text(text: &str) -> Self {
        Self(escape_model_text(text))
    }

    /// A JSON text. Characters that control a terminal are written as JSON escapes, so that programs read the same
    /// value.
    pub(crate) fn json(text: &str) -> Self {
        let mut safe = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\n' | '\t' => safe.push(c),
                // Between values it is white space, and within strings it is not allowed.
                '\r' => safe.push(' '),
                c if is_unprintable(c) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(safe, "\\u{unit:04x}");
                    }
                }
                c => safe.push(c),
            }
        }
        Self(safe)
    }

    /// The sequence that clears the screen.
    pub(crate) fn cleared_screen() -> Self {
        Self("\u{1b}[H\u{1b}[J".to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub(crate) fn trim_end(mut self) -> Self {
        self.0.truncate(self.0.trim_end().len());
        self
    }

    /// The text with an indent before each line, without trailing blanks.
    #[must_use]
    pub(crate) fn indented(&self, before: &str) -> Vec<Self> {
        let lines = self.0.trim_end().lines();
        lines.map(|line| (Self::from(before) + Self(line.to_owned())).trim_end()).collect()
    }

    pub(crate) fn join(texts: impl IntoIterator<Item = Self>, between: &str) -> Self {
        let texts: Vec<String> = texts.into_iter().map(|text| text.0).collect();
        Self(texts.join(escape_text(between).as_str()))
    }
}

impl From<&str> for TerminalText {
    fn from(text: &str) -> Self {
        Self(escape_text(text))
    }
}

impl From<String> for TerminalText {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&String> for TerminalText {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<Cow<'_, str>> for TerminalText {
    fn from(text: Cow<'_, str>) -> Self {
        Self::from(&*text)
    }
}

impl From<&Self> for TerminalText {
    fn from(text: &Self) -> Self {
        text.clone()
    }
}

impl<T: Into<Self>> Add<T> for TerminalText {
    type Output = Self;

    fn add(mut self, more: T) -> Self {
        self += more;
        self
    }
}

impl<T: Into<Self>> AddAssign<T> for TerminalText {
    fn add_assign(&mut self, more: T) {
        self.0.push_str(&more.into().0);
    }
}

/// A text in a style. The output stream drops the style if it is not supported.
pub(crate) fn styled(styled: TextStyle, text: impl Into<TerminalText>) -> TerminalText {
    let text = text.into();
    if text.is_empty() {
        return text;
    }
    let style = styled.style();
    TerminalText(format!("{style}{}{style:#}", text.0))
}

#[cfg(test)]
mod tests {
    use consort_core::escape::shorten_line;

    use super::*;

    /// The text without Consort's own styles.
    fn plain(text: &TerminalText) -> String {
        anstream::adapter::strip_str(text.as_str()).to_string()
    }

    #[test]
    fn only_our_own_styles_are_obeyed_however_texts_are_put_together() {
        let text = styled(TextStyle::Bad, "error\u{1b}[2J")
            + ": "
            + "\u{9b}1A\u{202e}"
            + String::from("\r\u{7}");
        assert_eq!(
            text.as_str(),
            "\u{1b}[1m\u{1b}[31merror\\u{1b}[2J\u{1b}[0m: \\u{9b}1A\\u{202e}\\u{d}\\u{7}"
        );
        // What was printed once cannot be made to look like a style of ours.
        assert!(!TerminalText::from(text.as_str()).as_str().contains('\u{1b}'));
        let joined = TerminalText::join([text, "\u{1b}c".into()], "\u{1b}");
        assert_eq!(joined.as_str().matches('\u{1b}').count(), 3);
    }

    #[test]
    fn json_keeps_its_value_and_is_not_obeyed() {
        let value = serde_json::json!({ "a\u{9b}": "\u{1b}[2J\u{7f}\u{202e}\u{e0041}é\u{feff}", "b": "\r\n" });
        let text = TerminalText::json(&value.to_string());
        assert_eq!(serde_json::from_str::<serde_json::Value>(text.as_str()).unwrap(), value);
        assert_eq!(text.as_str(), TerminalText::from(text.as_str()).as_str());
        assert!(text.as_str().contains('é'));
        assert_eq!(TerminalText::json("{\r\n}").as_str(), "{ \n}");
    }

    #[test]
    fn no_naughty_string_is_obeyed_by_a_terminal() {
        for naughty in testkit::fixtures::naughty_strings() {
            let text = styled(TextStyle::Good, &naughty) + &naughty;
            let json = TerminalText::json(&serde_json::Value::from(naughty.clone()).to_string());
            let line = shorten_line(&naughty, 40);
            assert!(!line.contains(['\n', '\t']) && line.chars().count() <= 40, "{naughty:?}");
            let spoken = escape_model_text(&naughty).replace(['\u{200c}', '\u{200d}'], "");
            for text in [plain(&text), json.as_str().to_owned(), line, spoken] {
                let obeyed = text.chars().find(|c| is_unprintable(*c) && !matches!(c, '\n' | '\t'));
                assert_eq!(obeyed, None, "{naughty:?}");
            }
        }
    }
}
