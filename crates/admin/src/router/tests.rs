//! The rights that routes need, for every route and kind of caller.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use consort_core::{Caller, CallerKind, Identity, IdentityId};
use consort_server::{
    AuthError, Authenticator, BrowserSignIn, ClientAccess, CredentialDigest, InvalidCredential,
    PresentedCredential, RequestedEndpoint, TransportLimits, UserPages,
};

use super::*;

/// Every route with its least rights. A route that is not here is the owner's.
const RIGHTS: [(&str, Option<Rights>); 37] = [
    ("POST /api/session", None),
    ("DELETE /api/session", Some(Rights::Member)),
    ("GET /api/openapi.json", Some(Rights::Admin)),
    ("GET /api/session", Some(Rights::Admin)),
    ("GET /api/servers", Some(Rights::Admin)),
    ("GET /api/servers/{name}", Some(Rights::Admin)),
    ("POST /api/servers/{name}/connect", Some(Rights::Operator)),
    ("POST /api/servers/{name}/disconnect", Some(Rights::Operator)),
    ("POST /api/servers/{name}/restart", Some(Rights::Operator)),
    ("POST /api/servers/{name}/disable", Some(Rights::Operator)),
    ("POST /api/servers/preview", Some(Rights::Operator)),
    ("POST /api/servers", Some(Rights::Operator)),
    ("DELETE /api/servers/{name}", Some(Rights::Operator)),
    ("GET /api/profiles", Some(Rights::Admin)),
    ("GET /api/connect", Some(Rights::Admin)),
    ("GET /api/calls", Some(Rights::Admin)),
    ("GET /api/calls/{id}", Some(Rights::Admin)),
    ("GET /api/stats", Some(Rights::Admin)),
    ("POST /api/calls", Some(Rights::Admin)),
    ("GET /api/pending-requests", Some(Rights::Admin)),
    ("POST /api/pending-requests/{id}", Some(Rights::Admin)),
    ("GET /api/events", Some(Rights::Admin)),
    ("GET /api/pins", Some(Rights::Admin)),
    ("POST /api/pins", Some(Rights::Operator)),
    ("GET /api/prompts", Some(Rights::Admin)),
    ("POST /api/prompts/{id}", Some(Rights::Admin)),
    ("POST /api/complete", Some(Rights::Admin)),
    ("GET /api/reload", Some(Rights::Admin)),
    ("POST /api/reload", Some(Rights::Operator)),
    ("GET /api/resources", Some(Rights::Admin)),
    ("POST /api/resources/read", Some(Rights::Admin)),
    ("GET /api/resources/watch", Some(Rights::Admin)),
    ("GET /api/tools", Some(Rights::Admin)),
    ("GET /api/tools/{id}", Some(Rights::Admin)),
    ("GET /api/conversations", Some(Rights::Owner)),
    ("GET /api/conversations/{id}", Some(Rights::Owner)),
    ("GET /api/agents", Some(Rights::Owner)),
];

/// An authenticator of one operator who signed in too long ago.
#[derive(Debug)]
struct Users;

const STALE: &str = "user:stale";

impl Authenticator for Users {
    fn cached(&self, _: &PresentedCredential<'_>, _: &RequestedEndpoint<'_>) -> Option<Caller> {
        None
    }

    fn authenticate<'a>(
        &'a self,
        _: PresentedCredential<'a>,
        _: &'a RequestedEndpoint<'a>,
    ) -> BoxFuture<'a, Result<Caller, AuthError>> {
        Box::pin(async { Err(InvalidCredential::Unknown.into()) })
    }

    fn is_valid(&self, _: &CredentialDigest, _: &Caller) -> bool {
        true
    }

    fn user_pages(&self) -> Option<UserPages> {
        let path = |path: &str| path.to_owned();
        let (sign_in, fresh_sign_in) = (path("/base/in"), path("/base/in?fresh=1"));
        Some(UserPages { sign_in, fresh_sign_in, account: path("/base/me") })
    }

    fn rights_after_sign_in(&self, caller: &Caller) -> Option<Rights> {
        let is_stale = caller.id().as_str() == STALE;
        Some(if is_stale { Rights::Operator } else { caller.rights() })
    }
}

fn caller(id: &str, rights: Rights) -> Caller {
    let identity =
        Identity { id: IdentityId::new(id), name: id.to_owned(), rights, user: None, lease: None };
    Caller::new(CallerKind::Person, identity)
}

fn name(route: &ApiRoute) -> String {
    format!("{} {}", route.method, route.path)
}

fn refusal(route: &ApiRoute, caller: Option<&Caller>, door: &BrowserSignIn) -> String {
    let refused = route.authorize(caller, door).err();
    refused.map_or_else(|| "ok".to_owned(), |error| error.to_string())
}

#[test]
fn each_route_is_open_to_the_rights_that_the_table_says_and_no_others() {
    let table: BTreeMap<&str, Option<Rights>> = RIGHTS.into_iter().collect();
    let door = BrowserSignIn::new(
        &ClientAccess::Authenticator(Arc::new(Users)),
        &TransportLimits::default(),
    );
    let callers = [
        caller("user:member", Rights::Member),
        caller("user:admin", Rights::Admin),
        caller(STALE, Rights::Admin),
        caller("user:operator", Rights::Operator),
        Caller::owner(),
    ];
    for route in routes() {
        let name = name(route);
        let needed = table.get(name.as_str()).copied().unwrap_or(Some(Rights::Owner));
        let Some(needed) = needed else {
            assert_eq!(refusal(route, None, &door), "ok", "{name}");
            continue;
        };
        assert_eq!(refusal(route, None, &door), "401 not signed in, /base/in", "{name}");
        for caller in &callers {
            let is_stale = caller.id().as_str() == STALE;
            let expected = match needed {
                _ if caller.rights().include(needed) => "ok".to_owned(),
                Rights::Operator if is_stale => {
                    "403 this needs a sign-in of the last 10 minutes, /base/in?fresh=1".to_owned()
                }
                Rights::Owner => "403 only the owner may do this, /base/me".to_owned(),
                _ => format!("403 this needs the role `{}`, /base/me", needed.as_str()),
            };
            assert_eq!(refusal(route, Some(caller), &door), expected, "{name} {caller:?}");
        }
    }
}

#[test]
fn the_table_of_rights_has_no_route_that_is_gone() {
    let known: BTreeSet<String> = routes().iter().map(name).collect();
    for (name, _) in RIGHTS {
        assert!(known.contains(name), "{name}");
    }
}

#[test]
fn a_route_that_states_no_rights_is_the_owners() {
    let route = get("/api/new", "Returns nothing.", describe);
    assert_eq!(route.needs, Some(Rights::Owner));
}

#[test]
fn without_users_no_page_to_sign_in_at_is_named() {
    let door = BrowserSignIn::new(&ClientAccess::Tokens(Vec::new()), &TransportLimits::default());
    let route = get("/api/new", "Returns nothing.", describe);
    assert_eq!(refusal(&route, None, &door), "401 not signed in");
    let member = caller("user:member", Rights::Member);
    assert_eq!(refusal(&route, Some(&member), &door), "403 only the owner may do this");
}

/// `UPDATE_DOCS=1` writes it anew.
#[test]
fn the_description_is_of_what_there_is() {
    testkit::docs::hold_json("docs/openapi.json", &openapi::generated::document(routes()));
}

#[test]
fn an_invalid_query_is_refused_without_a_position_in_json() {
    use crate::route::{RouteInput, parse_number};
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Page {
        #[serde(default, deserialize_with = "parse_number")]
        limit: Option<u64>,
    }
    let read = |query: &str| match Page::of_query(query) {
        Ok(page) => format!("{:?}", page.limit),
        Err(error) => error.to_string(),
    };
    assert_eq!(read("limit=%37&other="), "Some(7)");
    assert_eq!(read("limit=x"), "400 invalid query string: not a number");
}
