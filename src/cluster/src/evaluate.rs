//! Evaluating rankings on a cluster: executors judge the queries of row groups; the driver joins queries that continue
//! in the next row group and aggregates in row order.

use super::client::run_name;
use super::cluster::{Cluster, place_of};
use super::row_group_scan::{RowGroupScan, Wave, waves};
use super::rows::{rows_from_bytes, rows_to_bytes};
use super::share::check_place;
use super::task::{Answer, BUILD, Task, TaskStep};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileGroup;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Access, Location};
use planetree_base::wire::{WireReader, WireWriter, malformed};
use planetree_judge::evaluate::{
    EvaluationJob, EvaluationSettings, PartialEvaluation, Predictions, RemoteEvaluator, Results, judge_group,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Evaluation settings in wire format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationRequest {
    metrics: Vec<String>,
    convention: String,
    gains: bool,
    by: Option<String>,
    tag: Option<String>,
    input: String,
}

impl EvaluationRequest {
    fn of(settings: &EvaluationSettings, by: Option<&str>) -> Self {
        EvaluationRequest {
            metrics: settings.metrics.iter().map(ToString::to_string).collect(),
            convention: settings.convention.to_string(),
            gains: settings.gains,
            by: by.map(str::to_owned),
            tag: settings.tag.clone(),
            input: settings.input.clone(),
        }
    }

    fn settings(&self) -> Result<EvaluationSettings> {
        Ok(EvaluationSettings {
            metrics: self.metrics.iter().map(|name| name.parse()).collect::<Result<_>>()?,
            convention: self.convention.parse()?,
            judgments: None,
            complete: false,
            gains: self.gains,
            segments: self.by.is_some(),
            tag: self.tag.clone(),
            input: self.input.clone(),
        })
    }
}

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
        job: &EvaluationJob<'_>,
        sink: &mut dyn FnMut(PartialEvaluation) -> Result<bool>,
    ) -> Result<()> {
        let location = job.predictions.location();
        let place = place_of(location)?;
        let rows = job.predictions.group_rows();
        let connection = self.reach()?;
        let task = Task {
            build: BUILD.to_owned(),
            run: run_name(),
            data: place.clone(),
            instance_credentials: self.instance_credentials(),
            fingerprint: job.predictions.identity()?,
            step: TaskStep::Judge(EvaluationRequest::of(job.settings, job.by)),
        };
        let scan = RowGroupScan {
            client: &connection.client,
            task: &task,
            waves: &waves(&rows, connection.threads(), self.share_count(connection.executors.len())),
            groups: &|wave| named_groups(&place, wave),
            snapshot: &Vec::new,
        };
        let outcome = scan.run(&mut |answer| {
            let Answer::Evaluated(partials) = answer else { return Err(malformed()) };
            for bytes in &partials {
                if !sink(partial_from_bytes(bytes)?)? {
                    return Ok(false);
                }
            }
            Ok(true)
        });
        self.keep_traffic(&connection);
        outcome
    }
}

/// File groups for row groups of one file, with row group numbers in place of byte ranges.
fn named_groups(place: &str, wave: &Wave) -> Vec<FileGroup> {
    let path = place.trim_start_matches('/');
    let file = |group: usize| {
        PartitionedFile::new_with_range(path.to_owned(), group as u64 + 1, group as i64, group as i64 + 1)
    };
    wave.iter().map(|share| share.clone().map(file).collect()).collect()
}

/// The row group numbers of a file group.
pub fn numbers_of(group: &FileGroup) -> Vec<usize> {
    group.iter().filter_map(|file| file.range.as_ref()).map(|range| range.start as usize).collect()
}

/// Opens the predictions of a task; an error if their content differs from the driver's.
pub fn open_predictions(task: &Task, question: &EvaluationRequest) -> Result<Predictions> {
    let access = if task.instance_credentials { Access::InstanceCredentials } else { Access::Explicit };
    let predictions =
        Predictions::open_checked(&Location::parse(&task.data, access)?, question.by.as_deref())?;
    if predictions.identity()? != task.fingerprint {
        return Err(Error::place(
            &task.data,
            "the predictions differ from those on the driver",
            "make sure that all machines of the cluster see the same file",
        ));
    }
    Ok(predictions)
}

/// Judges some row groups on all threads.
pub fn judge(
    predictions: &Predictions,
    question: &EvaluationRequest,
    groups: &[usize],
) -> Result<Vec<Vec<u8>>> {
    let settings = question.settings()?;
    let judge = |group: &usize| partial_to_bytes(&judge_group(predictions, &settings, *group)?);
    groups.par_iter().map(judge).collect()
}

fn partial_to_bytes(partial: &PartialEvaluation) -> Result<Vec<u8>> {
    let mut writer = WireWriter::default();
    writer.list(&rows_to_bytes(&partial.head)?);
    writer.count(u64::from(partial.tail.is_some()));
    if let Some(tail) = &partial.tail {
        writer.list(&rows_to_bytes(tail)?);
    }
    partial.between.write(&mut writer);
    Ok(writer.into_bytes())
}

fn partial_from_bytes(bytes: &[u8]) -> Result<PartialEvaluation> {
    let mut reader = WireReader::new(bytes);
    let head = rows_from_bytes(reader.list()?)?;
    let tail = match reader.count()? {
        0 => None,
        _ => Some(rows_from_bytes(reader.list()?)?),
    };
    let between = Results::read(&mut reader)?;
    if reader.is_empty() { Ok(PartialEvaluation { head, between, tail }) } else { Err(malformed()) }
}
