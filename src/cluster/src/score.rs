//! Scores a dataset on a cluster. Executors score row groups with the same code as a single machine. The driver
//! receives the predictions in row order and writes them.

use super::client::MESSAGE_BYTES;
use super::cluster::{Cluster, place_of};
use super::row_group_scan::{RowGroupScan, waves};
use super::share::check_place;
use planetree_base::compact::Bytes;
use planetree_base::error::{Error, Result};
use planetree_base::job::JobData;
use planetree_base::wire::malformed;
use planetree_data::dataset::DatasetReader;
use planetree_data::source::LabelledData;
use planetree_model::model::Model;
use planetree_model::predict::{GroupPredictor, PredictReport, PredictedGroup, ScoreRows};

impl Cluster {
    /// Scores a dataset and passes the predictions of each row group to `sink` in row order. If `parts` is set, they
    /// include the value of every part, that is, of every term of the model's sum. The content of the model file is
    /// sent along, so executors need no access to the file.
    pub fn predict(
        &self,
        reader: &DatasetReader,
        model: &Model,
        model_file: &[u8],
        parts: bool,
        sink: &mut dyn FnMut(PredictedGroup) -> Result<()>,
    ) -> Result<PredictReport> {
        let data = reader.location();
        check_place(data, self.address())?;
        if model_file.len() > MESSAGE_BYTES / 2 {
            return Err(Error::usage(
                format_args!("--cluster: model too large to send: {} bytes", model_file.len()),
                "remove --cluster, or train fewer trees",
            ));
        }
        let warning = GroupPredictor::new(model, reader)?.warning();
        let command = self.command(place_of(data)?, LabelledData::open(data, None)?.content_key()?);
        let rows: Vec<u64> = reader.manifest().rows_of_groups().collect();
        let connection = self.reach()?;
        let threads = connection.threads();
        let mut report = PredictReport { rows: 0, threads, load_seconds: 0.0, predict_seconds: 0.0, warning };
        let scan = RowGroupScan {
            client: &connection.client,
            command: &command,
            job: &ScoreRows { parts },
            snapshot: &Bytes(model_file.to_vec()),
            waves: &waves(&rows, threads, self.share_count(connection.executors.len())),
        };
        let outcome = scan.run(&mut |scored| {
            report.load_seconds += scored.load_seconds / threads as f64;
            report.predict_seconds += scored.predict_seconds / threads as f64;
            scored.each_group(&mut |group| {
                report.rows += group.scores.len() as u64;
                sink(group)
            })?;
            Ok(true)
        });
        self.keep_traffic(&connection);
        outcome?;
        if report.rows == rows.iter().sum::<u64>() { Ok(report) } else { Err(malformed()) }
    }
}
