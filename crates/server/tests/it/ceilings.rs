//! Ceilings of identities, as clients of each transport see them.

use consort_server::{
    BearerToken, CeilingRules, ClientAccess, ClientPermissions, IdentityCeilings, RatePeriod,
    RequestRate, ServerObserver,
};
use parking_lot::Mutex;

use super::*;

/// `ada` has few requests in an hour, `bob` may have one session and one stream; the owner, who is on standard input, one
/// request.
#[derive(Debug)]
struct Rules;

impl CeilingRules for Rules {
    fn ceilings_of(&self, caller: &Caller) -> IdentityCeilings {
        let rate = |requests| Some(RequestRate { requests, period: RatePeriod::Hour });
        match caller.name() {
            "ada" => IdentityCeilings { rate: rate(2), ..IdentityCeilings::default() },
            "bob" => IdentityCeilings {
                max_sessions: Some(1),
                max_streams: Some(1),
                ..IdentityCeilings::default()
            },
            "owner" => IdentityCeilings { rate: rate(1), ..IdentityCeilings::default() },
            _ => IdentityCeilings::default(),
        }
    }
}

/// Keys of the ceilings for which requests were refused.
#[derive(Debug, Default)]
struct Refusals(Mutex<Vec<&'static str>>);

impl ServerObserver for Refusals {
    fn request_limited(&self, ceiling: &'static str) {
        self.0.lock().push(ceiling);
    }
}

fn limited_server(access: ClientAccess) -> (McpServer, Arc<Refusals>) {
    let refusals = Arc::<Refusals>::default();
    let permissions =
        ClientPermissions { ceilings: Some(Arc::new(Rules)), ..ClientPermissions::default() };
    let settings = TransportSettings { access, permissions, ..TransportSettings::default() };
    let observer = Arc::clone(&refusals) as Arc<dyn ServerObserver>;
    (McpServer::new(settings, Arc::new(EchoHandler), observer, Arc::default()), refusals)
}

fn tokens() -> ClientAccess {
    let names = ["ada", "bob", "eve"];
    ClientAccess::Tokens(
        names.map(|name| BearerToken::client(name, format!("{name}{:016}", 0))).into(),
    )
}

fn bearer(name: &str) -> String {
    format!(
        "Authorization: Bearer {name}{:016}\r\nAccept: application/json, text/event-stream\r\n",
        0
    )
}

fn session_of(response: &str) -> String {
    let id = response.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    format!("Mcp-Session-Id: {id}\r\n")
}

const MODERN: &str = r#"{"jsonrpc":"2.0","id":"m","method":"test/echo","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

#[tokio::test]
async fn a_request_beyond_the_rate_is_refused_with_429_in_every_era_and_costs_nobody_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (server, refusals) = limited_server(tokens());
    let asking = async {
        let (ada, eve) = (bearer("ada"), bearer("eve"));
        let opened = posted(&address, &ada, INITIALIZE).await;
        let session = session_of(&opened);
        let legacy = format!("{ada}{session}");
        let answer = posted(&address, &legacy, ECHO).await;
        assert!(answer.ends_with(ECHOED), "{answer}");
        let modern = format!("{ada}MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: test/echo\r\n");
        for (headers, message, id) in [(&legacy, ECHO, "2"), (&modern, MODERN, "\"m\"")] {
            let refused = posted(&address, headers, message).await;
            assert!(refused.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{refused}");
            let wait: u64 = refused
                .lines()
                .find_map(|line| line.strip_prefix("retry-after: "))
                .and_then(|seconds| seconds.parse().ok())
                .unwrap();
            assert!((1790..=1800).contains(&wait), "{wait}");
            let told = format!("rate limit exceeded: 2 requests per hour; retry in {wait} s");
            assert!(refused.contains(&format!(r#""id":{id}"#)), "{refused}");
            assert!(refused.contains(&told) && refused.contains("-31429"), "{refused}");
        }
        // What is no request is never refused: a cancellation, and the end of the session.
        let cancelled =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
        let accepted = posted(&address, &legacy, cancelled).await;
        assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
        // Others are served as before.
        let opened = posted(&address, &eve, INITIALIZE).await;
        let session = session_of(&opened);
        for _ in 0..20 {
            let answer = posted(&address, &format!("{eve}{session}"), ECHO).await;
            assert!(answer.ends_with(ECHOED), "{answer}");
        }
        // Without rules, there are no ceilings.
        server.set_permissions(ClientPermissions::default());
        let answer = posted(&address, &legacy, ECHO).await;
        assert!(answer.ends_with(ECHOED), "{answer}");
        server.end().await;
    };
    tokio::join!(server.serve_all(vec![listener.into()], 1), asking);
    assert_eq!(*refusals.0.lock(), ["rate", "rate"]);
}

#[tokio::test]
async fn beyond_its_sessions_a_caller_ends_its_own_idle_one_or_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (server, refusals) = limited_server(tokens());
    let asking = async {
        let (bob, eve) = (bearer("bob"), bearer("eve"));
        posted(&address, &eve, INITIALIZE).await;
        session_of(&posted(&address, &bob, INITIALIZE).await);
        // The first is idle and can be restored from its id, so it gives way.
        let second = session_of(&posted(&address, &bob, INITIALIZE).await);
        assert_eq!(server.counts().sessions, 2);
        // One with an open stream does not.
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let get = format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\n{bob}{second}\r\n");
        stream.write_all(get.as_bytes()).await.unwrap();
        let mut head = [0; 15];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK");
        let refused = posted(&address, &bob, INITIALIZE).await;
        assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
        assert!(refused.contains("retry-after: 10\r\n"), "{refused}");
        let told = "too many open sessions: the limit of this user is 1; retry in 10 s";
        assert!(refused.contains(told) && refused.contains(r#""id":1"#), "{refused}");
        assert_eq!(server.counts().sessions, 2);
        drop(stream);
        server.end().await;
    };
    tokio::join!(server.serve_all(vec![listener.into()], 1), asking);
    assert_eq!(*refusals.0.lock(), ["max_sessions"]);
}

#[tokio::test]
async fn on_a_pair_of_streams_the_error_alone_says_when_to_retry() {
    let (client, stream) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(stream);
    let (server, refusals) = limited_server(ClientAccess::Anyone);
    let asking = async {
        let (read, mut write) = tokio::io::split(client);
        let mut answers = BufReader::new(read).lines();
        write.write_all(format!("{INITIALIZE}\n{ECHO}\n").as_bytes()).await.unwrap();
        let mut both = vec![
            answers.next_line().await.unwrap().unwrap(),
            answers.next_line().await.unwrap().unwrap(),
        ];
        both.sort_by_key(|answer| answer.contains("error"));
        assert!(both[0].contains(r#""protocolVersion""#), "{both:?}");
        let told = "rate limit exceeded: 1 request per hour; retry in 3600 s";
        assert!(both[1].contains(told) && both[1].contains(r#""id":2"#), "{both:?}");
    };
    tokio::join!(server.serve_streams(EchoEndpoint::new(), input, output), asking);
    assert_eq!(*refusals.0.lock(), ["rate"]);
}
