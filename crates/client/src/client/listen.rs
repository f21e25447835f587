//! Subscriptions to changes: `subscriptions/listen` (modern), or the notifications of a legacy session.

use consort_protocol::{Json, Notification, TaskHandling};
use serde::{Deserialize, Serialize};

use crate::call::{PendingCall, PendingCallEvent};
use crate::client::Client;
use crate::error::{ClientCallError, TimeLimitKind};
use crate::notices::{ConnectionNotice, NoticeReceiver};
use crate::request::OutgoingRequest;

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Subscription filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionFilter {
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

impl SubscriptionFilter {
    /// A filter for changes of all lists.
    pub fn lists() -> Self {
        Self {
            tools_list_changed: true,
            prompts_list_changed: true,
            resources_list_changed: true,
            ..Self::default()
        }
    }

    fn includes(&self, notification: &Notification) -> bool {
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
/// [`end`](ChangeSubscription::end) does.
#[derive(Debug)]
pub struct ChangeSubscription {
    source: SubscriptionSource,
    client: Client,
    accepted: SubscriptionFilter,
}

#[derive(Debug)]
enum SubscriptionSource {
    Modern(Box<PendingCall>),
    Legacy(NoticeReceiver),
}

impl Client {
    /// Subscribes to changes, in the way of the server's era.
    pub async fn listen(
        &self,
        filter: SubscriptionFilter,
    ) -> Result<ChangeSubscription, ClientCallError> {
        if !self.link.dialect().is_modern() {
            return legacy(self, filter).await;
        }
        let notifications = Json::from_value(&filter).expect("a filter always serialises");
        let tasks =
            if filter.task_ids.is_empty() { TaskHandling::Never } else { TaskHandling::Follow };
        let request = OutgoingRequest::new("subscriptions/listen")
            .with("notifications", notifications)
            .tasks(tasks);
        let mut call = self.subscribe(request);
        let times = &self.link.settings.times;
        let limit = times.idle;
        let Ok(first) = consort_protocol::late::timeout(limit, times.late, call.next()).await
        else {
            return Err(ClientCallError::TimedOut { kind: TimeLimitKind::Idle, limit, sent: true });
        };
        match first {
            Some(PendingCallEvent::Notification(notification))
                if notification.method == ACKNOWLEDGED =>
            {
                let accepted =
                    notification.params.get("notifications").and_then(|filter| filter.read().ok());
                let accepted = accepted.unwrap_or_default();
                Ok(ChangeSubscription {
                    source: SubscriptionSource::Modern(Box::new(call)),
                    client: self.clone(),
                    accepted,
                })
            }
            Some(PendingCallEvent::End(Err(error))) => Err(error),
            _ => Err(ClientCallError::Malformed(
                "it did not acknowledge the subscription".to_owned(),
            )),
        }
    }
}

/// Subscribes at a legacy server, which notifies of its lists anyway, and of resources one by one.
async fn legacy(
    client: &Client,
    filter: SubscriptionFilter,
) -> Result<ChangeSubscription, ClientCallError> {
    let notices = client.notices();
    let about = client.about();
    let mut accepted = SubscriptionFilter {
        tools_list_changed: filter.tools_list_changed && about.offers("tools.listChanged"),
        prompts_list_changed: filter.prompts_list_changed && about.offers("prompts.listChanged"),
        resources_list_changed: filter.resources_list_changed
            && about.offers("resources.listChanged"),
        ..SubscriptionFilter::default()
    };
    if about.offers("resources.subscribe") {
        for uri in filter.resource_subscriptions {
            client
                .request(
                    OutgoingRequest::new("resources/subscribe").with("uri", Json::string(&uri)),
                )
                .await?;
            accepted.resource_subscriptions.push(uri);
        }
    }
    Ok(ChangeSubscription {
        source: SubscriptionSource::Legacy(notices),
        client: client.clone(),
        accepted,
    })
}

impl ChangeSubscription {
    /// The filter that the server accepted.
    pub fn accepted(&self) -> &SubscriptionFilter {
        &self.accepted
    }

    /// Returns the next change, `None` when the subscription is over: the server ended it, or the
    /// connection broke.
    pub async fn next(&mut self) -> Option<ConnectionNotice> {
        loop {
            match &mut self.source {
                SubscriptionSource::Modern(call) => match call.next().await? {
                    PendingCallEvent::Notification(notification) => {
                        return Some(ConnectionNotice::Notification(notification));
                    }
                    PendingCallEvent::Skipped(count) => return Some(ConnectionNotice::Lost(count)),
                    PendingCallEvent::End(_) => return None,
                    _ => {}
                },
                SubscriptionSource::Legacy(notices) => match notices.next().await? {
                    ConnectionNotice::Notification(notification)
                        if !self.accepted.includes(&notification) => {}
                    notice => return Some(notice),
                },
            }
        }
    }

    /// Ends it.
    pub async fn end(self) {
        if let SubscriptionSource::Legacy(_) = self.source {
            for uri in &self.accepted.resource_subscriptions {
                let request =
                    OutgoingRequest::new("resources/unsubscribe").with("uri", Json::string(uri));
                let _ = self.client.request(request).await;
            }
        }
    }
}
