//! Parameters set by a caller, such as a hyperparameter search: their value types, and chosen values with their
//! origin.

use super::keys::KeyKind;
use super::source::{Setting, find_key};
use planetree_base::error::Result;

/// Value type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Integers.
    Whole,
    /// Numbers.
    Real,
    /// Anything else.
    Word,
}

/// Canonical name and value type of a parameter. The error for an unknown name begins with `place`.
pub fn kind_of(written: &str, place: &str) -> Result<(&'static str, ValueKind)> {
    let key = find_key(written, &format!("{place}: "))?;
    let kind = match key.kind {
        KeyKind::Whole { .. } | KeyKind::Limit { .. } => ValueKind::Whole,
        KeyKind::Real { .. } | KeyKind::QueryFraction => ValueKind::Real,
        _ => ValueKind::Word,
    };
    Ok((key.name, kind))
}

/// A value chosen for a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The parameter as it was written.
    pub key: String,
    /// The value as it would be written after `--set key=`.
    pub value: String,
    /// Origin of the choice, for error messages.
    pub place: String,
}

impl Choice {
    pub(super) fn setting(&self) -> Result<Setting> {
        Ok(Setting {
            key: find_key(&self.key, &format!("{}: ", self.place))?,
            written: self.key.clone(),
            text: self.value.clone(),
            shown: format!("{}: {} = {}", self.place, self.key, self.value),
            chosen: true,
        })
    }
}
