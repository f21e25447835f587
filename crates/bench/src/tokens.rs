//! Cost of exposures in tokens, before the first call and over whole tasks, on folders of tools and queries.

use std::path::PathBuf;

use consort_shape::Exposure;

mod chat;
mod course;
mod tables;
mod toolset;

use crate::Failure;
use crate::folder::{Folder, Question};
use crate::options::{Format, USAGE, number};
use crate::results;
use course::Course;
use tables::{Report, Row, Set, Tasks};
use toolset::Toolset;

/// Default number of queries measured per folder.
const QUERIES: u32 = 200;

/// Options of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    format: Format,
    folders: Vec<PathBuf>,
    /// Maximum number of queries per folder.
    queries: u32,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self { format: Format::People, folders: Vec::new(), queries: QUERIES };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.format = Format::Json,
                "--queries" => options.queries = number(&word, words.next(), 1_000_000)?,
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
pub(crate) fn tokens(options: &Options) -> Result<(), Failure> {
    let report = measured(options)?;
    let text = match options.format {
        Format::Json => serde_json::to_string(&report)?,
        Format::People => report.to_text(),
    };
    results::publish(&text)
}

fn measured(options: &Options) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut sets = Vec::new();
    for path in &options.folders {
        let folder = Folder::read(path)?;
        let set = runtime.block_on(measure(&folder, options.queries.try_into()?))?;
        sets.push(set);
    }
    Ok(Report { sets })
}

async fn measure(folder: &Folder, queries: usize) -> Result<Set, Failure> {
    let toolset = Toolset::new(folder)?;
    let questions = spread(&folder.questions, queries);
    let mut rows: Vec<Row> = Vec::new();
    for exposure in Exposure::ALL {
        let course = Course::new(&toolset, exposure);
        let mut runs = Vec::new();
        for question in &questions {
            runs.push(course.run(question).await?);
        }
        let tasks = (!runs.is_empty()).then(|| Tasks::of(&runs));
        rows.push(Row::new(exposure, &course, tasks, rows.first()));
    }
    Ok(Set {
        name: folder.name.clone(),
        tools: folder.tools.len(),
        servers: toolset.servers(),
        queries: questions.len(),
        rows,
    })
}

/// Selects at most `most` of them, uniformly: sets have their easy queries together.
fn spread(questions: &[Question], most: usize) -> Vec<&Question> {
    let count = questions.len().min(most);
    (0..count).map(|n| &questions[n * questions.len() / count]).collect()
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
            parse("a --json b --queries 7"),
            Ok(Options { format: Format::Json, folders: vec!["a".into(), "b".into()], queries: 7 })
        );
        assert_eq!(parse("a").unwrap().queries, QUERIES);
        assert!(parse("").unwrap_err().starts_with("name at least one folder"));
        assert!(parse("a --fast").unwrap_err().starts_with("unknown option `--fast`"));
        assert!(parse("a --queries 0").is_err());
    }

    #[test]
    fn queries_are_taken_from_everywhere() {
        let all: Vec<Question> =
            (0..10).map(|n| Question::without_answer(&n.to_string())).collect();
        let taken = |most| {
            spread(&all, most).iter().map(|question| question.query.as_str()).collect::<String>()
        };
        assert_eq!(taken(4), "0257");
        assert_eq!(taken(99), "0123456789");
        assert!(spread(&[], 5).is_empty());
    }
}
