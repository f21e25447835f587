//! Sign-ins: with a key or by the issuer, for a client's request, the account page or the console.

use consort_server::RouteBody;
use http::{Response, StatusCode};

use super::page_guard::{has_page_token, page_token};
use super::{IdentityRoutes, RouteRequest, too_many_page, unavailable_page};
use crate::access::CheckedUser;
use crate::authorization::flow::{self, SignInFlow, SignInTarget};
use crate::authorization::request::Parameters;
use crate::digest::{hex, random_secret};
use crate::issuer::provider::SignInAttempt;
use crate::key_ring::purpose::SealPurpose;
use crate::pages::html::{see_other, with_cookies};
use crate::pages::sign_in::{error_page, key_page, link_page, sign_in_page};
use crate::record::session::SessionRecord;
use crate::sign_in::{SignInError, SignedIn};
use crate::sign_in_proof::sign_in_proof;

/// A browser session and its user.
pub(super) struct CurrentSession {
    pub(super) record: SessionRecord,
    pub(super) user: CheckedUser,
}

/// A form with a key.
pub(super) struct SignInForm<'a> {
    pub(super) request: &'a RouteRequest,
    pub(super) form: &'a Parameters,
    pub(super) target: SignInTarget,
}

impl SignInTarget {
    /// Returns the word for the target in forms; requests of clients have a page of their own.
    fn word(&self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Account | Self::Flow(_) => "me",
        }
    }

    fn of(word: Option<&str>) -> Self {
        if word == Some("console") { Self::Console } else { Self::Account }
    }

    fn path(&self) -> String {
        match self {
            Self::Flow(sealed) => format!("/oauth/consent/{sealed}"),
            Self::Account => "/me".to_owned(),
            Self::Console => "/console/".to_owned(),
        }
    }
}

/// The purpose of the token of the page to sign in at.
const PAGE: &str = "sign-in";

impl IdentityRoutes {
    /// Shows the page to sign in at. `fresh` in the query asks for a new authentication.
    pub(super) fn show_sign_in(
        &self,
        request: &RouteRequest,
        message: Option<(StatusCode, &str)>,
    ) -> Response<RouteBody> {
        let query = Parameters::parse(&request.query);
        let target = SignInTarget::of(query.get("to").ok().flatten());
        let is_fresh = query.get("fresh").ok().flatten().is_some();
        let word =
            if is_fresh { format!("{} fresh", target.word()) } else { target.word().to_owned() };
        let browser = request.cookies.browser(&request.headers);
        let token = page_token(&self.state.keys, &browser.digest(), None, PAGE);
        let issuer = request.active.settings.issuer.as_ref().map(|issuer| issuer.name.as_str());
        let (status, message) =
            message.map_or((StatusCode::OK, None), |(status, text)| (status, Some(text)));
        let page = sign_in_page(request.base_path(), &word, &token, issuer, message, status);
        let cookie = browser.is_new.then(|| request.cookies.set_browser(&browser));
        with_cookies(page, cookie)
    }

    /// Takes the form of that page.
    pub(super) async fn sign_in(&self, request: RouteRequest) -> Response<RouteBody> {
        let form = Parameters::parse(std::str::from_utf8(&request.body).unwrap_or_default());
        let browser = request.cookies.browser(&request.headers).digest();
        if !has_page_token(&form, &page_token(&self.state.keys, &browser, None, PAGE)) {
            return self.show_sign_in(&request, Some((StatusCode::FORBIDDEN, "Sign in here.")));
        }
        let word = form.get("to").ok().flatten().unwrap_or_default();
        let (word, is_fresh) = match word.split_once(' ') {
            Some((word, _)) => (word, true),
            None => (word, false),
        };
        let target = SignInTarget::of(Some(word));
        match form.get("action").ok().flatten() {
            Some("issuer") => self.begin_at_issuer(&request, target, is_fresh).await,
            _ => match self
                .sign_in_by_form(SignInForm { request: &request, form: &form, target })
                .await
            {
                Ok(response) => response,
                Err((status, message)) => self.show_sign_in(&request, Some((status, &message))),
            },
        }
    }

    /// Signs in with the key of a form. The error is for the page that the form is on.
    pub(super) async fn sign_in_by_form(
        &self,
        sign_in: SignInForm<'_>,
    ) -> Result<Response<RouteBody>, (StatusCode, String)> {
        let SignInForm { request, form, target } = sign_in;
        let now = self.state.clock.now();
        if let Err(seconds) = self.state.rates.sign_ins.count(request.network, now) {
            return Ok(too_many_page(request, seconds));
        }
        let key = form.get("key").ok().flatten().unwrap_or_default();
        match self.state.sign_in_by_secret(&request.active, key, request.listener).await {
            Ok(signed_in) => Ok(self.enter(request, &signed_in, &target).await),
            Err(SignInError::Refused(reason)) => Err((StatusCode::UNAUTHORIZED, reason)),
            Err(SignInError::Unavailable(reason)) => Ok(unavailable_page(request, &reason)),
        }
    }

    /// Begins a session, and shows the page that follows.
    pub(super) async fn enter(
        &self,
        request: &RouteRequest,
        signed_in: &SignedIn,
        target: &SignInTarget,
    ) -> Response<RouteBody> {
        let before = request.cookies.session_digest(&request.headers);
        let before = before.map(|digest| hex(digest.as_bytes()));
        let (cookie, digest) = request.cookies.new_session();
        let begun =
            self.state.begin_session(&request.active, signed_in, digest.as_bytes(), before).await;
        if let Err(error) = begun {
            return unavailable_page(request, &error.to_string());
        }
        let mut url = request.active.settings.location.url(&target.path());
        if matches!(target, SignInTarget::Console) {
            let proof = sign_in_proof(&self.state.keys, &digest, self.state.clock.now());
            url = format!("{url}#sign-in={proof}");
        }
        let cookies = request.cookies.remove_sign_in().into_iter().chain([cookie]);
        with_cookies(see_other(&url), cookies)
    }

    /// Sends the browser to the issuer. Only now, after a click on our page, does it get the cookie that the issuer's
    /// response needs.
    pub(super) async fn begin_at_issuer(
        &self,
        request: &RouteRequest,
        target: SignInTarget,
        is_fresh: bool,
    ) -> Response<RouteBody> {
        let now = self.state.clock.now();
        if let Err(seconds) = self.state.rates.sign_ins.count(request.network, now) {
            return too_many_page(request, seconds);
        }
        let Some(issuer) = &request.active.issuer else {
            return error_page(
                request.base_path(),
                StatusCode::NOT_FOUND,
                "Nobody signs users in here",
                &[],
            );
        };
        let settings = &request.active.settings;
        let lasts = settings.limits.authorization_time.as_secs();
        let flow = SignInFlow {
            state: random_secret(),
            nonce: random_secret(),
            verifier: random_secret(),
            issuer: issuer.settings.name.clone(),
            is_fresh,
            target,
            expires_at: now + lasts,
        };
        let redirect_uri = settings.location.url(&format!("/oauth/callback/{}", flow.issuer));
        let challenge = {
            use base64::Engine;
            use sha2::Digest;
            let digest = sha2::Sha256::digest(&flow.verifier);
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest)
        };
        let attempt = SignInAttempt {
            state: &flow.state,
            nonce: &flow.nonce,
            challenge: &challenge,
            redirect_uri: &redirect_uri,
            is_fresh,
        };
        let url = match issuer.authorization_url(&attempt).await {
            Ok(url) => url,
            Err(error) => return unavailable_page(request, &error.to_string()),
        };
        let browser = request.cookies.browser(&request.headers).digest();
        let sealed = flow::seal(&self.state.keys, SealPurpose::SignInCookie, &browser, &flow);
        let Some(cookies) = request.cookies.set_sign_in(&sealed, lasts) else {
            let text = "The request of the client is too long to sign in with.";
            return error_page(
                request.base_path(),
                StatusCode::BAD_REQUEST,
                "This request cannot be answered",
                &[text],
            );
        };
        with_cookies(see_other(&url), cookies)
    }

    /// Shows the page of a link. Programs that look at links use none up.
    pub(super) async fn show_link(
        &self,
        request: &RouteRequest,
        secret: &str,
    ) -> Response<RouteBody> {
        let user = match self.state.link_user(secret).await {
            Ok(user) => user,
            Err(error) => return failed(request, &error),
        };
        let browser = request.cookies.browser(&request.headers);
        let token = page_token(&self.state.keys, &browser.digest(), None, secret);
        let page = link_page(request.base_path(), &request.path, &token, &user.qualified_name());
        let cookie = browser.is_new.then(|| request.cookies.set_browser(&browser));
        with_cookies(page, cookie)
    }

    /// Uses a link: shows the key, and signs the browser in.
    pub(super) async fn use_link_route(
        &self,
        request: RouteRequest,
        secret: &str,
    ) -> Response<RouteBody> {
        let form = Parameters::parse(std::str::from_utf8(&request.body).unwrap_or_default());
        let browser = request.cookies.browser(&request.headers).digest();
        if !has_page_token(&form, &page_token(&self.state.keys, &browser, None, secret)) {
            return self.show_link(&request, secret).await;
        }
        let now = self.state.clock.now();
        if let Err(seconds) = self.state.rates.sign_ins.count(request.network, now) {
            return too_many_page(&request, seconds);
        }
        match self.state.use_link(&request.active, secret).await {
            Ok((key, signed_in)) => {
                let (cookie, digest) = request.cookies.new_session();
                let begun = self
                    .state
                    .begin_session(&request.active, &signed_in, digest.as_bytes(), None)
                    .await;
                let cookie = begun.is_ok().then_some(cookie);
                with_cookies(key_page(request.base_path(), &key.text), cookie)
            }
            Err(error) => failed(&request, &error),
        }
    }
}

/// The page of a sign-in that failed.
pub(super) fn failed(request: &RouteRequest, error: &SignInError) -> Response<RouteBody> {
    match error {
        SignInError::Unavailable(reason) => unavailable_page(request, reason),
        SignInError::Refused(reason) => error_page(
            request.base_path(),
            StatusCode::FORBIDDEN,
            "You are not signed in",
            &[reason],
        ),
    }
}
