//! Cost of recognizing callers: a credential that was checked before, one that has to be looked up, and many users.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use consort_identity::{
    AuthorizationSettings, IdentityParts, IdentityService, IdentitySettings, KeyRequest, KeyRing,
    OwnerAccess, PublicLocation, SqliteIdentityStore,
};
use consort_server::{
    Authenticator, BearerToken, IdentityLimits, ListenerRole, PresentedCredential,
    RequestedEndpoint,
};
use serde::Serialize;

use crate::Failure;
use crate::options::{Format, USAGE, number};
use crate::report::table;
use crate::results;
use crate::statistics::median;

/// Hits in one round.
const HITS: u32 = 1_000_000;

/// The request that every credential is for.
const ENDPOINT: RequestedEndpoint<'static> =
    RequestedEndpoint { path: "/mcp", listener: ListenerRole::Public };

/// Options of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    format: Format,
    rounds: u32,
    /// Number of users, each with a key.
    users: u32,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self { format: Format::People, rounds: 7, users: 10_000 };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.format = Format::Json,
                "--rounds" => options.rounds = number(&word, words.next(), 1000)?,
                "--users" => options.users = number(&word, words.next(), 100_000)?,
                _ => return Err(format!("unknown option `{word}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

#[derive(Debug, Serialize)]
struct Report {
    /// Nanoseconds of the digest of a credential alone, which every authentication needs.
    digest: f64,
    /// Nanoseconds of a hit with a token of the config.
    token_hit: f64,
    /// Nanoseconds of a hit with a key of a user.
    key_hit: f64,
    /// Microseconds of a lookup in the store.
    lookup: f64,
    users: u32,
    /// Resident bytes that the users added: identities, keys, and what is remembered of each.
    added_bytes: u64,
}

/// Measures and prints the report.
pub(crate) fn identity(options: &Options) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(measured(options))?;
    let text = match options.format {
        Format::Json => serde_json::to_string(&report)?,
        Format::People => report.to_text(),
    };
    results::publish(&text)
}

async fn measured(options: &Options) -> Result<Report, Failure> {
    let folder = tempfile::tempdir()?;
    let limits = IdentityLimits { cached_credentials: 100_000, ..IdentityLimits::default() };
    let settings = IdentitySettings {
        location: PublicLocation {
            origin: "https://mcp.example".parse()?,
            base_path: String::new(),
        },
        tokens: vec![BearerToken::owner("a token of the owner")],
        owner_access: OwnerAccess::Any,
        issuer: None,
        authorization: Arc::new(AuthorizationSettings::default()),
        linked_callers: [].into(),
        services: [].into(),
        rights: Arc::new(()),
        about: Arc::new(()),
        limits: limits.clone(),
    };
    let keys = KeyRing::load_or_create(&folder.path().join("identity.key"))?;
    let store = Arc::new(SqliteIdentityStore::open(&folder.path().join("identity.db"), &limits)?);
    let parts = IdentityParts::new(keys, Arc::clone(&store) as _, Arc::new(()));
    let service = IdentityService::open(settings, parts, false).await?;
    let authenticator = service.authenticator();
    let before = resident()?;
    let mut secrets = Vec::new();
    for user in 0..options.users {
        let name = format!("user-{user}");
        service.add_user(&name).await?;
        let user = Some(name);
        let key = service.create_key(KeyRequest { user, ..KeyRequest::default() }).await?;
        secrets.push(key.key.to_string());
    }
    let begun = Instant::now();
    for secret in &secrets {
        authenticator.authenticate(PresentedCredential::new(secret), &ENDPOINT).await?;
    }
    let lookup = begun.elapsed().as_secs_f64() * 1e6 / f64::from(options.users);
    let added_bytes = resident()?.saturating_sub(before);
    let key = secrets.first().ok_or("at least one user is needed")?;
    let rounds = |measure: &dyn Fn() -> f64| median((0..options.rounds).map(|_| measure()));
    let report = Report {
        digest: rounds(&|| {
            nanoseconds(|| {
                black_box(PresentedCredential::new(black_box(key)));
            })
        }),
        token_hit: rounds(&|| hits(&*authenticator, "a token of the owner")),
        key_hit: rounds(&|| hits(&*authenticator, key)),
        lookup,
        users: options.users,
        added_bytes,
    };
    store.close();
    Ok(report)
}

/// Nanoseconds of one of many hits.
fn hits(authenticator: &dyn Authenticator, secret: &str) -> f64 {
    nanoseconds(|| {
        let credential = PresentedCredential::new(black_box(secret));
        let found = authenticator.cached(&credential, black_box(&ENDPOINT));
        assert!(black_box(found).is_some(), "it is remembered");
    })
}

fn nanoseconds(mut once: impl FnMut()) -> f64 {
    let begun = Instant::now();
    for _ in 0..HITS {
        once();
    }
    begun.elapsed().as_secs_f64() * 1e9 / f64::from(HITS)
}

/// The resident bytes of this process.
fn resident() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kilobytes.ok_or("no VmRSS in /proc/self/status")? << 10)
}

impl Report {
    fn to_text(&self) -> String {
        #[expect(clippy::cast_precision_loss, reason = "no process has 2^52 bytes")]
        let added = self.added_bytes as f64 / f64::from(1 << 20);
        let rows = [
            ["SHA-256 of a credential".to_owned(), format!("{:.0} ns", self.digest)],
            ["hit, token of the config".to_owned(), format!("{:.0} ns", self.token_hit)],
            ["hit, API key of a user".to_owned(), format!("{:.0} ns", self.key_hit)],
            ["lookup of an API key in the store".to_owned(), format!("{:.0} µs", self.lookup)],
            [format!("resident memory for {} users", self.users), format!("{added:.1} MiB")],
        ];
        table("Cost of recognizing a caller", ["what", "cost"], 1, rows.into_iter())
    }
}
