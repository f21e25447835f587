//! The retry policy: requests that may be repeated, and those that never are.

use std::time::Duration;

use consort_client::{CallEffect, ClientCallError, NotSent};

/// The delay before the first retry; the second and last one waits twice as long.
const FIRST: Duration = Duration::from_millis(100);

/// The delay before a refused connection is retried, for as long as a call waits for its server.
const REFUSED: Duration = Duration::from_millis(200);

/// Returns the delay before `method` is retried after it failed with `error` for the `n`th time (from 1), `elapsed`
/// after the first attempt; `None` if it must not be retried. Hints of the server never allow a retry. A server that
/// refuses connections is retried for as long as `retry_wait`.
pub(crate) fn again(
    method: &str,
    error: &ClientCallError,
    n: u32,
    elapsed: Duration,
    retry_wait: Duration,
    chance: f64,
) -> Option<Duration> {
    if matches!(error, ClientCallError::NotSent(NotSent::Unreachable { .. })) {
        // Its server may be restarting. Nothing was sent.
        return (elapsed + REFUSED <= retry_wait).then(|| REFUSED.mul_f64(0.5 + chance / 2.0));
    }
    let effect = error.effect();
    let most = match method {
        // Nothing changes, however often it is asked.
        "server/discover" | "completion/complete" | "tasks/get" => 2,
        method if method.ends_with("/list") => 2,
        // Reading should change nothing, but may cost.
        "resources/read" | "prompts/get" => 1,
        // Only what provably never left.
        _ if effect == CallEffect::None => 2,
        _ => 0,
    };
    let failed = match error {
        // A caller who left wants no more, and busy is no reason to push.
        ClientCallError::Cancelled { .. }
        | ClientCallError::TimedOut { .. }
        | ClientCallError::NotSent(NotSent::Queue { .. } | NotSent::Busy { .. }) => false,
        // Answered is answered.
        _ => effect != CallEffect::Answered,
    };
    (failed && n <= most).then(|| FIRST.saturating_mul(n).mul_f64(chance.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use consort_client::CloseReason;

    use super::*;

    const RETRY_WAIT: Duration = Duration::from_secs(2);

    fn lost() -> ClientCallError {
        ClientCallError::Unknown(CloseReason::Broken("x".to_owned()))
    }

    fn unsent() -> ClientCallError {
        ClientCallError::NotSent(NotSent::Closed(CloseReason::Ours))
    }

    /// Returns the number of retries of a method that always fails like this.
    fn repeats(method: &str, error: &ClientCallError) -> u32 {
        (1..10)
            .take_while(|&n| again(method, error, n, Duration::ZERO, RETRY_WAIT, 1.0).is_some())
            .count()
            .try_into()
            .unwrap()
    }

    #[test]
    fn a_tool_is_called_again_only_if_the_call_provably_never_left() {
        assert_eq!(repeats("tools/call", &unsent()), 2);
        assert_eq!(repeats("tools/call", &lost()), 0);
        assert_eq!(repeats("tools/call", &ClientCallError::NotSent(NotSent::SessionRefused)), 2);
        assert_eq!(
            repeats(
                "tools/call",
                &ClientCallError::Status { status: 503, retry_after: None, body: String::new() }
            ),
            0
        );
        assert_eq!(repeats("tasks/update", &lost()), 0);
    }

    #[test]
    fn a_server_that_is_overloaded_is_never_pushed() {
        let busy = |status, retry_after: Option<&str>| ClientCallError::Status {
            status,
            retry_after: retry_after.map(str::to_owned),
            body: String::new(),
        };
        for method in ["tools/call", "tools/list", "resources/read", "server/discover"] {
            assert_eq!(repeats(method, &busy(429, None)), 0);
            assert_eq!(repeats(method, &busy(429, Some("3"))), 0);
            assert_eq!(repeats(method, &busy(503, Some("3"))), 0);
        }
        assert_eq!(repeats("tools/list", &busy(503, None)), 2);
    }

    #[test]
    fn reading_is_repeated_once_and_listing_twice() {
        assert_eq!(repeats("resources/read", &lost()), 1);
        assert_eq!(repeats("prompts/get", &unsent()), 1);
        assert_eq!(repeats("tools/list", &lost()), 2);
        assert_eq!(repeats("server/discover", &unsent()), 2);
    }

    #[test]
    fn an_answer_a_limit_or_a_full_queue_is_no_reason_to_repeat() {
        let timed_out = ClientCallError::TimedOut {
            kind: consort_client::TimeLimitKind::Idle,
            limit: FIRST,
            sent: false,
        };
        for error in [
            ClientCallError::Cancelled { sent: false },
            timed_out,
            ClientCallError::NotSent(NotSent::Queue { waiting: 1 }),
            ClientCallError::Malformed("x".to_owned()),
            ClientCallError::Unauthorized { status: 401, challenge: None, advice: None },
        ] {
            for method in ["tools/call", "tools/list", "resources/read"] {
                assert_eq!(repeats(method, &error), 0, "{method}: {error}");
            }
        }
    }

    #[test]
    fn the_pause_doubles_and_chance_spreads_it() {
        let pause = |n, chance| {
            again("tools/list", &lost(), n, Duration::ZERO, RETRY_WAIT, chance).unwrap()
        };
        assert_eq!((pause(1, 1.0), pause(2, 1.0)), (FIRST, FIRST * 2));
        assert_eq!(pause(1, 0.25), FIRST / 4);
    }

    #[test]
    fn a_refused_connection_is_tried_again_for_as_long_as_a_call_waits() {
        let refused = ClientCallError::NotSent(NotSent::Unreachable {
            host: "127.0.0.1:1".to_owned(),
            reason: "connection refused".to_owned(),
        });
        let (mut elapsed, mut n) = (Duration::ZERO, 1);
        while let Some(pause) = again("tools/call", &refused, n, elapsed, RETRY_WAIT, 1.0) {
            elapsed += pause;
            n += 1;
        }
        assert_eq!(elapsed, RETRY_WAIT);
    }
}
