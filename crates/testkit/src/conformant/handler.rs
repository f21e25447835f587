//! Request handler of the server.

#![expect(deprecated, reason = "the legacy era has what the modern one deprecates")]

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, PromptMessage, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, Role, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::dialogue::{Given, Turn};
use super::questions::ASKING_PROMPT;
use super::{Asking, Conformant, offers, questions, results};

/// Time to live of results in a modern client's cache.
const KEEP_MS: u64 = 60_000;

/// Candidates for the completion of an argument.
const WORDS: &[&str] = &["paris", "park", "party", "test", "testing"];

impl ServerHandler for Conformant {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
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
        if self.asking == Asking::AsTheSdk {
            capabilities.completions = None;
        }
        let mut info = ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("conformant", "1.0.0"));
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
        self.listeners().peers.push(context.peer);
        if self.asking == Asking::AsTheSdk {
            let ServerConfig { capabilities, server_info, .. } = self.get_info();
            let result = InitializeResult::new(capabilities).with_server_info(server_info);
            return Ok(result.with_protocol_version(params.protocol_version));
        }
        self.negotiate_initialize(&params)
    }

    async fn set_level(
        &self,
        params: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.level() = Some(params.level);
        Ok(())
    }

    /// Returns a tool, from which the SDK learns the arguments that are sent in headers.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        offers::tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let changes = self.shared.changes[0].load(Ordering::Relaxed);
        let mut tools = offers::changed_tools(changes);
        tools.retain(|tool| self.offers_tasks || !offers::TASKS.contains(&tool.name.as_ref()));
        let list = ListToolsResult::with_all_items(tools);
        Ok(list.with_ttl_ms(KEEP_MS).with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(params, &context).await
    }

    async fn get_task(
        &self,
        params: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.shared.tasks.get_task(&params.task_id)?))
    }

    async fn update_task(
        &self,
        params: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.update_task(&params.task_id, params.input_responses)
    }

    async fn cancel_task(
        &self,
        params: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.cancel_task(&params.task_id)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let changes = self.shared.changes[1].load(Ordering::Relaxed);
        let list = ListPromptsResult::with_all_items(offers::changed_prompts(changes));
        Ok(list.with_ttl_ms(KEEP_MS).with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if params.name != ASKING_PROMPT {
            let arguments = params.arguments.unwrap_or_default();
            return results::of_prompt(&params.name, &arguments).map(Into::into);
        }
        let given = Given {
            subject: &params.name,
            responses: params.input_responses.as_ref(),
            state: params.request_state.as_deref(),
        };
        let (dialogue, seal) = (questions::of_prompt(), &self.shared.seal);
        let turn = match self.asking {
            Asking::AsTheSdk => dialogue.turn_modern(&given, seal),
            Asking::InBoth | Asking::ByEra => dialogue.turn(given, seal, &context).await,
        };
        match turn? {
            Turn::Required(required) => Ok(required.into()),
            Turn::Answered(answers) => {
                let answer =
                    answers.get("user_context").map(|answer| &answer["content"]["context"]);
                let about = answer.and_then(|about| about.as_str()).unwrap_or("nothing");
                let message = PromptMessage::new_text(Role::User, format!("It is about {about}."));
                Ok(GetPromptResult::new(vec![message]).into())
            }
        }
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let begun = params.argument.value;
        let words = WORDS.iter().filter(|word| word.starts_with(&begun));
        let words = words.map(|word| (*word).to_owned()).collect();
        let completion = CompletionInfo::with_all_values(words);
        Ok(CompleteResult::new(completion.map_err(|error| ErrorData::internal_error(error, None))?))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut resources = offers::resources();
        if self.asking == Asking::AsTheSdk {
            resources.retain(|resource| resource.uri != offers::WATCHED);
        }
        let list = ListResourcesResult::with_all_items(resources);
        Ok(list.with_ttl_ms(KEEP_MS).with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let list = ListResourceTemplatesResult::with_all_items(offers::templates());
        Ok(list.with_ttl_ms(KEEP_MS).with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = results::of_resource(&params.uri)?;
        Ok(read.with_ttl_ms(KEEP_MS).with_cache_scope(CacheScope::Public).into())
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        results::of_resource(&params.uri).map(|_| ())
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        results::of_resource(&params.uri).map(|_| ())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let id = subscription.request_context().id.clone();
        self.listeners().sinks.insert(id.clone(), subscription.sink().clone());
        subscription.cancelled().await;
        self.listeners().sinks.remove(&id);
        Ok(())
    }
}
