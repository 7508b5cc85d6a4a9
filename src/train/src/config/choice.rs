//! Parameters that somebody else chooses, such as a search: which values one takes, and one that was
//! chosen, with the place it comes from.

use super::keys::Kind;
use super::source::{Setting, find_key};
use planetree_base::error::Result;

/// What kind of values a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Whole numbers.
    Whole,
    /// Numbers.
    Real,
    /// Anything else.
    Word,
}

/// The printed name of a parameter and the kind of its values; an unknown one is an error that begins
/// with `place`.
pub fn kind_of(written: &str, place: &str) -> Result<(&'static str, ValueKind)> {
    let key = find_key(written, &format!("{place}: "))?;
    let kind = match key.kind {
        Kind::Whole { .. } | Kind::Limit { .. } => ValueKind::Whole,
        Kind::Real { .. } | Kind::QueryFraction => ValueKind::Real,
        _ => ValueKind::Word,
    };
    Ok((key.name, kind))
}

/// A value that was chosen for a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The parameter as it was written.
    pub key: String,
    /// The value as it would be written after `--set key=`.
    pub value: String,
    /// Where the choice comes from.
    pub place: String,
}

impl Choice {
    /// The choice as a setting.
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
