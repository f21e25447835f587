//! Limits of a run.

use std::time::Duration;

use crate::cost::ModelCost;
use consort_models::{TokenPrice, TokenUsage};

/// Limits of a run, after which it is ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLimits {
    /// Model requests.
    pub turns: u32,
    /// Tool calls.
    pub calls: u32,
    /// Tokens, input and output, with those of the agents it calls.
    pub tokens: Option<u64>,
    /// Cost in US dollars, with the agents it calls. A run whose model has no known price is refused.
    pub cost: Option<f64>,
    /// Duration.
    pub time: Option<Duration>,
    /// Identical calls in a row.
    pub repeats: u32,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { turns: 50, calls: 200, tokens: None, cost: None, time: None, repeats: 3 }
    }
}

/// Limits of an agent's work: attempts, chains of agents, summaries, results and sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkLimits {
    /// Attempts of a call that is certain never to have reached its server.
    pub call_attempts: u32,
    /// Length of a chain of agents that call one another.
    pub agent_depth: usize,
    /// Bytes of each message that is summarized.
    pub summarized_bytes: usize,
    /// Bytes of all messages that are summarized together; the latest are kept.
    pub summarized_total: usize,
    /// Bytes of a result below which it is not shortened.
    pub least_result: usize,
    /// Tokens of one answer to a server's sampling request.
    pub sampling_answer: u32,
    /// Token budget of servers' sampling requests in a run.
    pub sampling_tokens: u64,
}

impl Default for WorkLimits {
    fn default() -> Self {
        Self {
            call_attempts: 3,
            agent_depth: 3,
            summarized_bytes: 4096,
            summarized_total: 128 << 10,
            least_result: 1024,
            sampling_answer: 4096,
            sampling_tokens: 100_000,
        }
    }
}

impl RunLimits {
    /// Returns the limit that is reached, as text.
    pub(crate) fn exceeded_limit(
        &self,
        usage: &TokenUsage,
        price: Option<TokenPrice>,
        agents: ModelCost,
        millis: u64,
    ) -> Option<String> {
        let tokens = usage.input + usage.output + agents.tokens;
        let own = price.map(|price| price.of(usage));
        let cost = own.map(|own| own + agents.dollars);
        if let Some(reached) = self.spent_limit(tokens, cost) {
            return Some(reached);
        }
        let time = self.time?;
        (Duration::from_millis(millis) >= time).then(|| self.time_reached())
    }

    /// Returns the limit that is reached by this many tokens and US dollars, as text.
    pub(crate) fn spent_limit(&self, used: u64, cost: Option<f64>) -> Option<String> {
        if let Some(tokens) = self.tokens.filter(|tokens| used >= *tokens) {
            return Some(format!("the run used {used} of {tokens} tokens"));
        }
        let (most, cost) = (self.cost?, cost?);
        (cost >= most).then(|| format!("the run cost {cost:.4} of {most} US dollars"))
    }

    pub(crate) fn time_reached(&self) -> String {
        format!("the run took longer than {:?}", self.time.unwrap_or_default())
    }

    pub(crate) fn turns_reached(&self) -> String {
        format!("{} model requests were sent, the maximum", self.turns)
    }

    pub(crate) fn calls_reached(&self) -> String {
        format!("{} tool calls were made, the maximum", self.calls)
    }

    pub(crate) fn repeats_reached(&self, tool: &str) -> String {
        format!(
            "the model called `{tool}` with the same arguments {} times in a row",
            self.repeats + 1
        )
    }
}
