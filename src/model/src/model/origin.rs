//! Records the file that a model was read from, so that messages can name it.

use planetree_base::storage::Location;
use std::fmt;

/// The file that a model was read from, for use in messages. The file is not part of the model's content, so all
/// origins compare equal.
#[derive(Debug, Clone, Default)]
pub struct Origin(Option<String>);

impl Origin {
    /// Creates the origin of a model that was read from `location`.
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
