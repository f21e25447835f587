//! Messages of a server are passed on byte for byte.

use consort_client::Limits;
use testkit::rogue::{Manner, Step};

use crate::{Pair, WAYS, Way, complete, quick, result, write};

const ODD: &[&str] = &[
    r#"{"z":1,"a":{"y":2,"b":[ 1 , 2.50, -0, 1e400 ]},"content":[]}"#,
    r#"{"content":[],"n":123456789012345678901234567890,"m":0.1000000000000000055511151231257827}"#,
    r#"{"content":[{"type":"future","x":{"unknown":true}}],"isError":false,"_meta":{"v":null},"extra":"\u00e9\/é\ud83d\ude00"}"#,
    r#"{"content":[],"dup":{"a":1,"a":2},"":"empty key","\u0061":1}"#,
    "{ \t\"content\" : [ ] , \"resultType\":\"complete\" }",
];

#[tokio::test]
async fn a_result_comes_out_as_it_was_sent() {
    for way in WAYS {
        for manner in [Manner::legacy(), Manner::modern()] {
            if way == Way::Sse && manner.modern {
                continue;
            }
            let pair = Pair::new(way, manner).await;
            for raw in ODD {
                let result = complete(pair.client.request(result(raw)).await).unwrap();
                assert_eq!(result.json().as_str(), *raw, "{way:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_result_in_a_plain_body_comes_out_as_it_was_sent() {
    let pair = Pair::new(Way::Http, Manner::modern()).await;
    for raw in ODD {
        let body = format!(r#"{{"jsonrpc":"2.0","result":{raw},"id":"#);
        // The id is not known before the call, so the server is told to guess it: ids count up.
        let id = 2 + pair
            .seen()
            .await
            .iter()
            .filter(|message| message["method"] == "tools/call")
            .count();
        let status = Step::Status(200, "application/json".to_owned(), format!("{body}{id}}}"));
        let result = pair.write(&[status]).await.unwrap();
        assert_eq!(result.json().as_str(), *raw);
    }
}

/// The largest message there may be, and one byte more.
#[tokio::test]
async fn a_result_may_be_as_large_as_the_limit_and_no_larger() {
    let limit = 16 << 20;
    assert_eq!(limit, Limits::default().message_bytes);
    for way in WAYS {
        let manner = if way == Way::Sse { Manner::legacy() } else { Manner::modern() };
        let mut settings = quick();
        settings.times.idle = std::time::Duration::from_secs(20);
        settings.times.total = std::time::Duration::from_mins(1);
        let pair = Pair::with(way, manner, settings).await;
        for (bytes, fits) in [(limit - 1, true), (limit + 1, false)] {
            let start = r#"{"jsonrpc":"2.0","id":$ID,"result":{"text":""#;
            let end = r#""}}"#;
            // The ids here have one digit, two fewer than their placeholder.
            let filler = bytes - (start.len() - 2) - end.len();
            let frame = if way == Way::Stdio { ("", "\n") } else { ("data: ", "\n\n") };
            let steps = [
                Step::Text(format!("{}{start}", frame.0)),
                Step::Repeat("x".to_owned(), filler),
                Step::Text(format!("{end}{}", frame.1)),
            ];
            let answer = pair.client.request(write(&steps)).await;
            match complete(answer) {
                Ok(result) => {
                    assert!(fits, "{way:?}");
                    assert_eq!(result.text("text").map(|text| text.len()), Some(filler), "{way:?}");
                }
                Err(error) => {
                    assert!(!fits, "{way:?}: {error}");
                    let expected = "the response is larger than 16777216 bytes";
                    if way == Way::Sse {
                        assert_eq!(
                            error.to_string(),
                            "outcome unknown: a message too large to skip; check before retrying"
                        );
                    } else {
                        assert_eq!(error.to_string(), expected, "{way:?}");
                    }
                }
            }
        }
    }
}
