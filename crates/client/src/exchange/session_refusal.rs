//! Refusals of a session that a server lost.

use http::StatusCode;

use crate::error::ClientCallError;

/// The TypeScript SDK's code for an unknown session.
const SESSION_NOT_FOUND: i64 = -32001;

/// Returns true if a refusal concerns the session of the request: the status that the specification requires,
/// or a bad request that says so, as servers of the TypeScript and Python SDKs answer after a restart.
pub(crate) fn is_refused(status: StatusCode, error: &ClientCallError) -> bool {
    let names_session = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.contains("session") || text.contains("not initialized")
    };
    match (status, error) {
        (StatusCode::NOT_FOUND, _) => true,
        (StatusCode::BAD_REQUEST, ClientCallError::Refused(error)) => {
            error.code == SESSION_NOT_FOUND || names_session(&error.message)
        }
        (StatusCode::BAD_REQUEST, ClientCallError::Status { body, .. }) => names_session(body),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_protocol::JsonRpcMessage;

    fn error(code: i64, message: &str) -> ClientCallError {
        let text = format!(
            r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":"{message}"}},"id":null}}"#
        );
        let Ok(JsonRpcMessage::Error { error, .. }) =
            JsonRpcMessage::parse(bytes::Bytes::from(text))
        else {
            panic!()
        };
        ClientCallError::Refused(error)
    }

    #[test]
    fn a_refusal_that_names_the_session_is_about_the_session() {
        let bad = StatusCode::BAD_REQUEST;
        let body = |body: &str| ClientCallError::Status {
            status: 400,
            retry_after: None,
            body: body.to_owned(),
        };
        assert!(is_refused(StatusCode::NOT_FOUND, &body("")));
        assert!(is_refused(bad, &error(-32000, "Bad Request: No valid session ID provided")));
        assert!(is_refused(bad, &error(-32000, "Bad Request: Server not initialized")));
        assert!(is_refused(bad, &error(-32001, "gone")));
        assert!(is_refused(bad, &body("Invalid or missing session ID")));
        assert!(!is_refused(bad, &error(-32000, "Bad Request: Unsupported protocol version")));
        assert!(!is_refused(bad, &error(-32602, "unknown tool")));
        assert!(!is_refused(bad, &body("no such city")));
        assert!(!is_refused(StatusCode::CONFLICT, &body("session")));
    }
}
