//! Consort's client.

use consort_client::{
    Client, ClientSettings, EraPreference, OutgoingRequest, ServerAnswer, ServerCommand,
    ServerLocation, ServerUrl,
};
use consort_protocol::{Era, Json, Object};

use super::{Assignment, Caller, Place};
use crate::Failure;

/// Consort's client with the call it makes.
pub(super) struct Consort {
    client: Client,
    tool: &'static str,
    arguments: Json,
    /// Length of a correct result. Results stay bytes here, so the length identifies a wrong one.
    length: usize,
}

pub(super) async fn connect(assignment: &Assignment) -> Result<Consort, Failure> {
    let server = match &assignment.place {
        Place::Stdio => ServerLocation::Command(
            ServerCommand::new(std::env::current_exe()?).arguments(["serve", "stdio"]),
        ),
        Place::Http(url) => ServerLocation::Http(ServerUrl::new(url)?),
    };
    let settings = ClientSettings {
        speak: match assignment.era {
            Era::Legacy => EraPreference::Legacy,
            Era::Modern => EraPreference::Modern,
        },
        ..ClientSettings::default()
    };
    let client = Client::connect(&server, settings).await?;
    let mut caller = Consort {
        client,
        tool: assignment.tool.name(),
        arguments: Json::from_value(&assignment.tool.arguments())?,
        length: 0,
    };
    let result = caller.result().await?;
    if text(&result).as_deref() != Some(assignment.tool.text().as_str()) {
        return Err("the result carries another text than it should".into());
    }
    caller.length = result.as_bytes().len();
    Ok(caller)
}

impl Consort {
    async fn result(&self) -> Result<Object, Failure> {
        let request = OutgoingRequest::tool(self.tool, &self.arguments);
        match self.client.request(request).await? {
            ServerAnswer::Complete(result) => Ok(result),
            other => Err(format!("the answer is not a result: {other:?}").into()),
        }
    }
}

impl Caller for Consort {
    async fn call(&self) -> Result<(), Failure> {
        let length = self.result().await?.as_bytes().len();
        if length == self.length {
            Ok(())
        } else {
            Err(format!("a result has {length} bytes, not {}", self.length).into())
        }
    }

    async fn close(self) -> Result<(), Failure> {
        self.client.close().await;
        Ok(())
    }
}

/// The text of the first block of a result.
fn text(result: &Object) -> Option<String> {
    let content = result.get("content")?.to_items()?;
    content.first()?.to_object()?.text("text")
}
