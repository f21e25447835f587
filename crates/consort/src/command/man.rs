//! `consort man`: manual pages, one for every command.

use std::path::Path;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::exit::{Exit, Failure};

pub(super) fn run(folder: &Path) -> Result<Exit, Failure> {
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written.map(|()| Exit::Ok).map_err(|error| {
        Failure::usage(format!("cannot write the manual to `{}`: {error}", folder.display()))
    })
}
