//! Evaluates rankings on a cluster. Executors evaluate the queries of row groups. The driver joins queries that
//! continue in the next row group, and aggregates the values in row order.

use super::cluster::{Cluster, place_of};
use super::row_group_scan::{RowGroupScan, waves};
use super::share::check_place;
use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_judge::evaluate::{EvaluationInput, JudgeRows, PartialEvaluation, RemoteEvaluator};
use std::fmt;

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster({:?})", self.address())
    }
}

impl RemoteEvaluator for Cluster {
    fn check(&self, location: &Location) -> Result<()> {
        check_place(location, self.address())
    }

    fn judge(
        &self,
        input: &EvaluationInput<'_>,
        sink: &mut dyn FnMut(PartialEvaluation) -> Result<bool>,
    ) -> Result<()> {
        let place = place_of(input.predictions.location())?;
        let command = self.command(place, input.predictions.identity()?);
        let rows = input.predictions.group_rows();
        let connection = self.reach()?;
        let scan = RowGroupScan {
            client: &connection.client,
            command: &command,
            job: &JudgeRows::new(input.settings, input.by),
            snapshot: &(),
            waves: &waves(&rows, connection.threads(), self.share_count(connection.executors.len())),
        };
        let outcome = scan.run(&mut |judged| judged.each_group(sink));
        self.keep_traffic(&connection);
        outcome
    }
}
