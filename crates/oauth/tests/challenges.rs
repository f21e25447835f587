//! Property test of `WWW-Authenticate` parsing, with random and hostile header values.

#[path = "challenges/law.rs"]
mod law;

use consort_oauth::AuthChallenge;
use proptest::prelude::*;

/// Fragments of challenges, so that many of the values are nearly valid.
const PIECES: [&str; 16] = [
    "Bearer",
    "Basic",
    " ",
    ",",
    "=",
    "\"",
    "\\",
    "scope",
    "realm=x",
    "error=\"a b\"",
    "YWJj==",
    "\t",
    "é",
    ";",
    "resource_metadata=\"https://x/",
    "\u{0}",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_as_it_would_be_written(text in "\\PC*") {
        law::check(&text);
    }

    #[test]
    fn any_pieces_are_read_as_they_would_be_written(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..20),
    ) {
        law::check(&pieces.concat());
    }

    #[test]
    fn what_was_written_is_read(
        scheme in "[A-Za-z]{1,8}",
        parameters in prop::collection::btree_map("[a-z_]{1,8}", "[ -~é]{0,20}", 0..5),
    ) {
        let challenge = AuthChallenge { scheme, parameters: parameters.into_iter().collect() };
        prop_assert_eq!(AuthChallenge::parse(&law::written(&challenge)), vec![challenge]);
    }
}

#[test]
fn naughty_strings_are_read_as_they_would_be_written() {
    for text in testkit::fixtures::naughty_strings() {
        law::check(&text);
        law::check(&format!("Bearer scope=\"{text}\", realm={text}"));
    }
}
