//! Limits of a model's answer.

/// Limits of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Bytes of a model's answer.
    pub answer_bytes: usize,
    /// Bytes of one event of an answer.
    pub event_bytes: usize,
    /// Bytes of the arguments of one call.
    pub argument_bytes: usize,
    /// Calls in one answer.
    pub calls: usize,
    /// Events of an answer.
    pub events: usize,
    /// Bytes of an error response.
    pub error_bytes: usize,
    /// Nesting depth of arguments that arrive in pieces.
    pub argument_depth: usize,
    /// Greatest array index in arguments that arrive in pieces.
    pub argument_index: usize,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self {
            answer_bytes: 256 << 20,
            event_bytes: 32 << 20,
            argument_bytes: 4 << 20,
            calls: 256,
            events: 1_000_000,
            error_bytes: 1 << 20,
            argument_depth: 64,
            argument_index: 10_000,
        }
    }
}
