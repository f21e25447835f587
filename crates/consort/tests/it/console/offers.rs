//! Tools, prompts and resources, as the console shows them.

use serde_json::{Value, json};
use testkit::clients::Fixture;

use super::stream::Stream;
use super::{get, post, serving, until};
use crate::Home;

#[test]
fn tools_are_listed_with_what_became_of_them_and_found_by_words() {
    let home = Home::new();
    let options = json!({
        "transforms": [
            { "tools": ["everything.get-env"], "drop": true },
            { "tools": ["everything.echo"], "name": "repeat", "description": "Says it again." },
        ],
    });
    let serving = serving(&home, &[Fixture::Everything, Fixture::FastMcp], &options);
    let (status, tools) = get(&serving, "/api/tools");
    assert_eq!(status, 200);
    let tools = tools.as_array().unwrap();
    let find =
        |id: &str| tools.iter().find(|tool| tool["id"] == id).unwrap_or_else(|| panic!("{id}"));
    let echo = find("everything.echo");
    assert_eq!((&echo["name"], &echo["changed"]), (&json!("repeat"), &json!(true)));
    assert_eq!(
        (&echo["description"], &echo["pin"]),
        (&json!("Says it again."), &json!("unlocked"))
    );
    assert!(echo["tokens"].as_u64().unwrap() > 20);
    let env = find("everything.get-env");
    assert_eq!((&env["hidden"], &env["changed"]), (&json!(true), &json!(false)));
    let add = find("fastmcp.add");
    assert_eq!(
        (&add["hidden"], &add["changed"], &add["server"]),
        (&json!(false), &json!(false), &json!("fastmcp"))
    );
    let names: Vec<&Value> =
        tools.iter().filter(|tool| tool["hidden"] == false).map(|tool| &tool["name"]).collect();
    let mut seen = serving.tools("/mcp");
    let mut named: Vec<String> =
        names.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    seen.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, seen);

    let ids = |path: &str| -> Vec<String> {
        let found = get(&serving, path).1;
        found
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids("/api/tools?q=add+two+numbers")[0], "fastmcp.add");
    assert_eq!(ids("/api/tools?q=say%20it%20again&limit=1"), ["everything.echo"]);
    assert!(ids("/api/tools?q=environment").contains(&"everything.get-env".to_owned()));
    assert!(
        ids("/api/tools?q=sum&server=everything").iter().all(|id| id.starts_with("everything."))
    );
    assert_eq!(
        ids("/api/tools?server=fastmcp"),
        ["fastmcp.add", "fastmcp.compute", "fastmcp.ask", "fastmcp.journal"]
    );
    assert_eq!(get(&serving, "/api/tools?limit=many").0, 400);

    let (status, detail) = get(&serving, "/api/tools/everything.echo");
    assert_eq!(status, 200);
    assert_eq!(detail["server_name"], "echo");
    assert_eq!(detail["input_schema"]["properties"]["message"]["type"], "string");
    let changes: Vec<&Value> = detail["steps"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|step| step["changes"].as_array().unwrap())
        .collect();
    assert!(
        changes.contains(&&json!({ "member": "name", "from": "echo", "to": "repeat" })),
        "{detail}"
    );
    let (_, env) = get(&serving, "/api/tools/everything.get-env");
    assert_eq!(env["steps"][0]["hides"], true);
    let (status, missing) = get(&serving, "/api/tools/everything.ecko");
    assert_eq!((status, &missing["error"]), (404, &json!("unknown tool `everything.ecko`")));
    assert_eq!(serving.end().0, 0);
}

#[test]
fn prompts_are_rendered_and_completed_by_their_server() {
    let home = Home::new();
    let serving = serving(&home, &[Fixture::Everything, Fixture::FastMcp], &json!({}));
    let (_, prompts) = get(&serving, "/api/prompts");
    let prompts = prompts.as_array().unwrap();
    let greet = prompts.iter().find(|prompt| prompt["id"] == "fastmcp.greet").unwrap();
    assert_eq!(greet["arguments"][0]["name"], "name");
    assert_eq!(greet["arguments"][0]["required"], true);
    let (status, rendered) =
        post(&serving, "/api/prompts/fastmcp.greet", &json!({ "arguments": { "name": "Ada" } }));
    assert_eq!(status, 200, "{rendered}");
    assert_eq!(rendered["messages"][0]["content"]["text"], "Say hello to Ada.");
    let (status, refused) = post(&serving, "/api/prompts/fastmcp.great", &json!({}));
    assert_eq!(status, 404);
    assert_eq!(refused["hint"], "did you mean `fastmcp.greet`?");
    let (status, refused) = post(&serving, "/api/prompts/everything.args-prompt", &json!({}));
    assert_eq!(status, 422, "{refused}");

    let ask = json!({
        "server": "fastmcp", "ref": { "type": "ref/prompt", "name": "greet" },
        "argument": { "name": "name", "value": "A" },
    });
    let (status, completed) = post(&serving, "/api/complete", &ask);
    assert_eq!((status, &completed["values"]), (200, &json!(["Ada", "Alan"])), "{completed}");
    let mut ask = json!({
        "server": "everything", "ref": { "type": "ref/prompt", "name": "everything.completable-prompt" },
        "argument": { "name": "name", "value": "" },
        "context": { "arguments": { "department": "Engineering" } },
    });
    let (status, completed) = post(&serving, "/api/complete", &ask);
    assert_eq!(status, 200, "{completed}");
    assert!(completed["values"].as_array().unwrap().contains(&json!("Alice")), "{completed}");
    ask["server"] = json!("everythin");
    let (status, refused) = post(&serving, "/api/complete", &ask);
    assert_eq!((status, &refused["hint"]), (404, &json!("did you mean `everything`?")));
    assert_eq!(serving.end().0, 0);
}

#[test]
fn resources_are_read_and_watched_in_either_era() {
    let home = Home::new();
    let fixtures = [Fixture::Everything, Fixture::FastMcp, Fixture::Reference];
    let serving = serving(&home, &fixtures, &json!({}));
    let (_, resources) = get(&serving, "/api/resources");
    let resources = resources.as_array().unwrap();
    assert!(resources.iter().any(|one| one["uri"] == "note://today" && one["template"] == false));
    assert!(resources.iter().any(|one| one["server"] == "everything" && one["template"] == true));
    let (status, note) = post(
        &serving,
        "/api/resources/read",
        &json!({ "server": "fastmcp", "uri": "note://today" }),
    );
    assert_eq!(status, 200);
    assert_eq!(note["contents"][0]["text"], "nothing to note");
    let nothing = json!({ "server": "fastmcp", "uri": "note://never" });
    let (status, refused) = post(&serving, "/api/resources/read", &nothing);
    assert!(status == 422 || status == 502, "{status} {refused}");

    // A legacy server.
    let uri = "demo://resource/dynamic/text/1";
    let path = format!("/api/resources/watch?server=everything&uri={uri}");
    let mut watched = Stream::get(&serving, &path);
    assert_eq!(watched.status, 200);
    assert_eq!(watched.next(), Some(("watching".to_owned(), json!({}))));
    let toggle =
        || Stream::call(&serving, "everything.toggle-subscriber-updates", &json!({})).all();
    toggle();
    assert_eq!(watched.next(), Some(("updated".to_owned(), json!({}))));
    drop(watched);
    toggle();

    // A modern one, which writes down who leaves.
    let resource = resources.iter().find(|one| one["server"] == "reference").unwrap();
    let uri = resource["uri"].as_str().unwrap();
    let mut watched =
        Stream::get(&serving, &format!("/api/resources/watch?server=reference&uri={uri}"));
    assert_eq!(watched.next(), Some(("watching".to_owned(), json!({}))));
    Stream::call(&serving, "reference.change", &json!({ "what": "note" })).all();
    assert_eq!(watched.next(), Some(("updated".to_owned(), json!({}))));
    drop(watched);
    until(|| {
        let journal = Stream::call(&serving, "reference.journal", &json!({})).until("end");
        journal.to_string().contains("unsubscribed")
    });

    let (status, refused) =
        get(&serving, "/api/resources/watch?server=fastmcp&uri=note%3A%2F%2Ftoday");
    assert_eq!(status, 409, "{refused}");
    assert!(
        refused["error"].as_str().unwrap().starts_with("`fastmcp` does not support subscriptions"),
        "{refused}"
    );
    assert_eq!(get(&serving, "/api/resources/watch?server=nobody&uri=x").0, 404);
    assert_eq!(serving.end().0, 0);
}
