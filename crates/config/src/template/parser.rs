//! Parser of the references in a text, in the syntax of each client.

use std::path::Path;

use super::{InvalidTemplate, TemplatePart, ValueReference, is_name};
use crate::template::secret_scheme;

/// Limit of nested defaults of a reference, as in `${A:-${B:-c}}`.
const DEEPEST: usize = 8;

/// References that only editors can resolve.
const EDITORS: [&str; 4] = ["command", "config", "workspaceFolder", "extensionInstallFolder"];

/// References that a client supports besides `${…}`, which is read in every file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReferenceSyntax {
    /// No others.
    Common,
    /// `$NAME`.
    Gemini,
    /// `$NAME`. `$(…)` is refused.
    Crush,
    /// `{env:NAME}` and `{file:path}`.
    OpenCode,
    /// `${{ secrets.NAME }}`.
    Continue,
}

impl ReferenceSyntax {
    /// Returns the syntax of the client that a file belongs to, by its path.
    pub(crate) fn of_file(file: &Path) -> Self {
        fn name(path: Option<&Path>) -> &str {
            path.and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default()
        }
        match (name(file.parent()), name(Some(file))) {
            (".gemini", _) => Self::Gemini,
            (_, "crush.json" | ".crush.json") => Self::Crush,
            (_, "opencode.json" | "opencode.jsonc") => Self::OpenCode,
            (".continue" | "mcpServers", _) if is_inside(file, ".continue") => Self::Continue,
            _ => Self::Common,
        }
    }

    /// Returns the form of another client's reference that a text contains and this syntax leaves as it is:
    /// `{env:NAME}`, or `$NAME` as a word in upper case. The name itself is left out, since it may be a secret.
    pub(crate) fn overlooked(self, text: &str) -> Option<&'static str> {
        let braced = text.split_once("{env:").is_some_and(|(before, rest)| {
            !before.ends_with('$') && rest.split_once('}').is_some_and(|(name, _)| is_name(name))
        });
        let is_upper =
            |name: &str| is_name(name) && !name.contains(|c: char| c.is_ascii_lowercase());
        let dollar = text.split(' ').any(|word| word.strip_prefix('$').is_some_and(is_upper));
        match self {
            Self::Common | Self::Continue | Self::Gemini | Self::Crush if braced => {
                Some("{env:NAME}")
            }
            Self::Common | Self::Continue | Self::OpenCode if dollar => Some("$NAME"),
            _ => None,
        }
    }

    /// Returns the first character of its references.
    fn opening(self) -> &'static [char] {
        match self {
            Self::OpenCode => &['$', '{'],
            _ => &['$'],
        }
    }
}

fn is_inside(file: &Path, folder: &str) -> bool {
    file.components().any(|part| part.as_os_str() == folder)
}

/// Parses a text.
pub(super) fn parts(
    syntax: ReferenceSyntax,
    mut text: &str,
    depth: usize,
) -> Result<Vec<TemplatePart>, InvalidTemplate> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    while let Some(start) = text.find(syntax.opening()) {
        literal.push_str(&text[..start]);
        text = &text[start..];
        match reference_at_start(syntax, text, depth)? {
            Some((reference, length)) => {
                if !literal.is_empty() {
                    parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
                }
                parts.push(TemplatePart::Reference(reference, text[..length].to_owned()));
                text = &text[length..];
            }
            None => {
                literal.push_str(&text[..1]);
                text = &text[1..];
            }
        }
    }
    literal.push_str(text);
    if !literal.is_empty() {
        parts.push(TemplatePart::Literal(literal));
    }
    Ok(parts)
}

/// Reads the reference that a text starts with, and its length.
fn reference_at_start(
    syntax: ReferenceSyntax,
    text: &str,
    depth: usize,
) -> Result<Option<(ValueReference, usize)>, InvalidTemplate> {
    if syntax == ReferenceSyntax::Continue
        && let Some(inside) = text.strip_prefix("${{")
    {
        let (inside, _) = inside.split_once("}}").ok_or(InvalidTemplate::Unclosed)?;
        return Ok(Some((continue_secret(inside.trim())?, inside.len() + 5)));
    }
    if let Some(inside) = text.strip_prefix("${") {
        let length = closing(inside).ok_or(InvalidTemplate::Unclosed)?;
        return Ok(Some((reference(syntax, &inside[..length], depth)?, length + 3)));
    }
    match syntax {
        ReferenceSyntax::Crush if text.starts_with("$(") => Err(InvalidTemplate::Substitution),
        ReferenceSyntax::Gemini | ReferenceSyntax::Crush => Ok(dollar_name(text)),
        ReferenceSyntax::OpenCode => braces(text),
        ReferenceSyntax::Common | ReferenceSyntax::Continue => Ok(None),
    }
}

/// Reads `$NAME`.
fn dollar_name(text: &str) -> Option<(ValueReference, usize)> {
    let name = text.strip_prefix('$')?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    let name = &name[..end];
    let variable = ValueReference::Variable { name: name.to_owned(), default: None };
    is_name(name).then_some((variable, end + 1))
}

/// Reads `{env:NAME}` or `{file:path}`.
fn braces(text: &str) -> Result<Option<(ValueReference, usize)>, InvalidTemplate> {
    let inside = text.strip_prefix('{').and_then(|inside| inside.split_once('}'));
    let Some((inside, _)) = inside else { return Ok(None) };
    let reference = match inside.split_once(':') {
        Some(("env", name)) if is_name(name) => {
            ValueReference::Variable { name: name.to_owned(), default: None }
        }
        Some(("env", _)) => return Err(InvalidTemplate::Name),
        Some(("file", "")) => return Err(InvalidTemplate::Empty),
        Some(("file", path)) => ValueReference::File(path.to_owned()),
        _ => return Ok(None),
    };
    Ok(Some((reference, inside.len() + 2)))
}

/// Reads `secrets.NAME`: Continue resolves it from the environment too.
fn continue_secret(inside: &str) -> Result<ValueReference, InvalidTemplate> {
    match inside.split_once('.') {
        Some(("secrets", name)) if is_name(name) => {
            Ok(ValueReference::Variable { name: name.to_owned(), default: None })
        }
        Some(("secrets", _)) => Err(InvalidTemplate::Name),
        Some(("inputs", _)) => Err(InvalidTemplate::Template("inputs")),
        _ => Err(InvalidTemplate::Unknown),
    }
}

/// Returns the offset of the brace that closes the one opened before `text`.
fn closing(text: &str) -> Option<usize> {
    let (mut open, mut last) = (1, b' ');
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' if last == b'$' => open += 1,
            b'}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at);
        }
        last = byte;
    }
    None
}

fn reference(
    syntax: ReferenceSyntax,
    inside: &str,
    depth: usize,
) -> Result<ValueReference, InvalidTemplate> {
    let named = |rest: &str| {
        if rest.is_empty() { Err(InvalidTemplate::Empty) } else { Ok(rest.to_owned()) }
    };
    match inside {
        "" => return Err(InvalidTemplate::Empty),
        "workspaceFolder" => return Ok(ValueReference::Folder),
        "workspaceFolderBasename" => return Ok(ValueReference::FolderName),
        "userHome" => return Ok(ValueReference::Home),
        "pathSeparator" | "/" => return Ok(ValueReference::Separator),
        _ => {}
    }
    match inside.split_once(':') {
        Some(("input", id)) => named(id).map(ValueReference::Input),
        Some(("file", path)) => named(path).map(ValueReference::File),
        Some(("keyring", entry)) => secret_scheme::keyring(entry),
        Some(("cmd", line)) => secret_scheme::program(line),
        Some(("env", rest)) => variable(syntax, rest, depth),
        Some((word, rest)) if !rest.starts_with('-') => {
            let editor = EDITORS.into_iter().find(|known| *known == word);
            Err(editor.map_or(InvalidTemplate::Unknown, InvalidTemplate::Elsewhere))
        }
        _ => variable(syntax, inside, depth),
    }
}

fn variable(
    syntax: ReferenceSyntax,
    text: &str,
    depth: usize,
) -> Result<ValueReference, InvalidTemplate> {
    let (name, default) = match text.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (text, None),
    };
    if !is_name(name) {
        return Err(InvalidTemplate::Unknown);
    }
    let default = match default {
        Some(_) if depth == DEEPEST => return Err(InvalidTemplate::Depth),
        Some(default) => Some(parts(syntax, default, depth + 1)?),
        None => None,
    };
    Ok(ValueReference::Variable { name: name.to_owned(), default })
}

#[cfg(test)]
mod tests {
    use super::super::{SecretMasking, TemplateString};
    use super::*;
    use crate::source_location::LineColumn;

    #[test]
    fn references_of_other_clients_are_noticed_without_their_names() {
        use ReferenceSyntax::{Common, Crush, OpenCode};
        for (syntax, text, form) in [
            (Common, "Bearer $TOKEN", Some("$NAME")),
            (Common, "x {env:TOKEN}", Some("{env:NAME}")),
            (Common, "${TOKEN} ${env:TOKEN} $5 $$ ^a$ $ecret {env:} pa$WORD", None),
            (Crush, "$TOKEN", None),
            (Crush, "{env:TOKEN}", Some("{env:NAME}")),
            (OpenCode, "{env:TOKEN}", None),
            (OpenCode, "$TOKEN", Some("$NAME")),
        ] {
            assert_eq!(syntax.overlooked(text), form, "{text}");
        }
    }

    fn names(file: &str, text: &str) -> Result<Vec<String>, InvalidTemplate> {
        let syntax = ReferenceSyntax::of_file(Path::new(file));
        let masking = SecretMasking::LikelySecrets;
        let text = TemplateString::parse_as(syntax, text, LineColumn::default(), masking)?;
        let name = |reference: &ValueReference| match reference {
            ValueReference::Variable { name, .. } => name.clone(),
            ValueReference::File(path) => format!("file {path}"),
            _ => "other".to_owned(),
        };
        Ok(text.references().into_iter().map(name).collect())
    }

    #[test]
    fn references_of_a_client_are_read_in_its_own_files_alone() {
        let (gemini, crush) = ("/p/.gemini/settings.json", "/p/crush.json");
        let (opencode, continues) = ("opencode.json", "/h/.continue/config.yaml");
        let all = [gemini, crush, opencode, continues, "/p/.mcp.json"];
        for (text, files, found) in [
            ("a $TOKEN/x", &[gemini, crush][..], &["TOKEN"][..]),
            ("$A$B_1", &[gemini, crush], &["A", "B_1"]),
            ("{env:TOKEN} {x}", &[opencode], &["TOKEN"]),
            ("Bearer {file:~/.key}", &[opencode], &["file ~/.key"]),
            ("${A:-b}", &all, &["A"]),
            ("^a$ $5 $$ {A}", &all, &[]),
        ] {
            for file in all {
                let expected = if files.contains(&file) { found } else { &[] };
                assert_eq!(names(file, text).unwrap(), expected, "{text} in {file}");
            }
        }
        assert_eq!(names(continues, "x ${{ secrets.TOKEN }}").unwrap(), ["TOKEN"]);
        assert_eq!(names(gemini, "${{ secrets.TOKEN }}"), Err(InvalidTemplate::Unknown));
        assert_eq!(names(continues, "${{inputs.A}}"), Err(InvalidTemplate::Template("inputs")));
        assert_eq!(names(crush, "$(op read x)"), Err(InvalidTemplate::Substitution));
        assert_eq!(names(opencode, "{env:a-b}"), Err(InvalidTemplate::Name));
    }
}
