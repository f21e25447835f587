//! Who may see and call what.
