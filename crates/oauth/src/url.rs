//! URLs that servers name.

use http::Uri;

use crate::error::{LoginError, invalid_url};

/// Parses a URL, without credentials or a fragment.
pub(crate) fn parse_url(url: &str) -> Result<Uri, LoginError> {
    let uri: Uri = url.parse().map_err(|_| invalid_url(url, "not a URL"))?;
    if uri.scheme().is_none() || uri.host().is_none() {
        return Err(invalid_url(url, "not a URL"));
    }
    Ok(uri)
}

/// Resolves a redirect's reference against a URL.
pub(crate) fn resolve_redirect(url: &str, reference: &str) -> Option<String> {
    if reference.contains("://") {
        return Some(reference.to_owned());
    }
    let uri: Uri = url.parse().ok()?;
    let path = reference.starts_with('/') && !reference.starts_with("//");
    path.then(|| format!("{}{reference}", origin_of(&uri)))
}

/// Returns scheme and authority.
pub(crate) fn origin_of(uri: &Uri) -> String {
    format!(
        "{}://{}",
        uri.scheme_str().unwrap_or("https"),
        uri.authority().map_or("", |a| a.as_str())
    )
}
