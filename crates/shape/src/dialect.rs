//! Definitions in the forms that providers take.
