//! Parameter values that are chosen by a program, such as a hyperparameter search.

use super::keys::KeyKind;
use super::source::{Setting, find_key};
use planetree_base::error::Result;

/// Value type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Integers.
    Whole,
    /// Real numbers.
    Real,
    /// All other values, written as words.
    Word,
}

/// Returns the canonical name and value type of a parameter. If there is none, the error message begins with `place`.
pub fn kind_of(written: &str, place: &str) -> Result<(&'static str, ValueKind)> {
    let key = find_key(written, &format!("{place}: "))?;
    let kind = match key.kind {
        KeyKind::Whole { .. } | KeyKind::Limit { .. } => ValueKind::Whole,
        KeyKind::Real { .. } | KeyKind::QueryFraction => ValueKind::Real,
        _ => ValueKind::Word,
    };
    Ok((key.name, kind))
}

/// A parameter value chosen by a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Name or alias of the parameter, as it was written.
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
