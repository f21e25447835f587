//! Waiting with a limit: for a condition, and for a line of a program's output.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Time limit for a condition or a line, on a busy machine too.
pub const WAIT_LIMIT: Duration = Duration::from_mins(2);

/// Interval at which a condition is checked.
const INTERVAL: Duration = Duration::from_millis(10);

/// Waits until a condition holds. Panics with `what` after [`WAIT_LIMIT`].
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < WAIT_LIMIT, "not within {WAIT_LIMIT:?}: {what}");
        std::thread::sleep(INTERVAL);
    }
}

/// Waits until a condition holds, without blocking the thread. Panics with `what` after [`WAIT_LIMIT`].
pub async fn wait_until_async(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < WAIT_LIMIT, "not within {WAIT_LIMIT:?}: {what}");
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Reads an answer to its end. Panics with the part that was read after [`WAIT_LIMIT`], or if it is not UTF-8.
pub fn read_answer(mut stream: impl Read + Send + 'static) -> String {
    let (sender, chunks) = channel();
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        // A connection that is reset has an end too, and the test says what is missing.
        while let Ok(length @ 1..) = stream.read(&mut chunk) {
            let _ = sender.send(chunk[..length].to_vec());
        }
    });
    let (mut answer, deadline) = (Vec::new(), Instant::now() + WAIT_LIMIT);
    loop {
        match chunks.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(chunk) => answer.extend(chunk),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => panic_unread(&answer),
        }
    }
    String::from_utf8(answer).expect("an answer is text")
}

/// Reads an answer to its end, without blocking the thread. Panics with the part that was read after [`WAIT_LIMIT`], or
/// if it is not UTF-8.
pub async fn read_answer_async(mut stream: impl AsyncRead + Unpin) -> String {
    let mut answer = Vec::new();
    let reading =
        async { while stream.read_buf(&mut answer).await.is_ok_and(|length| length > 0) {} };
    if tokio::time::timeout(WAIT_LIMIT, reading).await.is_err() {
        panic_unread(&answer);
    }
    String::from_utf8(answer).expect("an answer is text")
}

/// Reads until the text that was read ends with these words, without blocking the thread. Panics with the part that was
/// read after [`WAIT_LIMIT`], or if the stream ends before.
pub async fn read_until_async(
    stream: &mut (impl AsyncRead + Unpin),
    read: &mut Vec<u8>,
    end: &str,
) {
    let reading = async {
        while !read.ends_with(end.as_bytes()) {
            assert_ne!(stream.read_buf(read).await.expect("it is read"), 0, "no end with {end:?}");
        }
    };
    if tokio::time::timeout(WAIT_LIMIT, reading).await.is_err() {
        panic_unread(read);
    }
}

fn panic_unread(answer: &[u8]) -> ! {
    let read = String::from_utf8_lossy(answer);
    panic!("no end of the answer within {WAIT_LIMIT:?}; read so far:\n{read}")
}

/// The lines of a program's output. To wait for one has a limit, after which a panic shows the lines before.
#[derive(Debug)]
pub struct OutputLines {
    /// Locked by nobody, so that it can be shared.
    lines: Mutex<Receiver<String>>,
    read: Vec<String>,
    limit: Duration,
}

impl OutputLines {
    /// Reads the output in a thread, until its end.
    pub fn new(output: impl Read + Send + 'static) -> Self {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                let text = String::from_utf8_lossy(&line);
                // Nobody waits any more, and the program must not block.
                let _ = sender.send(text.strip_suffix('\n').unwrap_or(&text).to_owned());
                line.clear();
            }
        });
        Self { lines: Mutex::new(lines), read: Vec::new(), limit: WAIT_LIMIT }
    }

    /// Returns the first line of an output.
    pub fn first(output: impl Read + Send + 'static) -> String {
        Self::new(output).next().expect("the program writes a line before it ends")
    }

    /// Waits for a line with these words, and returns the lines up to it.
    pub fn wait_for(&mut self, words: &str) -> String {
        self.wait_for_line(words, |line| line.contains(words))
    }

    /// Waits for a line of which this holds, and returns the lines up to it.
    pub fn wait_for_line(&mut self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let (mut text, deadline) = (String::new(), Instant::now() + self.limit);
        loop {
            let Some(line) = self.receive(what, deadline) else {
                panic!("the output ended before a line with `{what}`:\n{}", self.read.join("\n"));
            };
            text.push_str(&line);
            text.push('\n');
            if holds(&line) {
                return text;
            }
        }
    }

    /// Waits for the end of the output, and returns the lines up to it.
    pub fn rest(&mut self) -> String {
        let (mut text, deadline) = (String::new(), Instant::now() + self.limit);
        while let Some(line) = self.receive("the end of the output", deadline) {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    fn receive(&mut self, what: &str, deadline: Instant) -> Option<String> {
        match self.lines.get_mut().recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            Ok(line) => {
                self.read.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!(
                "not within {:?}: `{what}`; read so far:\n{}",
                self.limit,
                self.read.join("\n")
            ),
        }
    }
}

impl Iterator for OutputLines {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.receive("the next line", Instant::now() + self.limit)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn the_lines_up_to_the_wanted_one_are_returned() {
        let mut lines = OutputLines::new(&b"one\ntwo \xff\nthree\nfour"[..]);
        assert_eq!(lines.wait_for("two"), "one\ntwo \u{fffd}\n");
        assert_eq!(lines.next().as_deref(), Some("three"));
        assert_eq!(lines.rest(), "four\n");
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn a_line_that_never_comes_ends_the_wait_with_the_lines_before() {
        let (mut program, output) = UnixStream::pair().unwrap();
        program.write_all(b"ready\n").unwrap();
        let mut lines = OutputLines::new(output);
        lines.limit = Duration::from_millis(50);
        let waited = catch_unwind(AssertUnwindSafe(|| lines.wait_for("gone")));
        let message = waited.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(*message, "not within 50ms: `gone`; read so far:\nready");
        drop(program);
        let waited = catch_unwind(AssertUnwindSafe(|| lines.wait_for("gone")));
        let message = waited.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(*message, "the output ended before a line with `gone`:\nready");
    }
}
