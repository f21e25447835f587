//! The example programs do what they say.

fn run(name: &str) -> String {
    let output = testkit::cargo()
        .args(["run", "--quiet", "--locked", "--package", "consort", "--example", name])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_model_uses_a_tool_that_is_mcp_all_through() {
    let out = run("weather");
    assert!(out.contains(r#""type":"function""#), "{out}");
    for line in [
        r#"call   weather.get_weather {"location":"Paris"}"#,
        "result is_error=false 21 Celsius in Paris",
        "result is_error=true no such place",
        "result is_error=true invalid arguments for `weather.get_weather`: ",
        "answer It is 21 degrees in Paris.",
    ] {
        assert!(out.contains(line), "{out}");
    }
}

#[test]
fn a_task_finds_its_tools_and_is_seen_at_work() {
    let out = run("task");
    assert!(
        out.starts_with("unknown tool `long_computaton`; did you mean `long_computation`?\n"),
        "{out}"
    );
    let found = "builtin.echo, demo.get_weather, demo.long_computation, demo.search";
    assert!(out.contains(found) && out.ends_with(": Completed, done\n"), "{out}");
    let times: Vec<f64> = out
        .lines()
        .skip_while(|line| !line.ends_with("demo.long_computation begins"))
        .filter_map(|line| line.split_once(" s: "))
        .map(|(time, _)| time.parse().unwrap())
        .collect();
    assert_eq!(times.len(), 5, "{out}");
    // The steps take 0.3, 0.5 and 0.7 seconds: each is seen when it is made, not when the call ends.
    for (step, took) in times.windows(2).zip([0.3, 0.5, 0.7]) {
        assert!((took - 0.2..took + 0.4).contains(&(step[1] - step[0])), "{out}");
    }
}

#[test]
fn servers_are_found_when_the_work_begins() {
    let out = run("discovery");
    let ticks = "found 5 tools\ntick 1\n  papers.search\ntick 2\n  papers.analyze\ntick 3\nIt is good. (2 calls)\n";
    assert_eq!(out, ticks);
}

#[test]
fn transforms_change_what_is_seen_and_not_what_is_called() {
    let out = run("transforms");
    assert!(out.contains("mcp_demo_search (the server's search): [demo] Searches"), "{out}");
    assert!(!out.contains("mcp_demo_long_computation"), "{out}");
    assert!(out.contains("Accurate progress reporting"), "{out}");
}

#[test]
fn a_server_is_listed_then_used() {
    let out = run("list_then_execute");
    assert!(out.contains("One endpoint for many servers"), "{out}");
    assert!(out.ends_with("Completed: It is neutral.\n"), "{out}");
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
         long_computation: unknown tool `demo.long_computation`\n\
         asked: `agent:assistant` wants to call `demo.analyze` (read): it reads your words\n\
         analyze: ok\n\
         analyze: ok\n\
         asked 1 time\n"
    );
}

#[test]
fn ensembles_are_called_apart_and_end_together() {
    let out = run("ensembles");
    assert!(out.contains("weather: ready, 5 tools"), "{out}");
    assert!(out.ends_with("All three answered.\nended\n"), "{out}");
}
