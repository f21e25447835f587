//! Resumption of a broken SSE stream.

use std::time::Duration;

use consort_protocol::sse;

use crate::settings::ClientSettings;

/// State of resuming a broken stream.
#[derive(Default)]
pub(super) struct StreamResumption {
    pub(super) last: Option<String>,
    retry: Option<Duration>,
    /// Attempts without a new event.
    attempts: u32,
}

impl StreamResumption {
    /// Stores the last event id and retry time of the stream that broke.
    pub(super) fn note(&mut self, events: &sse::SseDecoder) {
        if let Some(id) = events.last_id() {
            if self.last.as_deref() != Some(id) {
                self.attempts = 0;
            }
            self.last = Some(id.to_owned());
        }
        self.retry = events.retry().or(self.retry);
    }

    /// Returns the delay before the next attempt, `None` after the last.
    pub(super) fn pause(&mut self, settings: &ClientSettings) -> Option<Duration> {
        self.attempts += 1;
        let times = &settings.times;
        let doubled = times.resume * 2u32.saturating_pow(self.attempts - 1);
        (self.attempts <= settings.limits.resumes)
            .then(|| self.retry.unwrap_or(doubled).min(times.resume_most))
    }
}
