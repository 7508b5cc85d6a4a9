//! The metrics of the rows of each share, as they are sent to the driver.

use planetree_base::compact::Bytes;
use planetree_base::error::Result;
use planetree_base::job::Partial;
use planetree_base::wire::malformed;
use planetree_metric::{Mean, Metric};
use serde::{Deserialize, Serialize};

/// Serialised means of metrics, by share. A share without metrics has none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SharedMeans(Vec<Vec<Bytes>>);

impl SharedMeans {
    /// Serialises the means of one share.
    pub(crate) fn of(means: &[Mean]) -> Self {
        SharedMeans(vec![means.iter().map(|mean| Bytes(mean.to_bytes())).collect()])
    }

    /// Returns the means over the rows of all shares.
    pub fn total(&self, metrics: &[Metric]) -> Result<Vec<Mean>> {
        let mut sums: Vec<Mean> = metrics.iter().map(|metric| Mean::new(*metric)).collect();
        for means in self.0.iter().filter(|means| !means.is_empty()) {
            if means.len() != sums.len() {
                return Err(malformed());
            }
            for (sum, bytes) in sums.iter_mut().zip(means) {
                sum.merge(&Mean::from_bytes(sum.metric(), &bytes.0).ok_or_else(malformed)?);
            }
        }
        Ok(sums)
    }
}

impl Partial for SharedMeans {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.0.extend(other.0);
        Ok(())
    }
}
