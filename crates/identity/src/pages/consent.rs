//! The pages of an authorization request: who asks for what, and the question whether they may.

use consort_server::RouteBody;
use http::{Response, StatusCode};

use super::html::{Form, Page};
use crate::authorization::client_directory::{ClientOrigin, OAuthClient};
use crate::authorization::redirect_uri::{is_local, shown_host};
use crate::resource::Resource;

/// The contents of the pages of an authorization request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConsentQuestion<'a> {
    pub(crate) base_path: &'a str,
    /// The sealed request, as in the URL.
    pub(crate) flow: &'a str,
    pub(crate) page_token: &'a str,
    pub(crate) client: &'a OAuthClient,
    pub(crate) redirect_uri: &'a str,
    pub(crate) resource: &'a Resource,
    pub(crate) names_resource: bool,
}

impl ConsentQuestion<'_> {
    fn path(&self) -> String {
        format!("/oauth/consent/{}", self.flow)
    }

    fn form(&self) -> Form {
        Form::new(&self.path(), self.page_token)
    }

    /// The sentence about the origin of the client's name.
    fn origin(&self) -> String {
        let name = &self.client.name;
        match &self.client.origin {
            ClientOrigin::Config => {
                format!("\"{name}\" is registered by the operator of this gateway.")
            }
            ClientOrigin::Document(host) => format!("\"{name}\" is an application of {host}."),
            ClientOrigin::Itself => {
                format!("\"{name}\" registered itself; this name is not verified.")
            }
        }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let origin = match &self.client.origin {
            ClientOrigin::Config => "registered by the operator".to_owned(),
            ClientOrigin::Document(host) => format!("application of {host}"),
            ClientOrigin::Itself => "registered itself; not verified".to_owned(),
        };
        vec![
            ("Client", self.client.name.clone()),
            ("Verified", origin),
            ("Sends you to", shown_host(self.redirect_uri)),
        ]
    }

    fn local_warning(&self, page: Page) -> Page {
        if !is_local(self.redirect_uri) {
            return page;
        }
        let host = shown_host(self.redirect_uri);
        page.warning(&format!(
            "It redirects to {host}: continue only if you just started it on this computer."
        ))
    }

    /// The page for somebody who is not signed in.
    pub(crate) fn sign_in_page(
        &self,
        issuer: Option<&str>,
        message: Option<&str>,
        status: StatusCode,
    ) -> Response<RouteBody> {
        let (name, host) = (&self.client.name, shown_host(self.redirect_uri));
        let mut page = Page::new(self.base_path, &format!("Sign in to connect \"{name}\""));
        if let Some(message) = message {
            page = page.warning(message);
        }
        page = page.text(&format!(
            "\"{name}\" wants to use this gateway and will send you back to {host}. Sign in to continue."
        ));
        page = self.local_warning(page.text(&self.origin()));
        sign_in_forms(page, || self.form(), issuer).respond(status)
    }

    /// The page that asks whether the client may act on behalf of a user.
    pub(crate) fn consent_page(
        &self,
        user: &str,
        opens: &[String],
        days: u64,
        is_known: bool,
    ) -> Response<RouteBody> {
        let name = &self.client.name;
        let mut page =
            Page::new(self.base_path, &format!("Allow \"{name}\" to use this gateway as you?"));
        page = self.local_warning(page.text(&self.origin()));
        let mut facts = self.facts();
        facts.push(("Signed in as", user.to_owned()));
        facts.push(("Opens", self.opened(opens)));
        facts.push((
            "Lasts",
            format!("up to {days} days, or until you end it on your account page"),
        ));
        page = page.facts(facts);
        if is_known {
            page = page.text("You allowed this client before.");
        }
        let form = self.form().button("main", "approve", "Allow").button("", "deny", "Deny");
        page = page.form(&form);
        page.form(&self.form().button("plain", "switch", "Not you? Sign in as somebody else"))
            .respond(StatusCode::OK)
    }

    fn opened(&self, opens: &[String]) -> String {
        let what = match self.resource {
            Resource::All if self.names_resource => "every tool that you may use".to_owned(),
            Resource::All => "everything that you may use: the client named no endpoint".to_owned(),
            Resource::OpenAi => "agents and models, which may cost money".to_owned(),
            Resource::Endpoint(path) => format!("{path} only"),
        };
        if opens.is_empty() { what } else { format!("{what} ({})", opens.join(", ")) }
    }
}

/// Adds the ways to sign in.
pub(crate) fn sign_in_forms(mut page: Page, form: impl Fn() -> Form, issuer: Option<&str>) -> Page {
    if let Some(issuer) = issuer {
        page = page.form(&form().button("main", "issuer", &format!("Sign in with {issuer}")));
        page = page.text("Or with a key, if the operator gave you one:");
    }
    let class = if issuer.is_some() { "" } else { "main" };
    page.form(&form().password("key", "Key").button(class, "key", "Sign in with a key"))
}
