//! The report of searches: tables for people, or one JSON object.

use serde::Serialize;

use super::metrics::Quality;
use crate::report::{group, table};

/// All results.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    sets: Vec<Set>,
    /// Over the sets with queries, each counted once.
    average: Vec<Row>,
    /// The speed at 5,000 tools.
    many: Speed,
}

/// One folder.
#[derive(Debug, Serialize)]
pub(super) struct Set {
    pub(super) name: String,
    pub(super) tools: usize,
    pub(super) queries: usize,
    /// Consort's last.
    pub(super) rows: Vec<Row>,
    #[serde(flatten)]
    pub(super) speed: Speed,
}

/// One way of searching.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    by: &'static str,
    #[serde(flatten)]
    quality: Quality,
}

impl Row {
    pub(super) fn new(by: &'static str, quality: Quality) -> Self {
        Self { by, quality }
    }
}

/// Speed of Consort's index, in processor time.
#[derive(Debug, Serialize)]
pub(super) struct Speed {
    build_milliseconds: f64,
    /// Absent if there are no queries.
    query_microseconds: Option<Percentiles>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Percentiles {
    p50: f64,
    p99: f64,
}

impl Speed {
    pub(super) fn new(build_milliseconds: f64, mut micros: Vec<f64>) -> Self {
        micros.sort_by(f64::total_cmp);
        let at = |percent: usize| micros[(micros.len() - 1) * percent / 100];
        let measured = !micros.is_empty();
        Self {
            build_milliseconds,
            query_microseconds: measured.then(|| Percentiles { p50: at(50), p99: at(99) }),
        }
    }

    fn cells(&self) -> [String; 3] {
        let micros = |pick: fn(Percentiles) -> f64| {
            self.query_microseconds
                .map_or_else(|| "-".to_owned(), |all| format!("{:.0}", pick(all)))
        };
        [format!("{:.1}", self.build_milliseconds), micros(|all| all.p50), micros(|all| all.p99)]
    }
}

impl Report {
    pub(super) fn new(sets: Vec<Set>, many: Speed) -> Self {
        let asked: Vec<&Set> = sets.iter().filter(|set| !set.rows.is_empty()).collect();
        let ways = asked.first().map_or(0, |set| set.rows.len());
        let average = (0..ways)
            .map(|n| {
                let quality = Quality::mean(asked.iter().map(|set| set.rows[n].quality));
                Row::new(asked[0].rows[n].by, quality)
            })
            .collect();
        Self { sets, average, many }
    }

    pub(super) fn to_text(&self) -> String {
        let mut tables = Vec::new();
        if !self.average.is_empty() {
            tables.push(self.quality());
        }
        tables.push(self.speed());
        tables.join("\n")
    }

    fn quality(&self) -> String {
        let all = ("average".to_owned(), String::new(), &self.average);
        let sets =
            self.sets.iter().map(|set| (set.name.clone(), set.queries.to_string(), &set.rows));
        let lines = sets.chain([all]).flat_map(|(name, queries, rows)| {
            rows.iter().enumerate().map(move |(n, row)| {
                let Quality { r1, r5, r10, n10, c10 } = row.quality;
                let [r1, r5, r10, n10, c10] = [r1, r5, r10, n10, c10].map(|x| format!("{x:.1}"));
                [group(n, &name), row.by.to_owned(), group(n, &queries), r1, r5, r10, n10, c10]
            })
        });
        table(
            "What is found, in percent",
            ["set", "by", "queries", "R@1", "R@5", "R@10", "N@10", "C@10"],
            2,
            lines,
        )
    }

    fn speed(&self) -> String {
        let many = (&"all together".to_owned(), super::MANY, &self.many);
        let sets = self.sets.iter().map(|set| (&set.name, set.tools, &set.speed));
        let lines = sets.chain([many]).map(|(name, tools, speed)| {
            let [build, p50, p99] = speed.cells();
            [name.clone(), tools.to_string(), build, p50, p99]
        });
        table(
            "How long it takes, in processor time",
            ["set", "tools", "index ms", "query p50 µs", "p99 µs"],
            1,
            lines,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, percent: Option<f64>) -> Set {
        let quality = |x| Quality { r1: x, r5: x, r10: x, n10: x, c10: x };
        Set {
            name: name.to_owned(),
            tools: 3,
            queries: usize::from(percent.is_some()),
            rows: percent.map(|x| Row::new("consort", quality(x))).into_iter().collect(),
            speed: Speed::new(1.0, percent.into_iter().collect()),
        }
    }

    #[test]
    fn a_set_without_queries_has_size_and_speed_only() {
        let sets = vec![set("a", Some(50.0)), set("pool", None), set("b", Some(100.0))];
        let report = Report::new(sets, Speed::new(9.0, vec![1.0, 2.0, 3.0]));
        assert_eq!(
            report.to_text(),
            "## What is found, in percent\n\
             \n\
             | set     | by      | queries |   R@1 |   R@5 |  R@10 |  N@10 |  C@10 |\n\
             |---------|---------|--------:|------:|------:|------:|------:|------:|\n\
             | a       | consort |       1 |  50.0 |  50.0 |  50.0 |  50.0 |  50.0 |\n\
             | b       | consort |       1 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 |\n\
             | average | consort |         |  75.0 |  75.0 |  75.0 |  75.0 |  75.0 |\n\
             \n\
             ## How long it takes, in processor time\n\
             \n\
             | set          | tools | index ms | query p50 µs | p99 µs |\n\
             |--------------|------:|---------:|-------------:|-------:|\n\
             | a            |     3 |      1.0 |           50 |     50 |\n\
             | pool         |     3 |      1.0 |            - |      - |\n\
             | b            |     3 |      1.0 |          100 |    100 |\n\
             | all together |  5000 |      9.0 |            2 |      2 |\n"
        );
    }
}
