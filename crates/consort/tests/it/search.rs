//! Tool search with the synonyms of a config.

use serde_json::json;

use crate::Home;
use crate::serve::{Serving, call, demo, until};

/// A config with a group of synonyms.
fn config(group: &str) -> String {
    format!(
        "[consort]\nexposure = \"search\"\n[consort.search]\nsynonyms = [{group:?}]\n{}",
        demo("one")
    )
}

#[test]
fn synonyms_of_a_config_count_in_the_command_the_console_and_the_exposure_and_after_a_reload() {
    let home = Home::new();
    home.write("consort.toml", &config("barometer, weather"));
    let found = home.run(&["search", "barometer"]);
    assert!(found.code == 0 && found.out.contains("one.get_weather"), "{found:?}");
    let nothing = home.run(&["search", "hygrometer"]);
    assert!(nothing.out.starts_with("no matches among"), "{nothing:?}");
    let serving = Serving::start(&home, &["-c", "consort.toml", "--no-ledger"]);
    let finds = |word: &str| {
        let (status, console) = serving.api("GET", &format!("/tools?q={word}"), None);
        assert_eq!(status, 200, "{console}");
        let (head, body) = call("find_tools", &json!({ "query": word }));
        let (status, exposed) = serving.ask(&head, &body);
        assert_eq!(status, 200, "{exposed}");
        [console.to_string(), exposed].map(|answer| answer.contains("get_weather"))
    };
    until(|| finds("weather") == [true; 2]);
    assert_eq!((finds("barometer"), finds("hygrometer")), ([true; 2], [false; 2]));
    home.write("consort.toml", &config("hygrometer, weather"));
    until(|| finds("hygrometer") == [true; 2]);
    assert_eq!(finds("barometer"), [false; 2]);
    assert_eq!(serving.end().0, 0);
}
