//! Routing of request paths.

use consort_agent::openai::ApiFormat;

/// A route: that of everything, or of a profile.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ApiPath {
    pub(super) profile: Option<String>,
    pub(super) resource: ApiResource,
}

/// A resource of the API.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ApiResource {
    /// The list of agents and models.
    Models,
    /// One agent or model.
    Model(String),
    /// A completion.
    Completion(ApiFormat),
}

impl ApiPath {
    /// Parses `/v1/…` or `/profiles/NAME/v1/…`.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        let (profile, rest) = match path.strip_prefix("/profiles/") {
            Some(rest) => {
                let (profile, rest) = rest.split_once('/')?;
                (Some(decode_percent(profile)?), rest)
            }
            None => (None, path.strip_prefix('/')?),
        };
        let what = match rest.strip_prefix("v1/")? {
            "models" => ApiResource::Models,
            "chat/completions" => ApiResource::Completion(ApiFormat::Chat),
            "responses" => ApiResource::Completion(ApiFormat::Responses),
            other => ApiResource::Model(decode_percent(other.strip_prefix("models/")?)?),
        };
        Some(Self { profile, resource: what })
    }
}

/// Decodes percent-encoding.
fn decode_percent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_is_wanted_and_of_which_profile() {
        let place = |path| ApiPath::parse(path).map(|place| (place.profile, place.resource));
        assert_eq!(place("/v1/models"), Some((None, ApiResource::Models)));
        assert_eq!(place("/v1/models/a%3Ab/c"), Some((None, ApiResource::Model("a:b/c".into()))));
        assert_eq!(
            place("/v1/chat/completions/"),
            Some((None, ApiResource::Completion(ApiFormat::Chat)))
        );
        let profile = Some("dev".to_owned());
        let responses = "/profiles/dev/v1/responses";
        assert_eq!(
            place(responses),
            Some((profile, ApiResource::Completion(ApiFormat::Responses)))
        );
        for nothing in
            ["/v1", "/v1/embeddings", "/profiles/dev", "/profiles//v2/models", "/v1/models/%f"]
        {
            assert_eq!(place(nothing), None, "{nothing}");
        }
    }
}
