//! Checks and writes the files that a training run produces. All of them are checked before the training starts, so
//! that writing does not fail at its end.

use super::TrainArguments;
use crate::describe::rounds::MetricHistories;
use crate::stats::check_stats;
use planetree_base::error::{Error, Result};
use planetree_base::process_memory;
use planetree_base::storage::Location;
use planetree_data::dataset::DatasetReader;
use planetree_data::table::{TableKind, TableWriter};
use planetree_model::predict::{PredictionsTable, attach_scores};
use planetree_train::{LogEntry, Outcome, TrainRequest, write_rounds, write_strength};
use rayon::ThreadPool;
use serde_json::json;
use std::time::Instant;

/// Locations of the outputs.
pub(super) struct TrainOutputs {
    pub model: Location,
    /// Models at the best rounds of metrics, in the order of the request.
    pub best_models: Vec<Location>,
    rounds: Option<Location>,
    out_of_bag: Option<Location>,
    strength: Option<Location>,
    pub stats: Option<Location>,
}

impl TrainOutputs {
    /// Locates the outputs and checks that each can be written.
    pub(super) fn check(arguments: &TrainArguments, request: &TrainRequest) -> Result<Self> {
        let store = &arguments.execution.store;
        let outputs = TrainOutputs {
            model: store.locate(&arguments.model)?,
            best_models: arguments.models_for()?.into_iter().map(|(_, file)| file).collect(),
            rounds: store.locate_optional(arguments.rounds.as_ref())?,
            out_of_bag: store.locate_optional(arguments.oob.as_ref())?,
            strength: store.locate_optional(arguments.strength.as_ref())?,
            stats: store.locate_optional(arguments.stats.stats.as_ref())?,
        };
        let checkpoint = request.checkpoint.as_ref().map(|plan| &plan.location);
        let tables = [
            (Some(&outputs.model), TableKind::Model),
            (outputs.rounds.as_ref(), TableKind::Rounds),
            (outputs.out_of_bag.as_ref(), TableKind::Predictions),
            (outputs.strength.as_ref(), TableKind::Strength),
            (checkpoint, TableKind::Model),
        ];
        let best_models = outputs.best_models.iter().map(|file| (file, TableKind::Model));
        let tables = || {
            let single = tables.iter().filter_map(|(file, kind)| file.map(|file| (file, *kind)));
            single.chain(best_models.clone())
        };
        let mut names: Vec<String> =
            tables().map(|(file, _)| file).chain(&outputs.stats).map(Location::to_string).collect();
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::usage(
                format_args!("two outputs use the same file: {}", pair[0]),
                "use a separate file for each of the models, rounds, predictions, strength, stats and checkpoint",
            ));
        }
        for (file, kind) in tables() {
            TableWriter::check(file, kind)?;
        }
        outputs.stats.as_ref().map_or(Ok(()), check_stats)?;
        Ok(outputs)
    }

    /// Writes the model, unless it was already streamed to its file during training, and all other tables.
    pub(super) fn write(
        &self,
        request: &TrainRequest,
        outcome: &Outcome,
        pool: &ThreadPool,
        quiet: bool,
    ) -> Result<()> {
        if outcome.written.is_none() {
            pool.install(|| outcome.model.write(&self.model))?;
        }
        for (file, best) in self.best_models.iter().zip(&outcome.best_models) {
            pool.install(|| best.model.write(file))?;
        }
        if let Some(rounds) = &self.rounds {
            write_rounds(&outcome.log, request.plan.convention(), rounds)?;
        }
        if let (Some(file), Some(scores)) = (&self.out_of_bag, &outcome.out_of_bag) {
            let omitted = self.write_out_of_bag(file, request, scores)?;
            if omitted > 0 && !quiet {
                crate::message(format_args!(
                    "note: {file}: {omitted} rows are omitted because every tree was trained on them"
                ));
            }
        }
        if let (Some(strength), Some(courses)) = (&self.strength, &outcome.strength) {
            write_strength(courses, strength)?;
        }
        Ok(())
    }

    /// Writes the out-of-bag scores of the training rows. Returns the number of rows without such a score.
    fn write_out_of_bag(&self, file: &Location, request: &TrainRequest, scores: &[f64]) -> Result<u64> {
        let readers = request.data.iter().map(DatasetReader::open).collect::<Result<Vec<_>>>()?;
        let mut table = PredictionsTable::create(file)?;
        let (mut rest, mut omitted) = (scores, 0);
        for reader in &readers {
            let (own, others) = rest.split_at(rest.len().min(reader.manifest().rows as usize));
            omitted += attach_scores(reader, own, &mut |group| table.write(group))?;
            rest = others;
        }
        table.finish_out_of_bag(&self.model, &readers)?;
        Ok(omitted)
    }
}

/// Returns the metrics of the last stage of a training run.
fn logged_metrics(log: &[LogEntry]) -> MetricHistories {
    let mut histories = MetricHistories::default();
    let last_stage = log.iter().map(|entry| entry.stage).max();
    for entry in log.iter().filter(|entry| Some(entry.stage) == last_stage) {
        histories.add(&entry.split, &entry.metric, entry.round.into(), entry.value);
    }
    histories
}

/// Returns the metrics, the time and memory of a training run and, on a cluster, its network traffic.
pub(super) fn train_stats(
    outcome: &Outcome,
    started: Instant,
    threads: usize,
    traffic: Option<serde_json::Value>,
) -> serde_json::Value {
    let mut stats = json!({
        "load_s": outcome.seconds.load,
        "bin_s": outcome.seconds.bin,
        "train_s": outcome.seconds.train,
        "total_s": started.elapsed().as_secs_f64(),
        "trees": outcome.size().trees,
        "rounds": outcome.model.rounds,
        "best_round": outcome.best.map(|best| best.round),
        "best_rounds": outcome
            .best_models
            .iter()
            .map(|best| (best.metric.to_string(), best.best.round))
            .collect::<std::collections::BTreeMap<_, _>>(),
        "metrics": logged_metrics(&outcome.log).json(),
        "thread_count": threads,
        "peak_memory_bytes": process_memory::peak_bytes(),
    });
    if let (Some(traffic), Some(stats)) = (traffic, stats.as_object_mut()) {
        stats.insert("cluster".to_owned(), traffic);
    }
    stats
}
