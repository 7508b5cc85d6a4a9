//! Converts between fields of parameters and what users write: the names of variants, and numbers.

use super::raw::RawParameters;

/// An enumeration whose variants have names.
pub(super) trait NamedEnum: Copy + PartialEq + 'static {
    /// All variants with their names.
    const ALL: &'static [(&'static str, Self)];

    /// Names that other tools use for the variants.
    const ALIASES: &'static [(&'static str, Self)] = &[];

    /// Finds the variant with this name or alias, ignoring case.
    fn named(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .chain(Self::ALIASES)
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map(|(_, choice)| *choice)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, choice)| *choice == self).map_or("", |(name, _)| name)
    }
}

/// Returns the names of all variants of the enumeration that a function reads.
pub(super) fn names_of<W: NamedEnum>(_field: fn(&RawParameters) -> W) -> Vec<&'static str> {
    W::ALL.iter().map(|(name, _)| *name).collect()
}

/// Sets `choice` to the variant with this name. Returns false if there is none.
pub(super) fn choose<W: NamedEnum>(choice: &mut W, text: &str) -> bool {
    match W::named(text) {
        Some(named) => {
            *choice = named;
            true
        }
        None => false,
    }
}

/// Returns the kind of a parameter that is an enumeration, given its field in [`RawParameters`].
macro_rules! word {
    ($($field:ident).+) => {
        $crate::config::keys::KeyKind::Word {
            words: || $crate::config::words::names_of(|raw| raw.$($field).+),
            set: |raw, text| $crate::config::words::choose(&mut raw.$($field).+, text),
            get: |raw| $crate::config::words::NamedEnum::name(raw.$($field).+),
        }
    };
}
pub(super) use word;

/// Returns the kind of a parameter that is a real number, given its field in [`RawParameters`] and its range.
macro_rules! real {
    ($($field:ident).+, $range:expr) => {
        $crate::config::keys::KeyKind::Real {
            range: $range,
            set: |raw, value| raw.$($field).+ = value,
            get: |raw| raw.$($field).+,
        }
    };
}
pub(super) use real;
