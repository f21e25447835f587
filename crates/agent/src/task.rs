//! Tasks: what is to be done, with tools named as people name them.

use consort_core::{Catalog, Unresolved};
use serde::{Deserialize, Serialize};

use crate::bound::Bound;

/// What is to be done, and with which tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Task {
    /// What tells it from others; servers are told it as the session, unless there is one.
    pub id: String,
    /// What kind of task it is, for whoever sorts them.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is to be done.
    pub description: String,
    /// The tools it needs: friendly names, full names, or patterns; every tool if there are none.
    pub tools: Vec<String>,
    /// The session it belongs to.
    pub session: Option<String>,
}

/// A task with its tools found. They stay what they are, whatever the catalog becomes.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The task.
    pub task: Task,
    /// Its tools, and which of those it asked for it may not use.
    pub tools: Bound,
}

impl Task {
    /// A task with these tools.
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

    /// Finds its tools. One that there is not is an error with what comes nearest. One that `whole` has,
    /// the catalog of those who may do everything, but this catalog has not, is left out and named in
    /// [`Bound::denied`].
    pub fn ready(self, catalog: &Catalog, whole: Option<&Catalog>) -> Result<Ready, Unresolved> {
        let tools = if self.tools.is_empty() {
            Bound::all(catalog)
        } else {
            Bound::chosen(catalog, &self.tools, whole)?
        };
        Ok(Ready { task: self, tools })
    }
}
