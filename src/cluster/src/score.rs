//! Scoring a dataset on a cluster: executors score row groups with the single-machine code, the driver receives the
//! predictions in row order and writes them.

use super::client::{MESSAGE_BYTES, run_name};
use super::cluster::{Cluster, place_of};
use super::executor::fingerprint;
use super::row_group_scan::{RowGroupScan, waves};
use super::rows::{rows_from_bytes, rows_to_bytes};
use super::share::{check_place, file_groups};
use super::task::{Answer, BUILD, Task, TaskStep};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_base::wire::malformed;
use planetree_data::dataset::DatasetReader;
use planetree_data::source::LabelledData;
use planetree_model::model::Model;
use planetree_model::predict::{GroupPredictor, PredictReport, PredictedGroup};
use rayon::prelude::*;
use std::io::Write;
use std::time::Duration;

/// Predictions of some row groups in wire format.
#[derive(Debug, Default, PartialEq)]
pub struct ScoredGroups {
    /// Seconds spent reading, summed over threads.
    pub load_seconds: f64,
    /// Seconds spent scoring, summed over threads.
    pub predict_seconds: f64,
    /// Encoded rows of each row group.
    pub groups: Vec<Vec<u8>>,
}

impl Cluster {
    /// Scores a dataset and passes on the row groups in row order, with the values of the model's parts if `parts`. The
    /// bytes of the model file are sent along, so executors need no access to it.
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
                "leave --cluster out, or train fewer trees",
            ));
        }
        let warning = GroupPredictor::new(model, reader)?.warning();
        let source = LabelledData::open(data, None)?;
        let place = place_of(data)?;
        let rows: Vec<u64> = reader.manifest().rows_of_groups().collect();
        let connection = self.reach()?;
        let threads = connection.threads();
        let task = Task {
            build: BUILD.to_owned(),
            run: run_name(),
            data: place.clone(),
            instance_credentials: self.instance_credentials(),
            fingerprint: fingerprint(&source),
            step: TaskStep::Score { parts },
        };
        let mut report = PredictReport { rows: 0, threads, load_seconds: 0.0, predict_seconds: 0.0, warning };
        let scan = RowGroupScan {
            client: &connection.client,
            task: &task,
            waves: &waves(&rows, threads, self.share_count(connection.executors.len())),
            groups: &|wave| file_groups(&source, &place, wave),
            snapshot: &|| model_file.to_vec(),
        };
        let outcome = scan.run(&mut |answer| {
            let Answer::Scored(scored) = answer else { return Err(malformed()) };
            report.load_seconds += scored.load_seconds / threads as f64;
            report.predict_seconds += scored.predict_seconds / threads as f64;
            for group in &scored.groups {
                for batch in rows_from_bytes(group)? {
                    report.rows += batch.num_rows() as u64;
                    sink(PredictedGroup::from_batch(&batch).ok_or_else(malformed)?)?;
                }
            }
            Ok(true)
        });
        self.keep_traffic(&connection);
        outcome?;
        if report.rows == rows.iter().sum::<u64>() { Ok(report) } else { Err(malformed()) }
    }
}

/// Scores some row groups on all threads.
pub fn score(
    source: &LabelledData,
    partitions: &[usize],
    predictor: &GroupPredictor,
) -> Result<ScoredGroups> {
    let reader = source.readers().next().ok_or_else(malformed)?;
    let groups = partitions.par_iter().map(|partition| {
        let done = predictor.predict(reader, source.group_id(*partition))?;
        Ok((rows_to_bytes(&[done.result.into_batch()?])?, done.load, done.score))
    });
    let groups: Vec<(Vec<u8>, Duration, Duration)> = groups.collect::<Result<_>>()?;
    Ok(ScoredGroups {
        load_seconds: groups.iter().map(|group| group.1.as_secs_f64()).sum(),
        predict_seconds: groups.iter().map(|group| group.2.as_secs_f64()).sum(),
        groups: groups.into_iter().map(|group| group.0).collect(),
    })
}

/// Prepares a model, given as the bytes of its file, for a dataset.
pub fn predictor(model_file: &[u8], source: &LabelledData, parts: bool) -> Result<GroupPredictor> {
    let failed = |error: std::io::Error| Error::io("temporary file of a model", "write", error);
    let mut file = tempfile::NamedTempFile::new().map_err(failed)?;
    file.write_all(model_file).map_err(failed)?;
    let model = Model::read(&Location::Local(file.path().to_owned()))?;
    GroupPredictor::with_parts(&model, source.readers().next().ok_or_else(malformed)?, parts)
}
