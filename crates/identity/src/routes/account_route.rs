//! The page of a user's own access.

use consort_core::{CallerKind, Rights};
use consort_server::RouteBody;
use http::Response;

use super::authorize::shown_user;
use super::page_guard::{has_page_token, page_token};
use super::sign_in_route::CurrentSession;
use super::{IdentityRoutes, RouteRequest, unavailable_page};
use crate::authorization::request::Parameters;
use crate::event::IdentityEventKind;
use crate::manage::NewKey;
use crate::pages::account::AccountPage;
use crate::pages::html::{see_other, with_cookies};
use crate::pages::sign_in::key_page;
use crate::record::IdentityRecord;
use crate::record::grant::NoticeRecord;
use crate::settings::ApiKeyAccess;
use crate::store::IdentityStoreError;
use crate::store::row::RowChange;
use crate::user::UserId;

/// The purpose of the token of the page.
const PAGE: &str = "account";

/// Lifetime of a key that a user makes.
const OWN_KEY: u64 = 90 * 86_400;

impl IdentityRoutes {
    /// Shows the page, or that to sign in at.
    pub(super) async fn show_account(&self, request: &RouteRequest) -> Response<RouteBody> {
        let session = match self.current_session(request).await {
            Ok(Some(session)) => session,
            Ok(None) => {
                return see_other(&request.active.settings.location.url("/oauth/sign-in?to=me"));
            }
            Err(reason) => return unavailable_page(request, &reason),
        };
        let user = session.user.record.id;
        let listed = async {
            let grants = self.state.grants_of(user).await?;
            let keys = self.state.keys_of(user).await?;
            Ok::<_, IdentityStoreError>((grants, keys, self.state.notices_of(user).await?))
        };
        let (grants, keys, notices) = match listed.await {
            Ok(listed) => listed,
            Err(error) => return unavailable_page(request, &error.to_string()),
        };
        let page = AccountPage {
            base_path: request.base_path(),
            page_token: &self.account_token(request, &session),
            user: shown_user(&session.user.record),
            grants,
            keys,
            notices,
            may_make_keys: self.may_make_keys(request, &session),
            is_admin: self.rights(request, &session) != Rights::Member,
        };
        page.respond()
    }

    fn account_token(&self, request: &RouteRequest, session: &CurrentSession) -> String {
        let browser = request.cookies.browser(&request.headers).digest();
        page_token(&self.state.keys, &browser, Some(&session.record.digest), PAGE)
    }

    fn rights(&self, request: &RouteRequest, session: &CurrentSession) -> Rights {
        let record = &session.user.record;
        let caller = request.active.caller(record, CallerKind::Person, Rights::Member, None);
        request.active.session_rights(&caller, session.record.signed_in_at, self.state.clock.now())
    }

    /// Keys are made by users whom an issuer vouches for; others have a key already, and a session by a key makes none.
    fn may_make_keys(&self, request: &RouteRequest, session: &CurrentSession) -> bool {
        let is_issued = session.user.record.issuer_url.is_some();
        match request.active.settings.authorization.api_keys {
            ApiKeyAccess::Users => is_issued,
            ApiKeyAccess::Admins => is_issued && self.rights(request, session) != Rights::Member,
            ApiKeyAccess::Off => false,
        }
    }

    /// Takes a form of the page.
    pub(super) async fn change_account(&self, request: RouteRequest) -> Response<RouteBody> {
        let session = match self.current_session(&request).await {
            Ok(Some(session)) => session,
            Ok(None) => {
                return see_other(&request.active.settings.location.url("/oauth/sign-in?to=me"));
            }
            Err(reason) => return unavailable_page(&request, &reason),
        };
        let form = Parameters::parse(std::str::from_utf8(&request.body).unwrap_or_default());
        if !has_page_token(&form, &self.account_token(&request, &session)) {
            return self.show_account(&request).await;
        }
        match self.change(&request, &session, &form).await {
            Ok(response) => response,
            Err(error) => unavailable_page(&request, &error.to_string()),
        }
    }

    async fn change(
        &self,
        request: &RouteRequest,
        session: &CurrentSession,
        form: &Parameters,
    ) -> Result<Response<RouteBody>, IdentityStoreError> {
        let user = session.user.record.id;
        let get = |name: &str| form.get(name).ok().flatten().unwrap_or_default();
        let again = || see_other(&request.active.settings.location.url("/me"));
        match get("action") {
            "end" => {
                let grants = self.state.grants_of(user).await?;
                // Only one's own.
                if let Some(grant) = grants.iter().find(|grant| grant.id == get("grant")) {
                    let kind = IdentityEventKind::Revocation;
                    self.state.end_grant(&grant.id, kind, "by the user", None).await?;
                }
            }
            "revoke" => {
                let keys = self.state.keys_of(user).await?;
                if let Some(key) = keys.iter().find(|key| key.id == get("key")) {
                    self.state.revoke_key(key, "by the user").await?;
                }
            }
            "dismiss" => {
                let notices = self.state.notices_of(user).await?;
                let remove =
                    |notice: &NoticeRecord| RowChange::delete(NoticeRecord::TABLE, notice.key());
                self.state.records.commit(notices.iter().map(remove).collect()).await?;
            }
            "new-key" if self.may_make_keys(request, session) => {
                let name = get("name").chars().filter(|c| !c.is_control()).take(64).collect();
                let new = NewKey {
                    user,
                    name,
                    resources: Vec::new(),
                    is_admin: false,
                    expires_at: Some(self.state.clock.now() + OWN_KEY),
                };
                let key = self.state.create_key(new).await?;
                return Ok(key_page(request.base_path(), &key.text));
            }
            "sign-out" => return self.sign_out(request, session, user).await,
            "sign-out-all" => {
                let caller = self.state.event_caller(user).await;
                self.state.record(
                    IdentityEventKind::SignOut,
                    caller,
                    "everywhere, with every client",
                );
                self.state.end_access_of(user, Vec::new()).await?;
                return Ok(with_cookies(again(), [request.cookies.remove_session()]));
            }
            _ => {}
        }
        Ok(again())
    }

    async fn sign_out(
        &self,
        request: &RouteRequest,
        session: &CurrentSession,
        user: UserId,
    ) -> Result<Response<RouteBody>, IdentityStoreError> {
        let caller = self.state.event_caller(user).await;
        self.state.end_session(session.record.digest.clone(), caller, user).await?;
        let url = request.active.settings.location.url("/oauth/sign-in?to=me");
        let response = with_cookies(see_other(&url), [request.cookies.remove_session()]);
        Ok(response)
    }
}
