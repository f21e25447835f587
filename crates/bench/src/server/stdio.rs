//! The server on standard input and output: blocking, on one thread, as fast as possible.

use std::io::{self, BufRead, BufReader, BufWriter, Stdout, Write};
use std::thread;

use consort_protocol::{Era, Json, JsonRpcMessage, Notification, RequestId, Revision};
use parking_lot::Mutex;

use super::{Reply, Slow, Tools};
use crate::Failure;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Reads lines until there are no more.
pub(super) fn serve(tools: &Tools) -> Result<(), Failure> {
    let output = &Output::default();
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    // Slow results run beside the reading and have ended when this returns.
    thread::scope(|scope| {
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            let message = JsonRpcMessage::parse(std::mem::take(&mut line));
            if let Ok(JsonRpcMessage::Request { id, body }) = message {
                match reply(tools, &id, &body) {
                    Reply::Now(answer) => output.write(&answer)?,
                    Reply::Later(slow) => {
                        scope.spawn(move || output.follow(&slow));
                    }
                }
            }
            // Answers to requests that came together leave together.
            if input.buffer().is_empty() {
                output.flush()?;
            }
        }
        Ok(())
    })
}

fn reply(tools: &Tools, id: &RequestId, body: &Notification) -> Reply {
    let modern = body.meta(VERSION) == Some(Json::string(Revision::NEWEST_MODERN.as_str()));
    tools.reply(id, body, if modern { Era::Modern } else { Era::Legacy })
}

struct Output(Mutex<BufWriter<Stdout>>);

impl Default for Output {
    fn default() -> Self {
        Self(Mutex::new(BufWriter::with_capacity(1 << 16, io::stdout())))
    }
}

impl Output {
    fn write(&self, message: &[u8]) -> io::Result<()> {
        let mut output = self.0.lock();
        output.write_all(message)?;
        output.write_all(b"\n")
    }

    fn flush(&self) -> io::Result<()> {
        let mut output = self.0.lock();
        output.flush()
    }

    fn follow(&self, slow: &Slow) -> io::Result<()> {
        for n in 1..=slow.steps {
            if let Some(progress) = slow.progress(n) {
                self.write(&progress)?;
                self.flush()?;
            }
            thread::sleep(slow.pause);
        }
        self.write(&slow.end)?;
        self.flush()
    }
}
