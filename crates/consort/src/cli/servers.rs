//! `consort add`, `add-json`, `remove`, `list`, `status` and `init`.

use std::ffi::{OsStr, OsString};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, FromArgMatches, ValueEnum};
use consort_config::{RemoteTransport, TransportConfig};

use super::{Cli, CliCommand, ConfigCommand, duration, root_help};

/// Usage line of `consort add`.
pub(super) const ADD_USAGE: &str = "\
consort add [OPTIONS] NAME URL [OPTIONS]
       consort add [OPTIONS] NAME [--] COMMAND [ARGUMENT]...
       consort add [OPTIONS] --paste < FILE";

/// Usage line of `consort config add`.
pub(super) const CONFIG_ADD_USAGE: &str = "\
consort config add [OPTIONS] NAME URL [OPTIONS]
       consort config add [OPTIONS] NAME [--] COMMAND [ARGUMENT]...
       consort config add [OPTIONS] --paste < FILE";

/// A server to be added.
#[derive(Args, Debug)]
pub(crate) struct AddServerArguments {
    /// Name of the server
    #[arg(required_unless_present = "paste", conflicts_with = "paste")]
    pub(crate) name: Option<String>,
    /// URL of a remote server; or the command to start, with its arguments. Options after the command are its own
    #[arg(value_name = "URL | COMMAND", trailing_var_arg = true)]
    #[arg(required_unless_present_any = ["url", "paste"], conflicts_with_all = ["url", "paste"])]
    pub(crate) launch: Vec<String>,
    /// URL of a remote server, as an option
    #[arg(long, conflicts_with = "paste")]
    pub(crate) url: Option<String>,
    /// Environment variable of the process; `NAME=env:NAME` keeps a secret out of the file; repeatable
    #[arg(long, short, value_name = "NAME=VALUE", conflicts_with_all = ["url", "paste"])]
    pub(crate) env: Vec<String>,
    /// HTTP header of every request, as `NAME: VALUE` or `NAME=VALUE`; repeatable
    #[arg(long, short = 'H', value_name = "NAME: VALUE", conflicts_with = "paste")]
    pub(crate) header: Vec<String>,
    /// Transport [default: stdio for a command; for a URL, whatever the server supports]
    #[arg(long, short, value_parser = transport(), conflicts_with = "paste")]
    pub(crate) transport: Option<AddTransport>,
    /// Read servers from standard input: an `mcp.json` in any supported format, or entries of one
    #[arg(long)]
    pub(crate) paste: bool,
    #[command(flatten)]
    pub(crate) placement: PlacementArguments,
}

/// A server to be added from JSON.
#[derive(Args, Debug)]
pub(crate) struct AddJsonArguments {
    /// Name of the server
    pub(crate) name: String,
    /// Entry of the server, as in an `mcp.json`; `-` reads it from standard input
    #[arg(value_name = "JSON")]
    pub(crate) entry: String,
    #[command(flatten)]
    pub(crate) placement: PlacementArguments,
}

/// The file to add a server to, and what to do with it.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct PlacementArguments {
    /// Config to change: the user's, or that of the current folder [default: the config in use, or a new one of the user]
    #[arg(long, short, value_enum)]
    pub(crate) scope: Option<ConfigScope>,
    /// Replace a server of the same name
    #[arg(long)]
    pub(crate) replace: bool,
    /// Only write the config, without connecting to the server
    #[arg(long)]
    pub(crate) no_connect: bool,
}

/// A transport of a config: for a URL, or stdio for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddTransport(pub(crate) Option<RemoteTransport>);

/// Parses the name of a transport.
fn transport() -> impl TypedValueParser<Value = AddTransport> {
    let names = TransportConfig::names().iter().map(|name| {
        let is_default = *name == RemoteTransport::default().name();
        PossibleValue::new(*name).aliases(is_default.then_some("streamable-http"))
    });
    PossibleValuesParser::new(names).map(|name| AddTransport(RemoteTransport::named(&name)))
}

/// The folder of a config: `consort` in the user's settings, or the current folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum ConfigScope {
    User,
    Project,
}

/// Options of `consort remove`.
#[derive(Args, Debug)]
pub(crate) struct RemoveServerArguments {
    /// Name of the server
    pub(crate) name: String,
    /// Config to remove it from [default: the one that has it]
    #[arg(long, short, value_enum)]
    pub(crate) scope: Option<ConfigScope>,
}

/// Options of `consort list`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ListArguments {
    /// Show the last known state, without connecting
    #[arg(long)]
    pub(crate) no_connect: bool,
}

/// Options of `consort status`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct StatusArguments {
    /// Timeout for each gateway, such as 5s
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::read)]
    pub(crate) timeout: std::time::Duration,
}

/// Options of `consort init`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct InitArguments {
    /// Import the servers of all clients without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
}

impl AddServerArguments {
    /// Returns true if the first word after the name is a URL.
    pub(crate) fn has_url(&self) -> bool {
        self.launch.first().is_some_and(|word| is_url(word))
    }
}

/// Returns true if a word is the URL of a server, and no command.
pub(crate) fn is_url(word: &str) -> bool {
    let scheme = word.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

/// Parses the arguments of a process. Options after the URL in `consort add` are Consort's; those after a command are
/// the command's.
pub(super) fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let cli = parse_once(arguments)?;
    let Some(added) = added(&cli).filter(|added| added.has_url() && added.launch.len() > 1) else {
        return Ok(cli);
    };
    let (before, tail) = arguments.split_at(arguments.len() - added.launch.len());
    if before.last().is_some_and(|word| word == "--") {
        return Ok(cli);
    }
    let (url, options) = (&tail[..1], &tail[1..]);
    let moved = [before, options, &[OsStr::new("--").to_owned()], url].concat();
    let parsed = parse_once(&moved)?;
    // More than options came after the URL: the error names it.
    let is_alone = self::added(&parsed).is_some_and(|added| added.launch.len() == 1);
    Ok(if is_alone { parsed } else { cli })
}

fn parse_once(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let is_help = |word: &OsString| ["-h", "--help", "help"].iter().any(|help| word == help);
    let mut command = Cli::command();
    if arguments.iter().any(is_help) {
        command = root_help::with_groups(command);
    }
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// The server that a command line adds.
fn added(cli: &Cli) -> Option<&AddServerArguments> {
    match &cli.command {
        Some(CliCommand::Add(added) | CliCommand::Config(ConfigCommand::Add(added))) => Some(added),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Cli, clap::Error> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        parse(&words)
    }

    fn launch(line: &str) -> String {
        let cli = parsed(line).unwrap();
        let added = added(&cli).unwrap();
        format!("{} env={:?} header={:?}", added.launch.join(" "), added.env, added.header)
    }

    #[test]
    fn options_after_a_command_are_its_own_and_those_after_a_url_are_ours() {
        for (line, expected) in [
            ("consort add a npx -y b --env C=d", "npx -y b --env C=d env=[] header=[]"),
            ("consort add a -e C=d -- npx -y b", "npx -y b env=[\"C=d\"] header=[]"),
            ("consort add -e C=d a npx --json", "npx --json env=[\"C=d\"] header=[]"),
            ("consort add a http://b/ -H C:d", "http://b/ env=[] header=[\"C:d\"]"),
            ("consort add -H C:d a HTTPS://b/", "HTTPS://b/ env=[] header=[\"C:d\"]"),
            ("consort config add a http://b/ -H C:d", "http://b/ env=[] header=[\"C:d\"]"),
            ("consort add a http://b/ c", "http://b/ c env=[] header=[]"),
            ("consort add a -- http://b/ -H C:d", "http://b/ -H C:d env=[] header=[]"),
        ] {
            assert_eq!(launch(line), expected, "{line}");
        }
        let cli = parsed("consort add a http://b/ --json --no-connect").unwrap();
        assert!(cli.common.json && added(&cli).unwrap().placement.no_connect);
        assert!(parsed("consort add a http://b/ --jsno").is_err());
        assert!(parsed("consort add --evn C=d a npx").is_err());
        assert!(parsed("consort add a").is_err());
    }
}
