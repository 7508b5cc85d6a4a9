//! Defines the alternative hypothesis of a significance test.

/// The alternative hypothesis of a test. A difference is the value of the second system minus the value of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Alternative {
    /// The values differ, in either direction.
    #[default]
    TwoSided,
    /// The differences are greater than 0.
    Greater,
    /// The differences are less than 0.
    Less,
}

impl Alternative {
    /// All alternatives, in the order of the documentation.
    pub const ALL: [Alternative; 3] = [Alternative::TwoSided, Alternative::Greater, Alternative::Less];

    /// Returns the name on the command line and in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Alternative::TwoSided => "two-sided",
            Alternative::Greater => "greater",
            Alternative::Less => "less",
        }
    }
}
