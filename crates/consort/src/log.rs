//! What happens behind the scenes, said on the standard error.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts to say what our own crates report: warnings, or with `verbose` everything.
pub(crate) fn start(verbose: bool) {
    let level = if verbose { LevelFilter::DEBUG } else { LevelFilter::WARN };
    let ours = Targets::new().with_target("consort", level);
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(false).compact();
    tracing_subscriber::registry().with(lines).with(ours).init();
}
