//! Progress display on a terminal during a run: a spinner, and one bar per call.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};

use crate::output::{advance, label, moving, set_prefix};

const TICK: Duration = Duration::from_millis(120);

/// Progress bars on a terminal; elsewhere nothing.
#[derive(Debug, Default)]
pub(crate) struct ProgressDisplay(Option<ProgressBars>);

#[derive(Debug)]
struct ProgressBars {
    all: MultiProgress,
    waiting: Option<ProgressBar>,
    calls: BTreeMap<String, ProgressBar>,
}

impl ProgressDisplay {
    /// Bars if the standard error is a terminal.
    pub(crate) fn of_terminal() -> Self {
        Self(std::io::stderr().is_terminal().then(|| ProgressBars {
            all: MultiProgress::new(),
            waiting: None,
            calls: BTreeMap::new(),
        }))
    }

    /// Shows a spinner with a text.
    pub(crate) fn show_spinner(&mut self, what: &str) {
        let Some(bars) = &mut self.0 else { return };
        let waiting = bars.waiting.get_or_insert_with(|| {
            let bar = bars.all.add(ProgressBar::no_length().with_style(moving("{wide_msg}")));
            bar.enable_steady_tick(TICK);
            bar
        });
        label(waiting, what);
    }

    /// Removes the spinner.
    pub(crate) fn remove_spinner(&mut self) {
        if let Some(waiting) = self.0.as_mut().and_then(|bars| bars.waiting.take()) {
            waiting.finish_and_clear();
        }
    }

    /// Adds the bar of a call.
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

    /// Removes the bar of a call.
    pub(crate) fn end(&mut self, call: &str) {
        if let Some(bar) = self.0.as_mut().and_then(|bars| bars.calls.remove(call)) {
            bar.finish_and_clear();
        }
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.remove_spinner();
        for (_, bar) in self.0.iter_mut().flat_map(|bars| std::mem::take(&mut bars.calls)) {
            bar.finish_and_clear();
        }
    }

    /// Hides everything until it is shown again.
    pub(crate) fn hide(&mut self) {
        self.remove_spinner();
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

    /// Hides everything during a write.
    pub(crate) fn suspend(&self, write: impl FnOnce()) {
        match &self.0 {
            Some(bars) => bars.all.suspend(write),
            None => write(),
        }
    }
}
