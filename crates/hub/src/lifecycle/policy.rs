//! Settings of a server's lifecycle.

use std::time::Duration;

use consort_client::NegotiatedProtocol;

use crate::limits::{ConnectionLimits, ListLimits};
use crate::settings::{ConnectTrigger, ServerSettings};

/// Maximum delay of the start of a server whose lists are known.
const START_DELAY: Duration = Duration::from_millis(50);

/// Time that the first reading of lists waits for the subscription to their changes.
const SUBSCRIBE_WAIT: Duration = Duration::from_secs(2);

/// Minimum delay before a lost subscription is requested again; at most twice as long.
const RESUBSCRIBE_DELAY: Duration = Duration::from_secs(1);

/// Settings of a lifecycle.
#[derive(Clone, Debug)]
pub(crate) struct LifecyclePolicy {
    pub(super) connect: ConnectTrigger,
    pub(super) is_disabled: bool,
    pub(super) limits: ConnectionLimits,
    pub(super) lists: ListLimits,
    /// Idle time after which the server is stopped.
    pub(super) idle_stop: Option<Duration>,
    /// Interval of health probes of an unused server.
    probe: Option<Duration>,
    /// Interval of the probes that keep an idle HTTP+SSE stream open.
    stream_ping: Option<Duration>,
    /// The program that may fetch a package before the server starts.
    installer: Option<String>,
    handshake: Duration,
    pub(super) start_delay: Duration,
    pub(super) subscribe_wait: Duration,
    resubscribe: Duration,
}

impl LifecyclePolicy {
    /// Returns the settings of a server's lifecycle.
    pub(crate) fn new(
        settings: &ServerSettings,
        lists: ListLimits,
        stream_ping: Option<Duration>,
    ) -> Self {
        Self {
            connect: settings.connect,
            is_disabled: settings.disabled,
            limits: settings.upkeep,
            lists,
            idle_stop: settings.idle_stop,
            probe: settings.probe,
            stream_ping,
            installer: settings.installer.clone(),
            handshake: settings.times.handshake,
            start_delay: START_DELAY,
            subscribe_wait: SUBSCRIBE_WAIT,
            resubscribe: RESUBSCRIBE_DELAY,
        }
    }

    /// Returns the probe interval of an unused server. Probes also keep the single stream of HTTP+SSE open, on which
    /// the answer arrives, where a proxy would close it as idle.
    pub(super) fn probe_interval(&self, protocol: NegotiatedProtocol) -> Option<Duration> {
        let ping = self.stream_ping.filter(|_| protocol.transport.has_single_stream());
        self.probe.into_iter().chain(ping).min()
    }

    /// Returns the interval of idle and health checks.
    pub(super) fn check_interval(&self, protocol: NegotiatedProtocol) -> Option<Duration> {
        self.probe_interval(protocol).into_iter().chain(self.idle_stop).min()
    }

    /// Returns the delay before a lost subscription is requested again.
    pub(super) fn resubscribe_delay(&self, chance: f64) -> Duration {
        self.resubscribe.mul_f64(1.0 + chance.clamp(0.0, 1.0))
    }

    /// Returns the delay after which the status explains a slow start, if a package may be fetched.
    pub(super) fn slow_start(&self) -> Option<Duration> {
        self.installer.as_ref().map(|_| self.limits.install_notice)
    }

    /// Returns the explanation of a slow start.
    pub(super) fn slow_start_hint(&self) -> Option<String> {
        let (installer, limit) = (self.installer.as_ref()?, self.handshake);
        Some(format!(
            "`{installer}` may be downloading the package; waiting up to {limit:?} (`timeout.install`)"
        ))
    }
}
