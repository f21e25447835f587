//! Calls one tool of one server and prints its events:
//! `cargo run -p consort-client --example call -- echo '{"message":"hi"}' npx -y @modelcontextprotocol/server-everything`

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use consort_client::{
    Client, ClientSettings, OutgoingRequest, PendingCallEvent, ServerCommand, ServerLocation,
    ServerUrl,
};
use consort_protocol::{Json, PrimitiveKind};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(tool), Some(arguments), Some(place)) = (words.next(), words.next(), words.next())
    else {
        return Err("use: call TOOL ARGUMENTS URL | call TOOL ARGUMENTS PROGRAM [ARGUMENT…]".into());
    };
    let server = if place.starts_with("http") {
        ServerLocation::Http(ServerUrl::new(&place)?)
    } else {
        ServerLocation::Command(ServerCommand::new(place).arguments(words))
    };
    let client = Client::connect(&server, ClientSettings::default()).await?;
    println!("{:?}", client.about().protocol);
    for item in client.list(PrimitiveKind::Tools).await?.items {
        println!("  {}", item.name);
    }
    let mut call = client.call(OutgoingRequest::tool(&tool, &Json::parse(arguments)?));
    while let Some(event) = call.next().await {
        match event {
            PendingCallEvent::Progress(progress) => {
                println!("{} of {:?}", progress.progress(), progress.total());
            }
            PendingCallEvent::End(end) => println!("{}", end?.object().json()),
            other => println!("{other:?}"),
        }
    }
    client.close().await;
    Ok(())
}
