//! Stored lists of servers from the last run: a start offers them at once and connects in the background.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fs, io};

use consort_client::{NegotiatedProtocol, UpstreamTransport};
use consort_core::{Json, Object, PrimitiveKind, Revision, ServerAbout, ServerCatalog};
use consort_files::FileReaders;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::settings::ServerSettings;

/// Version of the file format.
const FORMAT: u32 = 2;

/// The folder of stored lists.
#[derive(Clone, Debug)]
pub(crate) struct CatalogStore {
    folder: PathBuf,
}

/// Stored knowledge of a server from the last run.
#[derive(Clone, Debug)]
pub(crate) struct StoredServer {
    pub(crate) protocol: NegotiatedProtocol,
    pub(crate) offer: ServerCatalog,
    /// True if it sent a request on a channel that its calls share.
    pub(crate) sends_requests: bool,
}

/// The file of a server, with the names of its format.
#[derive(Serialize, Deserialize)]
struct StoredServerFile {
    format: u32,
    found: StoredProtocol,
    capabilities: Box<serde_json::value::RawValue>,
    instructions: Option<String>,
    shelves: BTreeMap<PrimitiveKind, Vec<(String, Box<serde_json::value::RawValue>)>>,
    #[serde(default)]
    asks: bool,
}

/// The negotiated protocol in a file.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct StoredProtocol {
    revision: Revision,
    way: UpstreamTransport,
}

impl From<NegotiatedProtocol> for StoredProtocol {
    fn from(protocol: NegotiatedProtocol) -> Self {
        Self { revision: protocol.revision, way: protocol.transport }
    }
}

impl From<StoredProtocol> for NegotiatedProtocol {
    fn from(stored: StoredProtocol) -> Self {
        Self { revision: stored.revision, transport: stored.way }
    }
}

impl CatalogStore {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Loads the stored lists of a server with these settings. Returns `None` if the file cannot be read.
    pub(crate) fn load(&self, settings: &ServerSettings) -> Option<StoredServer> {
        let bytes = fs::read(self.path(settings)).ok()?;
        let written: StoredServerFile = serde_json::from_slice(&bytes).ok()?;
        if written.format != FORMAT {
            return None;
        }
        let mut offer = ServerCatalog::default();
        for (kind, items) in written.shelves {
            let items: Option<Vec<(String, Object)>> = items
                .into_iter()
                .map(|(name, definition)| {
                    let json = Json::parse(definition.get().to_owned()).ok()?;
                    Some((name, json.to_object()?))
                })
                .collect();
            offer.lists.insert(kind, items?);
        }
        let capabilities = Json::parse(written.capabilities.get().to_owned()).ok()?;
        offer.about = Some(ServerAbout {
            revision: written.found.revision,
            capabilities: capabilities.to_object()?,
            instructions: written.instructions,
            list_changes: [0; 4],
        });
        Some(StoredServer { protocol: written.found.into(), offer, sends_requests: written.asks })
    }

    /// Stores the lists of a server, replacing its file atomically.
    pub(crate) fn save(&self, settings: &ServerSettings, memory: &StoredServer) -> io::Result<()> {
        let raw = |object: &Object| {
            serde_json::value::RawValue::from_string(object.json().as_str().to_owned())
                .map_err(io::Error::other)
        };
        let mut shelves = BTreeMap::new();
        for (kind, items) in &memory.offer.lists {
            let items: io::Result<Vec<_>> = items
                .iter()
                .map(|(name, definition)| Ok((name.clone(), raw(definition)?)))
                .collect();
            shelves.insert(*kind, items?);
        }
        let about = memory.offer.about.as_ref();
        let capabilities = raw(about.map_or(&Object::empty(), |about| &about.capabilities))?;
        let instructions = about.and_then(|about| about.instructions.clone());
        let written = StoredServerFile {
            format: FORMAT,
            found: memory.protocol.into(),
            capabilities,
            instructions,
            shelves,
            asks: memory.sends_requests,
        };
        let bytes = serde_json::to_vec(&written).map_err(io::Error::other)?;
        consort_files::create_private_folder(&self.folder)?;
        consort_files::replace(&self.path(settings), &bytes, FileReaders::Owner)
    }

    fn path(&self, settings: &ServerSettings) -> PathBuf {
        self.folder.join(format!("{}.json", fingerprint(settings)))
    }
}

/// Returns the digest that identifies a server by its command or URL, without its secrets.
fn fingerprint(settings: &ServerSettings) -> String {
    let mut hash = Sha256::new();
    hash.update(settings.id.as_str());
    let (kind, place) = settings.server.without_secrets();
    hash.update([0]);
    hash.update(kind);
    hash.update([0]);
    hash.update(place);
    let digest = hash.finalize();
    let first: [u8; 16] = digest[..16].try_into().expect("a digest has 32 bytes");
    format!("{:032x}", u128::from_be_bytes(first))
}

#[cfg(test)]
mod tests {
    use consort_client::{ServerCommand, ServerLocation, ServerUrl, UpstreamTransport};
    use consort_protocol::Revision;
    use serde_json::json;

    use super::*;

    fn settings(command: ServerCommand) -> ServerSettings {
        ServerSettings::new("files".parse().unwrap(), ServerLocation::Command(command))
    }

    fn memory() -> StoredServer {
        let definition =
            Json::parse(r#"{"name":"a","x": 1.50,"n":123456789012345678901234567890}"#).unwrap();
        let shelves = BTreeMap::from([(
            PrimitiveKind::Tools,
            vec![("a".to_owned(), definition.to_object().unwrap())],
        )]);
        StoredServer {
            protocol: NegotiatedProtocol {
                revision: Revision::V2025_06_18,
                transport: UpstreamTransport::Stdio,
            },
            offer: ServerCatalog {
                lists: shelves,
                local: false,
                about: Some(ServerAbout {
                    revision: Revision::V2025_06_18,
                    capabilities: Object::empty(),
                    instructions: Some("Read first.".to_owned()),
                    list_changes: [0; 4],
                }),
            },
            sends_requests: true,
        }
    }

    #[test]
    fn what_is_kept_reads_back_byte_for_byte() {
        let folder = tempfile::tempdir().unwrap();
        let kept = CatalogStore::new(folder.path().join("deep/er"));
        let settings = settings(ServerCommand::new("npx"));
        assert!(kept.load(&settings).is_none());
        kept.save(&settings, &memory()).unwrap();
        let loaded = kept.load(&settings).unwrap();
        assert_eq!(loaded.protocol, memory().protocol);
        assert!(loaded.sends_requests);
        assert_eq!(loaded.offer.lists, memory().offer.lists);
        assert_eq!(
            fs::read_dir(folder.path().join("deep/er")).unwrap().count(),
            1,
            "no draft is left"
        );
    }

    #[test]
    fn a_broken_file_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let kept = CatalogStore::new(folder.path().to_owned());
        let settings = settings(ServerCommand::new("npx"));
        for text in [json!({}).to_string(), "{".to_owned(), r#"{"format":0}"#.to_owned()] {
            fs::write(kept.path(&settings), text).unwrap();
            assert!(kept.load(&settings).is_none());
        }
    }

    #[test]
    fn a_server_is_the_same_whatever_its_secrets_and_another_wherever_else_it_is() {
        let print = |command: ServerCommand| fingerprint(&settings(command));
        let base =
            || ServerCommand::new("npx").arguments(["-y", "server"]).variable("TOKEN", "one");
        assert_eq!(
            print(base()),
            print(ServerCommand::new("npx").arguments(["-y", "server"]).variable("TOKEN", "two"))
        );
        assert_ne!(print(base()), print(base().arguments(["more"])));
        assert_ne!(print(base()), print(base().variable("OTHER", "x")));
        assert_ne!(print(base()), print(base().directory("/elsewhere")));
        let at = |url: &str| {
            let server = ServerLocation::Http(ServerUrl::new(url).unwrap());
            fingerprint(&ServerSettings::new("files".parse().unwrap(), server))
        };
        assert_ne!(at("https://a/mcp"), at("https://b/mcp"));
        assert_ne!(at("https://a/mcp?x=1"), at("https://a/mcp?x=2"));
    }
}
