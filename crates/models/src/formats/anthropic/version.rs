//! Options that a model of Anthropic's accepts, by its name: each generation refuses some of the previous one's.

use serde_json::{Value, json};

use crate::request::{ReasoningAmount, ReasoningEffort};

/// Model family and version, as far as the name reveals them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClaudeVersion<'a> {
    /// `opus`, `sonnet` and so on.
    family: &'a str,
    /// Zero if the name contains none.
    number: (u32, u32),
}

impl<'a> ClaudeVersion<'a> {
    pub(crate) fn of(model: &'a str) -> Self {
        let name = model.rsplit('/').next().unwrap_or_default();
        let Some(rest) = name.strip_prefix("claude-") else { return Self::default() };
        let mut version = Self::default();
        let mut numbers = Vec::new();
        for word in rest.split(['-', '.', '@', ':']) {
            match word.parse::<u32>() {
                // Longer ones are dates.
                Ok(number) if word.len() <= 2 => numbers.push(number),
                Err(_) if version.family.is_empty() => version.family = word,
                _ => break,
            }
        }
        version.number =
            (numbers.first().copied().unwrap_or(0), numbers.get(1).copied().unwrap_or(0));
        version
    }

    /// Default `max_tokens`: the API requires a number, and thinking counts.
    pub(crate) fn max_tokens(self) -> u32 {
        if self.number.0 >= 4 { 32_000 } else { 8192 }
    }

    /// Returns true if the model uses adaptive thinking, and accepts neither a budget nor a temperature.
    pub(crate) fn is_adaptive(self) -> bool {
        self.thinks_by_default() || self.family == "opus" && self.number >= (4, 7)
    }

    /// Returns the thinking budget in tokens, if the model takes one.
    pub(crate) fn budget(self, reasoning: ReasoningAmount) -> Option<u32> {
        let is_old = self.number.0 > 0 && self.number < (4, 6);
        match reasoning {
            _ if self.is_adaptive() || reasoning.effort() == ReasoningEffort::Off => None,
            ReasoningAmount::Budget(budget) => Some(budget.max(1024)),
            // A name that tells no number is taken for one of a newer model.
            ReasoningAmount::Effort(_) if !is_old => None,
            ReasoningAmount::Effort(effort) => Some(match effort {
                ReasoningEffort::Off | ReasoningEffort::Minimal => 1024,
                ReasoningEffort::Low => 2048,
                ReasoningEffort::Medium => 8192,
                ReasoningEffort::High => 16_384,
                ReasoningEffort::Max => 24_576,
            }),
        }
    }

    /// Returns true if the model thinks by default.
    pub(crate) fn thinks_by_default(self) -> bool {
        self.number.0 >= 5
    }

    /// Returns the `thinking` member that enables thinking, with summaries: newer models omit them by default.
    pub(crate) fn thinking(self) -> Value {
        if self.is_adaptive() {
            json!({ "type": "adaptive", "display": "summarized" })
        } else {
            json!({ "type": "adaptive" })
        }
    }

    /// Returns the `thinking` member that disables thinking; `None` if that is not possible.
    pub(crate) fn thinking_off(self) -> Option<Value> {
        match self.family {
            "sonnet" if self.number >= (5, 5) => Some(json!({ "type": "between_tools" })),
            "fable" | "mythos" => None,
            _ if self.number >= (5, 5) => None,
            _ => Some(json!({ "type": "disabled" })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ChatMessage;
    use crate::request::ModelRequest;
    use crate::tests::sample::body;
    use crate::wire_format::WireFormat;

    #[test]
    fn a_name_tells_its_family_and_its_number() {
        for (model, family, number) in [
            ("claude-sonnet-5-5", "sonnet", (5, 5)),
            ("anthropic/claude-opus-4.7", "opus", (4, 7)),
            ("claude-haiku-4-5-20251001", "haiku", (4, 5)),
            ("claude-opus-5", "opus", (5, 0)),
            ("claude-3-5-haiku-latest", "haiku", (3, 5)),
            ("claude-sonnet-4@20250514", "sonnet", (4, 0)),
            ("claude", "", (0, 0)),
            ("kimi-k3", "", (0, 0)),
        ] {
            assert_eq!(ClaudeVersion::of(model), ClaudeVersion { family, number }, "{model}");
        }
    }

    #[test]
    fn each_generation_is_asked_as_it_takes_it() {
        let asked = |model: &str, reasoning: Option<ReasoningAmount>| {
            let messages = vec![ChatMessage::user("hi")];
            let request = ModelRequest {
                reasoning,
                temperature: Some(0.5),
                ..ModelRequest::new(model, messages)
            };
            let body: Value = serde_json::from_str(&body(WireFormat::Anthropic, &request)).unwrap();
            let members = ["max_tokens", "temperature", "thinking", "output_config"];
            let told =
                members.iter().filter_map(|name| Some(format!("{name} {}", body.get(name)?)));
            told.collect::<Vec<_>>().join(", ")
        };
        let (off, high) = (
            ReasoningAmount::Effort(ReasoningEffort::Off),
            ReasoningAmount::Effort(ReasoningEffort::High),
        );
        let wishes = [None, Some(off), Some(high), Some(ReasoningAmount::Budget(2048))];
        let models = [
            "claude-haiku-4-5",
            "claude-opus-4-8",
            "claude-opus-5",
            "claude-sonnet-5-5",
            "claude-opus-5-5",
        ];
        let told: Vec<String> = models
            .iter()
            .map(|model| {
                let lines = wishes.map(|wish| format!("  {}", asked(model, wish)));
                format!("{model}\n{}", lines.join("\n"))
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        claude-haiku-4-5
          max_tokens 32000, temperature 0.5
          max_tokens 32000, temperature 0.5, thinking {"type":"disabled"}
          max_tokens 32000, thinking {"budget_tokens":16384,"type":"enabled"}
          max_tokens 32000, thinking {"budget_tokens":2048,"type":"enabled"}
        claude-opus-4-8
          max_tokens 32000
          max_tokens 32000, thinking {"type":"disabled"}
          max_tokens 32000, thinking {"display":"summarized","type":"adaptive"}, output_config {"effort":"high"}
          max_tokens 32000, thinking {"display":"summarized","type":"adaptive"}, output_config {"effort":"low"}
        claude-opus-5
          max_tokens 32000, thinking {"display":"summarized","type":"adaptive"}
          max_tokens 32000, thinking {"type":"disabled"}
          max_tokens 32000, thinking {"display":"summarized","type":"adaptive"}, output_config {"effort":"high"}
          max_tokens 32000, thinking {"display":"summarized","type":"adaptive"}, output_config {"effort":"low"}
        claude-sonnet-5-5
          max_tokens 32000, thinking {"display":"summarized","type":"adaptive"}
          max_tokens 32000, thinking {"type":"between_tools"}
          max_tokens 32000, thinking {"display":"summarized","type":"adaptive"}, output_config {"effort":"high"}
          max_tokens 32000, thinking {"display":"summarized","type":"adaptive"}, output_config {"effort":"low"}
        claude-opus-5-5
          max_tokens 32000, thinking {"display":"summarized","type":"adaptive"}
          max_tokens 32000, output_config {"effort":"low"}
          max_tokens 32000, thinking {"display":"summarized","type":"adaptive"}, output_config {"effort":"high"}
          max_tokens 32000, thinking {"display":"summarized","type":"adaptive"}, output_config {"effort":"low"}
        "#);
    }
}
