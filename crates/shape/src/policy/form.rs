//! The approval request for a call.

use consort_core::{Json, Revision};
use consort_protocol::splice::ObjectWriter;
use serde_json::{Value, json};

use super::{
    ApprovalLifetime, ArgumentBinding, PolicyDecision, PolicyEffect, PolicyQuestion, arguments,
    display,
};
use crate::limits::ApprovalLimits;

/// The longest reason a person may give, in characters.
const REASON: usize = 500;

const ONCE: &str = "once";
const SESSION: &str = "session";
const ALWAYS: &str = "always";
const DENY: &str = "deny";

/// An approval request, for MCP's `elicitation/create` in form mode.
#[derive(Clone, Debug)]
pub struct ApprovalForm {
    message: String,
    schema: Json,
    revision: Revision,
    original: Json,
    /// The arguments in editable form.
    editable: Option<String>,
}

/// A person's answer. Anything but a clear approval is a denial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalVerdict {
    /// The call may go ahead.
    Approve {
        /// Lifetime of the approval, for the arguments as they are now.
        approval: ApprovalLifetime,
        /// The arguments as edited by the person, if they were. They must be decided on again: rules
        /// that deny hold for them too.
        edited: Option<Json>,
    },
    /// It may not.
    Deny {
        /// Reason sent to the caller.
        reason: String,
    },
}

impl ApprovalForm {
    /// Creates the request for a call, in the protocol revision of the person's client. Fails for
    /// arguments that parsers may read differently: it would be unclear what was approved.
    pub fn new(
        question: &PolicyQuestion<'_>,
        decision: &PolicyDecision,
        revision: Revision,
        limits: ApprovalLimits,
    ) -> Result<Self, String> {
        let original = match question.arguments {
            Some(arguments) => arguments.clone(),
            None => Json::parse("{}").expect("it is JSON"),
        };
        arguments::read(&original)?;
        let text = original.as_str();
        let editable = (text.len() <= limits.editable_bytes).then(|| display::json(text));
        let (reason, binding) = match &decision.effect {
            PolicyEffect::Ask { reason, binding } => (Some(reason), *binding),
            PolicyEffect::Allow | PolicyEffect::Deny { .. } => (None, ArgumentBinding::Shape),
        };
        let mut message = format!(
            "`{}` wants to call `{}.{}` ({})",
            display::line(&question.caller.label()),
            display::line(question.server),
            display::line(question.tool),
            decision.classes,
        );
        if let Some(reason) = reason {
            message.push_str(": ");
            message.push_str(&display::line(reason));
        }
        message.push_str("\n\n");
        message.push_str(&display::json(&display::indent(text, limits.shown_bytes)));
        let schema = schema(editable.as_deref(), binding, revision);
        Ok(Self { message, schema, revision, original, editable })
    }

    /// The message to the person.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The schema of the form: a flat object of strings.
    pub fn schema(&self) -> &Json {
        &self.schema
    }

    /// The parameters of `elicitation/create`.
    pub fn params(&self) -> Json {
        let mut params = ObjectWriter::new();
        if self.revision.has_elicitation_modes() {
            params.text("mode", "form");
        }
        params.text("message", &self.message);
        params.raw("requestedSchema", self.schema.as_bytes());
        params.finish()
    }

    /// Reads the client's result: `action` and `content`.
    pub fn read_answer(&self, answer: &Json) -> ApprovalVerdict {
        self.read_verdict(answer).unwrap_or_else(|reason| ApprovalVerdict::Deny { reason })
    }

    fn read_verdict(&self, answer: &Json) -> Result<ApprovalVerdict, String> {
        let answer = arguments::read(answer)
            .map_err(|_| "invalid response to the approval request".to_owned())?;
        match answer["action"].as_str() {
            Some("accept") => {}
            Some("decline") => return Err("the user declined".to_owned()),
            Some("cancel") => return Err("the user dismissed the request".to_owned()),
            _ => {
                return Err("the response to the approval request has no known `action`".to_owned());
            }
        }
        let content = &answer["content"];
        let approval = match content["decision"].as_str() {
            Some(ONCE) => ApprovalLifetime::Once,
            Some(SESSION) => ApprovalLifetime::Session,
            Some(ALWAYS) => ApprovalLifetime::Always,
            Some(DENY) => return Err(deny(content["reason"].as_str().unwrap_or_default())),
            _ => {
                return Err(
                    "the response to the approval request has no known `decision`".to_owned()
                );
            }
        };
        let edited = self.read_edit(content.get("arguments"))?;
        Ok(ApprovalVerdict::Approve { approval, edited })
    }

    /// Returns the edited arguments, if they were edited.
    fn read_edit(&self, answer: Option<&Value>) -> Result<Option<Json>, String> {
        let text = match answer {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.trim(),
            Some(_) => return Err("the edited arguments are not a string".to_owned()),
        };
        if text.is_empty()
            || text == self.original.as_str()
            || self.editable.as_deref() == Some(text)
        {
            return Ok(None);
        }
        if self.editable.is_none() {
            return Err("the arguments are too large to be edited".to_owned());
        }
        let edited = Json::parse(text.to_owned())
            .map_err(|error| format!("the edited arguments are not JSON: {error}"))?;
        arguments::read(&edited)?;
        if edited.to_object().is_none() {
            return Err("the edited arguments are not a JSON object".to_owned());
        }
        Ok(Some(edited))
    }
}

fn deny(reason: &str) -> String {
    let reason: String = reason.trim().chars().take(REASON).collect();
    if reason.is_empty() {
        return "denied by the user".to_owned();
    }
    format!("denied by the user: {}", display::line(&reason))
}

/// The form, in the order people fill it in.
fn schema(editable: Option<&str>, binding: ArgumentBinding, revision: Revision) -> Json {
    let covered = match binding {
        ArgumentBinding::Shape => "for arguments of this form",
        ArgumentBinding::Exact => "for exactly these arguments",
    };
    let choices = [
        (ONCE, "Approve once".to_owned()),
        (SESSION, format!("Approve for this session, {covered}")),
        (ALWAYS, format!("Always approve, {covered}")),
        (DENY, "Deny".to_owned()),
    ];
    let mut decision = json!({ "type": "string", "title": "Decision" });
    // Titles have had two spellings; clients know that of their revision.
    if revision.has_titled_choices() {
        let titled = choices.map(|(value, title)| json!({ "const": value, "title": title }));
        decision["oneOf"] = titled.as_slice().into();
    } else {
        decision["enum"] = choices.each_ref().map(|(value, _)| *value).as_slice().into();
        decision["enumNames"] = choices.map(|(_, title)| title).as_slice().into();
    }
    let mut writer = ObjectWriter::new();
    writer.text("type", "object");
    writer.object("properties", |properties| {
        properties.raw("decision", decision.to_string().as_bytes());
        if let Some(text) = editable {
            let mut arguments = json!({
                "type": "string",
                "title": "Arguments",
                "description": "JSON. Edit the arguments before they are sent; empty sends them unchanged",
            });
            // A text could not have a default before.
            if revision.has_text_defaults() {
                arguments["default"] = text.into();
            }
            properties.raw("arguments", arguments.to_string().as_bytes());
        }
        let reason = json!({
            "type": "string",
            "title": "Reason",
            "description": "If you deny the call: the reason sent to the caller",
            "maxLength": REASON,
        });
        properties.raw("reason", reason.to_string().as_bytes());
    });
    writer.raw("required", br#"["decision"]"#);
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::EffectClasses;
    use consort_core::{Caller, ToolAnnotations};

    fn form(arguments: &str, revision: Revision) -> ApprovalForm {
        let (caller, json) = (Caller::agent("coder"), Json::parse(arguments.to_owned()).unwrap());
        let question = PolicyQuestion {
            caller: &caller,
            profile: None,
            server: "github",
            tool: "delete_repo",
            annotations: ToolAnnotations::default(),
            arguments: Some(&json),
        };
        let effect = PolicyEffect::Ask {
            reason: "it cannot be undone".into(),
            binding: ArgumentBinding::Shape,
        };
        let classes = EffectClasses::from_hints(ToolAnnotations::default());
        let decision = PolicyDecision { effect, rule: None, unsure: None, classes };
        ApprovalForm::new(&question, &decision, revision, ApprovalLimits::default()).unwrap()
    }

    #[expect(clippy::needless_pass_by_value, reason = "answers are written in place")]
    fn read(form: &ApprovalForm, content: Value) -> ApprovalVerdict {
        form.read_answer(&json!({ "action": "accept", "content": content }).into())
    }

    fn deny(reason: &str) -> ApprovalVerdict {
        ApprovalVerdict::Deny { reason: reason.to_owned() }
    }

    #[test]
    fn the_question_says_who_wants_what_with_which_arguments() {
        let form = form("{\"repo\":\"a\u{202e}b\",\"force\":true}", Revision::V2026_07_28);
        insta::assert_snapshot!(form.message(), @r#"
        `agent:coder` wants to call `github.delete_repo` (destructive, open-world): it cannot be undone

        {
          "repo": "a\u202eb",
          "force": true
        }
        "#);
    }

    #[test]
    fn the_form_is_flat_and_asks_for_the_decision_first() {
        insta::assert_snapshot!(form("{}", Revision::V2025_11_25).params(), @r#"{"mode":"form","message":"`agent:coder` wants to call `github.delete_repo` (destructive, open-world): it cannot be undone\n\n{}","requestedSchema":{"type":"object","properties":{"decision":{"oneOf":[{"const":"once","title":"Approve once"},{"const":"session","title":"Approve for this session, for arguments of this form"},{"const":"always","title":"Always approve, for arguments of this form"},{"const":"deny","title":"Deny"}],"title":"Decision","type":"string"},"arguments":{"default":"{}","description":"JSON. Edit the arguments before they are sent; empty sends them unchanged","title":"Arguments","type":"string"},"reason":{"description":"If you deny the call: the reason sent to the caller","maxLength":500,"title":"Reason","type":"string"}},"required":["decision"]}}"#);
    }

    #[test]
    fn an_older_client_gets_titles_as_it_knows_them_and_no_default() {
        let form = form("{}", Revision::V2025_06_18);
        let params: Value = form.params().read().unwrap();
        let properties = &params["requestedSchema"]["properties"];
        assert_eq!(params.get("mode"), None);
        assert_eq!(properties["decision"]["enum"], json!(["once", "session", "always", "deny"]));
        assert_eq!(properties["decision"]["enumNames"].as_array().unwrap().len(), 4);
        assert_eq!(properties["decision"].get("oneOf"), None);
        assert_eq!(properties["arguments"].get("default"), None);
    }

    #[test]
    fn an_approval_says_how_long_it_lasts_and_what_was_edited() {
        let form = form(r#"{"n": 1.50}"#, Revision::V2026_07_28);
        let approve = |approval, edited: Option<&'static str>| ApprovalVerdict::Approve {
            approval,
            edited: edited.map(|text| Json::parse(text).unwrap()),
        };
        assert_eq!(
            read(&form, json!({ "decision": "once" })),
            approve(ApprovalLifetime::Once, None)
        );
        let same = json!({ "decision": "session", "arguments": "{\"n\": 1.50}" });
        assert_eq!(read(&form, same), approve(ApprovalLifetime::Session, None));
        let empty = json!({ "decision": "always", "arguments": " " });
        assert_eq!(read(&form, empty), approve(ApprovalLifetime::Always, None));
        let edited = json!({ "decision": "once", "arguments": "{\"n\": 2.0}" });
        assert_eq!(read(&form, edited), approve(ApprovalLifetime::Once, Some(r#"{"n": 2.0}"#)));
    }

    #[test]
    fn hidden_characters_left_alone_are_no_edit() {
        let form = form("{\"a\":\"x\u{200b}\"}", Revision::V2026_07_28);
        let schema: Value = form.schema().read().unwrap();
        let default = schema["properties"]["arguments"]["default"].clone();
        assert_eq!(default, "{\"a\":\"x\\u200b\"}");
        let verdict = read(&form, json!({ "decision": "once", "arguments": default }));
        assert_eq!(
            verdict,
            ApprovalVerdict::Approve { approval: ApprovalLifetime::Once, edited: None }
        );
    }

    #[test]
    fn whatever_is_not_a_clear_yes_is_a_no() {
        let form = form("{}", Revision::V2026_07_28);
        let answer = |text: &'static str| form.read_answer(&Json::parse(text).unwrap());
        let action = deny("the response to the approval request has no known `action`");
        let decision = deny("the response to the approval request has no known `decision`");
        assert_eq!(answer("[]"), action);
        assert_eq!(answer("{}"), action);
        assert_eq!(answer(r#"{"action":"accept"}"#), decision);
        assert_eq!(answer(r#"{"action":"accept","content":{"decision":"yes"}}"#), decision);
        assert_eq!(answer(r#"{"action":"accept","content":{"decision":true}}"#), decision);
        assert_eq!(answer(r#"{"action":"decline"}"#), deny("the user declined"));
        assert_eq!(answer(r#"{"action":"cancel"}"#), deny("the user dismissed the request"));
        assert_eq!(
            answer(r#"{"action":"accept","content":{"decision":"deny","decision":"always"}}"#),
            deny("invalid response to the approval request")
        );
        assert_eq!(
            read(&form, json!({ "decision": "deny", "reason": " not on\n Fridays " })),
            deny("denied by the user: not on\\u{a} Fridays")
        );
        assert_eq!(read(&form, json!({ "decision": "deny" })), deny("denied by the user"));
        for edited in [json!("{"), json!("[1]"), json!("{\"a\":1,\"a\":2}"), json!({})] {
            let verdict = read(&form, json!({ "decision": "once", "arguments": edited }));
            assert!(matches!(verdict, ApprovalVerdict::Deny { .. }), "{edited}: {verdict:?}");
        }
    }

    #[test]
    fn long_arguments_are_shown_in_part_and_cannot_be_edited() {
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(100_000));
        let form = form(&long, Revision::V2026_07_28);
        assert!(form.params().as_bytes().len() < 6000);
        let edited = json!({ "decision": "once", "arguments": "{}" });
        assert_eq!(read(&form, edited), deny("the arguments are too large to be edited"));
        let approved = ApprovalVerdict::Approve { approval: ApprovalLifetime::Once, edited: None };
        assert_eq!(read(&form, json!({ "decision": "once" })), approved);
    }
}
