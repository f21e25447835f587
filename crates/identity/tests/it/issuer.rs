//! An issuer for faults: what a real one does not do on request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::browser::parameters;

/// The behaviour of the issuer.
#[derive(Debug, Default)]
pub(crate) struct Manner {
    /// Claims of the user who signs in.
    pub(crate) claims: BTreeMap<String, Value>,
    /// True if it answers nothing.
    pub(crate) is_down: bool,
    /// True if it refuses refresh tokens.
    pub(crate) refuses: bool,
    /// Nonces by code.
    nonces: BTreeMap<String, String>,
    /// Refresh tokens that are valid.
    refresh: Vec<String>,
    /// The `iss` of its redirects; its own if absent.
    pub(crate) shown_issuer: Option<String>,
    /// The nonce of its ID tokens instead of the right one.
    pub(crate) wrong_nonce: bool,
    /// The time until it answers.
    pub(crate) delay: std::time::Duration,
    /// Claims at its userinfo endpoint. It has none without them.
    pub(crate) userinfo: Option<Value>,
    /// The `Authorization` header of the last request there.
    pub(crate) shown_token: Option<String>,
}

/// An issuer with one user, who signs in at once.
pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) manner: Arc<Mutex<Manner>>,
    pub(crate) refreshes: Arc<AtomicUsize>,
    /// Number of responses that were sent.
    pub(crate) answered: Arc<watch::Sender<usize>>,
    clock: consort_identity::IdentityClock,
    key: Arc<Ed25519KeyPair>,
}

impl Issuer {
    pub(crate) async fn start(clock: &consort_identity::IdentityClock) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let issuer = Self {
            url,
            manner: Arc::default(),
            refreshes: Arc::default(),
            answered: Arc::default(),
            clock: clock.clone(),
            key: Arc::new(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap()),
        };
        issuer.set("sub", "u1");
        let served = issuer.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let served = served.clone();
                tokio::spawn(async move {
                    let mut bytes = vec![0; 65_536];
                    let mut length = 0;
                    let (head, body) = loop {
                        let read = stream.read(&mut bytes[length..]).await.unwrap_or(0);
                        length += read;
                        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                        if let Some((head, body)) = text.split_once("\r\n\r\n") {
                            let size = head.to_ascii_lowercase();
                            let size = size.split("content-length: ").nth(1).map_or(0, |rest| {
                                rest.lines().next().unwrap().trim().parse::<usize>().unwrap()
                            });
                            if body.len() >= size {
                                break (head.to_owned(), body.to_owned());
                            }
                        }
                        if read == 0 {
                            return;
                        }
                    };
                    let target = head.split(' ').nth(1).unwrap().to_owned();
                    if served.manner.lock().is_down {
                        return;
                    }
                    let sent = head.lines().find_map(|line| {
                        line.to_ascii_lowercase().strip_prefix("authorization: ").map(str::to_owned)
                    });
                    if target == "/userinfo" {
                        served.manner.lock().shown_token = sent;
                    }
                    let response = served.respond(&target, &body);
                    let delay = served.manner.lock().delay;
                    tokio::time::sleep(delay).await;
                    let _ = stream.write_all(response.as_bytes()).await;
                    served.answered.send_modify(|count| *count += 1);
                });
            }
        });
        issuer
    }

    pub(crate) fn set(&self, claim: &str, value: impl Into<Value>) {
        self.manner.lock().claims.insert(claim.to_owned(), value.into());
    }

    fn respond(&self, target: &str, body: &str) -> String {
        let json = |status: &str, value: Value| {
            let body = value.to_string();
            format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
        };
        let url = &self.url;
        match target.split('?').next().unwrap() {
            "/.well-known/openid-configuration" => json(
                "200 OK",
                json!({
                    "userinfo_endpoint": format!("{url}/userinfo"),
                    "issuer": url, "authorization_endpoint": format!("{url}/authorize"),
                    "token_endpoint": format!("{url}/token"), "jwks_uri": format!("{url}/jwks"),
                    "id_token_signing_alg_values_supported": ["EdDSA"],
                    "scopes_supported": ["openid", "offline_access"],
                    "authorization_response_iss_parameter_supported": true,
                }),
            ),
            "/jwks" => json(
                "200 OK",
                json!({ "keys": [{
                "kty": "OKP", "crv": "Ed25519", "kid": "k",
                "x": URL_SAFE_NO_PAD.encode(self.key.public_key().as_ref()),
            }] }),
            ),
            "/authorize" => {
                let asked = parameters(target);
                let code = format!("code-{}", asked["state"]);
                let mut manner = self.manner.lock();
                manner.nonces.insert(code.clone(), asked["nonce"].clone());
                let iss = manner.shown_issuer.clone().unwrap_or_else(|| url.clone());
                let back = consort_oauth::form::encode([
                    ("code", code.as_str()),
                    ("state", &asked["state"]),
                    ("iss", &iss),
                ]);
                format!(
                    "HTTP/1.1 303 See Other\r\nlocation: {}?{back}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                    asked["redirect_uri"]
                )
            }
            "/token" => {
                let asked: BTreeMap<String, String> =
                    consort_oauth::form::decode(body).into_iter().collect();
                let refused = || json("400 Bad Request", json!({ "error": "invalid_grant" }));
                let mut manner = self.manner.lock();
                let nonce = match asked["grant_type"].as_str() {
                    "authorization_code" => match manner.nonces.remove(&asked["code"]) {
                        Some(nonce) => Some(nonce),
                        None => return refused(),
                    },
                    _ => {
                        self.refreshes.fetch_add(1, Ordering::SeqCst);
                        let known = manner
                            .refresh
                            .iter()
                            .position(|known| *known == asked["refresh_token"]);
                        match known.filter(|_| !manner.refuses) {
                            Some(at) => drop(manner.refresh.remove(at)),
                            None => return refused(),
                        }
                        None
                    }
                };
                let refresh = format!("idp-refresh-{}", self.refreshes.load(Ordering::SeqCst) + 1);
                manner.refresh.push(refresh.clone());
                let nonce = if manner.wrong_nonce { Some("wrong".to_owned()) } else { nonce };
                let id_token = self.id_token(&manner.claims, nonce.as_deref());
                drop(manner);
                json(
                    "200 OK",
                    json!({
                        "access_token": "idp-access-canary", "token_type": "Bearer", "expires_in": 60,
                        "id_token": id_token, "refresh_token": refresh,
                    }),
                )
            }
            "/userinfo" => match &self.manner.lock().userinfo {
                Some(claims) => json("200 OK", claims.clone()),
                None => json("403 Forbidden", json!({ "error": "insufficient_scope" })),
            },
            _ => json("404 Not Found", json!({})),
        }
    }

    /// An ID token with these claims.
    pub(crate) fn id_token(&self, claims: &BTreeMap<String, Value>, nonce: Option<&str>) -> String {
        let now = self.clock.now();
        let mut all = json!({ "iss": self.url, "aud": "gateway", "exp": now + 300, "iat": now, "auth_time": now });
        for (name, value) in claims {
            all[name] = value.clone();
        }
        if let Some(nonce) = nonce {
            all["nonce"] = nonce.into();
        }
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let message =
            format!("{}.{}", encode(r#"{"alg":"EdDSA","kid":"k"}"#), encode(&all.to_string()));
        let signature = URL_SAFE_NO_PAD.encode(self.key.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }
}

impl Clone for Issuer {
    fn clone(&self) -> Self {
        Self {
            url: self.url.clone(),
            manner: Arc::clone(&self.manner),
            refreshes: Arc::clone(&self.refreshes),
            answered: Arc::clone(&self.answered),
            clock: self.clock.clone(),
            key: Arc::clone(&self.key),
        }
    }
}
