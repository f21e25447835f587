//! Listing of a server's tools, prompts and resources, all pages, within limits.

use std::sync::Arc;
use std::time::Duration;

use consort_protocol::{BoxFuture, Json, Object, PARTIAL_LIST, PrimitiveKind, TaskHandling};

use crate::connection::SharedConnection;
use crate::error::ClientCallError;
use crate::request::OutgoingRequest;
use crate::session;
use crate::tool_requirements::ToolRequirements;

/// The parameters are invalid: for a page, its cursor has expired.
const INVALID_PARAMS: i64 = -32602;

/// The method is unknown: the server has no such list.
const METHOD_NOT_FOUND: i64 = -32601;

/// A complete list.
#[derive(Clone, Debug)]
pub struct ServerList {
    /// The items, in the server's order.
    pub items: Vec<ServerListItem>,
    /// Items left out, with the reasons.
    pub left_out: Vec<LeftOut>,
    /// Time for which it may be cached; zero if the server does not say.
    pub fresh: Duration,
    /// True if it may be shared between callers.
    pub public: bool,
    /// True if the server says that more items will follow, as a gateway whose servers are starting does.
    pub partial: bool,
}

/// One listed item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerListItem {
    /// The tool's or prompt's name, the resource's URI, the template's URI pattern.
    pub name: String,
    /// The definition as the server wrote it.
    pub definition: Object,
}

/// A listed item that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name, if it has one.
    pub name: String,
    /// Reason for which it cannot be used.
    pub reason: String,
}

/// Reason for which there is no list.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// A page could not be read.
    #[error(transparent)]
    Call(#[from] ClientCallError),
    /// A page violates the protocol.
    #[error("the server's listing is invalid: {0}")]
    Malformed(&'static str),
    /// The list does not end within a limit.
    #[error("the listing has more than {limit} {what} (`list_{what}` in `[consort.limits]`)")]
    TooLong {
        /// `pages`, `items` or `bytes`.
        what: &'static str,
        /// The limit of that name.
        limit: usize,
    },
    /// The list does not end in time.
    #[error("the listing was not complete within {limit:?}")]
    TimedOut {
        /// [`Times::list`](crate::Times::list).
        limit: Duration,
    },
}

impl ServerList {
    /// Returns a list before its first page.
    fn begun() -> Self {
        let (items, left_out) = (Vec::new(), Vec::new());
        Self { items, left_out, fresh: Duration::MAX, public: true, partial: false }
    }
}

fn is_partial(page: &Object) -> bool {
    let meta = page.get("_meta").and_then(|meta| meta.to_object());
    meta.and_then(|meta| meta.get(PARTIAL_LIST))
        .is_some_and(|partial| partial.as_bytes() == b"true")
}

/// Reads a complete list, or returns an error. With capabilities it is the list that a modern server gives a client
/// that declares those.
pub(crate) async fn list(
    link: &Arc<SharedConnection>,
    shelf: PrimitiveKind,
    capabilities: Option<&Json>,
) -> Result<ServerList, ListError> {
    let empty = ServerList { fresh: Duration::ZERO, public: false, ..ServerList::begun() };
    if !link.about().offers(shelf.capability()) {
        return Ok(empty);
    }
    let limit = link.settings.times.list;
    let reading = async {
        match pages(link, shelf, capabilities).await {
            // A cursor that expired between two pages: once more, from the start.
            Err(UnreadablePage {
                first: false,
                error: ListError::Call(ClientCallError::Refused(error)),
            }) if error.code == INVALID_PARAMS => pages(link, shelf, capabilities).await,
            // A capability covers several methods, such as lists of resources and of templates, and a
            // server need not have them all.
            Err(UnreadablePage {
                first: true,
                error: ListError::Call(ClientCallError::Refused(error)),
            }) if error.code == METHOD_NOT_FOUND => Ok(empty),
            other => other,
        }
    };
    match consort_protocol::late::timeout(limit, link.settings.times.late, reading).await {
        Ok(listing) => listing.map_err(|page| page.error),
        Err(_) => Err(ListError::TimedOut { limit }),
    }
}

/// Lists the tools once more, to update their requirements on callers. Returns true on success. Boxed,
/// as calls use it and it makes calls itself.
pub(crate) fn tools_again(link: &Arc<SharedConnection>) -> BoxFuture<'_, bool> {
    Box::pin(async { list(link, PrimitiveKind::Tools, None).await.is_ok() })
}

/// A page that could not be read.
struct UnreadablePage {
    first: bool,
    error: ListError,
}

async fn pages(
    link: &Arc<SharedConnection>,
    shelf: PrimitiveKind,
    capabilities: Option<&Json>,
) -> Result<ServerList, UnreadablePage> {
    let limits = &link.settings.limits;
    let mut listing = ServerList::begun();
    let mut facts = ToolRequirements::default();
    let mut bytes = 0;
    let mut cursors: Vec<Json> = Vec::new();
    loop {
        let first = cursors.is_empty();
        let failed = |error: ListError| UnreadablePage { first, error };
        let mut request = OutgoingRequest::new(shelf.method()).tasks(TaskHandling::Never);
        if let Some(capabilities) = capabilities {
            request = request.capabilities(capabilities.clone());
        }
        if let Some(cursor) = cursors.last() {
            request = request.with("cursor", cursor.clone());
        }
        let page = session::ask(link, &request).await.map_err(|error| failed(error.into()))?;
        bytes += page.as_bytes().len();
        if bytes > limits.list_bytes {
            return Err(failed(ListError::TooLong { what: "bytes", limit: limits.list_bytes }));
        }
        let items = page.get(shelf.member()).and_then(|items| items.to_items());
        for item in items.ok_or_else(|| failed(ListError::Malformed("a page without items")))? {
            match check(link, shelf, &item, &mut facts) {
                Ok(item) => listing.items.push(item),
                Err(left_out) => {
                    tracing::warn!(
                        name = left_out.name,
                        reason = left_out.reason,
                        "omitted from the listing"
                    );
                    listing.left_out.push(left_out);
                }
            }
        }
        if listing.items.len() + listing.left_out.len() > limits.items {
            return Err(failed(ListError::TooLong { what: "items", limit: limits.items }));
        }
        let fresh =
            page.get("ttlMs").and_then(|ttl| ttl.integer()).and_then(|ttl| u64::try_from(ttl).ok());
        listing.fresh = listing.fresh.min(Duration::from_millis(fresh.unwrap_or(0)));
        listing.public &= page.text("cacheScope").as_deref() == Some("public");
        listing.partial |= is_partial(&page);
        match page.get("nextCursor").filter(|cursor| *cursor != Json::NULL) {
            None => break,
            Some(cursor) if cursors.contains(&cursor) => {
                return Err(failed(ListError::Malformed("its pages repeat a cursor")));
            }
            Some(_) if cursors.len() + 1 == limits.pages => {
                return Err(failed(ListError::TooLong { what: "pages", limit: limits.pages }));
            }
            Some(cursor) => cursors.push(cursor),
        }
    }
    match capabilities {
        _ if shelf != PrimitiveKind::Tools => {}
        Some(_) => link.learn_variant(facts),
        None => link.learn(facts),
    }
    Ok(listing)
}

/// Checks that an item is usable.
fn check(
    link: &SharedConnection,
    shelf: PrimitiveKind,
    item: &Json,
    facts: &mut ToolRequirements,
) -> Result<ServerListItem, LeftOut> {
    let left_out = |name: &str, reason: String| LeftOut { name: name.to_owned(), reason };
    let Some(definition) = item.to_object() else {
        return Err(left_out("", "it is not an object".to_owned()));
    };
    let Some(name) = definition.text(shelf.name()) else {
        return Err(left_out("", format!("it has no `{}`", shelf.name())));
    };
    let limit = link.settings.limits.definition_bytes;
    if definition.as_bytes().len() > limit {
        return Err(left_out(
            &name,
            format!(
                "its definition is larger than {limit} bytes (`definition_bytes` \
            in `[consort.limits]`)"
            ),
        ));
    }
    if shelf == PrimitiveKind::Tools {
        let noted = facts.note(&name, &definition);
        // Only modern Streamable HTTP has headers to get wrong.
        let mirrors = link.transport.http().is_some() && link.dialect().is_modern();
        if let (Err(reason), true) = (noted, mirrors) {
            return Err(left_out(&name, reason));
        }
    }
    Ok(ServerListItem { name, definition })
}
