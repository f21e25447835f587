//! Request handler of a reference server.

#![expect(deprecated, reason = "the legacy era has what the modern one deprecates")]

use std::borrow::Cow;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, Prompt, PromptArgument,
    PromptMessage, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role, ServerCapabilities,
    ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;

use super::journal::{Change, NOTE};
use super::{Reference, tools};

/// Tools on one page of a listing, so that there are several pages.
const PAGE: usize = 4;

impl ServerHandler for Reference {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        let mut info = ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("reference", "1.0.0"))
            .with_instructions("Ask the journal.");
        // What is offered to a client whose revision is not spoken here.
        if let Some(newest) = self.speaks.versions().last() {
            info.protocol_version = newest.clone();
        }
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.speaks.versions()
    }

    async fn initialize(
        &self,
        params: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(params.clone());
        // Not when it says it is initialized: the SDK may handle its first request before that.
        self.journal.joined(context.peer);
        self.negotiate_initialize(&params)
    }

    async fn on_cancelled(
        &self,
        params: CancelledNotificationParam,
        _: NotificationContext<RoleServer>,
    ) {
        let reason = params.reason.unwrap_or_default();
        self.journal.write(format!("told to cancel: {reason}"));
    }

    async fn set_level(
        &self,
        params: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.journal.write(format!("log level: {}", json!(params.level)));
        Ok(())
    }

    async fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let all = tools::definitions(self.journal.has(Change::Tools));
        let cursor = params.and_then(|params| params.cursor);
        let start = match cursor {
            None => 0,
            Some(cursor) => cursor
                .parse()
                .ok()
                .filter(|start| *start < all.len())
                .ok_or_else(|| ErrorData::invalid_params("no such page", None))?,
        };
        let end = all.len().min(start + PAGE);
        let mut page = ListToolsResult::with_all_items(all[start..end].to_vec());
        page.next_cursor = (end < all.len()).then(|| end.to_string());
        Ok(page)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(params, context).await
    }

    async fn get_task(
        &self,
        params: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&params.task_id)?))
    }

    async fn update_task(
        &self,
        params: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.update_task(&params.task_id, params.input_responses)
    }

    async fn cancel_task(
        &self,
        params: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&params.task_id)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let name = PromptArgument::new("name").with_required(true);
        let mut prompts = vec![Prompt::new("greet", Some("Greets someone"), Some(vec![name]))];
        if self.journal.has(Change::Prompts) {
            prompts.push(Prompt::new("late", Some("Was not there before"), None));
        }
        Ok(ListPromptsResult::with_all_items(prompts))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if params.name != "greet" {
            return Err(ErrorData::invalid_params("no such prompt", None));
        }
        let arguments = params.arguments.unwrap_or_default();
        let name = arguments.get("name").and_then(|name| name.as_str());
        let text = format!("Greet {}.", name.unwrap_or("nobody"));
        let message = PromptMessage::new_text(Role::User, text);
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let names = ["Ada", "Alan"].into_iter().map(ToOwned::to_owned);
        let names = names.filter(|name| name.starts_with(&params.argument.value)).collect();
        let completion = CompletionInfo::with_all_values(names);
        Ok(CompleteResult::new(completion.map_err(|error| ErrorData::internal_error(error, None))?))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut resources = vec![Resource::new(NOTE, "note")];
        if self.journal.has(Change::Resources) {
            resources.push(Resource::new("memo://late", "late"));
        }
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("memo://about/{topic}", "about");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = match params.uri.strip_prefix("memo://about/") {
            Some(topic) => format!("All about {topic}."),
            None if params.uri == NOTE => "Remember the milk.".to_owned(),
            None => {
                return Err(ErrorData::resource_not_found(
                    "no such resource",
                    Some(json!({ "uri": params.uri })),
                ));
            }
        };
        let contents = ResourceContents::text(text, params.uri);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.journal.subscribing();
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let id = subscription.request_context().id.clone();
        self.journal.subscribed(id.clone(), subscription.sink().clone());
        subscription.cancelled().await;
        self.journal.unsubscribed(&id);
        Ok(())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.journal.watched(context.peer);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.journal.write("unsubscribed");
        Ok(())
    }
}
