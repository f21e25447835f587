//! Tasks of one server. The hub waits for them when it ends.

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of one server. They always run in the hub's runtime, and end with the server.
#[derive(Clone, Debug)]
pub(crate) struct ServerTasks {
    tracker: TaskTracker,
    runtime: Handle,
    stop: CancellationToken,
}

impl ServerTasks {
    /// Makes the tracker of tasks in the current runtime, which end at `stop`.
    pub(crate) fn new(tracker: TaskTracker, stop: CancellationToken) -> Self {
        Self { tracker, runtime: Handle::current(), stop }
    }

    /// Returns the token that ends them.
    pub(crate) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Spawns a task that runs until it is over or the server ends.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        let task = async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = task => {}
            }
        };
        self.tracker.spawn_on(task, &self.runtime);
    }

    /// Spawns a task that runs to its end, soon after the given token is cancelled because the server ends.
    pub(crate) fn spawn_until_stop<F>(&self, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tracker.spawn_on(task(self.stop.clone()), &self.runtime);
    }

    /// Spawns blocking work, which runs to its end.
    pub(crate) fn spawn_blocking(&self, work: impl FnOnce() + Send + 'static) {
        self.tracker.spawn_blocking_on(work, &self.runtime);
    }
}
