//! `consort key`, `consort user` and `consort client`.

use std::io::IsTerminal;

use consort_core::escape::escape_line;
use consort_identity::{KeyRequest, KeySummary};
use serde_json::json;

use crate::cli::{
    ClientCommand, GlobalArguments, KeyCommand, KeyLifetime, NewKeyArguments, SignOutUsers,
    UserCommand,
};
use crate::exit::{CommandError, ExitStatus};
use crate::identity_admin::IdentityAdmin;
use crate::output::{TableCell, TextStyle, TextTable, json, line, note, page, styled, width};
use crate::terminal_prompt;

pub(super) async fn key(
    common: &GlobalArguments,
    command: KeyCommand,
) -> Result<ExitStatus, CommandError> {
    match command {
        KeyCommand::New(new) => {
            with_admin(common, async |admin| new_key(common, admin, new).await).await
        }
        KeyCommand::List => with_admin(common, async |admin| list_keys(common, admin).await).await,
        KeyCommand::Revoke { id, confirmation } => {
            with_admin(common, async |admin| {
                let question = format!("Revoke the API key {}?", escape_line(&id));
                if let Some(exit) = refused(confirmation.yes, question).await? {
                    return Ok(exit);
                }
                admin.revoke_key(&id).await?;
                Ok(done(common, &json!({ "revoked": id }), format!("revoked {}", escape_line(&id))))
            })
            .await
        }
    }
}

pub(super) async fn user(
    common: &GlobalArguments,
    command: UserCommand,
) -> Result<ExitStatus, CommandError> {
    with_admin(common, async |admin| match command {
        UserCommand::Add { name } => add_user(common, admin, &name).await,
        UserCommand::List => list_users(common, admin).await,
        UserCommand::Remove { name, erase, confirmation } => {
            let shown = escape_line(&name);
            let question =
                format!("Remove the user {shown} with all sessions, grants and API keys?");
            if let Some(exit) = refused(confirmation.yes, question).await? {
                return Ok(exit);
            }
            let erased = admin.remove_user(&name, erase).await?;
            if erase {
                note("the ledger keeps earlier records with the name, until its retention drops them");
            }
            let text = match &erased {
                Some(erased) => format!("removed {shown}; the id is now named `{erased}`"),
                None => format!("removed {shown}"),
            };
            Ok(done(common, &json!({ "removed": name, "erased": erased }), text))
        }
        UserCommand::Link { name, subject } => {
            admin.link_user(&name, &subject).await?;
            let text = format!("linked {} to {}", escape_line(&name), escape_line(&subject));
            Ok(done(common, &json!({ "user": name, "subject": subject }), text))
        }
        UserCommand::Grants { name } => list_grants(common, admin, &name).await,
        UserCommand::SignOut { users, confirmation } => {
            let SignOutUsers { name, all } = users;
            let shown = name.as_deref().map_or("every user".to_owned(), escape_line);
            let question = format!("End all sessions and grants of {shown}?");
            if let Some(exit) = refused(confirmation.yes, question).await? {
                return Ok(exit);
            }
            admin.sign_out(name.as_deref()).await?;
            let text = format!("signed out {shown}");
            Ok(done(common, &json!({ "signed_out": name, "all": all }), text))
        }
    })
    .await
}

pub(super) async fn client(
    common: &GlobalArguments,
    command: ClientCommand,
) -> Result<ExitStatus, CommandError> {
    with_admin(common, async |admin| match command {
        ClientCommand::List => list_clients(common, admin).await,
        ClientCommand::Block { id, confirmation } => {
            let question = format!("Block the client {} and end its grants?", escape_line(&id));
            if let Some(exit) = refused(confirmation.yes, question).await? {
                return Ok(exit);
            }
            admin.block_client(&id).await?;
            Ok(done(common, &json!({ "blocked": id }), format!("blocked {}", escape_line(&id))))
        }
        ClientCommand::ForgetAll { confirmation } => {
            let question = "Forget every client that registered itself?".to_owned();
            if let Some(exit) = refused(confirmation.yes, question).await? {
                return Ok(exit);
            }
            admin.forget_clients().await?;
            let text = "forgotten: clients that registered themselves must register again";
            Ok(done(common, &json!({ "forgotten": true }), text.to_owned()))
        }
    })
    .await
}

/// Runs a job with the users of the config, and writes what is pending.
async fn with_admin(
    common: &GlobalArguments,
    job: impl AsyncFnOnce(&IdentityAdmin) -> Result<ExitStatus, CommandError>,
) -> Result<ExitStatus, CommandError> {
    let admin = IdentityAdmin::open(common).await?;
    let result = job(&admin).await;
    admin.close().await;
    result
}

/// Asks for confirmation, and returns how the command ends if it is not given.
async fn refused(yes: bool, question: String) -> Result<Option<ExitStatus>, CommandError> {
    if yes {
        return Ok(None);
    }
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(CommandError {
            message: "confirmation required; nothing was changed".to_owned(),
            hint: Some("run it in a terminal, or confirm with --yes".to_owned()),
            exit: ExitStatus::Denied,
        });
    }
    Ok(match terminal_prompt::confirm_async(format!("{question} [y/N] ")).await {
        Some(true) => None,
        Some(false) => {
            note("nothing was changed");
            Some(ExitStatus::Denied)
        }
        None => Some(ExitStatus::Interrupted),
    })
}

fn done(common: &GlobalArguments, document: &serde_json::Value, text: String) -> ExitStatus {
    if common.json {
        json(document);
    } else {
        line(styled(TextStyle::Good, text));
    }
    ExitStatus::Ok
}

async fn new_key(
    common: &GlobalArguments,
    admin: &IdentityAdmin,
    new: NewKeyArguments,
) -> Result<ExitStatus, CommandError> {
    let NewKeyArguments { name, expires, endpoints, service, user, admin: is_admin } = new;
    let lifetime = match expires {
        KeyLifetime::Never => None,
        KeyLifetime::For(time) => Some(time.as_secs()),
    };
    let request = KeyRequest { name, service, user, endpoints, admin: is_admin, lifetime };
    let created = admin.create_key(request).await?;
    if common.json {
        json(&created);
    } else {
        line(created.key.as_str());
    }
    let expiry = created
        .expires_at
        .map_or("it does not expire".to_owned(), |at| format!("it expires at {}", moment(at)));
    note(format!(
        "key {} of {}: {expiry}. It is not shown again; `consort key revoke {}` revokes it",
        created.id, created.user, created.id
    ));
    Ok(ExitStatus::Ok)
}

async fn list_keys(
    common: &GlobalArguments,
    admin: &IdentityAdmin,
) -> Result<ExitStatus, CommandError> {
    let keys = admin.keys().await?;
    if common.json {
        json(&keys);
        return Ok(ExitStatus::Ok);
    }
    if keys.is_empty() {
        line("no API keys");
        return Ok(ExitStatus::Ok);
    }
    let headings = ["ID", "NAME", "USER", "OPENS", "CREATED", "EXPIRES", "LAST USED"];
    let mut table = TextTable::wrapping(&headings);
    for key in &keys {
        table.row([
            TableCell::from(&key.id),
            TableCell::from(&key.name),
            TableCell::from(&key.user),
            TableCell::from(opens(key)),
            TableCell::from(moment(key.created_at)),
            TableCell::from(key.expires_at.map_or("never".to_owned(), moment)),
            TableCell::from(key.last_used_at.map_or("never".to_owned(), moment)),
        ]);
    }
    page(table.render(width()));
    Ok(ExitStatus::Ok)
}

/// The endpoints that a key opens.
fn opens(key: &KeySummary) -> String {
    let mut opens = key.endpoints.clone();
    match (opens.is_empty(), key.admin) {
        (true, false) => "/mcp".to_owned(),
        (_, false) => opens.join(" "),
        (_, true) => {
            opens.push("admin API".to_owned());
            opens.join(" ")
        }
    }
}

async fn add_user(
    common: &GlobalArguments,
    admin: &IdentityAdmin,
    name: &str,
) -> Result<ExitStatus, CommandError> {
    let link = admin.add_user(name).await?;
    if common.json {
        json(&link);
    } else {
        line(link.url.as_str());
    }
    note(format!(
        "this link signs {} in once, and shows an API key. Give it to nobody else",
        link.user
    ));
    if matches!(admin, IdentityAdmin::Store(_)) {
        note("the link works once the gateway runs; its host is `public_url`, or 127.0.0.1:8808");
    }
    Ok(ExitStatus::Ok)
}

async fn list_users(
    common: &GlobalArguments,
    admin: &IdentityAdmin,
) -> Result<ExitStatus, CommandError> {
    let users = admin.users().await?;
    if common.json {
        json(&users);
        return Ok(ExitStatus::Ok);
    }
    if users.is_empty() {
        line("no users");
        return Ok(ExitStatus::Ok);
    }
    let headings = ["NAME", "LABEL", "GROUPS", "ADDED", "CHECKED", "STATE", "ID"];
    let mut table = TextTable::wrapping(&headings);
    for user in users {
        let groups = user.groups.map_or("unknown".to_owned(), |groups| groups.join(" "));
        let state = if user.suspended {
            TableCell::styled(TextStyle::Warning, "suspended")
        } else {
            TableCell::styled(TextStyle::Good, "active")
        };
        table.row([
            TableCell::from(user.name),
            TableCell::from(user.label.unwrap_or_default()),
            TableCell::from(groups),
            TableCell::from(moment(user.created_at)),
            TableCell::from(moment(user.checked_at)),
            state,
            TableCell::from(user.id),
        ]);
    }
    page(table.render(width()));
    Ok(ExitStatus::Ok)
}

async fn list_grants(
    common: &GlobalArguments,
    admin: &IdentityAdmin,
    name: &str,
) -> Result<ExitStatus, CommandError> {
    let grants = admin.grants(name).await?;
    if common.json {
        json(&grants);
        return Ok(ExitStatus::Ok);
    }
    if grants.is_empty() {
        line("no grants");
        return Ok(ExitStatus::Ok);
    }
    let mut table = TextTable::wrapping(&["CLIENT", "OPENS", "ALLOWED", "ENDS", "LAST USED", "ID"]);
    for grant in grants {
        table.row([
            TableCell::from(grant.client),
            TableCell::from(grant.resource),
            TableCell::from(moment(grant.created_at)),
            TableCell::from(moment(grant.expires_at)),
            TableCell::from(grant.last_used_at.map_or("never".to_owned(), moment)),
            TableCell::from(grant.id),
        ]);
    }
    page(table.render(width()));
    Ok(ExitStatus::Ok)
}

async fn list_clients(
    common: &GlobalArguments,
    admin: &IdentityAdmin,
) -> Result<ExitStatus, CommandError> {
    let clients = admin.clients().await?;
    if common.json {
        json(&clients);
        return Ok(ExitStatus::Ok);
    }
    if clients.is_empty() {
        line("no clients");
        return Ok(ExitStatus::Ok);
    }
    let headings = ["ID", "NAME", "GRANTS", "STATE", "LAST SEEN", "REDIRECTS TO"];
    let mut table = TextTable::wrapping(&headings);
    for client in clients {
        let state = if client.blocked {
            TableCell::styled(TextStyle::Bad, "blocked")
        } else {
            TableCell::from("allowed")
        };
        table.row([
            TableCell::from(client.id),
            TableCell::from(client.name),
            TableCell::from(client.grants.to_string()),
            state,
            TableCell::from(moment(client.last_seen_at)),
            TableCell::from(client.redirect_uris.join(" ")),
        ]);
    }
    page(table.render(width()));
    Ok(ExitStatus::Ok)
}

/// Formats a time for people, to the minute.
pub(super) fn moment(at: u64) -> String {
    consort_core::utc(at).replace('T', " ").chars().take(16).collect()
}
