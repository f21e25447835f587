//! Mistakes in `[consort]`, which nothing is started with.

use consort_config::ConfigError;
use insta::assert_snapshot;

use crate::{complaints, read};

#[test]
fn a_misspelt_key_below_consort_is_refused_at_every_depth_and_in_every_format() {
    let errors = |name: &str, text: &str| {
        let config = read(name, text);
        assert!(config.errors.iter().all(ConfigError::is_blocking), "{:?}", config.errors);
        complaints(&config)
    };
    assert_snapshot!(errors("consort.toml", r#"
[consort.polcy]
default = "deny"
[consort.policy]
defualt = "deny"
[consort.profiles.a]
polcy = {}
[consort.profiles.b.policy]
rules = [{ then = "deny" }, { then = "deny", callrs = ["x"] }]
[consort.agents.c]
model = "p:m"
tols = ["x"]
[consort.exposure]
mode = "auto"
bugdet = 3
[consort.callers.x]
role = ["y"]
"#), @"
    error: consort.toml:2:10: unknown key `polcy`
      hint: did you mean `policy`?
    error: consort.toml:5:1: unknown key `policy.defualt`
      hint: did you mean `default`?
    error: consort.toml:7:1: unknown key `profiles.a.polcy`
      hint: did you mean `policy`?
    error: consort.toml:9:46: unknown key `profiles.b.policy.rules[1].callrs`
      hint: did you mean `callers`?
    error: consort.toml:12:1: unknown key `agents.c.tols`
      hint: did you mean `tools`?
    error: consort.toml:15:1: unknown key `exposure.bugdet`
      hint: did you mean `budget`?
    error: consort.toml:17:1: unknown key `callers.x.role`
      hint: did you mean `roles`?
    ");
    assert_snapshot!(errors(".mcp.json", r#"{"mcpServers": {}, "consort": {"polcy": {"default": "deny"}}}"#), @"
    error: .mcp.json:1:32: unknown key `polcy`
      hint: did you mean `policy`?
    ");
    assert_snapshot!(errors(".mcp.json", r#"{"mcpServers": {}, "consrot": {"policy": {"default": "deny"}}, "console": {}}"#), @"
    error: .mcp.json:1:20: unknown key `consrot`
      hint: did you mean `consort`?
    ");
    assert_snapshot!(errors("mcp.json", r#"{"servers": {}, "consort": {"policy": {"rules": [{"then": "deny", "tool": ["x"]}]}}}"#), @"
    error: mcp.json:1:67: unknown key `policy.rules[0].tool`
      hint: did you mean `tools`?
    ");
    assert_snapshot!(errors("settings.json", r#"{"context_servers": {}, "consort": {"naming": "auto", "Policy": {}}}"#), @"
    error: settings.json:1:55: unknown key `Policy`
      hint: did you mean `policy`?
    ");
    assert_snapshot!(errors("config.toml", "[mcp_servers.a]\ncommand = 'x'\n[consort.token]\na = 'env:A'\n"), @"
    error: config.toml:3:10: unknown key `token`
      hint: did you mean `tokens`?
    ");
}

#[test]
fn a_group_of_synonyms_has_at_least_two_terms() {
    let config = read(
        "consort.toml",
        "[consort.search]\nsynonyms = [\"vendor, supplier\", \"k8s, kube cluster\"]\n",
    );
    assert_snapshot!(complaints(&config), @"");
    let search = config.options.search.unwrap();
    assert_eq!(search.synonyms, ["vendor, supplier", "k8s, kube cluster"]);
    let config = read(
        "consort.toml",
        "[consort.search]\nsynonyms = [\"vendor, supplier\", \"vendors, vendor\"]\n",
    );
    assert!(config.errors.iter().all(ConfigError::is_blocking), "{:?}", config.errors);
    assert_snapshot!(complaints(&config), @"error: consort.toml:1:1: `search`: `synonyms`: `vendors, vendor` is no group of synonyms: write at least two different terms, as in `vendor, supplier`");
    let config = read("consort.toml", "[consort.search]\nsynonims = [\"vendor, supplier\"]\n");
    assert_snapshot!(complaints(&config), @"
    error: consort.toml:2:1: unknown key `search.synonims`
      hint: did you mean `synonyms`?
    ");
}

#[test]
fn what_would_count_as_nothing_below_consort_is_refused() {
    let config = read(
        "consort.toml",
        r#"
[mcp.a]
command = "x"
keep = []
[consort]
naming = 2026-01-01
[consort.policy]
default = 2026-01-01
[consort.profiles.p]
servers = []
tools = []
[[consort.transforms]]
tools = []
drop = true
"#,
    );
    assert_snapshot!(complaints(&config), @"
    error: a: consort.toml:4:8: `keep` is an empty list, which matches nothing
      hint: remove it to match everything
    error: consort.toml:6:10: `naming` is a date: expected a string
    error: consort.toml:8:11: `policy.default` is a date: expected a string, number, list or table
    error: consort.toml:10:11: `profiles.p.servers` is an empty list, which matches nothing
      hint: remove it to match everything
    error: consort.toml:11:9: `profiles.p.tools` is an empty list, which matches nothing
      hint: remove it to match everything
    error: consort.toml:13:9: `transforms[0].tools` is an empty list, which matches nothing
      hint: remove it to match everything
    ");
    let config = read(
        ".mcp.json",
        r#"{"mcpServers": {}, "consort": {"policy": {"default": "deny", "default": "allow"}}, "consort": {}}"#,
    );
    assert_snapshot!(complaints(&config), @"
    error: .mcp.json:1:62: duplicate key `policy.default`
      hint: the first is in line 1
    error: .mcp.json:1:84: duplicate key `consort`
      hint: the first is in line 1
    ");
}
