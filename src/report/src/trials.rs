//! Reads the trials of a parameter search from their table, and sorts them in the same order as the search.

use crate::material::Material;
use arrow::array::Array;
use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableReader, float_column, string_column};
use planetree_metric::Metric;

/// The trials of one search.
pub(crate) struct Trials {
    /// The metric by which the trials are ranked.
    pub metric: String,
    /// A sentence that names the convention, which is the set of rules by which the metric was computed.
    pub convention: String,
    /// The names of the parameters that were searched.
    pub parameters: Vec<String>,
    /// The trials, best first. Trials without a value are last.
    pub ranking: Vec<TrialRow>,
}

/// One trial, which is the cross-validation of one combination of parameter values.
pub(crate) struct TrialRow {
    /// The number of the trial.
    pub number: u64,
    /// The value of each parameter, in the order of [`Trials::parameters`].
    pub values: Vec<String>,
    /// Mean and standard deviation of the metric on the validation parts. `None` if the trial failed.
    pub valid: Option<(f64, f64)>,
    /// Mean and standard deviation of the metric on the test parts. `None` if they are not known.
    pub test: Option<(f64, f64)>,
    /// The reason why the trial has no values. `None` if it succeeded.
    pub problem: Option<String>,
}

impl Trials {
    /// Reads a table of trials.
    pub(crate) fn read(location: &Location) -> Result<Self> {
        let table = TableReader::open(location, TableKind::Trials)?;
        let metric = table.metadata("planetree.metric").unwrap_or_default().to_owned();
        // The columns between the number and the first metric are parameters.
        let is_result = |name: &str| {
            ["valid_", "test_"].iter().any(|split| name.starts_with(split)) || name == "best_round"
        };
        let names = table.schema().fields().iter().map(|field| field.name().clone());
        let parameters: Vec<String> = names.skip(1).take_while(|name| !is_result(name)).collect();
        let mut ranking = Vec::new();
        for batch in table.batches() {
            let batch = batch?;
            // The columns of a metric are missing if no trial produced a model.
            let column = |name: String| -> Result<Option<_>> {
                batch.column_by_name(&name).map(|_| float_column(&table, &batch, &name)).transpose()
            };
            let spread = |split: &str| -> Result<_> {
                let name = format!("{split}_{metric}");
                Ok(column(name.clone())?.zip(column(format!("{name}_deviation"))?))
            };
            let (valid, test) = (spread("valid")?, spread("test")?);
            let trial = float_column(&table, &batch, "trial")?;
            let problems = string_column(&table, &batch, "problem")?;
            let columns = parameters
                .iter()
                .map(|name| string_column(&table, &batch, name))
                .collect::<Result<Vec<_>>>()?;
            for row in 0..batch.num_rows() {
                let value = |column: &Option<(arrow::array::Float64Array, arrow::array::Float64Array)>| {
                    let (mean, deviation) = column.as_ref()?;
                    mean.is_valid(row).then(|| (mean.value(row), deviation.value(row)))
                };
                ranking.push(TrialRow {
                    number: trial.value(row) as u64,
                    values: columns.iter().map(|column| column.value(row).to_owned()).collect(),
                    valid: value(&valid),
                    test: value(&test),
                    problem: problems.is_valid(row).then(|| problems.value(row).to_owned()),
                });
            }
        }
        let higher = metric.parse::<Metric>().map_or(true, |metric| metric.higher_is_better());
        let badness = |row: &TrialRow| match row.valid {
            Some((mean, _)) if mean.is_nan() => f64::INFINITY,
            Some((mean, _)) => {
                if higher {
                    -mean
                } else {
                    mean
                }
            }
            None => f64::INFINITY,
        };
        // The sort is stable, so that equal trials stay in the order of their numbers.
        ranking.sort_by(|one, other| badness(one).total_cmp(&badness(other)));
        Ok(Trials { metric, convention: Material::convention_of(&table), parameters, ranking })
    }

    /// Returns the number of the best trial, or `None` if no trial has a value.
    pub(crate) fn best(&self) -> Option<u64> {
        self.ranking.first().filter(|row| row.valid.is_some()).map(|row| row.number)
    }
}
