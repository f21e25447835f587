//! The process that writes until it is killed, and reports each write.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use consort::lock;
use consort::token;
use consort_agent::{ConversationStep, ConversationStore, StepEvent, StepJournal};
use consort_audit::ledger::{
    CallIntent, Ledger, LedgerMode, LedgerSettings, OutcomeClass, ValueDigest,
};
use consort_core::{Caller, Json};
use consort_models::{ChatMessage, MediaSource, MessageRole, PartContent as PartKind};
use consort_oauth::{ClientRegistration, LoginStore as Logins, StoredLogin, TokenSet};
use consort_shape::pin::{LockedServer, PinLock, PinnedItem, PinnedKind as PinKind, ServerLaunch};

use super::Kind;
use crate::Failure;

/// Server of the login.
pub(super) const SERVER: &str = "https://mcp.example";

/// Size of a lenient ledger, so small that it drops records all the time.
const SMALL: u64 = 128 << 10;

/// Work of a writer: consecutive numbers from `from` on, `times` of them or until it is killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Writer {
    kind: Kind,
    folder: PathBuf,
    from: u64,
    times: u64,
}

impl Writer {
    pub(super) fn new(kind: Kind, folder: &Path, from: u64, times: Option<u64>) -> Self {
        Self { kind, folder: folder.to_owned(), from, times: times.unwrap_or(u64::MAX) }
    }

    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut next = || words.next().ok_or("use: bench crash-writer KIND FOLDER FROM TIMES");
        let (kind, folder) = (next()?, next()?.into());
        let known = Kind::ALL.into_iter().find(|known| known.name() == kind);
        let kind = known.ok_or_else(|| format!("nothing is called `{kind}`"))?;
        Ok(Self { kind, folder, from: next()?.parse()?, times: next()?.parse()? })
    }

    pub(super) fn words(&self) -> Vec<String> {
        let folder = self.folder.display().to_string();
        let (from, times) = (self.from.to_string(), self.times.to_string());
        vec!["crash-writer".to_owned(), self.kind.name().to_owned(), folder, from, times]
    }

    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self.kind {
            Kind::Strict => self.strict(),
            Kind::Lenient => self.lenient(),
            Kind::Lock => self.lock(),
            Kind::Store => self.store(),
            Kind::Token => {
                self.token();
                Ok(())
            }
            Kind::Login => self.login(),
        }
    }

    fn numbers(&self) -> impl Iterator<Item = u64> + use<> {
        self.from..self.from.saturating_add(self.times)
    }

    fn strict(&self) -> Result<(), Failure> {
        let settings = LedgerSettings { mode: LedgerMode::Strict, ..LedgerSettings::default() };
        let ledger = Ledger::open(&ledger_path(&self.folder), settings)?;
        // Without an I/O driver: it writes to an eventfd, and a write that fails there is no fault of a disk.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        say("ready");
        for number in self.numbers() {
            let mut entry = ledger.begin(intent(number));
            let durable = runtime.block_on(entry.durable());
            tell(number, &durable);
            // Some overlap, some never end.
            match number % 4 {
                0 => std::mem::forget(entry),
                _ => entry.end(OutcomeClass::Ok, number),
            }
        }
        ledger.close();
        Ok(())
    }

    fn lenient(&self) -> Result<(), Failure> {
        let settings = LedgerSettings {
            size: SMALL,
            gather: Duration::from_millis(1),
            ..LedgerSettings::default()
        };
        let ledger = Ledger::open(&ledger_path(&self.folder), settings)?;
        say("ready");
        for number in self.numbers() {
            ledger.begin(intent(number)).end(OutcomeClass::Ok, number);
            std::thread::sleep(Duration::from_micros(20));
        }
        ledger.close();
        let stats = ledger.stats();
        say(&format!("sum {}", stats.written + stats.lost));
        Ok(())
    }

    fn lock(&self) -> Result<(), Failure> {
        let file = lock_path(&self.folder);
        lock::read_lock(&file, u64::MAX)?;
        say("ready");
        for number in self.numbers() {
            tell(number, &lock::write_lock(&file, &lock_of(number)));
        }
        Ok(())
    }

    fn store(&self) -> Result<(), Failure> {
        let store = ConversationStore::new(&self.folder);
        let last = store.ids()?.pop().filter(|_| self.from / super::run::ROUND % 2 == 1);
        let mut journal = match last {
            Some(id) => store.open(&id)?.journal,
            None => store.create("written until its writer is killed")?.1,
        };
        say("ready");
        for number in self.numbers() {
            tell(number, &journal.record(&step_of(number)));
        }
        Ok(())
    }

    fn login(&self) -> Result<(), Failure> {
        let store = Logins::new(&self.folder);
        store.get(SERVER)?;
        say("ready");
        for number in self.numbers() {
            tell(number, &store.put(&login_of(number)));
        }
        Ok(())
    }

    fn token(&self) {
        let file = token_path(&self.folder);
        say("ready");
        for number in self.numbers() {
            tell(number, &token::read_or_create(&file));
            if number + 1 != self.from.saturating_add(self.times) {
                let _ = fs::remove_file(&file);
            }
        }
    }
}

/// Prints a line for the parent process; if it cannot be read, the writes are still checked.
fn say(line: &str) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

fn tell<T, E>(number: u64, done: &Result<T, E>) {
    let word = if done.is_ok() { "did" } else { "failed" };
    say(&format!("{word} {number}"));
}

pub(super) fn ledger_path(folder: &Path) -> PathBuf {
    folder.join("ledger.db")
}

pub(super) fn lock_path(folder: &Path) -> PathBuf {
    folder.join(lock::LOCK_NAME)
}

pub(super) fn token_path(folder: &Path) -> PathBuf {
    folder.join("token")
}

fn intent(number: u64) -> CallIntent {
    CallIntent {
        caller: Caller::agent("crash"),
        endpoint: "bench".into(),
        server: "demo".parse().ok(),
        method: "tools/call".into(),
        name: number.to_string(),
        arguments: ValueDigest::of(b"{}"),
        trace: None,
        agent: None,
    }
}

/// A lock that contains its number, of up to a few dozen kilobytes.
pub(super) fn lock_of(number: u64) -> PinLock {
    let url = format!("https://x.example/{number}");
    let launch = ServerLaunch::Address { url, headers: [].into(), transport: "http".to_owned() };
    let item = |at: u64| {
        let text =
            format!(r#"{{"name":"tool-{at}","description":"{}"}}"#, number.to_string().repeat(40));
        (
            (PinKind::Tool, format!("tool-{at}")),
            PinnedItem::new(Json::parse(text).expect("it is JSON")),
        )
    };
    let items = (0..number % 50).map(item).collect();
    let server = "demo".parse().expect("it is a name");
    PinLock { servers: [(server, LockedServer { launch, items })].into() }
}

/// A login that contains its number, with tokens of up to a few kilobytes.
pub(super) fn login_of(number: u64) -> StoredLogin {
    let text = |times: u64| number.to_string().repeat(usize::try_from(times).unwrap_or(1));
    StoredLogin {
        server: SERVER.to_owned(),
        issuer: "https://as.example".to_owned(),
        token_endpoint: "https://as.example/token".to_owned(),
        resource: SERVER.to_owned(),
        client: ClientRegistration {
            id: number.to_string(),
            secret: Some(text(3)),
            auth_method: "none".to_owned(),
            redirect_uri: None,
            scope: None,
        },
        tokens: TokenSet {
            access_token: text(1 + number % 400),
            refresh_token: Some(text(9)),
            expires_at: Some(number),
            scope: None,
        },
        required_scope: None,
        generation: 1,
    }
}

/// A step that contains its number; some have a text so large that it is stored in a separate file.
pub(super) fn step_of(number: u64) -> ConversationStep {
    let text = |bytes: usize| format!("{number} ").repeat(bytes / 8);
    let message = match number % 5 {
        0 => ChatMessage::user(text(128 << 10)),
        1 => {
            let media = MediaSource::Data { mime: "image/png".into(), data: text(8 << 10) };
            ChatMessage::new(MessageRole::User, vec![PartKind::Image(media).into()])
        }
        _ => ChatMessage::user(text(200)),
    };
    ConversationStep { at: number, event: StepEvent::Message { message } }
}
