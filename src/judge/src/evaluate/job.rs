//! Defines the job that evaluates row groups of predictions in other processes, with the same code as in this
//! process.

use super::predictions::Predictions;
use super::results::Results;
use super::worker::{EvaluationSettings, PartialEvaluation, QueryJudge};
use planetree_base::compact::Bytes;
use planetree_base::error::{Error, Result};
use planetree_base::job::{Job, JobData, Partial, Shard};
use planetree_base::storage::Location;
use planetree_base::wire::malformed;
use planetree_data::table::{batches_from_bytes, batches_to_bytes};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// A job that evaluates the queries in a file of predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeRows {
    metrics: Vec<String>,
    convention: String,
    gains: bool,
    by: Option<String>,
    tag: Option<String>,
    input: String,
}

/// The evaluations of several row groups, in the order of the row groups.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedGroups(Vec<JudgedGroup>);

/// The evaluation of one row group: a [`PartialEvaluation`] whose rows are encoded for the network.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct JudgedGroup {
    head: Bytes,
    between: Results,
    tail: Option<Bytes>,
}

impl JudgeRows {
    /// Creates the job for an evaluation. `by` is the column by which queries are grouped into segments.
    pub fn new(settings: &EvaluationSettings, by: Option<&str>) -> Self {
        JudgeRows {
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
            random_order: false,
            has_labels_of_data: false,
        })
    }
}

impl JudgedGroups {
    /// Decodes the evaluations and passes them to `sink` in order, until `sink` returns `false`. Returns whether
    /// `sink` accepted all of them.
    pub fn each_group(self, sink: &mut dyn FnMut(PartialEvaluation) -> Result<bool>) -> Result<bool> {
        for JudgedGroup { head, between, tail } in self.0 {
            let tail = tail.map(|tail| batches_from_bytes(&tail.0)).transpose()?;
            let head = batches_from_bytes(&head.0)?;
            if !sink(PartialEvaluation { head, between, tail, failure: None })? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Job for JudgeRows {
    const NAME: &'static str = "judge";
    type Data = Predictions;
    type State = ();
    type Snapshot = ();
    type Partial = JudgedGroups;

    fn open(&self, locations: &[Location]) -> Result<Predictions> {
        let [location] = locations else { return Err(malformed()) };
        Predictions::open_checked(location, self.by.as_deref())
    }

    fn prepare(&self, _: Option<()>, _: &Shard<'_, Predictions>) -> Result<Option<()>> {
        Ok(Some(()))
    }

    /// Evaluates the row groups that are assigned to this process (its shard), on all threads.
    fn map(&self, _: &(), shard: &Shard<'_, Predictions>) -> Result<Option<JudgedGroups>> {
        let settings = self.settings()?;
        let groups = shard.parts.par_iter().map(|group| {
            let reader = shard.data.group_reader(*group);
            let judged = QueryJudge::new(&settings)?.judge_batches(reader()?, false)?;
            if let Some(failure) = judged.failure {
                return Err(failure);
            }
            Ok(JudgedGroup {
                head: Bytes(batches_to_bytes(&judged.head)?),
                between: judged.between,
                tail: judged.tail.map(|tail| batches_to_bytes(&tail).map(Bytes)).transpose()?,
            })
        });
        Ok(Some(JudgedGroups(groups.collect::<Result<_>>()?)))
    }
}

impl Partial for JudgedGroups {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.0.extend(other.0);
        Ok(())
    }

    fn is_valid(&self) -> bool {
        self.0.iter().all(|group| group.between.is_valid())
    }
}

impl JobData for Predictions {
    fn open(locations: &[Location]) -> Result<Self> {
        let [location] = locations else { return Err(malformed()) };
        Predictions::open_checked(location, None)
    }

    fn content_key(&self) -> Result<String> {
        self.identity()
    }

    fn mismatch(place: &str) -> Error {
        Error::place(
            place,
            "the predictions differ from those on the driver",
            "make sure that all machines of the cluster see the same file",
        )
    }
}
