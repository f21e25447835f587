//! The report of costs: tables for people, or one JSON object.

use consort_shape::Exposure;
use serde::Serialize;

use super::course::{Course, Run};
use crate::report::{group, table};

/// All results.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) sets: Vec<Set>,
}

/// One folder.
#[derive(Debug, Serialize)]
pub(super) struct Set {
    pub(super) name: String,
    pub(super) tools: usize,
    pub(super) servers: usize,
    pub(super) queries: usize,
    /// All tools first, which the others are compared with.
    pub(super) rows: Vec<Row>,
}

/// One exposure.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    exposure: &'static str,
    /// Tools that a model sees.
    shown: usize,
    /// Tokens before the first call.
    tokens: usize,
    percent: f64,
    /// Absent where there are no queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<Tasks>,
}

/// Whole tasks, by number of searches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Tasks {
    /// All tools found in the first search, or without one.
    at_once: Option<Mean>,
    /// In the second.
    second: Option<Mean>,
    /// Not all tools found in the second search: the task was given up.
    never: Option<Mean>,
    /// Cost of all tasks per completed task: a failure is no saving.
    done: Option<Mean>,
}

/// The mean of some tasks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Mean {
    /// Percentage of all tasks.
    percent: f64,
    turns: f64,
    new_tokens: f64,
    sent_tokens: f64,
}

impl Row {
    /// An exposure, compared with the first of its set.
    pub(super) fn new(
        exposure: Exposure,
        course: &Course<'_>,
        tasks: Option<Tasks>,
        first: Option<&Self>,
    ) -> Self {
        let tokens = course.definitions;
        let percent = percent(tokens, first.map_or(tokens, |first| first.tokens));
        Self { exposure: exposure.as_str(), shown: course.shown, tokens, percent, tasks }
    }
}

impl Tasks {
    pub(super) fn of(runs: &[Run]) -> Self {
        let some = |fits: &dyn Fn(&Run) -> bool| {
            let some: Vec<&Run> = runs.iter().filter(|run| fits(run)).collect();
            Mean::of(&some, some.len(), runs.len())
        };
        let done = runs.iter().filter(|run| run.done).count();
        Self {
            at_once: some(&|run| run.done && run.looks < 2),
            second: some(&|run| run.done && run.looks == 2),
            never: some(&|run| !run.done),
            done: Mean::of(&runs.iter().collect::<Vec<_>>(), done, runs.len()),
        }
    }
}

impl Mean {
    /// Returns the mean cost of these runs per `count`.
    fn of(runs: &[&Run], count: usize, all: usize) -> Option<Self> {
        let mean = |pick: fn(&Run) -> usize| {
            let sum: usize = runs.iter().map(|run| pick(run)).sum();
            float(sum) / float(count)
        };
        (count > 0).then(|| Self {
            percent: percent(count, all),
            turns: mean(|run| run.turns),
            new_tokens: mean(|run| run.new_tokens),
            sent_tokens: mean(|run| run.sent),
        })
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * float(part) / float(whole.max(1))
}

#[expect(clippy::cast_precision_loss, reason = "no folder has 2^52 tokens")]
fn float(number: usize) -> f64 {
    number as f64
}

impl Report {
    pub(super) fn to_text(&self) -> String {
        let mut tables = vec![self.definitions()];
        if self.sets.iter().any(|set| set.queries > 0) {
            tables.push(self.tasks());
        }
        tables.join("\n")
    }

    fn definitions(&self) -> String {
        let lines = self.sets.iter().flat_map(|set| {
            set.rows.iter().enumerate().map(|(n, row)| {
                [
                    group(n, &set.name),
                    row.exposure.to_owned(),
                    group(n, &set.servers),
                    row.shown.to_string(),
                    row.tokens.to_string(),
                    format!("{:.2}", row.percent),
                ]
            })
        });
        table(
            "Before the first call",
            ["set", "exposure", "servers", "tools", "tokens", "percent"],
            2,
            lines,
        )
    }

    fn tasks(&self) -> String {
        let lines = self.sets.iter().flat_map(Set::lines);
        table(
            "A whole task: the means, and all that was spent for each task that was done",
            [
                "set",
                "queries",
                "exposure",
                "tools found",
                "tasks %",
                "turns",
                "new",
                "sent",
                "percent",
            ],
            4,
            lines,
        )
    }
}

impl Set {
    fn lines(&self) -> Vec<[String; 9]> {
        let whole = self.rows.first().and_then(|row| row.tasks?.done);
        let mut lines = Vec::new();
        for row in &self.rows {
            let Some(tasks) = row.tasks else { continue };
            let parts = [
                ("at once", tasks.at_once),
                ("at the second look", tasks.second),
                ("never", tasks.never),
                ("for each done", tasks.done),
            ];
            // Where all was there at once, the last says the same as the first.
            let parts = if tasks.at_once == tasks.done { &parts[..1] } else { &parts[..] };
            let parts = parts.iter().filter_map(|(found, mean)| Some((found, (*mean)?)));
            for (n, (found, mean)) in parts.enumerate() {
                let of = whole.map_or(mean.sent_tokens, |whole| whole.sent_tokens);
                lines.push([
                    group(lines.len(), &self.name),
                    group(lines.len(), &self.queries),
                    group(n, &row.exposure),
                    (*found).to_owned(),
                    format!("{:.1}", mean.percent),
                    format!("{:.2}", mean.turns),
                    format!("{:.0}", mean.new_tokens),
                    format!("{:.0}", mean.sent_tokens),
                    format!("{:.2}", 100.0 * mean.sent_tokens / of),
                ]);
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(looks: usize, done: bool, sent: usize) -> Run {
        Run { looks, done, turns: looks + 1 + usize::from(done), new_tokens: sent / 2, sent }
    }

    #[test]
    fn a_task_that_was_given_up_is_paid_by_those_that_were_done() {
        let tasks = Tasks::of(&[run(1, true, 100), run(2, true, 300), run(2, false, 200)]);
        let sent = |mean: Option<Mean>| mean.map(|mean| (mean.percent.round(), mean.sent_tokens));
        assert_eq!(sent(tasks.at_once), Some((33.0, 100.0)));
        assert_eq!(sent(tasks.second), Some((33.0, 300.0)));
        assert_eq!(sent(tasks.never), Some((33.0, 200.0)));
        assert_eq!(sent(tasks.done), Some((67.0, 300.0)));
        assert_eq!(Tasks::of(&[run(2, false, 200)]).done, None);
    }

    #[test]
    fn a_set_without_queries_has_definitions_only() {
        let row = |exposure, tokens, tasks| Row {
            exposure,
            shown: 2,
            tokens,
            percent: percent(tokens, 400),
            tasks,
        };
        let (all, found) = ([run(0, true, 1000)], [run(1, true, 100), run(2, false, 100)]);
        let set = |name: &str, queries| Set {
            name: name.to_owned(),
            tools: 2,
            servers: 1,
            queries,
            rows: vec![
                row("individual", 400, (queries > 0).then(|| Tasks::of(&all))),
                row("search", 8, (queries > 0).then(|| Tasks::of(&found))),
            ],
        };
        assert_eq!(
            Report { sets: vec![set("a", 2), set("pool", 0)] }.to_text(),
            "## Before the first call\n\
             \n\
             | set  | exposure   | servers | tools | tokens | percent |\n\
             |------|------------|--------:|------:|-------:|--------:|\n\
             | a    | individual |       1 |     2 |    400 |  100.00 |\n\
             |      | search     |         |     2 |      8 |    2.00 |\n\
             | pool | individual |       1 |     2 |    400 |  100.00 |\n\
             |      | search     |         |     2 |      8 |    2.00 |\n\
             \n\
             ## A whole task: the means, and all that was spent for each task that was done\n\
             \n\
             | set | queries | exposure   | tools found   | tasks % | turns | new | sent | percent |\n\
             |-----|---------|------------|---------------|--------:|------:|----:|-----:|--------:|\n\
             | a   | 2       | individual | at once       |   100.0 |  2.00 | 500 | 1000 |  100.00 |\n\
             |     |         | search     | at once       |    50.0 |  3.00 |  50 |  100 |   10.00 |\n\
             |     |         |            | never         |    50.0 |  3.00 |  50 |  100 |   10.00 |\n\
             |     |         |            | for each done |    50.0 |  6.00 | 100 |  200 |   20.00 |\n"
        );
    }
}
