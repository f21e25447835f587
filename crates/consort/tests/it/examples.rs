//! The example programs do what they say.

use std::process::Command;

fn run(name: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--package", "consort", "--example", name])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_local_tool_is_mcp_all_through() {
    let out = run("local_tool");
    assert!(out.contains(r#"{"location":"Paris"} -> is_error=false 21 Celsius in Paris"#), "{out}");
    assert!(out.contains(r#"{"location":"nowhere"} -> is_error=true no such place"#), "{out}");
    assert!(out.contains(r#""type":"function""#), "{out}");
}

#[test]
fn friendly_names_lead_to_tools_with_live_progress() {
    let out = run("friendly_names");
    for line in
        ["echo is builtin.echo", "mcp.search is demo.search", "did you mean `long_computation`?"]
    {
        assert!(out.contains(line), "{out}");
    }
    let times: Vec<f64> = out
        .lines()
        .filter_map(|line| line.split_once(" s: "))
        .map(|(time, _)| time.parse().unwrap())
        .collect();
    assert_eq!(times.len(), 4, "{out}");
    // The steps take 0.3, 0.5 and 0.7 seconds: each is seen when it is made, not when the call ends.
    for (step, took) in times.windows(2).zip([0.5, 0.7]) {
        assert!((took - 0.1..took + 0.4).contains(&(step[1] - step[0])), "{out}");
    }
    assert!(times[3] - times[2] < 0.4, "{out}");
}

#[test]
fn transforms_change_what_is_seen_and_not_what_is_called() {
    let out = run("transforms");
    assert!(out.contains("mcp_demo_search (the server's search): [demo] Searches"), "{out}");
    assert!(!out.contains("mcp_demo_long_computation"), "{out}");
    assert!(out.contains("Progress that is true"), "{out}");
}

#[test]
fn a_server_is_listed_then_used() {
    let out = run("list_then_execute");
    assert!(
        out.contains("One door for many servers") && out.contains("\"sentiment\":\"neutral\""),
        "{out}"
    );
    assert!(out.starts_with("offered: mcp_demo\nlist: 5 tools of demo\n"), "{out}");
}

#[test]
fn the_same_call_is_made_through_every_exposure() {
    let out = run("exposures");
    let results: Vec<&str> = out.lines().filter(|line| line.starts_with("  -> ")).collect();
    assert_eq!(results.len(), 3, "{out}");
    assert!(results.iter().all(|result| *result == results[0]), "{out}");
    for shown in ["search: find_tools, call_tool (", "found: demo.search"] {
        assert!(out.contains(shown), "{out}");
    }
}

#[test]
fn a_policy_denies_asks_and_remembers() {
    let out = run("policy");
    assert_eq!(
        out,
        "on offer: search, analyze, summarize, get_weather\n\
         long_computation: unknown tool `long_computation`\n\
         asked: `agent:assistant` wants to call `demo.analyze` (destructive, open-world): it reads your words\n\
         analyze: ok\n\
         analyze: ok\n\
         asked 1 time\n"
    );
}

#[test]
fn ensembles_are_called_apart_and_end_together() {
    let out = run("ensembles");
    assert!(out.contains("weather: ready, 5 tools") && out.ends_with("ended\n"), "{out}");
}
