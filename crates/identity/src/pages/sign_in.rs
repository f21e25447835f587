//! The pages of sign-ins that no client asked for, of links, and of errors.

use consort_server::RouteBody;
use http::{Response, StatusCode};

use super::consent::sign_in_forms;
use super::html::{Form, Page};

/// The page to sign in at.
pub(crate) fn sign_in_page(
    base_path: &str,
    target: &str,
    page_token: &str,
    issuer: Option<&str>,
    message: Option<&str>,
    status: StatusCode,
) -> Response<RouteBody> {
    let mut page = Page::new(base_path, "Sign in");
    if let Some(message) = message {
        page = page.warning(message);
    }
    let form = || Form::new("/oauth/sign-in", page_token).hidden("to", target);
    sign_in_forms(page, form, issuer).respond(status)
}

/// The page of a link that has not been used.
pub(crate) fn link_page(
    base_path: &str,
    path: &str,
    page_token: &str,
    user: &str,
) -> Response<RouteBody> {
    let form = Form::new(path, page_token).button("main", "use", "Show the key");
    Page::new(base_path, "Your key for this gateway")
        .text(&format!(
            "This link shows a key for {user}, once. Keep the key where you keep passwords."
        ))
        .form(&form)
        .respond(StatusCode::OK)
}

/// The page that shows a new key.
pub(crate) fn key_page(base_path: &str, key: &str) -> Response<RouteBody> {
    Page::new(base_path, "Your key for this gateway")
        .secret(key)
        .text("It is not shown again. Sign in with it, or send it as `Authorization: Bearer KEY`.")
        .link("/me", "Continue to your account")
        .respond(StatusCode::OK)
}

/// The page of an error.
pub(crate) fn error_page(
    base_path: &str,
    status: StatusCode,
    title: &str,
    texts: &[&str],
) -> Response<RouteBody> {
    let page = Page::new(base_path, title);
    texts.iter().fold(page, |page, text| page.text(text)).respond(status)
}

/// The page of an error that the client can be told of, by a click.
pub(crate) fn refusal_page(
    base_path: &str,
    client: &str,
    description: &str,
    url: &str,
) -> Response<RouteBody> {
    Page::new(base_path, "This request cannot be answered")
        .text(&format!("\"{client}\" sent a request that this gateway refuses: {description}."))
        .link(url, "Return to the client with this error")
        .respond(StatusCode::BAD_REQUEST)
}
