//! Colours, on terminals that support them.

use anstyle::{AnsiColor, Style};

/// Meaning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextStyle {
    /// A heading.
    Heading,
    /// Something good.
    Good,
    /// A warning.
    Warning,
    /// Something bad.
    Bad,
    /// Something less important.
    Faint,
}

impl TextStyle {
    pub(super) fn style(self) -> Style {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        match self {
            Self::Heading => Style::new().bold(),
            Self::Good => colour(AnsiColor::Green),
            Self::Warning => colour(AnsiColor::Yellow),
            Self::Bad => colour(AnsiColor::Red).bold(),
            Self::Faint => Style::new().dimmed(),
        }
    }
}
