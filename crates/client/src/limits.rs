//! Every limit, with its name and its default.

use std::time::Duration;

use consort_protocol::LateTimes;

/// Writes a struct of limits together with its defaults and its table, so that none can lack either.
macro_rules! limits {
    ($(#[$about:meta])* $name:ident { $($(#[doc = $text:literal])+ $field:ident: $type:ty = $default:expr;)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $text])+ pub $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $name {
            /// Name, default and meaning of each, for people.
            pub fn table() -> Vec<(&'static str, String, &'static str)> {
                let defaults = Self::default();
                vec![$((stringify!($field), format!("{:?}", defaults.$field), concat!($($text),+).trim()),)+]
            }
        }
    };
}

limits! {
    /// Limits of the data that a peer may send or make this client hold.
    ///
    /// ```
    /// let limits = consort_client::Limits { message_bytes: 1 << 20, ..Default::default() };
    /// assert_eq!(limits.pages, 100);
    /// ```
    Limits {
        /// Bytes of one message, on every transport, counted while reading.
        message_bytes: usize = 16 << 20;
        /// Bytes of an oversized message that are skipped to reach the next one before the connection is reset.
        skipped_bytes: usize = 64 << 20;
        /// Malformed messages within ten seconds after which the connection is given up.
        malformed_messages: u32 = 100;
        /// Events a call keeps for a reader who is behind; beyond it the oldest progress gives way, counted.
        call_events: usize = 1024;
        /// Bytes of the events a call keeps for a reader who is behind.
        call_event_bytes: usize = 1 << 20;
        /// Notifications kept for a reader of the connection's notices who is behind.
        notices: usize = 256;
        /// Calls in flight on one stdio or HTTP+SSE connection.
        pipe_calls: usize = 64;
        /// Calls in flight to one Streamable HTTP server.
        http_calls: usize = 256;
        /// Calls that may wait for a place among those in flight.
        queued_calls: usize = 4096;
        /// Questions of the server (elicitation, sampling, roots) open at once on one connection; the oldest gives way.
        questions: usize = 16;
        /// Rounds of `input_required` within one call.
        rounds: u32 = 16;
        /// Pages of one list.
        pages: usize = 100;
        /// Items of one list.
        items: usize = 10_000;
        /// Bytes of one list, over all its pages.
        list_bytes: usize = 16 << 20;
        /// Bytes of one definition in a list; a larger one is left out, with a reason.
        definition_bytes: usize = 64 << 10;
        /// Bytes of the server's standard error kept to explain a failure.
        stderr_bytes: usize = 64 << 10;
        /// Bytes of the head of an HTTP response.
        head_bytes: usize = 64 << 10;
        /// Unused HTTP connections kept for the next call: as many as calls are in flight.
        idle_connections: usize = 256;
        /// Attempts in a row to resume a broken event stream without hearing anything new.
        resumes: u32 = 5;
        /// Failures in a row to read the state of a task.
        task_attempts: u32 = 3;
        /// Redirects of one request on the server's own origin, and requests to authenticate anew.
        redirects: u32 = 5;
        /// Lines of a server's standard error that are logged in a second.
        stderr_lines: u32 = 100;
        /// Bytes of a line of a server's standard error that is logged as one.
        stderr_line_bytes: usize = 4096;
        /// Lines of a server's standard error that are written to its log file in a second.
        log_lines: u32 = 1000;
        /// Bytes of a value that a program prints, such as a secret.
        secret_bytes: usize = 64 << 10;
    }
}

limits! {
    /// Time limits.
    Times {
        /// Idle timeout of a call; progress resets it.
        idle: Duration = Duration::from_mins(1);
        /// A call altogether, progress or not.
        total: Duration = Duration::from_mins(5);
        /// A call waiting for a place among those in flight; in any case no longer than it may take altogether.
        queue: Duration = Duration::from_hours(24);
        /// A list, over all its pages.
        list: Duration = Duration::from_secs(30);
        /// A large answer waiting for memory, on a connection that serves no other call.
        room: Duration = Duration::from_secs(40);
        /// A large answer waiting for memory on a connection that other calls share.
        shared_room: Duration = Duration::from_secs(2);
        /// A TCP connection and its TLS handshake.
        connect: Duration = Duration::from_secs(5);
        /// From starting or reaching a server to knowing what it is.
        handshake: Duration = Duration::from_secs(30);
        /// A stdio server's answer to `server/discover` before `initialize` is sent as well.
        probe: Duration = Duration::from_secs(1);
        /// A legacy HTTP server's answer to our listening on its common stream, before we go on without it.
        listen: Duration = Duration::from_secs(1);
        /// An unused HTTP connection. Node and uvicorn close theirs after five seconds; a call that meets that is lost.
        idle_connection: Duration = Duration::from_secs(4);
        /// The first pause before a broken event stream is resumed, unless the server names one; it doubles.
        resume: Duration = Duration::from_millis(500);
        /// The longest pause before a broken event stream is resumed, even if the server names a longer one.
        resume_most: Duration = Duration::from_mins(1);
        /// A child process's exit after its standard input closed, before it is told to (SIGTERM).
        close: Duration = Duration::from_secs(2);
        /// A child process's exit after SIGTERM, before it is killed.
        terminate: Duration = Duration::from_secs(3);
        /// Silence on a TCP connection before its peer is asked whether it lives; thrice that ends it.
        keep_alive: Duration = Duration::from_secs(15);
        /// Silence on a TCP connection before its peer is probed, right after the computer resumed.
        resume_check: Duration = Duration::from_secs(1);
        /// A program that prints a value, such as a secret.
        secret: Duration = Duration::from_secs(30);
        /// Limits that fire late.
        late: LateTimes = LateTimes::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_stands_in_the_table() {
        assert_eq!(Limits::table()[0].0, "message_bytes");
        assert_eq!(Limits::table()[0].1, "16777216");
        assert_eq!(
            Times::table()[0],
            ("idle", "60s".to_owned(), "Idle timeout of a call; progress resets it.")
        );
        assert_eq!(Limits::table().len(), 25);
    }
}
