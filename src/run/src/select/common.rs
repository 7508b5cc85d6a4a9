//! The features that two datasets have in common.

use planetree_base::error::{Error, Result};
use planetree_data::dataset::DatasetReader;

/// The features that two datasets have in common, in the order of the first dataset.
#[derive(Debug)]
pub(super) struct CommonFeatures {
    /// Their names.
    pub names: Vec<String>,
    /// Their indices in the first dataset.
    pub in_source: Vec<usize>,
    /// Their indices in the second dataset.
    pub in_like: Vec<usize>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl CommonFeatures {
    /// Finds the common features. There must be at least one.
    pub(super) fn of(source: &DatasetReader, like: &DatasetReader) -> Result<Self> {
        let (ours, theirs) = (&source.manifest().features, &like.manifest().features);
        let place = |name: &String| theirs.iter().position(|other| other == name);
        let pairs = ours.iter().enumerate().filter_map(|(index, name)| Some((index, place(name)?)));
        let (in_source, in_like): (Vec<usize>, Vec<usize>) = pairs.unzip();
        if in_source.is_empty() {
            return Err(Error::place(
                format_args!("{} and {}", source.location(), like.location()),
                "the datasets have no common feature",
                "compare the names of their features (planetree describe), and convert with --names",
            ));
        }
        let only = |names: usize, reader: &DatasetReader| match names - in_source.len() {
            0 => None,
            others => Some(format!(
                "{others} of {names} features are only in {}, and are left out",
                reader.location()
            )),
        };
        let warnings = [only(ours.len(), source), only(theirs.len(), like)];
        Ok(CommonFeatures {
            names: in_source.iter().map(|feature| ours[*feature].clone()).collect(),
            warnings: warnings.into_iter().flatten().collect(),
            in_source,
            in_like,
        })
    }
}
