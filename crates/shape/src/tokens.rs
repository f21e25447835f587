//! What definitions cost a model, in tokens.
