//! Definitions under the names that clients see, and URIs that fit a template.

use consort_core::{CatalogEntry, Object, PrimitiveKind};
use consort_protocol::splice::ObjectWriter;

/// Returns a definition under its public name.
pub(super) fn renamed(kind: PrimitiveKind, entry: &CatalogEntry, name: &str) -> Object {
    if name == entry.name {
        return entry.definition.clone();
    }
    let mut writer = ObjectWriter::new();
    for (member, value) in entry.definition.members() {
        if member == kind.name() {
            writer.text(kind.name(), name);
        } else {
            writer.written(member, value.as_bytes());
        }
    }
    writer.finish_object()
}

/// Returns true if a URI may match a template: it contains the fixed parts in order.
pub(super) fn fits(template: &str, uri: &str) -> bool {
    let mut parts = template.split('{');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = uri.strip_prefix(first) else { return false };
    let mut open = false;
    for part in parts {
        let fixed = part.split_once('}').map_or("", |(_, fixed)| fixed);
        open = fixed.is_empty();
        if !fixed.is_empty() {
            let Some(at) = rest.find(fixed) else { return false };
            rest = &rest[at + fixed.len()..];
        }
    }
    open || rest.is_empty()
}
