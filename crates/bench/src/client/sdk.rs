//! The official SDK's client.

use consort_protocol::Era;
use rmcp::model::{CallToolRequestParams, JsonObject, ProtocolVersion};
use rmcp::service::RunningService;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};

use super::{Assignment, Caller, Place, Who};
use crate::Failure;

/// The SDK's client with the call it makes.
pub(super) struct Sdk {
    client: RunningService<RoleClient, ()>,
    tool: &'static str,
    arguments: JsonObject,
    /// The text of a correct result.
    text: String,
}

pub(super) async fn connect(assignment: &Assignment) -> Result<Sdk, Failure> {
    let lifecycle = match assignment.era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    let client = match &assignment.place {
        Place::Stdio => {
            let mut command = tokio::process::Command::new(std::env::current_exe()?);
            command.args(["serve", "stdio"]);
            let transport = TokioChildProcess::new(command)?;
            ().serve_with_lifecycle(transport, lifecycle).await?
        }
        Place::Http(url) => {
            let transport = http(assignment.who, url, assignment.in_flight)?;
            ().serve_with_lifecycle(transport, lifecycle).await?
        }
    };
    Ok(Sdk {
        client,
        tool: assignment.tool.name(),
        arguments: assignment.tool.arguments(),
        text: assignment.tool.text(),
    })
}

fn http(
    who: Who,
    url: &str,
    in_flight: u32,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, Failure> {
    // Its default of 16 would hold back what the others may send at once.
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .max_concurrent_requests(in_flight.try_into()?);
    Ok(if who == Who::RmcpKept {
        StreamableHttpClientTransport::with_client(reqwest::Client::new(), config)
    } else {
        StreamableHttpClientTransport::from_config(config)
    })
}

impl Caller for Sdk {
    async fn call(&self) -> Result<(), Failure> {
        let request = CallToolRequestParams::new(self.tool).with_arguments(self.arguments.clone());
        let result = self.client.call_tool(request).await?;
        let text = result.content.first().and_then(|block| block.as_text());
        if text.is_some_and(|text| text.text.len() == self.text.len()) {
            Ok(())
        } else {
            Err("a result carries another text than it should".into())
        }
    }

    async fn close(self) -> Result<(), Failure> {
        self.client.cancel().await?;
        Ok(())
    }
}
