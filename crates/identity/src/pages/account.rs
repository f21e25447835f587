//! The page of a user's own access: clients, keys, sessions and notices.

use consort_core::utc;
use consort_server::RouteBody;
use http::{Response, StatusCode};

use super::html::{Cell, Form, Page};
use crate::record::grant::{GrantRecord, NoticeRecord};
use crate::record::key::KeyRecord;

/// The contents of the page.
#[derive(Debug)]
pub(crate) struct AccountPage<'a> {
    pub(crate) base_path: &'a str,
    pub(crate) page_token: &'a str,
    pub(crate) user: String,
    pub(crate) grants: Vec<GrantRecord>,
    pub(crate) keys: Vec<KeyRecord>,
    pub(crate) notices: Vec<NoticeRecord>,
    /// True if the user may make keys here.
    pub(crate) may_make_keys: bool,
    pub(crate) is_admin: bool,
}

impl AccountPage<'_> {
    fn form(&self) -> Form {
        Form::new("/me", self.page_token)
    }

    pub(crate) fn respond(self) -> Response<RouteBody> {
        let mut page = Page::new(self.base_path, "Your access");
        page = page.text(&format!("Signed in as {}.", self.user));
        for notice in &self.notices {
            let from = match (notice.source.address.as_str(), notice.source.user_agent.as_str()) {
                ("", _) => String::new(),
                (address, agent) => format!(" From {address}, {agent}."),
            };
            page = page.warning(&format!("{}: {}{from}", utc(notice.at), notice.text));
        }
        if !self.notices.is_empty() {
            page = page.form(&self.form().button("plain", "dismiss", "Dismiss these notices"));
        }
        page = page.heading("Clients");
        page = if self.grants.is_empty() {
            page.text("No client acts on your behalf.")
        } else {
            let row = |grant: &GrantRecord| {
                let form = self.form().hidden("grant", &grant.id).button("plain", "end", "End");
                vec![
                    Cell::Text(grant.client_name.clone()),
                    Cell::Text(grant.resource.to_string()),
                    Cell::Text(utc(grant.created_at)),
                    Cell::Form(form),
                ]
            };
            let rows = self.grants.iter().map(row).collect();
            page.table(&["Client", "Opens", "Since", ""], rows)
        };
        page = page.heading("Keys");
        if !self.keys.is_empty() {
            let row = |key: &KeyRecord| {
                let form = self.form().hidden("key", &key.id).button("plain", "revoke", "Revoke");
                let expires = key.expires_at.map_or_else(|| "never".to_owned(), utc);
                vec![
                    Cell::Text(format!("{} ({})", key.name, key.id)),
                    Cell::Text(expires),
                    Cell::Form(form),
                ]
            };
            let rows = self.keys.iter().map(row).collect();
            page = page.table(&["Key", "Expires", ""], rows);
        }
        if self.may_make_keys {
            let form =
                self.form().field("name", "Name of a new key").button("", "new-key", "Make a key");
            page = page.form(&form);
        }
        if self.is_admin {
            page = page.link("/console/", "Open the console");
        }
        let form = self.form().button("", "sign-out", "Sign out").button(
            "",
            "sign-out-all",
            "Sign out everywhere",
        );
        page.heading("Session").form(&form).respond(StatusCode::OK)
    }
}
