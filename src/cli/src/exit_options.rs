//! Values of the options for early exits.

use clap::ValueEnum;
use planetree_model::predict::{ExitScope, ExitShare};

/// Which documents are compared with each other.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ExitScopeArgument {
    /// All documents of the dataset
    Pooled,
    /// The documents of each query
    Query,
}

/// What the percentage refers to.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ExitOf {
    /// The documents that have not exited yet
    Remaining,
    /// All documents
    All,
}

impl ExitScopeArgument {
    /// Returns the scope.
    pub(crate) fn scope(self) -> ExitScope {
        match self {
            ExitScopeArgument::Pooled => ExitScope::Pooled,
            ExitScopeArgument::Query => ExitScope::Query,
        }
    }
}

impl ExitOf {
    /// Returns the share.
    pub(crate) fn share(self) -> ExitShare {
        match self {
            ExitOf::Remaining => ExitShare::Remaining,
            ExitOf::All => ExitShare::All,
        }
    }
}
