//! A client on the process's standard input and output.

use std::sync::Arc;

use consort_audit::MessageTransport;
use consort_core::Caller;
use consort_protocol::line_decoder::{DecodedLine, LineDecoder};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::body_chunks::BodyChunks;
use crate::client_channel::ClientChannel;
use crate::gateway::Gateway;
use crate::limits::GatewayLimits;

/// Maximum size of a line buffer that is reused.
const LONG: usize = 1 << 20;

impl Gateway {
    /// Serves the client on standard input and output, until it closes the input or the gateway is drained. Serves
    /// everything, or a profile; returns false if there is no such profile.
    pub async fn serve_stdio(&self, profile: Option<&str>) -> bool {
        self.serve_pipe(profile, tokio::io::stdin(), tokio::io::stdout()).await
    }

    /// The same on any pair of streams.
    pub async fn serve_pipe(
        &self,
        profile: Option<&str>,
        input: impl AsyncRead + Unpin + Send,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> bool {
        let inner = &self.0;
        let front = match profile {
            None => Some(Arc::clone(inner.endpoints.all_servers())),
            Some(profile) => inner.endpoints.profile(profile),
        };
        let Some(front) = front else { return false };
        let (pipe, sent) =
            ClientChannel::new(inner, &front, Caller::owner(), MessageTransport::Pipe);
        let mut writing = tokio::spawn(write(sent, output));
        let reading = read(&inner.settings.limits, input, &pipe);
        tokio::select! {
            () = reading => {
                // What was asked is still answered.
                let drain = inner.settings.limits.drain;
                let _ = tokio::time::timeout(drain, pipe.quiet()).await;
            }
            () = inner.stop.cancelled() => {}
            () = pipe.drained() => {}
        }
        pipe.end();
        drop(pipe);
        // A client that does not read is not waited for.
        let stalled = inner.settings.limits.stalled;
        if tokio::time::timeout(stalled, &mut writing).await.is_err() {
            writing.abort();
        }
        true
    }
}

async fn read(
    limits: &GatewayLimits,
    mut input: impl AsyncRead + Unpin,
    pipe: &Arc<ClientChannel>,
) {
    let mut lines = LineDecoder::new(limits.body_bytes, limits.skipped_bytes);
    loop {
        while let Some(line) = lines.next_line() {
            match line {
                DecodedLine::Whole(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
                DecodedLine::Whole(bytes) => pipe.receive(&bytes, None),
                DecodedLine::Oversized { id } => pipe.oversized(id),
                DecodedLine::Endless => return,
            }
        }
        match input.read_buf(lines.buffer()).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

async fn write(mut sent: mpsc::Receiver<BodyChunks>, mut output: impl AsyncWrite + Unpin) {
    let mut line = Vec::new();
    while let Some(message) = sent.recv().await {
        line.clear();
        line.shrink_to(LONG);
        for part in message.parts() {
            line.extend_from_slice(part);
        }
        // Between the tokens of JSON a line end is as good as a space.
        for byte in &mut line {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        line.push(b'\n');
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}
