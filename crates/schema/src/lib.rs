//! Validators of JSON Schema: the crate `jsonschema`, compiled here for size.
//!
//! Its validators are generic, so a crate that makes one compiles all of them anew, at its own optimization level, beside
//! those that `jsonschema` has compiled for itself. A crate that is optimized for size uses the latter.

use serde_json::Value;

pub use jsonschema::{ErrorIterator, PatternOptions, ValidationError};

/// Options of a validator.
#[derive(Debug)]
pub struct ValidatorOptions(jsonschema::ValidationOptions<'static>);

/// Returns the default options.
pub fn options() -> ValidatorOptions {
    ValidatorOptions(jsonschema::options())
}

impl ValidatorOptions {
    /// Sets the engine of regular expressions, and its limits.
    #[must_use]
    pub fn with_pattern_options<E>(self, options: PatternOptions<E>) -> Self {
        Self(self.0.with_pattern_options(options))
    }

    /// Enables or disables the validation of `format`.
    #[must_use]
    pub fn should_validate_formats(self, yes: bool) -> Self {
        Self(self.0.should_validate_formats(yes))
    }

    /// Compiles a schema.
    pub fn build(&self, schema: &Value) -> Result<Validator, ValidationError<'static>> {
        self.0.build(schema).map(Validator)
    }
}

/// A compiled schema.
#[derive(Debug)]
pub struct Validator(jsonschema::Validator);

impl Validator {
    /// Returns the errors of a value.
    pub fn iter_errors<'i>(&'i self, instance: &'i Value) -> ErrorIterator<'i> {
        self.0.iter_errors(instance)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_validator_follows_its_options() {
        let options = options()
            .with_pattern_options(PatternOptions::regex().size_limit(1 << 20))
            .should_validate_formats(false);
        let schema = json!({ "type": "string", "format": "email", "pattern": "^a" });
        let validator = options.build(&schema).unwrap();
        assert_eq!(validator.iter_errors(&json!("abc")).count(), 0);
        let value = json!("b");
        let errors: Vec<String> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors, ["\"b\" does not match \"^a\""]);
        assert!(options.build(&json!({ "pattern": "(?=a)" })).is_err());
    }
}
