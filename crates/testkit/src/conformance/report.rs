//! What the conformance suite found out about a server.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

/// What the suite found out.
#[derive(Clone, Debug)]
pub struct Report {
    /// All that was run, by name.
    pub scenarios: Vec<Scenario>,
    expected: BTreeSet<String>,
    said: String,
}

/// One scenario of the suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Whether the revision requires it. Others are run, but not scored.
    pub required: bool,
    /// What failed, by the name of the check, each with a reason.
    pub failures: Vec<(String, String)>,
    /// What should be otherwise, but does not cost the score.
    pub warnings: Vec<(String, String)>,
}

impl Scenario {
    /// Whether it counts as passed.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// Names of what went wrong, with the scenario's.
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
    /// Reads the results from where the suite wrote them.
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
            let (failures, warnings) = match checks(results, name) {
                Some(checks) => (of(&checks, "FAILURE"), of(&checks, "WARNING")),
                // A scenario that does not end writes nothing.
                None => (vec![("run".to_owned(), "it did not come to an end".to_owned())], vec![]),
            };
            let required = required.contains(name);
            scenarios.push(Scenario { name: name.to_owned(), required, failures, warnings });
        }
        Self { scenarios, expected, said }
    }

    /// How many of the required scenarios passed, and how many there are.
    pub fn required(&self) -> (usize, usize) {
        count(self.scenarios.iter().filter(|scenario| scenario.required))
    }

    /// How many of the others passed, and how many there are.
    pub fn not_scored(&self) -> (usize, usize) {
        count(self.scenarios.iter().filter(|scenario| !scenario.required))
    }

    /// What went wrong though nobody expected it, warnings included.
    pub fn unexpected(&self) -> Vec<String> {
        let wrong = self.scenarios.iter().flat_map(|scenario| {
            let known = self.expected.contains(&scenario.name);
            scenario.wrong().filter(move |_| !known)
        });
        wrong.filter(|check| !self.expected.contains(check)).collect()
    }

    /// What was expected to fail and does not.
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

    /// Panics if something fails that is not expected to, or does not fail that is.
    pub fn assert_expected(&self) {
        let (unexpected, stale) = (self.unexpected(), self.stale());
        assert!(
            !self.scenarios.is_empty() && unexpected.is_empty() && stale.is_empty(),
            "unexpected failures: {unexpected:#?}\nfailures no longer to be expected: {stale:#?}\n{self}",
        );
    }

    /// All that the suite said.
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
        Scenario { name: name.to_owned(), required: true, failures, warnings: Vec::new() }
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
    fn only_the_names_under_server_are_read() {
        let text = "# note\nclient:\n  - no\nserver:\n  - one # why\n\n  # note\n  - two:check\nclient:\n  - no\n";
        assert_eq!(names(text).into_iter().collect::<Vec<_>>(), ["one", "two:check"]);
        assert!(names("client:\n  - no\n").is_empty());
    }
}
