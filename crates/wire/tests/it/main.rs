//! The wire against the world: real servers, the conformance suite, the corpus of JSON texts.

mod conformance;
mod fake;
mod jsontestsuite;
mod real;
