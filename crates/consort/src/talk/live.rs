//! What moves on a terminal while a run goes on: a sign of life, and a bar a call.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};

use crate::output::{advance, label, moving, set_prefix};

const TICK: Duration = Duration::from_millis(120);

/// Bars on a terminal; elsewhere nothing.
#[derive(Debug, Default)]
pub(crate) struct Live(Option<Bars>);

#[derive(Debug)]
struct Bars {
    all: MultiProgress,
    waiting: Option<ProgressBar>,
    calls: BTreeMap<String, ProgressBar>,
}

impl Live {
    /// Bars if the standard error is a terminal.
    pub(crate) fn of_terminal() -> Self {
        Self(std::io::stderr().is_terminal().then(|| Bars {
            all: MultiProgress::new(),
            waiting: None,
            calls: BTreeMap::new(),
        }))
    }

    /// Shows that something is waited for.
    pub(crate) fn wait(&mut self, what: &str) {
        let Some(bars) = &mut self.0 else { return };
        let waiting = bars.waiting.get_or_insert_with(|| {
            let bar = bars.all.add(ProgressBar::no_length().with_style(moving("{wide_msg}")));
            bar.enable_steady_tick(TICK);
            bar
        });
        label(waiting, what);
    }

    /// Shows no more that something is waited for.
    pub(crate) fn rest(&mut self) {
        if let Some(waiting) = self.0.as_mut().and_then(|bars| bars.waiting.take()) {
            waiting.finish_and_clear();
        }
    }

    /// Begins a call's bar.
    pub(crate) fn begin(&mut self, call: &str, tool: &str) {
        let Some(bars) = &mut self.0 else { return };
        let bar = bars.all.add(ProgressBar::no_length().with_style(moving("{prefix} {wide_msg}")));
        set_prefix(&bar, tool);
        bar.enable_steady_tick(TICK);
        bars.calls.insert(call.to_owned(), bar);
    }

    /// Moves a call's bar; false if there is none.
    pub(crate) fn progress(
        &self,
        call: &str,
        progress: f64,
        total: Option<f64>,
        text: &str,
    ) -> bool {
        let Some(bar) = self.0.as_ref().and_then(|bars| bars.calls.get(call)) else { return false };
        advance(bar, "{prefix} [{bar:20}] {wide_msg}", progress, total);
        label(bar, text);
        true
    }

    /// Ends a call's bar.
    pub(crate) fn end(&mut self, call: &str) {
        if let Some(bar) = self.0.as_mut().and_then(|bars| bars.calls.remove(call)) {
            bar.finish_and_clear();
        }
    }

    /// Ends every bar.
    pub(crate) fn clear(&mut self) {
        self.rest();
        for (_, bar) in self.0.iter_mut().flat_map(|bars| std::mem::take(&mut bars.calls)) {
            bar.finish_and_clear();
        }
    }

    /// Draws nothing until it is shown again.
    pub(crate) fn hide(&mut self) {
        self.rest();
        if let Some(bars) = &self.0 {
            let _ = bars.all.clear();
            bars.all.set_draw_target(ProgressDrawTarget::hidden());
        }
    }

    /// Draws again.
    pub(crate) fn show(&self) {
        if let Some(bars) = &self.0 {
            bars.all.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Draws nothing while something is written.
    pub(crate) fn suspend(&self, write: impl FnOnce()) {
        match &self.0 {
            Some(bars) => bars.all.suspend(write),
            None => write(),
        }
    }
}
