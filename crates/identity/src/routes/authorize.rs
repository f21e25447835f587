//! The authorization endpoint, and the pages that ask the user.

use consort_core::{CallerKind, Rights};
use consort_server::{AuthError, RouteBody};
use http::{Response, StatusCode};

use super::page_guard::{has_page_token, page_token};
use super::sign_in_route::{CurrentSession, SignInForm};
use super::{IdentityRoutes, RouteRequest, too_many_page, unavailable_page};
use crate::access::CheckedUser;
use crate::authorization::client_directory::{ClientError, OAuthClient};
use crate::authorization::flow::{self, AuthorizationFlow, SignInTarget, response_url};
use crate::authorization::request::{AuthorizationRequest, Parameters, RequestError};
use crate::event::IdentityEventKind;
use crate::key_ring::purpose::SealPurpose;
use crate::pages::consent::ConsentQuestion;
use crate::pages::html::{retry_after, see_other, with_cookies};
use crate::pages::sign_in::{error_page, refusal_page};
use crate::record::client::ClientRecord;
use crate::record::session::UsedFlowRecord;
use crate::state::nobody;
use crate::store::IdentityStoreError;

/// The way out for a client whose registration was forgotten.
const FORGOTTEN: [&str; 4] = [
    "The client has to register again. Clear its login:",
    "Claude Code: run `/mcp`, choose the server and \"Clear authentication\".",
    "VS Code: run \"Authentication: Remove Dynamic Authentication Providers\".",
    "Cursor: remove and add the server in the settings.",
];

/// An authorization request whose page is open.
struct OpenFlow {
    flow: AuthorizationFlow,
    client: OAuthClient,
    browser: [u8; 32],
}

impl IdentityRoutes {
    /// Answers an authorization request with the first page. Nothing is stored, and nothing of the request goes to the
    /// issuer.
    pub(super) async fn authorize(&self, request: RouteRequest) -> Response<RouteBody> {
        let active = &request.active;
        let read =
            AuthorizationRequest::read(&self.state, active, &self.directory, &request.query).await;
        let authorization = match read {
            Ok(authorization) => authorization,
            Err(RequestError::Unproven(error)) => return self.unproven(&request, &error),
            Err(RequestError::Refused(refused)) => {
                let fields = [("error", refused.error), ("error_description", refused.description)];
                let location = &active.settings.location;
                let url = response_url(
                    location,
                    &refused.redirect_uri,
                    refused.state.as_deref(),
                    &fields,
                );
                // A client that anybody registered could otherwise use this gateway to send people anywhere.
                if refused.client.vouches_for(&refused.redirect_uri) {
                    return see_other(&url);
                }
                let (name, description) = (&refused.client.name, refused.description);
                return refusal_page(request.base_path(), name, description, &url);
            }
        };
        let browser = request.cookies.browser(&request.headers);
        let lasts = active.settings.limits.authorization_time.as_secs();
        let flow = AuthorizationFlow::new(&authorization, self.state.clock.now() + lasts);
        let purpose = SealPurpose::AuthorizationFlow;
        let sealed = flow::seal(&self.state.keys, purpose, &browser.digest(), &flow);
        let location = &active.settings.location;
        let response = see_other(&location.url(&format!("/oauth/consent/{sealed}")));
        let cookie = browser.is_new.then(|| request.cookies.set_browser(&browser));
        with_cookies(response, cookie)
    }

    fn unproven(&self, request: &RouteRequest, error: &ClientError) -> Response<RouteBody> {
        match error {
            ClientError::TooMany(seconds) => too_many_page(request, *seconds),
            ClientError::Unavailable(reason) => unavailable_page(request, reason),
            ClientError::Unknown(reason) => {
                self.state.record_refusal(IdentityEventKind::Consent, nobody(), reason.clone());
                let mut texts = vec![reason.as_str()];
                if reason.contains("no longer registered") {
                    texts.extend(FORGOTTEN);
                }
                let title = "This client is not known";
                error_page(request.base_path(), StatusCode::BAD_REQUEST, title, &texts)
            }
        }
    }

    /// Opens the request of a page, if it is one of this browser and still open.
    async fn open_flow(
        &self,
        request: &RouteRequest,
        sealed: &str,
    ) -> Result<OpenFlow, Response<RouteBody>> {
        let refuse = |title: &str, text: &str| {
            error_page(request.base_path(), StatusCode::BAD_REQUEST, title, &[text])
        };
        let browser = request.cookies.browser(&request.headers).digest();
        let purpose = SealPurpose::AuthorizationFlow;
        let flow: Option<AuthorizationFlow> =
            flow::open(&self.state.keys, purpose, &browser, sealed);
        let flow = flow.ok_or_else(|| {
            refuse(
                "This page belongs to another browser",
                "Connect again from your client, and finish in the browser window that it opens.",
            )
        })?;
        let again = "Connect again from your client.";
        if flow.expires_at <= self.state.clock.now() {
            return Err(refuse("This request expired", again));
        }
        let used = self.state.records.get::<UsedFlowRecord>(flow.id.as_str()).await;
        match used {
            Ok(None) => {}
            Ok(Some(_)) => return Err(refuse("This request was answered before", again)),
            Err(error) => return Err(unavailable_page(request, &error.to_string())),
        }
        let client = self.directory.find(&self.state, &request.active, &flow.client).await;
        let client = client.map_err(|error| self.unproven(request, &error))?;
        Ok(OpenFlow { flow, client, browser })
    }

    /// Shows the page of a request: the question, or first the sign-in.
    pub(super) async fn show_consent(
        &self,
        request: &RouteRequest,
        sealed: &str,
    ) -> Response<RouteBody> {
        let open = match self.open_flow(request, sealed).await {
            Ok(open) => open,
            Err(response) => return response,
        };
        match self.current_session(request).await {
            Ok(Some(session)) => self.consent_page(request, sealed, &open, &session).await,
            Ok(None) => self.sign_in_for(request, sealed, &open, None, StatusCode::OK),
            Err(reason) => unavailable_page(request, &reason),
        }
    }

    fn question<'a>(
        request: &'a RouteRequest,
        sealed: &'a str,
        open: &'a OpenFlow,
        page_token: &'a str,
    ) -> ConsentQuestion<'a> {
        ConsentQuestion {
            base_path: request.base_path(),
            flow: sealed,
            page_token,
            client: &open.client,
            redirect_uri: &open.flow.redirect_uri,
            resource: &open.flow.resource,
            names_resource: open.flow.names_resource,
        }
    }

    fn token_of(&self, open: &OpenFlow, session: Option<&CurrentSession>) -> String {
        let session = session.map(|session| session.record.digest.as_str());
        page_token(&self.state.keys, &open.browser, session, &open.flow.id)
    }

    fn sign_in_for(
        &self,
        request: &RouteRequest,
        sealed: &str,
        open: &OpenFlow,
        message: Option<&str>,
        status: StatusCode,
    ) -> Response<RouteBody> {
        let token = self.token_of(open, None);
        let issuer = request.active.settings.issuer.as_ref().map(|issuer| issuer.name.as_str());
        Self::question(request, sealed, open, &token).sign_in_page(issuer, message, status)
    }

    async fn consent_page(
        &self,
        request: &RouteRequest,
        sealed: &str,
        open: &OpenFlow,
        session: &CurrentSession,
    ) -> Response<RouteBody> {
        let (token, settings) = (self.token_of(open, Some(session)), &request.active.settings);
        let CheckedUser { record, .. } = &session.user;
        let caller = request.active.caller(record, CallerKind::Client, Rights::Member, None);
        let servers = settings.about.servers(&open.flow.resource, &caller);
        let known = self.state.records.get::<ClientRecord>(open.client.digest.as_str()).await;
        let grants = self.state.grants_of(record.id).await.unwrap_or_default();
        let is_known = known.is_ok_and(|known| known.is_some())
            && grants.iter().any(|grant| grant.client == open.client.digest);
        let days = settings.authorization.grant_ttl.as_secs() / 86_400;
        let question = Self::question(request, sealed, open, &token);
        question.consent_page(&shown_user(record), &servers, days, is_known)
    }

    /// Takes the answer of a page: a sign-in, or yes or no.
    pub(super) async fn answer_consent(
        &self,
        request: RouteRequest,
        sealed: &str,
    ) -> Response<RouteBody> {
        let open = match self.open_flow(&request, sealed).await {
            Ok(open) => open,
            Err(response) => return response,
        };
        let form = Parameters::parse(std::str::from_utf8(&request.body).unwrap_or_default());
        let session = match self.current_session(&request).await {
            Ok(session) => session,
            Err(reason) => return unavailable_page(&request, &reason),
        };
        let action = form.get("action").ok().flatten().unwrap_or_default().to_owned();
        let is_sign_in = matches!(action.as_str(), "issuer" | "key");
        let session = session.filter(|_| !is_sign_in);
        if !has_page_token(&form, &self.token_of(&open, session.as_ref())) {
            let text = "Open the page again and repeat your answer.";
            return error_page(
                request.base_path(),
                StatusCode::FORBIDDEN,
                "This page is out of date",
                &[text],
            );
        }
        let target = SignInTarget::Flow(sealed.to_owned());
        match (action.as_str(), session) {
            ("issuer", _) => self.begin_at_issuer(&request, target, false).await,
            ("key", _) => {
                let sign_in = SignInForm { request: &request, form: &form, target };
                match self.sign_in_by_form(sign_in).await {
                    Ok(response) => response,
                    Err((status, message)) => {
                        self.sign_in_for(&request, sealed, &open, Some(&message), status)
                    }
                }
            }
            ("approve", Some(session)) => self.approve(&request, &open, &session).await,
            ("deny", Some(session)) => self.deny(&request, &open, &session).await,
            ("switch", Some(session)) => self.switch_user(&request, sealed, &session).await,
            _ => see_other(&request.active.settings.location.url(&request.path)),
        }
    }

    async fn approve(
        &self,
        request: &RouteRequest,
        open: &OpenFlow,
        session: &CurrentSession,
    ) -> Response<RouteBody> {
        let issued =
            self.state.issue_code(&request.active, &open.flow, &open.client, &session.record).await;
        let code = match issued {
            Ok(code) => code,
            Err(IdentityStoreError::Conflict) => {
                let (title, text) =
                    ("This request was answered before", "Connect again from your client.");
                return error_page(request.base_path(), StatusCode::BAD_REQUEST, title, &[text]);
            }
            Err(error) => return retry_after(unavailable_page(request, &error.to_string()), 5),
        };
        let caller =
            request.active.caller(&session.user.record, CallerKind::Person, Rights::Member, None);
        let subject = format!("{} for {}", open.client.name, open.flow.resource);
        self.state.record(IdentityEventKind::Consent, caller, subject);
        let location = &request.active.settings.location;
        let (uri, state) = (&open.flow.redirect_uri, open.flow.state.as_deref());
        see_other(&response_url(location, uri, state, &[("code", &code)]))
    }

    async fn deny(
        &self,
        request: &RouteRequest,
        open: &OpenFlow,
        session: &CurrentSession,
    ) -> Response<RouteBody> {
        let used = UsedFlowRecord { id: open.flow.id.clone(), expires_at: open.flow.expires_at };
        // If it was answered before, the client has its answer.
        let _ = self.state.records.commit(vec![crate::record::IdentityRecord::create(&used)]).await;
        let caller =
            request.active.caller(&session.user.record, CallerKind::Person, Rights::Member, None);
        let subject = format!("{} for {}", open.client.name, open.flow.resource);
        self.state.record_refusal(IdentityEventKind::Consent, caller, subject);
        let fields =
            [("error", "access_denied"), ("error_description", "the user denied the request")];
        let location = &request.active.settings.location;
        let (uri, state) = (&open.flow.redirect_uri, open.flow.state.as_deref());
        see_other(&response_url(location, uri, state, &fields))
    }

    /// Signs out, and shows the request again.
    async fn switch_user(
        &self,
        request: &RouteRequest,
        sealed: &str,
        session: &CurrentSession,
    ) -> Response<RouteBody> {
        let digest = session.record.digest.clone();
        let caller =
            request.active.caller(&session.user.record, CallerKind::Person, Rights::Member, None);
        if let Err(error) = self.state.end_session(digest, caller, session.user.record.id).await {
            return unavailable_page(request, &error.to_string());
        }
        let url = request.active.settings.location.url(&format!("/oauth/consent/{sealed}"));
        with_cookies(see_other(&url), [request.cookies.remove_session()])
    }

    /// Returns the session of a browser. The error is the reason why it cannot be checked.
    pub(super) async fn current_session(
        &self,
        request: &RouteRequest,
    ) -> Result<Option<CurrentSession>, String> {
        let Some(digest) = request.cookies.session_digest(&request.headers) else {
            return Ok(None);
        };
        let digest = crate::digest::hex(digest.as_bytes());
        match self.state.check_session(&request.active, &digest).await {
            Ok((record, user)) => Ok(Some(CurrentSession { record, user })),
            Err(AuthError::Invalid(_)) => Ok(None),
            Err(AuthError::Unavailable(reason)) => Err(reason),
        }
    }
}

/// The name of a user on a page of its own.
pub(super) fn shown_user(record: &crate::record::user::UserRecord) -> String {
    match &record.label {
        Some(label) if *label != record.name => format!("{label} ({})", record.qualified_name()),
        _ => record.qualified_name(),
    }
}
