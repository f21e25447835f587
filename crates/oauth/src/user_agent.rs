//! The user agent: a user with a browser.

use consort_client::BoxFuture;

/// A user with a browser.
pub trait UserAgent: Send + Sync {
    /// Redirect URI for the browser.
    fn redirect_uri(&self) -> String;

    /// Opens a page; returns the URL that the browser was redirected to, or the reason it was not.
    fn open_page(&self, page: &str) -> BoxFuture<'_, Result<String, String>>;

    /// Asks the user to allow an issuer on another port of this machine, named by a server on this machine.
    fn confirm_issuer(&self, server: &str, issuer: &str) -> BoxFuture<'_, bool>;
}
