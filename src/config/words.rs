//! Words that stand for a choice.

use super::{Candidates, Missing, Sampling};

/// A choice among few, each with a name.
pub trait Word: Copy + PartialEq + 'static {
    /// Every choice under its name.
    const ALL: &'static [(&'static str, Self)];

    /// The choice of a name; case does not matter.
    fn named(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, choice)| *choice)
    }

    /// The name of the choice.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, choice)| *choice == self).map_or("", |(name, _)| name)
    }
}

impl Word for Candidates {
    const ALL: &'static [(&'static str, Self)] =
        &[("static", Candidates::Static), ("streaming", Candidates::Streaming), ("exact", Candidates::Exact)];
}

impl Word for Missing {
    const ALL: &'static [(&'static str, Self)] = &[
        ("zero", Missing::Zero),
        ("one", Missing::One),
        ("mean", Missing::Mean),
        ("median", Missing::Median),
        ("learned", Missing::Learned),
    ];
}

impl Word for Sampling {
    const ALL: &'static [(&'static str, Self)] = &[("rows", Sampling::Rows), ("queries", Sampling::Queries)];
}

/// The names of all choices.
pub fn names<W: Word>() -> Vec<&'static str> {
    W::ALL.iter().map(|(name, _)| *name).collect()
}

/// Makes the choice that a text names; false if it names none.
pub fn choose<W: Word>(choice: &mut W, text: &str) -> bool {
    match W::named(text) {
        Some(named) => {
            *choice = named;
            true
        }
        None => false,
    }
}
