//! Finding tools by words.
