//! Examples at the end of each `--help`.

pub(super) const ROOT: &str = "\
Examples:
  consort init                                    # import the servers of other MCP clients
  consort add files -- npx -y @modelcontextprotocol/server-filesystem .
  consort list                                    # servers and their state
  consort call files.list_directory path=.
  consort serve                                   # all servers as one MCP endpoint

Exit codes: 0 success, 1 error of a tool or server, 2 invalid usage or config, 3 server unreachable, \
4 timeout, 5 denied, 6 outcome unknown, 7 differs from the lock, 8 limit reached, 9 waiting for a user, \
130 interrupted.";

pub(super) const INIT: &str = "\
Examples:
  consort init
  consort init --yes";

pub(super) const ADD: &str = "\
Examples:
  consort add files -- npx -y @modelcontextprotocol/server-filesystem .
  consort add github --env GITHUB_TOKEN=env:GITHUB_TOKEN -- github-mcp-server stdio
  consort add docs https://docs.example/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'
  consort add old https://old.example/sse --transport sse --scope project";

pub(super) const ADD_JSON: &str = "\
Examples:
  consort add-json files '{\"command\": \"npx\", \"args\": [\"-y\", \"files-server\"]}'
  consort add-json docs - < entry.json";

pub(super) const REMOVE: &str = "\
Examples:
  consort remove files
  consort remove files --scope project";

pub(super) const LIST: &str = "\
Examples:
  consort list
  consort list --no-connect
  consort list --json | jq '.[] | select(.state != \"ready\")'";

pub(super) const STATUS: &str = "\
Examples:
  consort status
  consort --config mcp.json status --json";

pub(super) const TOOLS: &str = "\
Examples:
  consort tools
  consort tools github --long             # parameters of each tool of one server
  consort tools --exposure search         # the tools that a model sees with this exposure
  consort tools --explain github.search   # transforms and policy of one tool";

pub(super) const SEARCH: &str = "\
Examples:
  consort search send a message
  consort search -k 3 weather forecast";

pub(super) const TOKENS: &str = "\
Examples:
  consort tokens
  consort tokens --long --vocabulary cl100k";

pub(super) const DIALECT: &str = "\
Examples:
  consort dialect openai
  consort dialect gemini get_weather";

pub(super) const CALL: &str = "\
Examples:
  consort call get_weather location=Oslo
  consort call github.create_issue title='A bug' labels:='[\"bug\"]'
  consort call search --args '{\"query\": \"gateways\", \"limit\": 2}'
  echo '{\"text\": \"hello\"}' | consort call echo --args -
  consort call long_computation steps=5 --total 30s --json";

pub(super) const ASK: &str = "\
Examples:
  consort ask how is the weather in Oslo
  git diff | consort ask --model anthropic:claude-sonnet-5-5 review this
  consort ask --tools 'github.*' --max-cost 0.50 list the open issues
  consort ask --continue and in Bergen?";

pub(super) const CHAT: &str = "\
Examples:
  consort chat
  consort chat --model ollama:qwen3 --tools get_weather,search
  consort chat --continue=20261115-164500-3f9a";

pub(super) const RUN: &str = "\
Examples:
  consort run report.toml --set week=46
  consort run report.toml --record run.jsonl
  consort run report.toml --replay run.jsonl";

pub(super) const PROMPTS: &str = "\
Examples:
  consort prompts
  consort prompts github";

pub(super) const PROMPT: &str = "\
Examples:
  consort prompt review language=rust
  consort prompt github.review language=rust --json";

pub(super) const RESOURCES: &str = "\
Examples:
  consort resources
  consort resources files --fresh";

pub(super) const READ: &str = "\
Examples:
  consort read file:///srv/notes.md
  consort read --server docs https://docs.example/logo.png --output logo.png";

pub(super) const SERVE: &str = "\
Examples:
  consort serve                                     # http://127.0.0.1:8808/mcp
  consort serve --stdio                             # for clients that start a process
  consort serve --listen 0.0.0.0:8808 --allow-host gateway.example
  consort serve --log json --log-level info,hub=debug";

pub(super) const RELOAD: &str = "\
Examples:
  consort reload
  consort reload --dry-run
  consort reload --accept";

pub(super) const WATCH: &str = "\
Examples:
  consort watch
  consort watch --json";

pub(super) const LOGS: &str = "\
Examples:
  consort logs                        # logs of all servers: size, time of the last line
  consort logs github --since 1h
  consort logs github --follow --lines 20
  consort logs github --json | jq -r 'select(.source == \"stderr\").text'";

pub(super) const SERVICE_INSTALL: &str = "\
Examples:
  consort service install --dry-run          # the unit, without writing it
  consort --config mcp.json service install";

pub(super) const SERVICE_REMOVE: &str = "\
Examples:
  consort service remove";

pub(super) const SERVICE_STATUS: &str = "\
Examples:
  consort service status";

pub(super) const BUG_REPORT: &str = "\
Examples:
  consort bug-report                         # writes consort-bug-report.md
  consort bug-report --offline --output -    # without connecting to servers, to standard output";

pub(super) const LOGIN: &str = "\
Examples:
  consort login github
  consort login github --no-browser --port 8910";

pub(super) const LOGOUT: &str = "\
Examples:
  consort logout github";

pub(super) const CHECK: &str = "\
Examples:
  consort check
  consort --config mcp.json check --strict";

pub(super) const DOCTOR: &str = "\
Examples:
  consort doctor
  consort doctor --json";

pub(super) const LOCK: &str = "\
Examples:
  consort lock                     # approve the current definitions of all servers
  consort lock --check             # show changes; exit code 7 if there are any
  consort lock --update github     # review and approve the changes of one server";

pub(super) const NAMES: &str = "\
Examples:
  consort names
  consort names --forget github";

pub(super) const TRUST: &str = "\
Examples:
  consort trust
  consort trust --list
  consort trust ./project --remove";

pub(super) const SECRET_SET: &str = "\
Examples:
  consort secret set github/token
  consort secret set github/token < token.txt
  consort --config .vscode/mcp.json secret set --input github-token";

pub(super) const SECRET_REMOVE: &str = "\
Examples:
  consort secret remove github/token
  consort --config .vscode/mcp.json secret remove --input github-token";

pub(super) const SECRET_LIST: &str = "\
Examples:
  consort secret list
  consort secret list --json";

pub(super) const CONFIG_SHOW: &str = "\
Examples:
  consort config show
  consort --config mcp.json config show --json";

pub(super) const CONFIG_CONVERT: &str = "\
Examples:
  consort --config mcp.json config convert --to consort --output consort.toml
  consort config convert --to vscode";

pub(super) const CONFIG_IMPORT: &str = "\
Examples:
  consort config import --dry-run
  consort config import claude-desktop cursor goose";

pub(super) const CONFIG_EXPORT: &str = "\
Examples:
  consort config export claude-desktop
  consort config export cursor --url http://127.0.0.1:8808/mcp --token-file token
  consort config export vscode --print
  consort config export cursor --link";

pub(super) const CONFIG_ADD: &str = "\
Examples:
  consort config add files -- npx -y @modelcontextprotocol/server-filesystem .
  consort config add github --env GITHUB_TOKEN=env:GITHUB_TOKEN -- github-mcp-server stdio
  consort config add web https://example.com/mcp --header 'Authorization: Bearer ${TOKEN}'
  consort config add --paste < mcp.json";

pub(super) const CONFIG_REMOVE: &str = "\
Examples:
  consort config remove files";

pub(super) const CONFIG_PATH: &str = "\
Examples:
  consort config path";

pub(super) const CONFIG_SCHEMA: &str = "\
Examples:
  consort config schema > consort.schema.json
  consort config schema events > events.schema.json";

pub(super) const CONFIG_LIMITS: &str = "\
Examples:
  consort config limits
  consort config limits timeout";

pub(super) const LEDGER_TAIL: &str = "\
Examples:
  consort ledger tail -n 50
  consort ledger tail --follow --server github
  consort ledger tail --since 24h --outcome tool_error";

pub(super) const LEDGER_REPORT: &str = "\
Examples:
  consort ledger report --since 7d
  consort ledger report --by model,day";

pub(super) const LEDGER_EXPORT: &str = "\
Examples:
  consort ledger export --format csv > calls.csv
  consort ledger export --since 2026-11-01 --caller client:ada";

pub(super) const LEDGER_VERIFY: &str = "\
Examples:
  consort ledger verify
  consort ledger verify --archive /backup/ledger";

pub(super) const LEDGER_PATH: &str = "\
Examples:
  consort ledger path";

pub(super) const CONVERSATIONS_LIST: &str = "\
Examples:
  consort conversations list";

pub(super) const CONVERSATIONS_SHOW: &str = "\
Examples:
  consort conversations show last
  consort conversations show 3f9a --json";

pub(super) const CONVERSATIONS_FORK: &str = "\
Examples:
  consort conversations fork last --at 4";

pub(super) const CONVERSATIONS_DELETE: &str = "\
Examples:
  consort conversations delete 3f9a
  consort conversations delete last --yes";

pub(super) const DEMO: &str = "\
Examples:
  consort demo";

pub(super) const MAN: &str = "\
Examples:
  consort man ~/.local/share/man/man1";

pub(super) const COMPLETIONS: &str = "\
Examples:
  consort completions bash > ~/.local/share/bash-completion/completions/consort
  consort completions zsh > ~/.zfunc/_consort";

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory, Parser};

    use super::super::Cli;

    /// Splits a line of a shell, with quotation marks and without expansion.
    fn shell_words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match (quote, c) {
                (Some(mark), c) if c == mark => quote = None,
                (None, '\'' | '"') => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (None, ' ') => words.extend(word.take()),
                (_, c) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    /// Calls a function with every visible command and its path, depth first.
    fn visit(command: &Command, path: &str, each: &mut dyn FnMut(&str, &Command)) {
        each(path, command);
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            visit(sub, &format!("{path} {}", sub.get_name()), each);
        }
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        let mut missing = Vec::new();
        visit(&Cli::command(), "consort", &mut |path, command| {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<&str> = help
                .lines()
                .filter(|line| line.starts_with("  "))
                .map(|line| {
                    line.rsplit(" | ").find(|part| part.starts_with("consort ")).unwrap_or(line)
                })
                .filter_map(|line| line.find("consort ").map(|at| &line[at..]))
                .collect();
            if examples.is_empty() && !command.has_subcommands() {
                missing.push(path.to_owned());
            }
            for example in examples {
                let words = shell_words(example).into_iter();
                let words: Vec<String> =
                    words.take_while(|word| !["|", ">", "<", "#"].contains(&&**word)).collect();
                if let Err(error) = Cli::try_parse_from(&words) {
                    panic!("{path}: {example}: {error}");
                }
                let named = path.split(' ').skip(1).all(|word| words.iter().any(|w| w == word));
                assert!(named, "{path}: {example} is of another command");
            }
        });
        assert_eq!(missing, [""; 0], "commands without examples");
    }
}
