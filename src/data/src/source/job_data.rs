//! Lets the jobs of a cluster run on labelled datasets. The parts that jobs divide the data into are the row groups.

use super::LabelledData;
use planetree_base::error::{Error, Result};
use planetree_base::job::JobData;
use planetree_base::storage::{Location, digest_of};

impl JobData for LabelledData {
    fn open(locations: &[Location]) -> Result<Self> {
        LabelledData::open_all(locations, None)
    }

    fn content_key(&self) -> Result<String> {
        Ok(digest_of(self.identity().as_bytes()).to_string())
    }

    fn mismatch(place: &str) -> Error {
        Error::place(
            place,
            "the dataset differs from the one on the driver",
            "make sure that all machines of the cluster see the same dataset",
        )
    }
}
