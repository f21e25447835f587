//! `include`: files beside a config whose servers and options are part of it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use consort_core::NamePattern;

use crate::config::search::STDIN;
use crate::digest::ConfigDigest;
use crate::error::{ConfigError, ConfigErrorKind, UnusableFile};
use crate::resolve::expand_variables;
use crate::source_location::SourceLocation;
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::tree::SyntaxValue;
use crate::{read, syntax};

/// Size limit in MiB of a config together with the files that it includes, checked before any key is read. Some clients
/// store their servers beside their whole history.
const LARGEST_MIB: u64 = 32;

/// Limit of files that a config includes, checked before the options in them are read.
const MOST_FRAGMENTS: usize = 256;

/// A file that a config includes, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFragment {
    /// Path of the file.
    pub file: PathBuf,
    /// The path relative to the config, independent of the current folder.
    written: PathBuf,
    /// Its content.
    pub text: String,
}

/// The text of a config and of the files that it includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFiles {
    /// The config itself; paths are relative to it.
    pub file: PathBuf,
    /// Its content.
    pub text: String,
    /// The files that it includes, in the order in which they are merged.
    pub fragments: Vec<ConfigFragment>,
    /// The include patterns.
    pub includes: Vec<IncludePattern>,
}

impl ConfigFiles {
    /// Reads a config and the files that it includes; `-` is the standard input.
    pub fn read(file: &Path) -> Result<Self, UnusableFile> {
        Self::of_text(file, read_text(file)?)
    }

    /// Reads the files that a text includes, as if it were the content of a file.
    pub fn of_text(file: &Path, text: String) -> Result<Self, UnusableFile> {
        let (mut fragments, mut includes): (Vec<ConfigFragment>, Vec<IncludePattern>) =
            Default::default();
        let mut bytes = text.len() as u64;
        let findings = ProblemCollector::new(file, strip_byte_order_mark(&text));
        for (written, at) in include_entries(file, &text) {
            let unusable = |mistake| UnusableFile::new(findings.unusable(at, mistake), []);
            let pattern = IncludePattern::new(file, &written).map_err(unusable)?;
            let files = pattern.names().map_err(|source| {
                unusable(ConfigErrorKind::IncludeUnreadable { written: written.clone(), source })
            })?;
            for name in files {
                let (path, written) = (pattern.folder.join(&name), pattern.written.join(&name));
                if fragments.iter().any(|known| known.file == path) {
                    continue;
                }
                if fragments.len() == MOST_FRAGMENTS {
                    return Err(unusable(ConfigErrorKind::TooManyFragments(MOST_FRAGMENTS)));
                }
                let text = read_text(&path)?;
                bytes += text.len() as u64;
                if bytes > LARGEST_MIB << 20 {
                    return Err(unusable(ConfigErrorKind::TooLarge(LARGEST_MIB)));
                }
                fragments.push(ConfigFragment { file: path, written, text });
            }
            includes.push(pattern);
        }
        Ok(Self { file: file.to_owned(), text, fragments, includes })
    }

    /// Returns the valid include patterns of a text.
    pub fn includes_of(file: &Path, text: &str) -> Vec<IncludePattern> {
        let written = include_entries(file, text).into_iter();
        written.filter_map(|(written, _)| IncludePattern::new(file, &written).ok()).collect()
    }

    /// Returns the digest of all files: of the text alone if nothing is included.
    pub fn digest(&self) -> ConfigDigest {
        let fragments = self.fragments.iter();
        ConfigDigest::of_files(
            self.text.as_bytes(),
            fragments.map(|fragment| (fragment.written.as_path(), fragment.text.as_bytes())),
        )
    }
}

/// One entry of `include`: a file, or the files of a folder whose names match a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncludePattern {
    /// The folder to search.
    folder: PathBuf,
    /// The same as written, relative to the config.
    written: PathBuf,
    name: String,
}

impl IncludePattern {
    /// Parses an entry of the `include` of a config.
    fn new(config: &Path, written: &str) -> Result<Self, ConfigErrorKind> {
        let wrong =
            |reason: &'static str| ConfigErrorKind::Include { written: written.to_owned(), reason };
        let path = expand_variables(written, |name| std::env::var(name).ok())
            .map_err(|name| ConfigErrorKind::UnsetVariable { name })?;
        let path = Path::new(&path);
        let is_device = config.starts_with("/dev") || config.starts_with("/proc");
        if path.is_relative() && is_device {
            return Err(wrong(
                "it is relative to the config, which is a pipe: use an absolute path",
            ));
        }
        let name = match path.file_name().and_then(|name| name.to_str()) {
            Some(name) if !written.ends_with('/') => name.to_owned(),
            _ => return Err(wrong("it has no file name: use a pattern such as `conf.d/*.toml`")),
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        if is_pattern(&folder.to_string_lossy()) {
            return Err(wrong("`*` and `?` are allowed in file names, not in folders"));
        }
        let beside = config.parent().unwrap_or(Path::new(""));
        Ok(Self { folder: beside.join(folder), written: folder.to_owned(), name })
    }

    /// Returns the matching files, sorted by their names. The folder must exist; a file that is named without `*` and
    /// `?` is returned in any case.
    pub fn files(&self) -> io::Result<Vec<PathBuf>> {
        Ok(self.names()?.into_iter().map(|name| self.folder.join(name)).collect())
    }

    fn names(&self) -> io::Result<Vec<OsString>> {
        if !is_pattern(&self.name) {
            return Ok(vec![OsString::from(&self.name)]);
        }
        let pattern = NamePattern::new(&self.name);
        let mut names = Vec::new();
        for entry in fs::read_dir(self.folder())? {
            let entry = entry?;
            let name = entry.file_name();
            let shown = name.to_string_lossy();
            let is_hidden = shown.starts_with('.') && !self.name.starts_with('.');
            // A file whose metadata cannot be read is opened, so that the error is reported.
            let is_folder = || fs::metadata(entry.path()).is_ok_and(|about| about.is_dir());
            if !is_hidden && pattern.fits(&shown) && !is_folder() {
                names.push(name);
            }
            // One more than there may be says that there are too many.
            if names.len() > MOST_FRAGMENTS {
                break;
            }
        }
        names.sort();
        Ok(names)
    }

    /// The folder to search.
    pub fn folder(&self) -> &Path {
        if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder }
    }
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// The entries of `include` with their offsets. Errors in them are reported when options are read.
fn include_entries(file: &Path, text: &str) -> Vec<(String, usize)> {
    let text = strip_byte_order_mark(text);
    let findings = ProblemCollector::new(file, text);
    let Ok(root) = syntax::parse(file, text, &findings) else { return Vec::new() };
    let list = root.table().and_then(|root| {
        root.get(read::options::KEY)?.table()?.get(read::options::INCLUDE)?.list()
    });
    let entries = list.into_iter().flatten().filter_map(|node| match &node.value {
        SyntaxValue::Text(text) => Some((text.clone(), node.at)),
        _ => None,
    });
    entries.collect()
}

/// Reads the text of a file; `-` is the standard input.
pub(crate) fn read_text(file: &Path) -> Result<String, UnusableFile> {
    let unusable = |mistake| unreadable_file(file, mistake);
    let mut bytes = Vec::new();
    let largest = LARGEST_MIB << 20;
    let source = if file == Path::new(STDIN) { Path::new("/dev/stdin") } else { file };
    File::open(source)
        .and_then(|file| file.take(largest + 1).read_to_end(&mut bytes))
        .map_err(|error| unusable(ConfigErrorKind::Unreadable(error)))?;
    if bytes.len() as u64 > largest {
        return Err(unusable(ConfigErrorKind::TooLarge(LARGEST_MIB)));
    }
    String::from_utf8(bytes).map_err(|_| unusable(ConfigErrorKind::NotText))
}

/// A text without its byte order mark.
pub(crate) fn strip_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The error of a file that cannot be read as text.
pub(crate) fn unreadable_file(file: &Path, mistake: ConfigErrorKind) -> UnusableFile {
    let place = SourceLocation { file: file.to_owned(), spot: None };
    UnusableFile::new(ConfigError::new(place, None, mistake), [])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        folder
    }

    fn told(folder: &tempfile::TempDir) -> Result<Config, String> {
        let files = ConfigFiles::read(&folder.path().join("consort.toml"));
        let read = files.and_then(|files| files.parse());
        let root = format!("{}/", folder.path().display());
        read.map_err(|unusable| unusable.to_string().replace(&root, ""))
    }

    fn errors(config: &Config, folder: &tempfile::TempDir) -> Vec<String> {
        let root = format!("{}/", folder.path().display());
        config.errors.iter().map(|error| error.to_string().replace(&root, "")).collect()
    }

    #[test]
    fn files_are_included_by_their_names_in_order_and_in_any_format() {
        let folder = folder(&[
            (
                "consort.toml",
                "[consort]\ninclude = ['conf.d/*.toml', 'conf.d/*.json', 'b.toml']\n[mcp.main]\ncommand = 'x'\n",
            ),
            ("conf.d/20-b.toml", "[mcp.b]\ncommand = 'b'\nenv.A = 'file:secret'\n"),
            (
                "conf.d/10-a.toml",
                "\u{feff}[mcp.a]\ncommand = 'a'\n[consort.tokens]\nci = 'env:CI'\n",
            ),
            ("conf.d/c.json", r#"{"mcpServers": {"c": {"url": "https://c.example/mcp"}}}"#),
            ("conf.d/.hidden.toml", "not TOML"),
            ("conf.d/10-a.toml~", "not TOML"),
            (
                "b.toml",
                "[consort.policy]\n[[consort.policy.rules]]\ncallers = ['@ops']\nthen = 'allow'\n[consort.callers.ci]\nroles = ['ops']\n",
            ),
        ]);
        fs::create_dir(folder.path().join("conf.d/folder.toml")).unwrap();
        let config = told(&folder).unwrap();
        assert_eq!(errors(&config, &folder), Vec::<String>::new());
        let names: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["main", "a", "b", "c"]);
        let files: Vec<_> = config.fragments.iter().map(|file| file.file_name().unwrap()).collect();
        assert_eq!(files, ["10-a.toml", "20-b.toml", "c.json", "b.toml"]);
        assert!(config.servers[2].origin.file.ends_with("conf.d/20-b.toml"));
        assert!(config.options.policy.is_some() && config.options.tokens.contains_key("ci"));
        // Paths are relative to the config.
        fs::write(folder.path().join("secret"), "s").unwrap();
        assert!(config.servers[2].to_settings(&crate::SystemValues::silent()).is_ok());
    }

    #[test]
    fn what_is_written_in_two_files_is_an_error_that_names_both() {
        let folder = folder(&[
            ("consort.toml", "[mcp.one]\ncommand = 'x'\n[consort]\ninclude = ['*.d/x', 'd/*']\n"),
            ("d/a", "[mcp.one]\ncommand = 'y'\n[consort.limits]\nheld_bytes = 1\n"),
        ]);
        assert_eq!(
            told(&folder).unwrap_err(),
            "consort.toml:4:12: cannot include `*.d/x`: `*` and `?` are allowed in file names, not in folders"
        );
        let more = "include = ['d/*']\nnaming = 'never'\n[consort.limits]\nconfig_poll = '1s'\n";
        let main = format!("[mcp.one]\ncommand = 'x'\n[consort]\n{more}");
        fs::write(folder.path().join("consort.toml"), main).unwrap();
        fs::write(
            folder.path().join("d/b"),
            "[mcp.two]\ncommand = 'y'\n[consort]\nnaming = 'auto'\ninclude = []\n[consort.limits]\nconfig_poll = '2s'\n",
        )
        .unwrap();
        let config = told(&folder).unwrap();
        insta::assert_snapshot!(errors(&config, &folder).join("\n"), @"
        d/a:1:6: two files define the server `one`: consort.toml:1:6 and this one
        d/b:4:1: `naming` is in two files: consort.toml:5:1 and this one
        d/b:5:1: `include` is not allowed in an included file
        d/b:7:1: `limits.config_poll` is in two files: consort.toml:7:1 and this one
        ");
        assert!(config.errors[1..].iter().all(ConfigError::is_blocking));
        // Of one that is described twice neither is used.
        assert_eq!(config.errors[0].server().unwrap().as_str(), "one");
        let names: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["two"]);
    }

    #[test]
    fn a_file_that_is_not_there_or_cannot_be_parsed_is_in_the_way_of_all() {
        let include = |what: &str| format!("[consort]\ninclude = [{what:?}]\n");
        let folder = folder(&[("conf.d/x.toml", "[mcp.x\n")]);
        for (what, reason) in [
            ("gone.toml", "gone.toml: cannot read the config"),
            ("gone.d/*.toml", "consort.toml:2:12: cannot include `gone.d/*.toml`"),
            ("conf.d/", "it has no file name"),
            ("${NOT_SET_HERE}/x.toml", "the environment variable `NOT_SET_HERE` is not set"),
            ("conf.d/*", "conf.d/x.toml:1:7: not valid TOML"),
        ] {
            fs::write(folder.path().join("consort.toml"), include(what)).unwrap();
            let error = told(&folder).unwrap_err();
            assert!(error.contains(reason), "{what}: {error}");
        }
        fs::write(folder.path().join("consort.toml"), include("conf.d/*.json")).unwrap();
        assert!(told(&folder).is_ok(), "nothing fits");
        for count in 0..=MOST_FRAGMENTS {
            fs::write(folder.path().join(format!("conf.d/{count}.json")), "{}").unwrap();
        }
        assert!(told(&folder).unwrap_err().contains("more than 256 files"));
        let pipe = ConfigFiles::of_text(Path::new("/dev/fd/9"), include("conf.d/*"));
        assert!(pipe.unwrap_err().to_string().contains("which is a pipe"));
    }

    #[test]
    fn the_digest_covers_names_and_contents_of_all_files() {
        let folder = folder(&[
            ("consort.toml", "[consort]\ninclude = ['d/*']\n"),
            ("d/a", "[mcp.a]\ncommand = 'x'\n"),
        ]);
        let digest = || {
            let files = ConfigFiles::read(&folder.path().join("consort.toml")).unwrap();
            assert_eq!(files.parse().unwrap().digest, files.digest());
            files.digest()
        };
        let first = digest();
        let at = |name: &str| folder.path().join(name);
        fs::rename(at("d/a"), at("d/b")).unwrap();
        let renamed = digest();
        fs::write(at("d/b"), "[mcp.a]\ncommand = 'y'\n").unwrap();
        let changed = digest();
        fs::remove_file(at("d/b")).unwrap();
        let alone = digest();
        let all = [first, renamed, changed, alone];
        let distinct = (0..4).all(|n| all[..n].iter().all(|one| *one != all[n]));
        assert!(distinct);
        assert_eq!(alone, ConfigDigest::of(&fs::read(at("consort.toml")).unwrap()));
    }
}
