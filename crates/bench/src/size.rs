//! Size of the program, its start time, and its number of dependencies.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Serialize;
use serde_json::Map;
use tempfile::TempDir;

use crate::Failure;
use crate::gateway::{Consort, configure, started};
use crate::options::{Format, USAGE, number};
use crate::report::table;
use crate::results;
use crate::server::{Listen, Serve};
use crate::statistics::median;

/// Minimum size of a section that is shown by itself.
const SHOWN: u64 = 64 << 10;

/// Servers whose catalog is stored.
const SERVERS: usize = 20;

/// Options of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) format: Format,
    /// Number of times each program is started.
    pub(crate) rounds: u32,
    pub(crate) consort: Consort,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self { format: Format::People, rounds: 51, consort: Consort::Beside };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.format = Format::Json,
                "--rounds" => options.rounds = number(&word, words.next(), 10_000)?,
                "--consort" => {
                    options.consort = Consort::At(words.next().ok_or(USAGE)?.into());
                }
                _ => return Err(format!("unknown option `{word}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

#[derive(Debug, Serialize)]
struct Report {
    bytes: u64,
    stripped_bytes: u64,
    sections: Vec<(String, u64)>,
    /// Median milliseconds of each.
    starts: Vec<(&'static str, f64)>,
    packages: usize,
    dependencies: usize,
}

/// Measures the program and prints the report.
pub(crate) fn size(options: &Options) -> Result<(), Failure> {
    let program = options.consort.program()?.ok_or("nothing to measure")?;
    let (packages, dependencies) = packages()?;
    let report = Report {
        bytes: fs::metadata(&program)?.len(),
        stripped_bytes: stripped(&program)?,
        sections: sections(&text(Command::new("size").arg("-A").arg(&program))?),
        starts: starts(&program, options.rounds)?,
        packages,
        dependencies,
    };
    let text = match options.format {
        Format::Json => serde_json::to_string(&report)?,
        Format::People => report.to_text(options.rounds),
    };
    results::publish(&text)
}

fn stripped(program: &Path) -> Result<u64, Failure> {
    let folder = TempDir::with_prefix("consort-bench-")?;
    let copy = folder.path().join("stripped");
    text(Command::new("strip").arg("-o").arg(&copy).arg(program))?;
    Ok(fs::metadata(copy)?.len())
}

/// Returns the output of a system program.
fn text(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("`{name}` cannot be run: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?)
    } else {
        Err(format!("`{name}` failed").into())
    }
}

/// The large sections in the output of `size -A`, the largest first.
fn sections(printed: &str) -> Vec<(String, u64)> {
    let mut sections: Vec<(String, u64)> = printed
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (name, bytes) = (words.next()?, words.next()?.parse().ok()?);
            (name.starts_with('.') && bytes >= SHOWN).then(|| (name.to_owned(), bytes))
        })
        .collect();
    sections.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    sections
}

fn starts(program: &Path, rounds: u32) -> Result<Vec<(&'static str, f64)>, Failure> {
    let folder = TempDir::with_prefix("consort-bench-")?;
    let mut servers = Map::new();
    for n in 0..SERVERS {
        let serve = Serve { prefix: format!("server{n}_"), ..Serve::new(Listen::Stdio) };
        servers.insert(format!("server{n}"), started(&serve)?);
    }
    let config = configure(&servers, folder.path())?;
    let consort = |words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).env("HOME", folder.path());
        for name in ["XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
            command.env(name, folder.path().join(name));
        }
        command
    };
    let config = config.to_str().ok_or("the folder's name is not text")?;
    let tools = || consort(&["tools", "--json", "--config", config]);
    // The first one keeps what the others list.
    text(&mut tools())?;
    let kinds: [(&str, &dyn Fn() -> Command); 3] = [
        ("/bin/true", &|| Command::new("/bin/true")),
        ("consort --version", &|| consort(&["--version"])),
        ("consort tools, 20 servers, kept", &tools),
    ];
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for _ in 0..rounds {
        for (name, command) in kinds {
            let mut command = command();
            let begun = Instant::now();
            text(&mut command)?;
            times.entry(name).or_default().push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    let time = |name: &str| median(times.get(name).into_iter().flatten().copied());
    Ok(kinds.map(|(name, _)| (name, time(name))).into())
}

/// Number of packages in the lock file, and of those in the program.
fn packages() -> Result<(usize, usize), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let tree = text(
        Command::new(cargo)
            .args(["tree", "--package", "consort", "--edges", "normal", "--prefix", "none"])
            .args(["--format", "{p}", "--offline"])
            .current_dir(root),
    )?;
    Ok((lock.matches("[[package]]").count(), distinct(&tree)))
}

/// Number of distinct packages of a tree; repeated ones are marked in it.
fn distinct(tree: &str) -> usize {
    let names =
        tree.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.is_empty());
    names.collect::<std::collections::BTreeSet<_>>().len()
}

impl Report {
    fn to_text(&self, rounds: u32) -> String {
        let kibibytes = |bytes: u64| (bytes >> 10).to_string();
        let sizes = [("file", self.bytes), ("stripped", self.stripped_bytes)]
            .into_iter()
            .map(|(name, bytes)| [name.to_owned(), kibibytes(bytes)]);
        let sections = self.sections.iter().map(|(name, bytes)| [name.clone(), kibibytes(*bytes)]);
        let sizes = table("The program", ["part", "KiB"], 1, sizes.chain(sections));
        let starts =
            self.starts.iter().map(|(name, time)| [(*name).to_owned(), format!("{time:.2}")]);
        let title = format!("From start to end, the median of {rounds}");
        let starts = table(&title, ["what", "ms"], 1, starts);
        let count = |name: &str, count: usize| [name.to_owned(), count.to_string()];
        let packages = [
            count("packages in the lock file, ours and those of tests included", self.packages),
            count("packages the program is made of, ours included", self.dependencies),
        ];
        let packages = table("Packages", ["what", "count"], 1, packages.into_iter());
        [sizes, starts, packages].join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_sections_are_shown_the_largest_first() {
        let printed = "consort  :\nsection  size  addr\n.interp  28  1\n.rodata  100000  2\n.text  900000  3\nTotal  1000028\n";
        let expected = [(".text".to_owned(), 900_000), (".rodata".to_owned(), 100_000)];
        assert_eq!(sections(printed), expected);
    }

    #[test]
    fn a_package_counts_once() {
        assert_eq!(distinct("a v1\nb v1\nb v2\nb v1 (*)\n\n"), 3);
    }
}
