//! Checks of requests to pages: the host, the way that a browser sends them, and the proof that one of our pages did.

use consort_server::RouteBody;
use http::header::{HOST, ORIGIN};
use http::{HeaderValue, Method, Response, StatusCode};

use super::RouteRequest;
use crate::authorization::request::Parameters;
use crate::key_ring::KeyRing;
use crate::key_ring::purpose::SealPurpose;
use crate::pages::sign_in::error_page;

/// Refuses requests to pages that are no navigation of a browser to this gateway. The response says why.
pub(super) fn check(request: &RouteRequest) -> Result<(), Box<Response<RouteBody>>> {
    let location = &request.active.settings.location;
    let refuse = |status, title: &str, text: &str| {
        Err(Box::new(error_page(request.base_path(), status, title, &[text])))
    };
    // Cookies belong to a host: at another name the browser would not have them.
    let host = request.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !is_same_authority(host, location.origin.authority(), location.origin.is_secure()) {
        let text = format!("Open {} instead.", location.url(&request.path));
        return refuse(StatusCode::MISDIRECTED_REQUEST, "This gateway has another address", &text);
    }
    let header = |name: &str| request.headers.get(name).map(HeaderValue::as_bytes);
    // Browsers say whether a person follows a link or a page fetches something. Others say nothing.
    let is_navigation = header("sec-fetch-mode").is_none_or(|mode| mode == b"navigate")
        && header("sec-fetch-dest").is_none_or(|target| target == b"document");
    if !is_navigation {
        return refuse(
            StatusCode::FORBIDDEN,
            "Not allowed",
            "This page is opened in a browser window of its own.",
        );
    }
    if request.method == Method::POST {
        let origin = request.headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
        let is_own = origin == Some(location.origin.as_str())
            && header("sec-fetch-site").is_none_or(|site| site == b"same-origin");
        if !is_own {
            return refuse(
                StatusCode::FORBIDDEN,
                "Not allowed",
                "This form was not sent by a page of this gateway.",
            );
        }
    }
    Ok(())
}

fn is_same_authority(host: &str, own: &str, is_secure: bool) -> bool {
    let usual = if is_secure { ":443" } else { ":80" };
    host.strip_suffix(usual).unwrap_or(host).eq_ignore_ascii_case(own)
}

/// Returns the token by which a page proves that it sent a form: bound to the browser, the session and the purpose of the
/// page. It is the same each time a page is shown, so every window of it works.
pub(crate) fn page_token(
    keys: &KeyRing,
    browser: &[u8; 32],
    session: Option<&str>,
    purpose: &str,
) -> String {
    let session = session.unwrap_or_default();
    let parts: [&[u8]; 3] = [browser, session.as_bytes(), purpose.as_bytes()];
    let tag = keys.mac(keys.current_key(), SealPurpose::PageToken, &parts);
    crate::digest::hex(&tag.unwrap_or_default())
}

/// Returns true if a form has the token of its page.
pub(crate) fn has_page_token(form: &Parameters, expected: &str) -> bool {
    let shown = form.get("page_token").ok().flatten().unwrap_or_default();
    // Digests take the same time to compare however much of them agrees.
    crate::digest::digest_of(shown) == crate::digest::digest_of(expected)
}
