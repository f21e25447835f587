//! A client on the process's standard input and output.

use std::sync::Arc;

use consort_core::Caller;
use consort_protocol::line_decoder::{DecodedLine, LineDecoder};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::client_channel::ClientChannel;
use crate::limits::TransportLimits;
use crate::message::body_chunks::BodyChunks;
use crate::message::received_request::ClientTransport;
use crate::server_handler::ServedEndpoint;
use crate::server_state::ServerState;

/// Maximum size of a line buffer that is reused.
const LONG: usize = 1 << 20;

/// Serves the client on a pair of streams, until it closes the input or the server is drained.
pub(crate) async fn serve_streams(
    server: &ServerState,
    endpoint: Arc<dyn ServedEndpoint>,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
) {
    let (limits, lifecycle) = (&server.settings.limits, &server.lifecycle);
    let (caller, via) = (Caller::owner(), ClientTransport::Stdio);
    let (pipe, sent) = ClientChannel::new(limits, lifecycle, &server.usages, endpoint, caller, via);
    let mut writing = tokio::spawn(write(sent, output));
    tokio::select! {
        () = read(limits, input, &pipe) => {
            // What was asked is still answered.
            let _ = tokio::time::timeout(limits.drain, pipe.quiet()).await;
        }
        () = lifecycle.stop.cancelled() => {}
        () = pipe.drained() => {}
    }
    pipe.end();
    drop(pipe);
    // A client that does not read is not waited for.
    if tokio::time::timeout(limits.stalled, &mut writing).await.is_err() {
        writing.abort();
    }
}

async fn read(
    limits: &TransportLimits,
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
