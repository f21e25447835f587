//! Quality and speed of tool search, compared with plain rankings, on folders of tools and queries.

use std::path::PathBuf;

use consort_search::{SearchLimits, ToolIndex};

mod baseline;
mod metrics;
mod tables;

use crate::Failure;
use crate::folder::{Folder, Question, Tool};
use crate::options::{Format, USAGE};
use crate::results;
use crate::statistics::process_time;
use baseline::{Baseline, Kind};
use metrics::Quality;
use tables::{Report, Row, Set, Speed};

/// Number of hits per query; the metrics use ten.
const HITS: usize = 10;

/// Number of tools for which the speed is reported.
const MANY: usize = 5000;

/// Number of times an index is built; the median counts.
const BUILDS: usize = 5;

/// Options of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    format: Format,
    folders: Vec<PathBuf>,
    /// A folder whose tools are mixed into each of the others.
    distractors: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self { format: Format::People, folders: Vec::new(), distractors: None };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.format = Format::Json,
                "--distractors" => {
                    let folder = words.next().ok_or("`--distractors` needs a folder")?;
                    options.distractors = Some(folder.into());
                }
                option if option.starts_with('-') => {
                    return Err(format!("unknown option `{option}`\n{USAGE}").into());
                }
                folder => options.folders.push(folder.into()),
            }
        }
        if options.folders.is_empty() {
            return Err(format!("name at least one folder with a `tools.jsonl`\n{USAGE}").into());
        }
        Ok(options)
    }
}

/// Measures every folder and prints the report.
pub(crate) fn search(options: &Options) -> Result<(), Failure> {
    let distractors = options.distractors.as_deref().map(Folder::read).transpose()?;
    let mut folders = Vec::new();
    for path in &options.folders {
        let mut folder = Folder::read(path)?;
        if let Some(distractors) = &distractors {
            folder.mix_in(distractors);
        }
        folders.push(folder);
    }
    let report = Report::new(folders.iter().map(measure).collect(), many(&folders));
    let text = match options.format {
        Format::Json => serde_json::to_string(&report)?,
        Format::People => report.to_text(),
    };
    results::publish(&text)
}

fn measure(folder: &Folder) -> Set {
    let (index, build) = built(&folder.tools);
    let id = |position: usize| folder.tools[position].document.id.as_str();
    let (found, micros) = asked(&index, &folder.questions);
    let mut rows = Vec::new();
    if !folder.questions.is_empty() {
        for kind in Kind::ALL {
            let baseline = Baseline::new(kind, folder.tools.iter().map(Tool::described));
            let found =
                folder.questions.iter().map(|question| baseline.search(&question.query, HITS));
            let found: Vec<Vec<usize>> = found.collect();
            rows.push(Row::new(kind.name(), Quality::of(&folder.questions, &found, id)));
        }
        rows.push(Row::new("consort", Quality::of(&folder.questions, &found, id)));
    }
    Set {
        name: folder.name.clone(),
        tools: folder.tools.len(),
        queries: folder.questions.len(),
        rows,
        speed: Speed::new(build, micros),
    }
}

/// Returns an index, and the milliseconds of processor time to build it from parsed definitions.
fn built(tools: &[Tool]) -> (ToolIndex, f64) {
    let make = || ToolIndex::new(tools.iter().map(Tool::described), SearchLimits::default());
    let mut milliseconds = Vec::new();
    for _ in 1..BUILDS {
        milliseconds.push(timed(make).1 * 1e3);
    }
    let (index, seconds) = timed(make);
    milliseconds.push(seconds * 1e3);
    (index, crate::statistics::median(milliseconds))
}

/// Returns the hits of each question, with the microseconds of processor time of each.
fn asked(index: &ToolIndex, questions: &[Question]) -> (Vec<Vec<usize>>, Vec<f64>) {
    let search = |question: &Question| {
        let (hits, seconds) = timed(|| index.search(&question.query, HITS));
        (hits.iter().map(|hit| hit.position).collect(), seconds * 1e6)
    };
    questions.iter().map(search).unzip()
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = process_time();
    let made = work();
    (made, process_time().saturating_sub(start).as_secs_f64())
}

/// The speed with many tools: a uniform selection from all folders, repeated if there are fewer.
fn many(folders: &[Folder]) -> Speed {
    let all: Vec<&Tool> = folders.iter().flat_map(|folder| &folder.tools).collect();
    let tools: Vec<Tool> = (0..MANY)
        .map(|n| {
            let at = if all.len() < MANY { n % all.len() } else { n * all.len() / MANY };
            let mut tool = all[at].clone();
            tool.document.id = format!("{n}.{}", tool.document.id);
            tool
        })
        .collect();
    let mut questions: Vec<Question> =
        folders.iter().flat_map(|folder| folder.questions.clone()).collect();
    if questions.is_empty() {
        let asked = all.iter().map(|tool| Question::without_answer(&tool.document.description));
        questions = asked.collect();
    }
    let (index, build) = built(&tools);
    Speed::new(build, asked(&index, &questions).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn folders_are_what_is_no_option() {
        assert_eq!(
            parse("a --json b --distractors c"),
            Ok(Options {
                format: Format::Json,
                folders: vec!["a".into(), "b".into()],
                distractors: Some("c".into()),
            })
        );
        assert!(parse("").unwrap_err().starts_with("name at least one folder"));
        assert!(parse("a --fast").unwrap_err().starts_with("unknown option `--fast`"));
        assert!(parse("a --distractors").is_err());
    }
}
