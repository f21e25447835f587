//! The trace context in the `_meta` of a request.

use super::TraceContext;
use crate::json::Object;
use crate::splice::ObjectWriter;

/// Returns the trace context of a request, from its `_meta`.
pub fn of_params(params: &Object) -> Option<TraceContext> {
    of_meta(params.meta()?)
}

/// Returns the trace context in a `_meta`.
pub fn of_meta(meta: &Object) -> Option<TraceContext> {
    // Most have none.
    meta.get_bytes(TraceContext::KEYS[0])?;
    let texts = TraceContext::KEYS.map(|key| meta.text(key));
    let at = |key: &str| TraceContext::KEYS.iter().position(|known| *known == key);
    TraceContext::read(|key| texts[at(key)?].as_deref())
}

/// Adds a trace context to a `_meta`.
pub fn meta_with(meta: &Object, context: &TraceContext) -> Object {
    let mut writer = ObjectWriter::with_capacity(meta.as_bytes().len() + 128);
    writer.members(meta, &TraceContext::KEYS);
    for (key, value) in context.fields() {
        writer.text(key, &value);
    }
    writer.finish_object()
}

/// Adds a trace context to parameters.
pub fn params_with(params: &Object, context: &TraceContext) -> Object {
    let mut writer = ObjectWriter::with_capacity(params.as_bytes().len() + 128);
    writer.members(params, &["_meta"]);
    writer.object("_meta", |written| {
        if let Some(meta) = params.meta() {
            written.members(meta, &TraceContext::KEYS);
        }
        for (key, value) in context.fields() {
            written.text(key, &value);
        }
    });
    writer.finish_object()
}
