//! The ledger in which commands and gateways record calls and model requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use consort::run_recorder::RunRecorder;
use consort_agent::RunObserver;
use consort_audit::ledger::{Ledger, LedgerMode, LedgerSettings, WriterRole};
use consort_audit::{CallRecorder, CallSinks, LogLimits};
use consort_config::state_folder;
use consort_config::{Config, ConsortOptions};
use consort_core::Toolbox;
use consort_core::escape::escape_line;

use crate::cli::LedgerSelection;
use crate::exit::CommandError;
use crate::output::note;
use crate::user::caller;

const DAY: Duration = Duration::from_hours(24);

/// Time limit for a call of a command to have its intent on disk, in strict mode: the file is opened meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);

/// The endpoint under which calls of commands are recorded.
const ENDPOINT: &str = "cli";

/// Path of the ledger: in `$XDG_STATE_HOME`, or in `~/.local/state`.
pub(crate) fn ledger_path() -> Option<PathBuf> {
    Some(state_folder()?.join("ledger.db"))
}

/// Returns the ledger settings of a config.
pub(crate) fn ledger_settings(options: &ConsortOptions, config: Option<&Path>) -> LedgerSettings {
    let (serve, usual) = (&options.serve, options.limits.settings().ledger);
    let folder = config.and_then(Path::parent).unwrap_or(Path::new(""));
    LedgerSettings {
        mode: if serve.ledger_strict == Some(true) { LedgerMode::Strict } else { usual.mode },
        age: serve
            .ledger_days
            .map(|days| DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX))),
        archive: serve.ledger_archive.as_ref().map(|archive| folder.join(archive)),
        ..usual
    }
}

/// The records of one command.
#[derive(Clone)]
pub(crate) struct CommandRecords(Option<CallSinks>);

impl CommandRecords {
    /// Records nothing.
    pub(crate) fn off() -> Self {
        Self(None)
    }

    /// Records to the ledger, which is opened at the first write.
    pub(crate) fn new(
        choice: &LedgerSelection,
        config: Option<&Config>,
    ) -> Result<Self, CommandError> {
        let path = choice.ledger.clone().or_else(ledger_path).filter(|_| !choice.no_ledger);
        let Some(path) = path else { return Ok(Self::off()) };
        let usual = ConsortOptions::default();
        let options = config.map_or(&usual, |config| &config.options);
        let settings = LedgerSettings {
            role: WriterRole::Command,
            ..ledger_settings(options, config.map(|config| config.file.as_path()))
        };
        let patience = settings.intent_wait.max(PATIENCE);
        let settings = LedgerSettings { intent_wait: patience, ..settings };
        Ok(Self(Some(CallSinks {
            ledger: Some(Ledger::open(&path, settings)?),
            lines: Arc::new(LogLimits::silent()),
            on_behalf_of: Some(caller()),
            ..CallSinks::default()
        })))
    }

    /// Returns a toolbox whose calls are recorded.
    pub(crate) fn recorded(&self, toolbox: Arc<dyn Toolbox>) -> Arc<dyn Toolbox> {
        match &self.0 {
            Some(records) => Arc::new(CallRecorder::new(toolbox, records.clone(), ENDPOINT)),
            None => toolbox,
        }
    }

    /// Returns the recorders.
    pub(crate) fn sinks(&self) -> CallSinks {
        self.0.clone().unwrap_or_default()
    }

    /// Returns an observer that records runs of agents.
    pub(crate) fn observer(&self) -> Option<Arc<dyn RunObserver>> {
        Some(Arc::new(RunRecorder(self.0.clone()?)))
    }

    /// Writes pending records, and warns once if that failed.
    pub(crate) fn end(&self) {
        let Some(ledger) = self.0.as_ref().and_then(|records| records.ledger.as_ref()) else {
            return;
        };
        ledger.close();
        let lost = ledger.stats().lost + ledger.stats().refused;
        if let Some(reason) = ledger.failure().filter(|_| lost > 0) {
            let file = ledger.path().display();
            let text = format!(
                "warning: {lost} calls or model requests were not recorded in the ledger `{file}`: {reason}"
            );
            note(escape_line(&text));
        }
    }
}
