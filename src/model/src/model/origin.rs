//! Where a model was read from: for messages, and no part of what the model is.

use planetree_base::storage::Location;
use std::fmt;

/// See the module. Any two are equal.
#[derive(Debug, Clone, Default)]
pub struct Origin(Option<String>);

impl Origin {
    /// A file or an object.
    pub fn of(location: &Location) -> Self {
        Origin(Some(location.to_string()))
    }
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("the model"))
    }
}
