//! Subscriptions to changes: `subscriptions/listen` (modern), or the notifications of a legacy session.

use serde::{Deserialize, Serialize};

use crate::ask::Tasks;
use crate::client::Client;
use crate::client::call::{Call, Event};
use crate::client::error::{CallError, Limit};
use crate::client::notices::{Notice, Notices};
use crate::client::request::Request;
use crate::json::Json;
use crate::message::Notification;

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Subscription filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Filter {
    /// Notifies of changes of the list of tools.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tools_list_changed: bool,
    /// Notifies of changes of the list of prompts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prompts_list_changed: bool,
    /// Notifies of changes of the list of resources.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resources_list_changed: bool,
    /// Notifies of updates of these resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
    /// Notifies of state changes of these tasks; modern servers only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<String>,
}

impl Filter {
    /// A filter for changes of all lists.
    pub fn lists() -> Self {
        Self {
            tools_list_changed: true,
            prompts_list_changed: true,
            resources_list_changed: true,
            ..Self::default()
        }
    }

    fn wants(&self, notification: &Notification) -> bool {
        match notification.method.as_str() {
            "notifications/tools/list_changed" => self.tools_list_changed,
            "notifications/prompts/list_changed" => self.prompts_list_changed,
            "notifications/resources/list_changed" => self.resources_list_changed,
            "notifications/resources/updated" => {
                let uri = notification.params.text("uri");
                uri.is_some_and(|uri| self.resource_subscriptions.contains(&uri))
            }
            _ => false,
        }
    }
}

/// A subscription to changes. Dropping it ends it at a modern server; at a legacy server,
/// [`end`](Subscription::end) does.
#[derive(Debug)]
pub struct Subscription {
    source: Source,
    client: Client,
    accepted: Filter,
}

#[derive(Debug)]
enum Source {
    Modern(Box<Call>),
    Legacy(Notices),
}

pub(crate) async fn listen(client: &Client, filter: Filter) -> Result<Subscription, CallError> {
    if !client.link.dialect().is_modern() {
        return legacy(client, filter).await;
    }
    let notifications = Json::from_value(&filter).expect("a filter always serialises");
    let tasks = if filter.task_ids.is_empty() { Tasks::Never } else { Tasks::Follow };
    let request =
        Request::new("subscriptions/listen").with("notifications", notifications).tasks(tasks);
    let mut call = client.subscribe(request);
    let times = &client.link.settings.times;
    let limit = times.idle;
    let Ok(first) = crate::late::timeout(limit, times.late, call.next()).await else {
        return Err(CallError::TimedOut { kind: Limit::Idle, limit, sent: true });
    };
    match first {
        Some(Event::Notification(notification)) if notification.method == ACKNOWLEDGED => {
            let accepted =
                notification.params.get("notifications").and_then(|filter| filter.read().ok());
            let accepted = accepted.unwrap_or_default();
            Ok(Subscription {
                source: Source::Modern(Box::new(call)),
                client: client.clone(),
                accepted,
            })
        }
        Some(Event::End(Err(error))) => Err(error),
        _ => Err(CallError::Malformed("it does not acknowledge the subscription".to_owned())),
    }
}

/// Subscribes at a legacy server, which notifies of its lists anyway, and of resources one by one.
async fn legacy(client: &Client, filter: Filter) -> Result<Subscription, CallError> {
    let notices = client.notices();
    let about = client.about();
    let mut accepted = Filter {
        tools_list_changed: filter.tools_list_changed && about.offers("tools.listChanged"),
        prompts_list_changed: filter.prompts_list_changed && about.offers("prompts.listChanged"),
        resources_list_changed: filter.resources_list_changed
            && about.offers("resources.listChanged"),
        ..Filter::default()
    };
    if about.offers("resources.subscribe") {
        for uri in filter.resource_subscriptions {
            client
                .request(Request::new("resources/subscribe").with("uri", Json::string(&uri)))
                .await?;
            accepted.resource_subscriptions.push(uri);
        }
    }
    Ok(Subscription { source: Source::Legacy(notices), client: client.clone(), accepted })
}

impl Subscription {
    /// The filter that the server accepted.
    pub fn accepted(&self) -> &Filter {
        &self.accepted
    }

    /// Returns the next change, `None` when the subscription is over: the server ended it, or the
    /// connection broke.
    pub async fn next(&mut self) -> Option<Notice> {
        loop {
            match &mut self.source {
                Source::Modern(call) => match call.next().await? {
                    Event::Notification(notification) => {
                        return Some(Notice::Notification(notification));
                    }
                    Event::Skipped(count) => return Some(Notice::Lost(count)),
                    Event::End(_) => return None,
                    _ => {}
                },
                Source::Legacy(notices) => match notices.next().await? {
                    Notice::Notification(notification) if !self.accepted.wants(&notification) => {}
                    notice => return Some(notice),
                },
            }
        }
    }

    /// Ends it.
    pub async fn end(self) {
        if let Source::Legacy(_) = self.source {
            for uri in &self.accepted.resource_subscriptions {
                let request = Request::new("resources/unsubscribe").with("uri", Json::string(uri));
                let _ = self.client.request(request).await;
            }
        }
    }
}
