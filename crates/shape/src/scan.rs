//! What in a definition deserves a second look.
