//! Input requests to the client before the result, in the way of its era.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use rmcp::model::{
    InputRequest, InputRequests, InputRequiredResult, InputResponses, JsonObject,
    RequestStateCodec, SealOptions, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::reference::is_modern;

/// Input requests, round by round.
pub(super) struct Dialogue {
    rounds: Vec<InputRequests>,
    memory: Memory,
}

/// Storage of a modern server for the answers of earlier rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    /// None: only the answers of the current round are available.
    None,
    /// A sealed state that the client sends back.
    Sealed,
}

/// State of a dialogue.
pub(super) enum Turn {
    /// Everything is answered, by the keys of the questions.
    Answered(JsonObject),
    /// A modern client has to call again.
    Required(InputRequiredResult),
}

/// Input of a request that may be the next turn of a dialogue.
pub(super) struct Given<'a> {
    /// Subject of the dialogue. A state sealed for another one is refused.
    pub(super) subject: &'a str,
    pub(super) responses: Option<&'a InputResponses>,
    pub(super) state: Option<&'a str>,
}

/// State between the rounds.
#[derive(Default, Serialize, Deserialize)]
struct Progress {
    round: usize,
    answers: JsonObject,
}

impl Dialogue {
    /// One round of questions, each with its key.
    pub(super) fn once<const N: usize>(questions: [(&str, InputRequest); N]) -> Self {
        Self { rounds: vec![keyed(questions)], memory: Memory::None }
    }

    /// Rounds of questions, between which a modern client keeps the server's state.
    pub(super) fn with_state<const N: usize>(rounds: Vec<[(&str, InputRequest); N]>) -> Self {
        Self { rounds: rounds.into_iter().map(keyed).collect(), memory: Memory::Sealed }
    }

    /// One round of these questions, or none.
    pub(super) fn of(questions: InputRequests) -> Self {
        let rounds = if questions.is_empty() { Vec::new() } else { vec![questions] };
        Self { rounds, memory: Memory::None }
    }

    /// Takes the next turn, or, with a legacy client, all of them.
    pub(super) async fn turn(
        &self,
        given: Given<'_>,
        seal: &RequestStateCodec,
        context: &RequestContext<RoleServer>,
    ) -> Result<Turn, ErrorData> {
        if is_modern(context) {
            return self.turn_modern(&given, seal);
        }
        self.turn_legacy(context).await
    }

    /// Sends requests during the call, whatever the client's era.
    pub(super) async fn turn_legacy(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Turn, ErrorData> {
        let mut answers = JsonObject::new();
        for questions in &self.rounds {
            answers.extend(put_all(questions, context).await?);
        }
        Ok(Turn::Answered(answers))
    }

    /// Returns the required input, whatever the client's era.
    pub(super) fn turn_modern(
        &self,
        given: &Given<'_>,
        seal: &RequestStateCodec,
    ) -> Result<Turn, ErrorData> {
        let subject = given.subject.as_bytes();
        let known = given.state.map(|state| seal.open_json_with::<Progress>(state, subject));
        let known = known.transpose().map_err(|error| {
            let why = json!({ "reason": error.to_string() });
            ErrorData::invalid_params("the state is not what was sent", Some(why))
        })?;
        // Without the state that came with the questions, answers are to nothing.
        let heeded = known.is_some() || self.memory == Memory::None;
        let mut progress = known.unwrap_or_default();
        if let Some(questions) = self.rounds.get(progress.round)
            && let Some(answers) = given.responses.filter(|_| heeded).and_then(|responses| {
                questions.keys().map(|key| answer(responses, key)).collect::<Option<JsonObject>>()
            })
        {
            progress.answers.extend(answers);
            progress.round += 1;
        }
        let Some(questions) = self.rounds.get(progress.round) else {
            return Ok(Turn::Answered(progress.answers));
        };
        let state = match self.memory {
            Memory::None => None,
            Memory::Sealed => {
                let options = SealOptions::new().associated_data(subject);
                Some(seal.seal_json_with(&progress, &options).expect("it is plain JSON"))
            }
        };
        Ok(Turn::Required(InputRequiredResult::new(Some(questions.clone()), state)))
    }
}

/// Returns a usable answer, which is an object. Anything else counts as none, and is requested again.
fn answer(responses: &InputResponses, key: &str) -> Option<(String, Value)> {
    let answer = responses.get(key).filter(|answer| answer.is_object())?;
    Some((key.to_owned(), answer.clone()))
}

fn keyed<const N: usize>(questions: [(&str, InputRequest); N]) -> InputRequests {
    questions.into_iter().map(|(key, question)| (key.to_owned(), question)).collect()
}

/// Sends a legacy client all of these requests at once.
async fn put_all(
    questions: &InputRequests,
    context: &RequestContext<RoleServer>,
) -> Result<JsonObject, ErrorData> {
    let mut asking: Vec<_> =
        questions.values().map(|question| Box::pin(put(question.clone(), context))).collect();
    let mut heard: Vec<Option<Result<Value, ErrorData>>> = vec![None; asking.len()];
    // In this very task, not in others: the SDK knows by the task to which call a request belongs.
    poll_fn(|task| {
        for (asking, heard) in
            asking.iter_mut().zip(&mut heard).filter(|(_, heard)| heard.is_none())
        {
            if let Poll::Ready(answer) = Pin::new(asking).poll(task) {
                *heard = Some(answer);
            }
        }
        if heard.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let answers = questions.keys().zip(heard.into_iter().flatten());
    answers.map(|(key, answer)| Ok((key.clone(), answer?))).collect()
}

async fn put(
    question: InputRequest,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    let request = match question {
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        other => unreachable!("{other:?} is not asked here"),
    };
    match context.peer.send_request(request).await {
        Ok(answer) => Ok(json!(answer)),
        Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
    }
}
