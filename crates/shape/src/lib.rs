//! The tools that a model sees: selection, names, token cost and policy.

pub mod pin;
pub mod policy;
pub mod scan;

mod cache_toolbox;
mod deferred_call;
mod explain;
pub mod exposure;
#[cfg(test)]
mod fake;
mod limits;
pub mod look_alikes;
mod memo;
mod pin_toolbox;
mod policy_toolbox;
mod search_spec;
mod spill;
pub mod transform;
mod transform_toolbox;
pub mod visible_text;

pub use cache_toolbox::{CacheRule, CacheSpec, CacheToolbox};
pub use explain::{
    ExplainedChange, ExplanationStep, TransformEffect, TransformExplanation, explain,
    transform_effect,
};
pub use exposure::{Exposure, ExposureMode, ExposureSettings, ExposureToolbox};
pub use limits::{ApprovalLimits, ExposureLimits, ResultLimits};
pub use memo::CatalogMemo;
pub use pin_toolbox::PinToolbox;
pub use policy_toolbox::{OtherApprover, PolicySettings, PolicyToolbox, SharedApprovals};
pub use search_spec::SearchSpec;
pub use transform_toolbox::{TransformSet, TransformToolbox};
