//! Editing servers in a TOML text.

use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, TableLike, Value};

use super::{EditError, INPUTS, OutputValue, consort};

pub(super) fn add(
    body: &str,
    path: &[&str],
    servers: &[(String, OutputValue)],
    inputs: &[OutputValue],
) -> Result<String, EditError> {
    let mut document = parse(body)?;
    let (last, outer) = path.split_last().expect("no path is empty");
    let outer = outer.iter().try_fold(document.as_item_mut(), |item, key| inner(item, key))?;
    if !inputs.is_empty() {
        ask(outer, inputs)?;
    }
    let container = inner(outer, last)?;
    for (name, server) in servers {
        match &mut *container {
            Item::Table(table) => {
                let mut entry = server.to_table();
                // A table that is written key by key cannot be added to in another way.
                entry.set_dotted(table.is_dotted());
                if !body.trim().is_empty() || servers[0].0 != *name {
                    entry.decor_mut().set_prefix("\n");
                }
                table.insert(name, Item::Table(entry));
            }
            item => {
                let table = item.as_table_like_mut().ok_or_else(|| shape(last))?;
                table.insert(name, toml_edit::value(server.to_value()));
            }
        }
    }
    Ok(as_before(body, document.to_string()))
}

pub(super) fn remove(body: &str, path: &[&str], name: &str) -> Result<String, EditError> {
    let mut document = parse(body)?;
    let container = path.iter().try_fold(document.as_item_mut(), |item, key| inner(item, key))?;
    let position = container.as_table().and_then(Table::position).unwrap_or(0);
    let table = container.as_table_like_mut().ok_or_else(|| shape("the document"))?;
    let above = table.key(name).and_then(|key| comments(key.leaf_decor().prefix()?.as_str()?));
    let next = resolver(table, name);
    let gone = table.remove(name);
    // What is written above it may be about something else: the whole file, say.
    let above = match gone {
        Some(Item::Table(mut gone)) if !gone.is_dotted() => header(&mut gone),
        _ => above.map(|above| (position, above)),
    };
    if let (Some(next), Some((_, above))) = (&next, &above) {
        if let Some(mut key) = table.key_mut(next) {
            put_above(key.leaf_decor_mut(), above);
        }
    } else if let Item::Table(table) = container
        && table.is_empty()
        && path != [consort::KEY]
    {
        // In the settings of others, the key tells that there are servers at all.
        table.set_implicit(false);
    }
    if let (None, Some((position, above))) = (next, above) {
        hand_on(&mut document, position, &above);
    }
    Ok(as_before(body, document.to_string()))
}

fn put_above(decor: &mut toml_edit::Decor, comment: &str) {
    let own = decor.prefix().and_then(|own| own.as_str()).unwrap_or_default();
    let joined = format!("{comment}{own}");
    decor.set_prefix(joined);
}

fn parse(body: &str) -> Result<DocumentMut, EditError> {
    // It was parsed before.
    body.parse().map_err(|_| shape("the document"))
}

/// Returns the table under a key, created if absent.
fn inner<'a>(item: &'a mut Item, key: &str) -> Result<&'a mut Item, EditError> {
    let table = item.as_table_like_mut().ok_or_else(|| shape(key))?;
    let fresh = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    let item = table.entry(key).or_insert_with(fresh);
    if item.is_table_like() { Ok(item) } else { Err(shape(key)) }
}

fn ask(outer: &mut Item, inputs: &[OutputValue]) -> Result<(), EditError> {
    let table = outer.as_table_like_mut().ok_or_else(|| shape(INPUTS))?;
    let list = table.entry(INPUTS).or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    for input in inputs {
        match list {
            Item::ArrayOfTables(list) => list.push(input.to_table()),
            Item::Value(Value::Array(list)) => list.push(input.to_value()),
            _ => return Err(shape(INPUTS)),
        }
    }
    Ok(())
}

/// The key that is written after another, if neither has a header.
fn resolver(table: &dyn TableLike, name: &str) -> Option<String> {
    let plain = |item: &Item| item.is_value() || item.as_table().is_some_and(Table::is_dotted);
    table.get(name).filter(|item| plain(item))?;
    let mut keys = table.iter().skip_while(|(key, _)| *key != name).skip(1);
    keys.find(|(_, item)| plain(item)).map(|(key, _)| key.to_owned())
}

/// The position of a table's first header, and the comments above it. Comments further down are inside the table.
fn header(table: &mut Table) -> Option<(isize, String)> {
    let mut first: Option<(isize, Option<String>)> = None;
    let mut look = |table: &mut Table| {
        let Some(position) = table.position() else { return };
        if first.as_ref().is_none_or(|(known, _)| position < *known) {
            let above = table.decor().prefix().and_then(|prefix| comments(prefix.as_str()?));
            first = Some((position, above));
        }
    };
    if !table.is_implicit() {
        look(table);
    }
    each(table, &mut look);
    first.and_then(|(position, above)| Some((position, above?)))
}

/// The text, if it contains a comment.
fn comments(text: &str) -> Option<String> {
    text.contains('#').then(|| text.to_owned())
}

/// Moves a comment above the next table, or to the end.
fn hand_on(document: &mut DocumentMut, position: isize, comment: &str) {
    let mut next: Option<isize> = None;
    each(document.as_table_mut(), &mut |table| {
        let later = table.position().filter(|at| *at > position);
        next = match (next, later) {
            (Some(known), Some(later)) => Some(known.min(later)),
            (known, later) => known.or(later),
        };
    });
    let Some(next) = next else {
        let own = document.trailing().as_str().unwrap_or_default();
        let joined = format!("{comment}{own}");
        document.set_trailing(joined);
        return;
    };
    each(document.as_table_mut(), &mut |table| {
        if table.position() == Some(next) {
            put_above(table.decor_mut(), comment);
        }
    });
}

/// Visits every table that has a header.
fn each(table: &mut Table, visit: &mut dyn FnMut(&mut Table)) {
    for (_, item) in table.iter_mut() {
        match item {
            Item::Table(inner) => {
                if !inner.is_implicit() && !inner.is_dotted() {
                    visit(inner);
                }
                each(inner, visit);
            }
            Item::ArrayOfTables(list) => {
                for inner in list.iter_mut() {
                    visit(inner);
                    each(inner, visit);
                }
            }
            _ => {}
        }
    }
}

/// Restores the line ends of the original text.
fn as_before(before: &str, after: String) -> String {
    let (all, windows) = (before.matches('\n').count(), before.matches("\r\n").count());
    if all == 0 || windows < all {
        return after;
    }
    after.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn shape(what: &str) -> EditError {
    EditError::Shape(what.to_owned())
}
