//! Reports, printed and optionally saved under `docs/results`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::Failure;

/// The option that saves a report.
const SAVE: &str = "--save";

/// The command line, if its report is saved.
static SAVED: OnceLock<Vec<String>> = OnceLock::new();

/// Removes `--save` from the command line, and remembers it.
pub(crate) fn take(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let (saves, words): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word == SAVE);
    if !saves.is_empty() {
        SAVED.get_or_init(|| words.clone());
    }
    words
}

/// Prints a report. With `--save` it also becomes `docs/results/COMMAND.md`.
pub(crate) fn publish(text: &str) -> Result<(), Failure> {
    let text = text.trim_end();
    writeln!(io::stdout(), "{text}")?;
    let Some(words) = SAVED.get() else { return Ok(()) };
    let name = words.first().map_or("bench", String::as_str);
    let page = format!(
        "# bench {name}\n\n```console\ncargo run{} -p bench -- {}\n```\n\n{}\n\n{text}\n",
        if cfg!(debug_assertions) { "" } else { " --release" },
        words.join(" "),
        circumstances()?,
    );
    fs::write(folder()?.join(format!("{name}.md")), page)?;
    Ok(())
}

/// Saves a picture beside the reports, if they are saved.
pub(crate) fn picture(name: &str, svg: &str) -> Result<(), Failure> {
    if SAVED.get().is_some() {
        fs::write(folder()?.join(format!("{name}.svg")), svg)?;
    }
    Ok(())
}

fn folder() -> io::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The commit, the date and the machine of a measurement.
fn circumstances() -> Result<String, Failure> {
    let line = |program: &str, words: &[&str]| -> Result<String, Failure> {
        let output = Command::new(program).args(words).output()?.stdout;
        Ok(String::from_utf8(output)?.trim().to_owned())
    };
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = value(&processor, "model name").unwrap_or("an unnamed processor");
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory: u64 = value(&memory, "MemTotal")
        .and_then(|total| total.split(' ').next()?.parse().ok())
        .unwrap_or_default();
    Ok(format!(
        "Commit {}, {}: {} cores of {processor}, {} GiB, Linux {}, {}.",
        line("git", &["describe", "--always", "--dirty", "--exclude=*"])?,
        line("date", &["+%F"])?,
        std::thread::available_parallelism()?,
        memory.div_ceil(1 << 20),
        line("uname", &["-r"])?,
        line("rustc", &["--version"])?,
    ))
}

/// Returns the value of a `name: value` line.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_name() {
        let text = "processor\t: 0\nmodel name\t: A B\nMemTotal:  7 kB\n";
        assert_eq!(value(text, "model name"), Some("A B"));
        assert_eq!(value(text, "MemTotal"), Some("7 kB"));
        assert_eq!(value(text, "nothing"), None);
    }
}
