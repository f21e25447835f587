//! A folder of tools and queries: `tools.jsonl` and, for searches, `queries.jsonl`.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use consort_search::{SearchLimits, ToolDocument};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Failure;

/// Contents of a folder.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) name: String,
    pub(crate) tools: Vec<Tool>,
    pub(crate) questions: Vec<Question>,
}

/// A tool: its texts, and its schema, whose parameters are read when an index is made.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) document: ToolDocument,
    pub(crate) category: Option<String>,
    pub(crate) schema: Value,
    /// The schema as it is written, its members in their order.
    pub(crate) written: Option<Box<RawValue>>,
}

/// A query and its answers: each answer is the ids of tools any of which will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) query: String,
    pub(crate) answers: Vec<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolLine {
    id: String,
    name: String,
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    category: Option<String>,
    #[serde(default)]
    input_schema: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueryLine {
    query: String,
    #[serde(default)]
    gold: Vec<String>,
    #[serde(default)]
    gold_groups: Option<Vec<Vec<String>>>,
}

impl Folder {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let tools_path = path.join("tools.jsonl");
        let tools: Vec<ToolLine> = lines(&tools_path)?
            .ok_or_else(|| format!("no `{}`: name a folder that has it", tools_path.display()))?;
        let mut ids = HashSet::new();
        if let Some(twice) = tools.iter().find(|tool| !ids.insert(tool.id.as_str())) {
            return Err(format!("`{}` has `{}` twice", tools_path.display(), twice.id).into());
        }
        if tools.is_empty() {
            return Err(format!("`{}` has no tool", tools_path.display()).into());
        }
        let queries_path = path.join("queries.jsonl");
        let queries: Vec<QueryLine> = lines(&queries_path)?.unwrap_or_default();
        let mut questions = Vec::new();
        for (n, line) in queries.into_iter().enumerate() {
            let question = Question::from(line);
            question.check(&ids).map_err(|problem| {
                format!("query {} of `{}` {problem}", n + 1, queries_path.display())
            })?;
            questions.push(question);
        }
        let name = path.canonicalize()?.file_name().map(|name| name.to_string_lossy().into_owned());
        let tools = tools.into_iter().map(Tool::from).collect();
        Ok(Self { name: name.unwrap_or_default(), tools, questions })
    }

    /// Adds another folder's tools, which answer none of the questions.
    pub(crate) fn mix_in(&mut self, other: &Self) {
        for tool in &other.tools {
            let mut tool = tool.clone();
            tool.document.id = format!("{}/{}", other.name, tool.document.id);
            self.tools.push(tool);
        }
    }
}

impl Tool {
    /// Its texts, those of its parameters included.
    pub(crate) fn described(&self) -> ToolDocument {
        let mut document = self.document.clone();
        document.describe(&self.schema, &SearchLimits::default());
        document
    }
}

impl From<ToolLine> for Tool {
    fn from(line: ToolLine) -> Self {
        let document = ToolDocument {
            id: line.id,
            name: line.name,
            server: line.server.unwrap_or_default(),
            title: line.title.unwrap_or_default(),
            description: line.description.unwrap_or_default(),
            ..ToolDocument::default()
        };
        let written = line.input_schema;
        let schema = written.as_ref().map(|schema| serde_json::from_str(schema.get()));
        let schema = schema.transpose().unwrap_or_default().unwrap_or_default();
        Self { document, category: line.category, schema, written }
    }
}

impl Question {
    /// A question without answers, to measure its duration.
    pub(crate) fn without_answer(query: &str) -> Self {
        Self { query: query.to_owned(), answers: Vec::new() }
    }

    fn check(&self, ids: &HashSet<&str>) -> Result<(), String> {
        if self.answers.is_empty() || self.answers.iter().any(Vec::is_empty) {
            return Err("has no answer: use `gold` or `goldGroups`".to_owned());
        }
        let unknown = self.answers.iter().flatten().find(|id| !ids.contains(id.as_str()));
        unknown.map_or(Ok(()), |id| Err(format!("has the answer `{id}`, which is no tool here")))
    }
}

impl From<QueryLine> for Question {
    fn from(line: QueryLine) -> Self {
        let mut gold = line.gold;
        // One tool named twice is one answer.
        let mut seen = HashSet::new();
        gold.retain(|id| seen.insert(id.clone()));
        let alone = || gold.iter().map(|id| vec![id.clone()]).collect();
        Self { query: line.query, answers: line.gold_groups.unwrap_or_else(alone) }
    }
}

/// The JSON values of a file, one a line; `None` if there is no such file.
fn lines<T: DeserializeOwned>(path: &Path) -> Result<Option<Vec<T>>, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read `{}`: {error}", path.display()).into()),
    };
    let written = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = written.map(|(n, line)| {
        serde_json::from_str(line)
            .map_err(|error| format!("line {} of `{}`: {error}", n + 1, path.display()).into())
    });
    read.collect::<Result<_, Failure>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tools: &str, queries: Option<&str>) -> Result<Folder, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tools.jsonl"), tools).unwrap();
        if let Some(queries) = queries {
            std::fs::write(folder.path().join("queries.jsonl"), queries).unwrap();
        }
        let place = folder.path().display().to_string();
        Folder::read(folder.path()).map_err(|error| error.to_string().replace(&place, "F"))
    }

    const TOOLS: &str =
        "{\"id\":\"a\",\"name\":\"a\"}\n\n{\"id\":\"b\",\"name\":\"b\",\"title\":null}\n";

    #[test]
    fn an_answer_is_one_tool_or_a_group_of_which_any_will_do() {
        let queries = r#"{"query":"x","gold":["a","b","a"]}
            {"query":"y","gold":["a","b"],"goldGroups":[["a","b"]]}"#;
        let folder = read(TOOLS, Some(queries)).unwrap();
        let answers: Vec<_> =
            folder.questions.iter().map(|question| question.answers.len()).collect();
        assert_eq!((folder.tools.len(), answers), (2, vec![2, 1]));
        assert_eq!(read(TOOLS, None).unwrap().questions, []);
    }

    #[test]
    fn a_bad_folder_is_told_what_is_wrong_with_it() {
        let twice = TOOLS.repeat(2);
        let problem = |tools, queries| read(tools, queries).map(drop).unwrap_err();
        assert_eq!(problem("", None), "`F/tools.jsonl` has no tool");
        assert_eq!(problem(&twice, None), "`F/tools.jsonl` has `a` twice");
        assert_eq!(
            problem("{\"id\":1}", None),
            "line 1 of `F/tools.jsonl`: invalid type: integer `1`, expected a string at line 1 column 7"
        );
        assert_eq!(
            problem(TOOLS, Some(r#"{"query":"x","gold":["c"]}"#)),
            "query 1 of `F/queries.jsonl` has the answer `c`, which is no tool here"
        );
        assert_eq!(
            problem(TOOLS, Some(r#"{"query":"x"}"#)),
            "query 1 of `F/queries.jsonl` has no answer: use `gold` or `goldGroups`"
        );
        let nowhere = Folder::read(Path::new("nowhere")).unwrap_err().to_string();
        assert_eq!(nowhere, "no `nowhere/tools.jsonl`: name a folder that has it");
    }
}
