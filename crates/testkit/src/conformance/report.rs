//! Results of the conformance suite for a server.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

/// Results of the suite.
#[derive(Clone, Debug)]
pub struct Report {
    /// All scenarios that were run, by name.
    pub scenarios: Vec<Scenario>,
    expected: BTreeSet<String>,
    said: String,
}

/// One scenario of the suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// True if the revision requires it. Others are run, but not scored.
    pub required: bool,
    /// Failed checks by name, each with a reason.
    pub failures: Vec<(String, String)>,
    /// Warnings by name of the check, which do not affect the score.
    pub warnings: Vec<(String, String)>,
    /// The names of the checks that passed.
    pub successes: Vec<String>,
}

impl Scenario {
    /// Returns true if it counts as passed.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// The names of failed checks and warnings, with that of the scenario.
    fn wrong(&self) -> impl Iterator<Item = String> {
        let checks = self.failures.iter().chain(&self.warnings);
        checks.map(|(check, _)| format!("{}:{check}", self.name))
    }
}

/// One check as the suite writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: String,
    #[serde(default)]
    error_message: Option<String>,
}

impl Report {
    /// Reads the results from the folder that the suite wrote them to.
    pub(super) fn new(
        results: &Path,
        required: &BTreeSet<String>,
        expected: BTreeSet<String>,
        said: String,
    ) -> Self {
        let mut scenarios = Vec::new();
        let ran = said
            .lines()
            .filter_map(|line| line.strip_prefix("=== Running scenario: ")?.strip_suffix(" ==="));
        for name in ran {
            // A scenario that does not end writes nothing.
            let unfinished = || vec![("run".to_owned(), "it did not come to an end".to_owned())];
            let checks = checks(results, name);
            let failures = checks.as_ref().map_or_else(unfinished, |it| of(it, "FAILURE"));
            let checks = checks.unwrap_or_default();
            let warnings = of(&checks, "WARNING");
            let successes = of(&checks, "SUCCESS").into_iter().map(|(check, _)| check).collect();
            let required = required.contains(name);
            let name = name.to_owned();
            scenarios.push(Scenario { name, required, failures, warnings, successes });
        }
        Self { scenarios, expected, said }
    }

    /// Returns the number of required scenarios that passed, and of all required ones.
    pub fn required(&self) -> (usize, usize) {
        count(self.scenarios.iter().filter(|scenario| scenario.required))
    }

    /// Returns the number of the other scenarios that passed, and of all others.
    pub fn not_scored(&self) -> (usize, usize) {
        count(self.scenarios.iter().filter(|scenario| !scenario.required))
    }

    /// Returns failures in scenarios that passed in another report and that it does not have, as `scenario:check`.
    pub fn worse_than(&self, other: &Self) -> Vec<String> {
        let failed: BTreeSet<_> =
            other.scenarios.iter().filter(|it| !it.passed()).map(|it| &it.name).collect();
        let known: BTreeSet<_> = other.scenarios.iter().flat_map(Scenario::wrong).collect();
        let comparable = self.scenarios.iter().filter(|it| !failed.contains(&it.name));
        comparable.flat_map(Scenario::wrong).filter(|check| !known.contains(check)).collect()
    }

    /// Returns unexpected failures, warnings included.
    pub fn unexpected(&self) -> Vec<String> {
        let wrong = self.scenarios.iter().flat_map(|scenario| {
            let known = self.expected.contains(&scenario.name);
            scenario.wrong().filter(move |_| !known)
        });
        wrong.filter(|check| !self.expected.contains(check)).collect()
    }

    /// Returns expected failures that did not occur.
    pub fn stale(&self) -> Vec<String> {
        let wrong: BTreeSet<String> = self
            .scenarios
            .iter()
            .flat_map(|scenario| {
                let whole = scenario.wrong().next().map(|_| scenario.name.clone());
                scenario.wrong().chain(whole)
            })
            .collect();
        self.expected.difference(&wrong).cloned().collect()
    }

    /// Panics on an unexpected failure, and on an expected one that did not occur.
    pub fn assert_expected(&self) {
        let (unexpected, stale) = (self.unexpected(), self.stale());
        assert!(
            !self.scenarios.is_empty() && unexpected.is_empty() && stale.is_empty(),
            "unexpected failures: {unexpected:#?}\nfailures no longer to be expected: {stale:#?}\n{self}",
        );
    }

    /// The output of the suite.
    pub fn said(&self) -> &str {
        &self.said
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        for scenario in &self.scenarios {
            let mark = if scenario.passed() { '✓' } else { '✗' };
            let scored = if scenario.required { "" } else { " (not scored)" };
            writeln!(text, "{mark} {}{scored}", scenario.name)?;
            for (check, why) in scenario.failures.iter().chain(&scenario.warnings) {
                writeln!(text, "    {check}: {why}")?;
            }
        }
        let ((passed, all), (more, others)) = (self.required(), self.not_scored());
        writeln!(text, "{passed}/{all} required, {more}/{others} not scored")?;
        if self.scenarios.is_empty() {
            text.push_str(&self.said);
        }
        f.write_str(&text)
    }
}

/// The names under `server:` in a list of requirements or of expected failures.
pub(super) fn names(text: &str) -> BTreeSet<String> {
    let mut lines = text.lines().skip_while(|line| line.trim_end() != "server:").skip(1);
    let mut names = BTreeSet::new();
    while let Some(line) =
        lines.next().filter(|line| line.is_empty() || line.starts_with([' ', '#']))
    {
        let name = line.trim_start().strip_prefix("- ").and_then(|name| name.split(" #").next());
        names.extend(name.map(|name| name.trim().to_owned()));
    }
    names
}

fn checks(results: &Path, name: &str) -> Option<Vec<Check>> {
    let start = format!("server-{name}-");
    let folders = std::fs::read_dir(results).ok()?.filter_map(Result::ok);
    // Its name ends with the time. One scenario's name may begin with another's.
    let folder = folders.map(|folder| folder.path()).find(|path| {
        let folder = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        folder.strip_prefix(&start).is_some_and(|rest| rest.starts_with("20"))
    })?;
    let text = std::fs::read_to_string(folder.join("checks.json")).ok()?;
    serde_json::from_str(&text).ok()
}

fn of(checks: &[Check], status: &str) -> Vec<(String, String)> {
    let checks = checks.iter().filter(|check| check.status == status);
    checks
        .map(|check| (check.id.clone(), check.error_message.clone().unwrap_or_default()))
        .collect()
}

fn count<'a>(scenarios: impl Iterator<Item = &'a Scenario>) -> (usize, usize) {
    scenarios
        .fold((0, 0), |(passed, all), scenario| (passed + usize::from(scenario.passed()), all + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(name: &str, failures: &[&str]) -> Scenario {
        let failures = failures.iter().map(|check| ((*check).to_owned(), String::new())).collect();
        let (name, warnings) = (name.to_owned(), Vec::new());
        Scenario { name, required: true, failures, warnings, successes: Vec::new() }
    }

    fn report(expected: &[&str]) -> Report {
        Report {
            scenarios: vec![scenario("good", &[]), scenario("bad", &["one", "two"])],
            expected: expected.iter().map(|name| (*name).to_owned()).collect(),
            said: String::new(),
        }
    }

    #[test]
    fn a_failure_is_expected_by_its_scenario_or_by_its_check() {
        assert_eq!(report(&[]).unexpected(), ["bad:one", "bad:two"]);
        assert_eq!(report(&["bad"]).unexpected(), Vec::<String>::new());
        assert_eq!(report(&["bad:one"]).unexpected(), ["bad:two"]);
        assert_eq!(report(&[]).required(), (1, 2));
    }

    #[test]
    fn what_is_expected_to_fail_and_passes_or_is_not_run_is_stale() {
        let report = report(&["bad", "bad:one", "bad:three", "good", "unheard-of"]);
        assert_eq!(report.stale(), ["bad:three", "good", "unheard-of"]);
    }

    #[test]
    fn what_fails_elsewhere_too_is_not_worse() {
        let better = Report { scenarios: vec![scenario("bad", &["one"])], ..report(&[]) };
        assert!(report(&[]).worse_than(&better).is_empty());
        let best = Report { scenarios: vec![scenario("bad", &[])], ..report(&[]) };
        assert_eq!(report(&[]).worse_than(&best), ["bad:one", "bad:two"]);
    }

    #[test]
    fn only_the_names_under_server_are_read() {
        let text = "# note\nclient:\n  - no\nserver:\n  - one # why\n\n  # note\n  - two:check\nclient:\n  - no\n";
        assert_eq!(names(text).into_iter().collect::<Vec<_>>(), ["one", "two:check"]);
        assert!(names("client:\n  - no\n").is_empty());
    }
}
