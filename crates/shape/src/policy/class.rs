//! Classes of tools by their effects: read, write, destructive, open-world.

use std::collections::BTreeMap;
use std::fmt;

use consort_core::{NamePattern, ToolAnnotations};

use super::error::{PolicyError, unknown_word};
use super::spec::StringOrList;
use super::target::ToolPattern;

/// A class of effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectClass {
    /// It changes nothing.
    Read,
    /// It adds or changes, and destroys nothing.
    Write,
    /// It may destroy something.
    Destructive,
    /// It interacts with systems beyond the server: the web, mail, other people.
    OpenWorld,
}

impl EffectClass {
    /// Every class.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Destructive, Self::OpenWorld];

    /// Its name in a config.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
            Self::OpenWorld => "open-world",
        }
    }
}

impl fmt::Display for EffectClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A set of classes. A tool has exactly one of `read`, `write` and `destructive`, and `open-world` or
/// not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EffectClasses(u8);

impl EffectClasses {
    /// Creates a set of these classes.
    pub fn of(classes: impl IntoIterator<Item = EffectClass>) -> Self {
        Self(classes.into_iter().fold(0, |set, class| set | 1 << class as u8))
    }

    /// Returns the classes of a server's annotations. Absent hints have MCP's defaults: not read-only,
    /// destructive, open world. A tool annotated as both read-only and destructive is destructive.
    pub fn from_hints(hints: ToolAnnotations) -> Self {
        let effect = match (hints.read_only.unwrap_or(false), hints.destructive) {
            (_, Some(true)) | (false, None) => EffectClass::Destructive,
            (true, _) => EffectClass::Read,
            (false, Some(false)) => EffectClass::Write,
        };
        let open = hints.open_world.unwrap_or(true).then_some(EffectClass::OpenWorld);
        Self::of([effect].into_iter().chain(open))
    }

    /// Returns true if the set contains this class.
    pub fn has(self, class: EffectClass) -> bool {
        self.0 & 1 << class as u8 != 0
    }

    /// Returns true if the sets have a class in common.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Iterates over the classes.
    pub fn iter(self) -> impl Iterator<Item = EffectClass> {
        EffectClass::ALL.into_iter().filter(move |class| self.has(*class))
    }

    /// Parses a set: one word, or several.
    fn parse(place: &str, words: &StringOrList) -> Result<Self, PolicyError> {
        let classes = parse_all(place, words.iter())?;
        let effects = [EffectClass::Read, EffectClass::Write, EffectClass::Destructive];
        match effects.into_iter().filter(|class| classes.has(*class)).count() {
            1 => Ok(classes),
            _ => Err(PolicyError::new(
                place,
                format!(
                    "unknown class `{classes}`: expected `read`, `write` or `destructive`, optionally with \
                     `open-world`"
                ),
            )),
        }
    }
}

impl fmt::Display for EffectClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(EffectClass::as_str).collect();
        f.pad(&words.join(", "))
    }
}

/// Parses the set that these words name.
pub(super) fn parse_all<'a>(
    place: &str,
    words: impl IntoIterator<Item = &'a str>,
) -> Result<EffectClasses, PolicyError> {
    let known = || EffectClass::ALL.into_iter().map(EffectClass::as_str);
    let mut classes = Vec::new();
    for word in words {
        let class = EffectClass::ALL.into_iter().find(|class| class.as_str() == word);
        classes.push(class.ok_or_else(|| unknown_word(place, "class", word, known()))?);
    }
    Ok(EffectClasses::of(classes))
}

/// The operator's classification of tools, which overrides annotations.
#[derive(Clone, Debug)]
pub(super) struct ClassTable {
    /// The most specific patterns come first.
    entries: Vec<(ToolPattern, EffectClasses)>,
    /// The servers whose annotations are trusted.
    hints: Vec<NamePattern>,
}

impl Default for ClassTable {
    fn default() -> Self {
        Self { entries: Vec::new(), hints: vec![NamePattern::new("*")] }
    }
}

impl ClassTable {
    pub(super) fn compile(
        specs: &BTreeMap<String, StringOrList>,
        hints: Option<&[String]>,
        errors: &mut Vec<PolicyError>,
    ) -> Self {
        let mut entries = Vec::new();
        for (pattern, words) in specs {
            let place = format!("classes.\"{pattern}\"");
            let target = ToolPattern::parse(&place, pattern);
            match (target, EffectClasses::parse(&place, words)) {
                (Ok(target), Ok(classes)) => entries.push((target, classes)),
                (target, classes) => errors.extend(target.err().into_iter().chain(classes.err())),
            }
        }
        // Of two that say as much, the more careful one.
        entries.sort_by_key(|(target, classes)| std::cmp::Reverse((target.weight(), classes.0)));
        let hints = match hints {
            Some(servers) => servers.iter().map(NamePattern::new).collect(),
            None => Self::default().hints,
        };
        Self { entries, hints }
    }

    /// Returns a tool's classes.
    pub(super) fn classes(
        &self,
        server: &str,
        tool: &str,
        hints: ToolAnnotations,
    ) -> EffectClasses {
        let stated = self.entries.iter().find(|(target, _)| target.fits(server, tool));
        let believed = || self.hints.iter().any(|pattern| pattern.fits(server));
        match stated {
            Some((_, classes)) => *classes,
            None if believed() => EffectClasses::from_hints(hints),
            None => EffectClasses::from_hints(ToolAnnotations::default()),
        }
    }

    pub(super) fn targets(&self) -> impl Iterator<Item = &ToolPattern> {
        self.entries.iter().map(|(target, _)| target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(read_only: Option<bool>, destructive: Option<bool>) -> ToolAnnotations {
        ToolAnnotations {
            read_only,
            destructive,
            open_world: Some(false),
            ..ToolAnnotations::default()
        }
    }

    #[test]
    fn a_tool_without_hints_is_destructive_and_open_world() {
        assert_eq!(
            EffectClasses::from_hints(ToolAnnotations::default()).to_string(),
            "destructive, open-world"
        );
    }

    #[test]
    fn hints_fill_in_the_class_and_contradictions_the_worse() {
        for (read_only, destructive, class) in [
            (Some(true), None, EffectClass::Read),
            (Some(true), Some(false), EffectClass::Read),
            (Some(true), Some(true), EffectClass::Destructive),
            (Some(false), None, EffectClass::Destructive),
            (None, Some(false), EffectClass::Write),
            (None, Some(true), EffectClass::Destructive),
        ] {
            let classes = EffectClasses::from_hints(hints(read_only, destructive));
            assert_eq!(classes, EffectClasses::of([class]), "{read_only:?} {destructive:?}");
        }
    }

    fn table(entries: &[(&str, &[&str])], believed: Option<&[&str]>) -> ClassTable {
        let words =
            |words: &[&str]| StringOrList::Many(words.iter().map(|&w| w.to_owned()).collect());
        let specs = entries.iter().map(|(name, list)| ((*name).to_owned(), words(list))).collect();
        let believed: Option<Vec<String>> =
            believed.map(|list| list.iter().map(|&s| s.to_owned()).collect());
        let mut errors = Vec::new();
        let table = ClassTable::compile(&specs, believed.as_deref(), &mut errors);
        assert_eq!(errors, []);
        table
    }

    #[test]
    fn the_operator_decides_and_the_pattern_that_says_most_wins() {
        let table = table(
            &[
                ("*", &["write"]),
                ("github.*", &["read"]),
                ("github.delete_*", &["destructive", "open-world"]),
                ("delete_*", &["read"]),
            ],
            None,
        );
        let class = |server, tool| table.classes(server, tool, hints(Some(true), None)).to_string();
        assert_eq!(class("github", "get_issue"), "read");
        assert_eq!(class("github", "delete_repo"), "destructive, open-world");
        assert_eq!(class("notes", "delete_note"), "read");
        assert_eq!(class("notes", "add"), "write");
    }

    #[test]
    fn hints_of_a_server_that_is_not_believed_count_for_nothing() {
        let table = table(&[], Some(&["git*"]));
        let class = |server| table.classes(server, "get", hints(Some(true), None)).to_string();
        assert_eq!(class("github"), "read");
        assert_eq!(class("evil"), "destructive, open-world");
    }

    #[test]
    fn a_class_that_is_none_is_refused_with_what_would_be_right() {
        let specs = BTreeMap::from([
            ("a.*".to_owned(), StringOrList::One("destructve".to_owned())),
            ("b.*".to_owned(), StringOrList::Many(vec!["read".to_owned(), "write".to_owned()])),
            ("c.*".to_owned(), StringOrList::One("open-world".to_owned())),
        ]);
        let mut errors = Vec::new();
        ClassTable::compile(&specs, None, &mut errors);
        let told: Vec<_> = errors
            .iter()
            .map(|error| (error.to_string(), error.hint().map(str::to_owned)))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "classes.\"a.*\": unknown class `destructve`: expected one of `read`, `write`, \
                     `destructive`, `open-world`"
                        .to_owned(),
                    Some("did you mean `destructive`?".to_owned()),
                ),
                (
                    "classes.\"b.*\": unknown class `read, write`: expected `read`, `write` or `destructive`, optionally with `open-world`"
                        .to_owned(),
                    None,
                ),
                (
                    "classes.\"c.*\": unknown class `open-world`: expected `read`, `write` or `destructive`, optionally with `open-world`"
                        .to_owned(),
                    None,
                ),
            ]
        );
    }
}
