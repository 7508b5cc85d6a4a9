//! Job that summarises features for binning; see [`survey`].

use super::map_labels;
use crate::bins::{BinOptions, Surveyed, survey};
use crate::config::Parameters;
use planetree_base::error::Result;
use planetree_base::job::{Job, Partial, Shard};
use planetree_base::wire::malformed;
use planetree_data::source::{LabelledData, LabelledRows};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Summarises the distributions of features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// The indices of the features.
    pub features: Range<usize>,
    /// Whether the result includes the labels and queries of the rows.
    pub rows: bool,
    /// The training parameters as TOML.
    pub parameters: String,
}

impl Job for Survey {
    const NAME: &'static str = "survey";
    type Data = LabelledData;
    type State = ();
    type Snapshot = ();
    type Partial = Surveyed;

    fn prepare(&self, _: Option<()>, _: &Shard<'_, LabelledData>) -> Result<Option<()>> {
        Ok(Some(()))
    }

    fn map(&self, _: &(), shard: &Shard<'_, LabelledData>) -> Result<Option<Surveyed>> {
        let parameters = Parameters::from_toml(&self.parameters)?;
        let options = BinOptions::of(&parameters);
        let mut surveyed = survey(shard.data, shard.parts, self.features.clone(), self.rows, &options)?;
        map_labels(&mut surveyed.rows, &parameters, shard.data)?;
        Ok(Some(surveyed))
    }
}

impl Partial for Surveyed {
    fn merge(&mut self, other: Self) -> Result<()> {
        if self.summaries.len() != other.summaries.len() {
            return Err(malformed());
        }
        self.rows.extend(other.rows);
        let summaries = self.summaries.iter_mut().zip(other.summaries);
        summaries.for_each(|(summary, other)| summary.merge(other));
        Ok(())
    }

    fn is_valid(&self) -> bool {
        self.rows.iter().all(LabelledRows::is_valid)
    }
}
