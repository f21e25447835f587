//! `consort remove`: a server leaves the config that has it.

use std::path::Path;

use consort::logins;
use consort_config::{
    EditError, EditedConfig, RewriteError, ServerConfig, SystemValues, check_not_included, lock,
    remove_server, rewrite_config,
};
use consort_core::ServerId;
use consort_core::escape::escape_line;
use serde_json::json;

use super::config::edit::{self, EditTarget, failed, tell_rewritten};
use crate::approvals;
use crate::cli::{ConfigScope, GlobalArguments, RemoveServerArguments};
use crate::command_hub::read_file;
use crate::exit::{CommandError, ExitStatus};
use crate::output::{json, line, note};
use crate::trust_prompt::shell_word;

pub(super) fn run(
    common: &GlobalArguments,
    wanted: &RemoveServerArguments,
) -> Result<ExitStatus, CommandError> {
    let id = wanted.name.parse().unwrap_or_else(|_| ServerId::derive(&wanted.name));
    let target = holder(&id, edit::candidates(common, wanted.scope)?)?;
    let config = read_file(&target.file).ok();
    let removed = config.and_then(|config| config.servers.into_iter().find(|it| it.name == id));
    let rewritten = rewrite_config(&target.file, |text| without(&target.file, text, &id));
    let rewritten = rewritten.map_err(failed)?;
    let remains = remains(&id, removed.as_ref(), &target.file);
    if common.json {
        json(&json!({
            "file": target.file, "backup": rewritten.backup, "removed": id, "remains": remains,
        }));
        return Ok(ExitStatus::Ok);
    }
    line(format!("removed `{id}` from {}", escape_line(&target.file.display().to_string())));
    tell_rewritten(common, &target, &rewritten);
    for remain in &remains {
        note(format!("note: {}", escape_line(remain)));
    }
    Ok(ExitStatus::Ok)
}

/// Returns the text of a config without a server.
fn without(file: &Path, text: &str, id: &ServerId) -> Result<EditedConfig, RewriteError> {
    check_not_included(file, text, [id])?;
    let text = remove_server(file, text, id)?;
    Ok(EditedConfig { text, problems: Vec::new() })
}

/// Returns the config that has a server; fails if configs of both scopes have it.
fn holder(id: &ServerId, candidates: Vec<EditTarget>) -> Result<EditTarget, CommandError> {
    let (mut holders, mut near, mut broken) = (Vec::new(), None, None);
    for target in candidates {
        let text = std::fs::read_to_string(&target.file).map_err(|source| {
            failed(RewriteError::File { what: "read", file: target.file.clone(), source })
        });
        // A server in an included file is found here too; the removal says where it is.
        match text.map(|text| without(&target.file, &text, id)) {
            Ok(Ok(_) | Err(RewriteError::Refused(_))) => holders.push(target),
            Ok(Err(RewriteError::Edit(EditError::Unknown { near: name, .. }))) => {
                near = near.or(name);
            }
            Ok(Err(error)) => broken = broken.or(Some(failed(error))),
            Err(failure) => broken = broken.or(Some(failure)),
        }
    }
    let scopes: Vec<ConfigScope> = holders.iter().filter_map(|target| target.scope).collect();
    if scopes.contains(&ConfigScope::User) && scopes.contains(&ConfigScope::Project) {
        let files = holders.iter().map(|target| format!("`{}`", target.file.display()));
        let files = files.collect::<Vec<_>>().join(" and ");
        let message = format!("`{id}` is in several configs: {files}");
        return Err(CommandError::usage(escape_line(&message))
            .hint("choose one with --scope user or --scope project"));
    }
    if !holders.is_empty() {
        return Ok(holders.swap_remove(0));
    }
    Err(broken.unwrap_or_else(|| {
        let failure = CommandError::usage(format!("unknown server `{id}`"));
        failure.hint(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`consort list --no-connect` shows the servers in use".to_owned(),
        })
    }))
}

/// Describes stored data about a removed server, and the command that deletes each.
fn remains(id: &ServerId, server: Option<&ServerConfig>, file: &Path) -> Vec<String> {
    let mut remains = Vec::new();
    let login = server.and_then(|server| server.to_login(&SystemValues::silent()).ok().flatten());
    let stored =
        |url: &str| logins::store().is_some_and(|store| matches!(store.get(url), Ok(Some(_))));
    if let Some(login) = login.filter(|login| stored(&login.server)) {
        let url = shell_word(&login.server);
        remains.push(format!("its login is still stored; delete it with `consort logout {url}`"));
    }
    let approved = approvals::count_of(id);
    if let (1.., Some(path)) = (approved, approvals::path()) {
        let path = shell_word(&path.display().to_string());
        remains.push(format!(
            "approvals of its tools are still stored ({approved}), and apply to the same tools if it is added again; \
             `rm {path}` deletes all approvals"
        ));
    }
    let path = lock::lock_path(file);
    let limit = consort_config::FileLimits::default().lock;
    if let Ok(Some(lock)) = lock::read_lock(&path, limit)
        && lock.servers.contains_key(id)
    {
        remains.push(format!(
            "`{}` still has its definitions; `consort lock --update` removes them",
            path.display()
        ));
    }
    remains
}
