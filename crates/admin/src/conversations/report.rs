//! Reports of conversations.

use consort_agent::store::{ConversationHead, ConversationState, ConversationSummary};
use consort_agent::{ConversationStep, RunState, StepEvent};
use consort_core::utc;
use schemars::JsonSchema;
use serde::Serialize;

use crate::pending_requests::PendingRequest;
use crate::runs::{MessageRow, RunReportRow};

/// Summary of a conversation.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConversationSummary")]
pub(super) struct ConversationRow {
    pub(super) id: String,
    /// Title.
    pub(super) title: String,
    pub(super) created: String,
    /// Time of its last step.
    pub(super) last: String,
    pub(super) messages: usize,
    /// Input tokens of its models.
    pub(super) input: u64,
    /// Output tokens of its models.
    pub(super) output: u64,
    /// State: new, unfinished, waiting, completed and so on.
    pub(super) state: &'static str,
    /// True while a run that the console started is in progress.
    pub(super) running: bool,
}

/// A conversation with its messages.
#[derive(Serialize, JsonSchema)]
pub(super) struct ConversationDetail {
    #[serde(flatten)]
    pub(super) summary: ConversationRow,
    /// Agent of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    /// Messages. During a run, those before it and its input; its events have the rest.
    pub(super) entries: Vec<MessageRow>,
    /// Pending requests.
    pub(super) pending: Vec<PendingRequest>,
    /// Report of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) report: Option<RunReportRow>,
}

impl ConversationRow {
    pub(super) fn of(summary: ConversationSummary, running: bool) -> Self {
        Self {
            id: summary.id.to_string(),
            title: summary.title,
            created: utc(summary.created / 1000),
            last: utc(summary.last / 1000),
            messages: summary.messages,
            input: summary.input,
            output: summary.output,
            state: match summary.state {
                ConversationState::New if running => ConversationState::Unfinished,
                state => state,
            }
            .as_str(),
            running,
        }
    }

    /// Builds the summary from the steps.
    pub(super) fn read(
        head: &ConversationHead,
        steps: &[ConversationStep],
        run: &RunState,
        running: bool,
    ) -> Self {
        let (mut input, mut output) = (0, 0);
        for step in steps {
            if let StepEvent::Reply { reply } = &step.event {
                input += reply.usage.input;
                output += reply.usage.output;
            }
        }
        let state = match run.outcome() {
            _ if run.is_unfinished() => ConversationState::Unfinished,
            Some(status) => ConversationState::Over(status),
            // A run may wait for servers before it stores its start.
            None if running => ConversationState::Unfinished,
            None => ConversationState::New,
        };
        Self {
            id: head.id.to_string(),
            title: head.title.clone(),
            created: utc(head.created / 1000),
            last: utc(steps.last().map_or(head.created, |step| step.at) / 1000),
            messages: run.messages().len(),
            input,
            output,
            state: state.as_str(),
            running,
        }
    }
}
