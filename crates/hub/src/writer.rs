//! Background writes to disk.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::tasks::ServerTasks;

/// Writes the newest value, one at a time, on a thread for blocking work. The hub waits for it when it ends.
pub(crate) struct LatestWriter<T> {
    state: Arc<Mutex<WriterState<T>>>,
    write: Arc<dyn Fn(T) + Send + Sync>,
    tasks: ServerTasks,
}

struct WriterState<T> {
    next: Option<T>,
    is_writing: bool,
}

impl<T: Send + 'static> LatestWriter<T> {
    pub(crate) fn new(tasks: ServerTasks, write: impl Fn(T) + Send + Sync + 'static) -> Self {
        let state = WriterState { next: None, is_writing: false };
        Self { state: Arc::new(Mutex::new(state)), write: Arc::new(write), tasks }
    }

    /// Queues a value to be written and returns at once. It replaces a queued value.
    pub(crate) fn put(&self, value: T) {
        let mut state = self.state.lock();
        state.next = Some(value);
        if std::mem::replace(&mut state.is_writing, true) {
            return;
        }
        drop(state);
        let (state, write) = (Arc::clone(&self.state), Arc::clone(&self.write));
        self.tasks.spawn_blocking(move || {
            loop {
                let mut state = state.lock();
                let Some(value) = state.next.take() else {
                    state.is_writing = false;
                    return;
                };
                drop(state);
                write(value);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio_util::sync::CancellationToken;
    use tokio_util::task::TaskTracker;

    use super::*;

    #[tokio::test]
    async fn a_slow_disk_stops_nobody_and_the_newest_value_is_what_stays() {
        let (written, seen) = mpsc::channel();
        let (go, may_write) = mpsc::channel::<()>();
        let may_write = Mutex::new(may_write);
        let tracker = TaskTracker::new();
        let stop = CancellationToken::new();
        let writer = LatestWriter::new(ServerTasks::new(tracker.clone(), stop.clone()), move |n| {
            may_write.lock().recv().unwrap();
            written.send(n).unwrap();
        });
        // The disk does not answer, and the one thread of the runtime goes on.
        writer.put(1);
        while writer.state.lock().next.is_some() {
            tokio::task::yield_now().await;
        }
        for n in 2..100 {
            writer.put(n);
            tokio::task::yield_now().await;
        }
        stop.cancel();
        tracker.close();
        assert!(!tracker.is_empty(), "the hub waits for what is being written");
        go.send(()).unwrap();
        go.send(()).unwrap();
        tracker.wait().await;
        assert_eq!(seen.try_iter().collect::<Vec<i32>>(), [1, 99]);
        writer.put(100);
        go.send(()).unwrap();
        tracker.wait().await;
        assert_eq!(seen.try_iter().collect::<Vec<i32>>(), [100]);
    }
}
