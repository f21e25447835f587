//! `mcp-server-time`, on the official SDK of Python.

use consort_client::{
    ClientSettings, EraPreference, NegotiatedProtocol, ServerCommand, ServerLocation,
    UpstreamTransport,
};
use consort_protocol::{PrimitiveKind, Revision};
use serde_json::json;
use testkit::{Leftovers, fixtures};

use super::{call, connect, names};

#[tokio::test]
async fn a_python_server_answers_in_both_eras() {
    for (speak, revision) in [
        (EraPreference::Auto, Revision::V2026_07_28),
        (EraPreference::Legacy, Revision::V2025_11_25),
    ] {
        let leftovers = Leftovers::new();
        let command = ServerCommand::new(fixtures::python("mcp-server-time"));
        let server = ServerLocation::Command(leftovers.mark(command));
        let settings = ClientSettings { speak, ..ClientSettings::default() };
        let client = connect(&server, settings).await;
        let transport = UpstreamTransport::Stdio;
        assert_eq!(client.about().protocol, NegotiatedProtocol { revision, transport });
        assert_eq!(
            names(&client, PrimitiveKind::Tools).await,
            ["get_current_time", "convert_time"]
        );
        let arguments = json!({
            "source_timezone": "Asia/Kathmandu",
            "time": "12:00",
            "target_timezone": "UTC",
        });
        let converted = call(&client, "convert_time", arguments).await;
        assert!(converted.contains("T06:15:00"), "{converted}");
        client.close().await;
        assert_eq!(leftovers.running(), Vec::<String>::new());
    }
}
