//! Failures and their errors.

use consort_client::OriginConnectError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::http::EndpointError;

#[tokio::test]
async fn errors_say_what_is_wrong_and_what_to_do() {
    let cases = [
        (
            WireFormat::OpenAiResponses,
            401,
            json!({ "error": { "message": format!("Incorrect API key provided: {KEY}."), "code": "invalid_api_key" } })
                .to_string(),
            "the provider rejected the API key (HTTP 401): Incorrect API key provided: [secret].",
            Some("set `SOME_API_KEY` to a valid API key"),
        ),
        (
            WireFormat::Gemini,
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#.into(),
            "the provider rejected the API key (HTTP 400): API key not valid. Please pass a valid API key.",
            Some("set `SOME_API_KEY` to a valid API key"),
        ),
        (
            WireFormat::Anthropic,
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: some-model"}}"#.into(),
            "unknown model `some-model` (HTTP 404): model: some-model",
            Some("use a model that the provider lists for this API key"),
        ),
        (
            WireFormat::Anthropic,
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#.into(),
            "the conversation exceeds the model's context window (210000 of 200000 tokens) (HTTP 400): \
             prompt is too long: 210000 tokens > 200000 maximum",
            Some("expose fewer tools, or shorten the conversation"),
        ),
        (
            WireFormat::OpenAiChat,
            404,
            "<!DOCTYPE html><title>Not found</title>".into(),
            "malformed response (HTTP 404)",
            Some("check the base URL"),
        ),
        (
            WireFormat::OpenAiChat,
            200,
            "<!DOCTYPE html><title>Sign in</title>".into(),
            "malformed response: an HTML page",
            Some("check the base URL"),
        ),
        (
            WireFormat::OpenAiChat,
            502,
            "<html>Bad gateway</html>".into(),
            "the provider returned a server error (HTTP 502)",
            None,
        ),
    ];
    for (wire, status, body, text, hint) in cases {
        let error = once(wire, Does::Say(answer(status, &[], &body))).await.error();
        assert_eq!((&*error.to_string(), error.hint().as_deref()), (text, hint));
    }
}

#[tokio::test]
async fn a_key_does_not_follow_a_redirect() {
    let elsewhere = Peer::start(Vec::new(), usize::MAX).await;
    let to = elsewhere.url("/v1/chat/completions?session=secret");
    let error = once(WireFormat::OpenAiChat, Does::Say(answer(307, &[("location", &to)], "")))
        .await
        .error();
    let shown = elsewhere.url("/v1/chat/completions");
    assert_eq!(
        error.to_string(),
        format!("the provider redirects to `{shown}`, which is not followed (HTTP 307)")
    );
    assert!(error.hint().is_some());
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn what_is_compressed_is_not_taken() {
    let zipped = answer(200, &[("content-encoding", "gzip")], "\u{1f}");
    let error = once(WireFormat::OpenAiChat, Does::Say(zipped)).await.error();
    assert_eq!(error.kind, ProviderErrorKind::MalformedResponse);
}

#[tokio::test]
async fn where_nobody_listens_is_told_at_once() {
    // Its port is taken, so nobody else can come to listen there.
    let deaf = tokio::net::TcpSocket::new_v4().unwrap();
    deaf.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let host = deaf.local_addr().unwrap().to_string();
    let endpoint = ProviderEndpoint::new(format!("http://{host}/v1"));
    let http =
        HttpProvider::new(WireFormat::OpenAiChat, endpoint, ProviderTimeouts::default()).unwrap();
    let heard = hear(&http, model_request()).await;
    assert!(heard.again.is_empty());
    let error = heard.error();
    assert!(error.to_string().starts_with(&format!("cannot connect to `{host}`: ")), "{error}");
    assert_eq!(
        error.hint().as_deref(),
        Some("connection refused: start the server, or check the base URL")
    );
}

#[tokio::test]
async fn to_who_speaks_no_tls_nothing_is_said() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://127.0.0.1:{}/v1", listener.local_addr().unwrap().port());
    let endpoint = ProviderEndpoint::new(url).with_key(KEY.to_owned().into(), "SOME_API_KEY");
    let http =
        HttpProvider::new(WireFormat::OpenAiChat, endpoint, ProviderTimeouts::default()).unwrap();
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        stream.read_buf(&mut heard).await.unwrap();
        stream.write_all(&answer(400, &[], "speak http")).await.unwrap();
        stream.read_to_end(&mut heard).await.unwrap();
        String::from_utf8_lossy(&heard).into_owned()
    };
    let (heard, seen) = tokio::join!(hear(&http, model_request()), peer);
    assert!(!seen.contains(KEY) && !seen.contains("POST"));
    assert!(heard.again.is_empty());
    let error = heard.error();
    assert!(
        matches!(
            error.kind,
            ProviderErrorKind::Unreachable { barrier: OriginConnectError::Tls, .. }
        ),
        "{error:?}"
    );
    assert!(error.hint().unwrap().contains("SSL_CERT_FILE"));
}

#[test]
fn a_key_goes_nowhere_unprotected() {
    let made = |url: &str, key: Option<&str>| {
        let mut endpoint = ProviderEndpoint::new(url);
        endpoint.key = key.map(|key| key.to_owned().into());
        HttpProvider::new(WireFormat::OpenAiChat, endpoint, ProviderTimeouts::default()).map(drop)
    };
    assert!(made("http://models.example/v1", None).is_ok());
    assert!(made("https://models.example/v1", Some(KEY)).is_ok());
    assert!(made("http://localhost:8000/v1", Some(KEY)).is_ok());
    assert!(made("http://[::1]:8000/v1", Some(KEY)).is_ok());
    let error = made("http://models.example/v1", Some(KEY)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the API key for `models.example` would be sent unencrypted: use https"
    );
    assert!(matches!(made("https://x/v1?key=s3", None), Err(EndpointError::Query(_))));
    assert!(matches!(made("models.example", None), Err(EndpointError::Address(_))));
    let error = made("https://x/v1", Some("two\nlines")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the header `authorization` cannot be sent: it has characters that HTTP does not allow"
    );
    let mut secret = ProviderEndpoint::new("http://models.example/v1");
    secret.headers.push(RequestHeader::secret("x-token", "s3"));
    let made = HttpProvider::new(WireFormat::OpenAiChat, secret, ProviderTimeouts::default());
    assert!(matches!(made, Err(EndpointError::InTheClear { .. })));
}
