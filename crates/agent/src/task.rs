//! Tasks: a description, with tools by their friendly names.

use consort_core::{Catalog, UnresolvedName};
use serde::{Deserialize, Serialize};

use crate::run_tools::RunTools;

/// A task, with the tools it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentTask {
    /// Id of the task; servers receive it as the session, unless there is one.
    pub id: String,
    /// Kind of the task, for sorting.
    #[serde(rename = "type")]
    pub kind: String,
    /// Description of the task.
    pub description: String,
    /// Tools that it needs: friendly names, full names, or patterns; every tool if there are none.
    pub tools: Vec<String>,
    /// The session it belongs to.
    pub session: Option<String>,
}

/// A task with its tools resolved. They stay the same when the catalog changes.
#[derive(Clone, Debug)]
pub struct ResolvedTask {
    /// The task.
    pub task: AgentTask,
    /// Its tools, and the requested ones that are not permitted.
    pub tools: RunTools,
}

impl AgentTask {
    /// Creates a task with these tools.
    pub fn new<S: Into<String>>(
        id: impl Into<String>,
        description: impl Into<String>,
        tools: impl IntoIterator<Item = S>,
    ) -> Self {
        Self {
            id: id.into(),
            description: description.into(),
            tools: tools.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Resolves its tools. An unknown one is an error with the most similar names. One that `unrestricted`, the catalog
    /// without restrictions, has and this catalog has not is left out and named in [`RunTools::denied`].
    pub fn resolve(
        self,
        catalog: &Catalog,
        unrestricted: Option<&Catalog>,
    ) -> Result<ResolvedTask, UnresolvedName> {
        let tools = if self.tools.is_empty() {
            RunTools::from_catalog(catalog)
        } else {
            RunTools::select(catalog, &self.tools, unrestricted)?
        };
        Ok(ResolvedTask { task: self, tools })
    }
}
