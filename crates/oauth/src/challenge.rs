//! The `WWW-Authenticate` header.

/// One authentication challenge: a scheme and its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthChallenge {
    /// Authentication scheme as received, such as `Bearer` or `Basic`.
    pub scheme: String,
    /// Parameters: names in lower case, and values.
    pub parameters: Vec<(String, String)>,
}

impl AuthChallenge {
    /// Parses a header value; unreadable parts are left out.
    pub fn parse(header: &str) -> Vec<Self> {
        let mut challenges: Vec<Self> = Vec::new();
        let mut rest = HeaderRest(header);
        while !rest.0.is_empty() {
            rest.skip(|c| c == ',' || is_space(c));
            let word = rest.word();
            if word.is_empty() {
                // Not a word, so no challenge: go on behind the next comma.
                rest.past_comma();
                continue;
            }
            let spaced = rest.skip(is_space);
            if let Some(after) = rest.0.strip_prefix('=') {
                let after = HeaderRest(after.trim_start_matches(is_space));
                match (challenges.last_mut(), after.value()) {
                    (Some(last), Some((value, after))) => {
                        let name = word.to_ascii_lowercase();
                        // Who says it twice may mean to be read in two ways: the first counts.
                        if last.get(&name).is_none() {
                            last.parameters.push((name, value));
                        }
                        rest = after;
                    }
                    _ => rest.past_comma(),
                }
            } else {
                challenges.push(Self { scheme: word.to_owned(), parameters: Vec::new() });
                if spaced {
                    rest.token68();
                }
            }
        }
        challenges
    }

    /// Returns the first `Bearer` challenge.
    pub fn bearer(header: &str) -> Option<Self> {
        Self::parse(header).into_iter().find(|known| known.scheme.eq_ignore_ascii_case("bearer"))
    }

    /// Returns the value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Unparsed rest of the header value.
struct HeaderRest<'a>(&'a str);

impl<'a> HeaderRest<'a> {
    /// Skips matching characters; returns true if there were any.
    fn skip(&mut self, is: impl Fn(char) -> bool) -> bool {
        let rest = self.0.trim_start_matches(is);
        let skipped = rest.len() < self.0.len();
        self.0 = rest;
        skipped
    }

    fn word(&mut self) -> &'a str {
        let end = self.0.find(|c| !is_word(c)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        word
    }

    fn past_comma(&mut self) {
        self.0 = self.0.find(',').map_or("", |at| &self.0[at + 1..]);
    }

    /// Skips `token68` credentials, such as those of `Negotiate`.
    fn token68(&mut self) {
        let end = self.0.find(|c: char| !is_word(c) && !matches!(c, '/' | '='));
        let (piece, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        let is_last = rest.trim_start_matches(is_space).chars().next().is_none_or(|c| c == ',');
        if is_last && !piece.trim_end_matches('=').contains('=') {
            self.0 = rest;
        }
    }

    /// Returns a value, quoted or not, and the rest after it.
    fn value(&self) -> Option<(String, Self)> {
        let Some(quoted) = self.0.strip_prefix('"') else {
            let mut rest = Self(self.0);
            let word = rest.word();
            return (!word.is_empty()).then(|| (word.to_owned(), rest));
        };
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => return Some((value, Self(&quoted[at + 1..]))),
                '\\' => value.push(characters.next()?.1),
                _ => value.push(c),
            }
        }
        None
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(scheme: &str, parameters: &[(&str, &str)]) -> AuthChallenge {
        let parameters = parameters.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        AuthChallenge { scheme: scheme.to_owned(), parameters: parameters.collect() }
    }

    #[test]
    fn challenges_are_read_however_they_are_written() {
        for (header, expected) in [
            ("Bearer", vec![challenge("Bearer", &[])]),
            ("", vec![]),
            (",, ,", vec![]),
            (
                r#"Bearer realm="a, b", scope="x y" , Resource_Metadata="https://x/\"q\"""#,
                vec![challenge(
                    "Bearer",
                    &[
                        ("realm", "a, b"),
                        ("scope", "x y"),
                        ("resource_metadata", r#"https://x/"q""#),
                    ],
                )],
            ),
            (
                "Negotiate YWJj==, bearer error=invalid_token,scope=a",
                vec![
                    challenge("Negotiate", &[]),
                    challenge("bearer", &[("error", "invalid_token"), ("scope", "a")]),
                ],
            ),
            (
                "Basic realm=x, DPoP algs=\"ES256\", Bearer",
                vec![
                    challenge("Basic", &[("realm", "x")]),
                    challenge("DPoP", &[("algs", "ES256")]),
                    challenge("Bearer", &[]),
                ],
            ),
            ("Bearer scope = a, scope=b", vec![challenge("Bearer", &[("scope", "a")])]),
            ("Bearer scope=\"open", vec![challenge("Bearer", &[])]),
            ("scope=lost, Bearer a=1", vec![challenge("Bearer", &[("a", "1")])]),
        ] {
            assert_eq!(AuthChallenge::parse(header), expected, "{header}");
        }
        assert_eq!(
            AuthChallenge::bearer("Basic realm=x, BEARER scope=a").unwrap().get("scope"),
            Some("a")
        );
    }
}
