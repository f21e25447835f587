//! The callback of the issuer. It ends at a page of the gateway, never at a client.

use consort_server::RouteBody;
use http::{Response, StatusCode};

use super::sign_in_route::failed;
use super::{IdentityRoutes, RouteRequest};
use crate::authorization::flow::{self, SignInFlow};
use crate::authorization::request::Parameters;
use crate::digest::digest_of;
use crate::key_ring::purpose::SealPurpose;
use crate::pages::html::with_cookies;
use crate::pages::sign_in::error_page;
use crate::sign_in::{IssuerResponse, SignInError};

impl IdentityRoutes {
    /// Takes the response of the issuer, if this browser asked for it.
    pub(super) async fn callback(&self, request: RouteRequest, name: &str) -> Response<RouteBody> {
        let response = self.answer_callback(&request, name).await;
        // It is used once, whatever came of it.
        with_cookies(response, request.cookies.remove_sign_in())
    }

    async fn answer_callback(&self, request: &RouteRequest, name: &str) -> Response<RouteBody> {
        let refuse = |text: &str| {
            let texts = [text, "Sign in again from the page where you began."];
            error_page(
                request.base_path(),
                StatusCode::BAD_REQUEST,
                "This sign-in cannot be continued",
                &texts,
            )
        };
        let query = Parameters::parse(&request.query);
        if query.repeats(&["code", "state", "iss", "error"]) {
            return refuse("The response of the issuer repeats a parameter.");
        }
        let get = |name: &str| query.get(name).ok().flatten();
        let browser = request.cookies.browser(&request.headers).digest();
        let sealed = request.cookies.sign_in(&request.headers);
        let flow: Option<SignInFlow> = sealed.and_then(|sealed| {
            flow::open(&self.state.keys, SealPurpose::SignInCookie, &browser, &sealed)
        });
        let Some(flow) = flow else {
            return refuse("It did not begin in this browser, or was continued before.");
        };
        let is_own = get("state").is_some_and(|state| digest_of(state) == digest_of(&flow.state));
        if !is_own || flow.issuer != name {
            return refuse("It is the response to another sign-in.");
        }
        if flow.expires_at <= self.state.clock.now() {
            return refuse("It took too long.");
        }
        let Some(issuer) = request.active.issuer.clone().filter(|it| it.settings.name == name)
        else {
            return refuse("Its issuer no longer signs users in here.");
        };
        let metadata = match issuer.metadata().await {
            Ok(metadata) => metadata,
            Err(error) => return failed(request, &SignInError::from(error)),
        };
        // Mix-up: the response says who sent it.
        match get("iss") {
            Some(named) if named != metadata.issuer => {
                return refuse("It is the response of another issuer.");
            }
            None if metadata.authorization_response_iss_parameter_supported => {
                return refuse("The response does not say which issuer sent it.");
            }
            _ => {}
        }
        if let Some(error) = get("error") {
            let description = get("error_description").unwrap_or_default();
            let reason = format!("{name} did not sign you in: {error} {description}");
            return failed(request, &SignInError::Refused(reason.trim_end().to_owned()));
        }
        let Some(code) = get("code") else { return refuse("The response has no code.") };
        let redirect_uri = request.active.settings.location.url(&format!("/oauth/callback/{name}"));
        let response = IssuerResponse {
            code,
            verifier: &flow.verifier,
            nonce: &flow.nonce,
            redirect_uri: &redirect_uri,
            is_fresh: flow.is_fresh,
        };
        match self.state.sign_in_by_issuer(&request.active, &issuer, response).await {
            Ok(signed_in) => self.enter(request, &signed_in, &flow.target).await,
            Err(error) => failed(request, &error),
        }
    }
}
