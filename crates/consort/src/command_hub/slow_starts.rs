//! Progress of connecting, and reports of servers that are slow to start, such as those that download a package.

use std::collections::BTreeSet;
use std::time::Duration;

use consort_core::ServerId;
use consort_core::escape::{escape_text, shorten_line};
use consort_hub::{Hub, ManagedState};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{label, note};

/// Interval at which the output of a starting server is shown.
const TICK: Duration = Duration::from_millis(500);

/// Characters of its last line that are shown.
const SHOWN: usize = 60;

/// Reports each server that is slow to start, once, and shows its last line of output while it starts.
pub(super) struct SlowStarts<'a> {
    hub: &'a Hub,
    changes: tokio::sync::watch::Receiver<u64>,
    told: BTreeSet<ServerId>,
}

impl<'a> SlowStarts<'a> {
    pub(super) fn new(hub: &'a Hub) -> Self {
        Self { hub, changes: hub.status_changes(), told: BTreeSet::new() }
    }

    /// Awaits a future, and reports slow starts meanwhile.
    pub(super) async fn report_during<T>(
        &mut self,
        awaited: impl Future<Output = T>,
        bar: &ProgressBar,
    ) -> T {
        let mut awaited = std::pin::pin!(awaited);
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                biased;
                awaited = &mut awaited => return awaited,
                Ok(()) = self.changes.changed() => self.tell(bar),
                _ = ticks.tick(), if !bar.is_hidden() => self.show_output(bar),
            }
        }
    }

    /// Shows the last line of a server that is slow to start beside the bar.
    fn show_output(&self, bar: &ProgressBar) {
        let statuses = self.hub.statuses();
        let starting = statuses.iter().filter(|status| {
            status.state == ManagedState::Connecting && self.told.contains(&status.server)
        });
        let mut lines = starting.filter_map(|status| {
            let line = self.hub.last_stderr_line(&status.server)?.excerpt_for_operator();
            Some(shorten_line(&format!("{}: {line}", status.server), SHOWN))
        });
        label(bar, lines.next().unwrap_or_default());
    }

    fn tell(&mut self, bar: &ProgressBar) {
        for status in self.hub.statuses() {
            // With an error, the hint is that of the last attempt.
            if let (ManagedState::Connecting, Some(hint), None) =
                (status.state, &status.hint, &status.error)
                && self.told.insert(status.server.clone())
            {
                bar.suspend(|| note(format!("{}: {}", status.server, escape_text(hint))));
            }
        }
    }
}

/// A progress bar on a terminal.
pub(super) fn connection_bar(servers: usize) -> ProgressBar {
    if servers == 0 {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(servers as u64);
    let style = ProgressStyle::with_template(
        "{spinner} connecting to servers {pos}/{len} {elapsed} {wide_msg}",
    );
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
