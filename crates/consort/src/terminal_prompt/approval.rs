//! Approval of a call, requested in one line.

use consort_core::escape::escape_text;
use consort_core::{Json, Object};
use serde_json::{Value, json};

use super::{read, say};
use crate::keyboard;
use crate::output::TerminalText;

/// Answer to an approval request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ApprovalAnswer {
    /// Approve, for this scope.
    Approve(&'static str),
    /// Edit the arguments.
    Edit,
    /// Deny.
    Deny,
}

/// Asks for approval of a call; `None` if this is another kind of request.
pub(super) fn ask(params: &Object) -> Option<Value> {
    let schema: Value = params.get("requestedSchema")?.read().ok()?;
    let fields = &schema["properties"];
    if !fields["decision"].is_object() {
        return None;
    }
    let message = params.text("message").unwrap_or_default();
    say(&format!("\n{}", escape_text(&message)));
    let editable = fields["arguments"].is_object();
    Some(decide(&message, editable))
}

fn decide(message: &str, editable: bool) -> Value {
    let edit = if editable { ", [e]dit" } else { "" };
    let prompt = format!("Approve? [o]nce, this [s]ession, [a]lways{edit}, [d]eny: ");
    let mut edited: Option<String> = None;
    loop {
        let Some(line) = read(&prompt) else { return json!({ "action": "cancel" }) };
        match parse_answer(&line) {
            Some(ApprovalAnswer::Approve(decision)) => {
                let mut content = json!({ "decision": decision });
                if let Some(edited) = edited {
                    content["arguments"] = edited.into();
                }
                return json!({ "action": "accept", "content": content });
            }
            Some(ApprovalAnswer::Edit) if editable => {
                let before = edited.clone().or_else(|| arguments(message)).unwrap_or_default();
                let Some(text) = keyboard::line("Arguments: ", TerminalText::json(&before)) else {
                    return json!({ "action": "cancel" });
                };
                match Json::parse(text.trim().to_owned())
                    .ok()
                    .filter(|json| json.to_object().is_some())
                {
                    Some(json) => edited = Some(json.as_str().to_owned()),
                    None => say(r#"Not a JSON object. Write {"name": "value"}."#),
                }
            }
            Some(ApprovalAnswer::Deny) => {
                let Some(reason) = read("Reason for the caller (optional): ") else {
                    return json!({ "action": "cancel" });
                };
                let content = json!({ "decision": "deny", "reason": reason });
                return json!({ "action": "accept", "content": content });
            }
            _ => say("Enter once, session, always, edit or deny."),
        }
    }
}

fn parse_answer(line: &str) -> Option<ApprovalAnswer> {
    Some(match line.to_lowercase().as_str() {
        "o" | "once" | "y" | "yes" => ApprovalAnswer::Approve("once"),
        "s" | "session" => ApprovalAnswer::Approve("session"),
        "a" | "always" => ApprovalAnswer::Approve("always"),
        "e" | "edit" => ApprovalAnswer::Edit,
        "d" | "deny" | "n" | "no" | "." => ApprovalAnswer::Deny,
        _ => return None,
    })
}

/// The arguments shown in the message, on one line.
fn arguments(message: &str) -> Option<String> {
    let (_, shown) = message.split_once("\n\n")?;
    let value: Value = serde_json::from_str(shown).ok()?;
    value.is_object().then(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_or_its_first_letter_will_do() {
        for (line, meant) in [
            ("o", Some(ApprovalAnswer::Approve("once"))),
            ("Yes", Some(ApprovalAnswer::Approve("once"))),
            ("always", Some(ApprovalAnswer::Approve("always"))),
            ("e", Some(ApprovalAnswer::Edit)),
            ("no", Some(ApprovalAnswer::Deny)),
            ("", None),
            ("maybe", None),
        ] {
            assert_eq!(parse_answer(line), meant, "{line}");
        }
    }

    #[test]
    fn what_is_edited_begins_as_it_is_shown() {
        let message = "`x` wants to call `a.b` (reads)\n\n{\n  \"n\": 1\n}";
        assert_eq!(arguments(message).as_deref(), Some(r#"{"n":1}"#));
        assert_eq!(arguments("no arguments"), None);
        assert_eq!(arguments("cut\n\n{\"n\": …"), None);
    }
}
