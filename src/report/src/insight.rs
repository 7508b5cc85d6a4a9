//! Explains the scores of a system: the contributions of the features to the scores of the documents that the report
//! shows, and of a sample of rows. This needs the model and the dataset of the predictions.

use super::documents::QueryList;
use super::material::{Material, NamedDataset, QuerySet};
use super::system::ReportSystem;
use arrow::array::{Array, AsArray, RecordBatch};
use planetree_base::error::Result;
use planetree_data::dataset::{DatasetReader, GroupId, unexpected_columns};
use planetree_model::explain::Explainer;
use planetree_model::model::Model;
use planetree_model::predict::ColumnPlan;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Maximum number of documents per query whose scores are explained.
pub(crate) const EXPLAINED: usize = 10;
/// Maximum number of sampled rows.
const SAMPLE: u64 = 1000;
/// Maximum number of tree nodes times sampled rows, which limits the time for large models.
const WORK: u64 = 200_000_000;
/// Maximum number of row groups that the sample is read from.
const GROUPS: usize = 8;
/// Maximum number of systems whose scores are explained.
const SYSTEMS: usize = 8;

/// The contributions of the features to the scores of a system.
pub(crate) struct Insight {
    /// Index of the model.
    pub model: usize,
    /// Name of the dataset.
    pub dataset: String,
    /// The expected score, to which the contributions of a document are added.
    pub expected: f64,
    /// Indices of the features that scores depend on, in ascending order.
    pub features: Vec<u32>,
    /// For each query whose documents are shown, its first documents.
    pub queries: BTreeMap<String, Vec<ExplainedRow>>,
    /// A sample of rows at regular intervals. Empty if rows cannot be explained one by one.
    pub sample: Vec<ExplainedRow>,
}

/// A row of a dataset with its values and contributions, in the order of [`Insight::features`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExplainedRow {
    /// The values. Missing values are NaN.
    pub values: Vec<f32>,
    /// The contributions.
    pub contributions: Vec<f64>,
}

impl Insight {
    /// Returns the mean absolute contribution of each feature in the sample, largest first, as pairs of the index in
    /// [`Insight::features`] and the mean.
    pub(crate) fn mean_contributions(&self) -> Vec<(usize, f64)> {
        let mean = |feature: usize| {
            let sum: f64 = self.sample.iter().map(|row| row.contributions[feature].abs()).sum();
            sum / self.sample.len().max(1) as f64
        };
        let mut means: Vec<(usize, f64)> =
            (0..self.features.len()).map(|feature| (feature, mean(feature))).collect();
        means.sort_by(|one, other| other.1.total_cmp(&one.1)); // stable, so equal means stay in column order
        means
    }
}

/// Explains all systems whose model and dataset are in the run. For the others, returns the reason why not.
pub(crate) fn insights_of(material: &Material) -> Result<Vec<Result<Insight, String>>> {
    let pool = material.judging.pool()?;
    let mut explained = 0;
    let mut all = Vec::new();
    for (place, system) in material.systems.iter().enumerate() {
        let subject = match Subject::of(material, place, system) {
            Ok(_) if explained == SYSTEMS => Err(format!("only the first {SYSTEMS} rankings are explained")),
            subject => subject,
        };
        all.push(match subject {
            Err(reason) => Err(reason),
            Ok(subject) => {
                explained += 1;
                pool.install(|| subject.explain())?
            }
        });
    }
    Ok(all)
}

/// A system with its model and dataset.
struct Subject<'m> {
    material: &'m Material,
    system: usize,
    model: usize,
    dataset: &'m NamedDataset,
    explainer: Explainer,
}

impl<'m> Subject<'m> {
    fn of(material: &'m Material, place: usize, system: &ReportSystem) -> Result<Self, String> {
        let model = material.model_of(system).ok_or("its model is not in the run")?;
        let dataset = material.dataset_of(system).ok_or("its dataset is not in the run")?;
        let is_shown = material.sets.iter().any(|set| set.systems.contains(&place));
        let it = &material.models[model].model;
        if !is_shown {
            return Err("its documents are not shown".to_owned());
        }
        it.check_complete(&material.models[model].name).map_err(|error| error.to_string())?;
        let explainer = Explainer::new(it).map_err(|error| error.to_string())?;
        Ok(Subject { material, system: place, model, dataset, explainer })
    }

    fn model(&self) -> &'m Model {
        &self.material.models[self.model].model
    }

    fn explain(&self) -> Result<Result<Insight, String>> {
        let reader = DatasetReader::open(&self.dataset.location)?;
        let plan = match ColumnPlan::new(self.model(), self.explainer.used_features(), &reader) {
            Ok(plan) => plan,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let rows = RowReader { reader: &reader, plan: &plan, width: self.explainer.features() };
        let queries = match self.queries(&rows)? {
            Ok(queries) => queries,
            Err(reason) => return Ok(Err(reason)),
        };
        let sample = match self.explainer.needs_queries() {
            true => Vec::new(),
            false => self.explained(&rows.read(&self.sampled(&reader))?),
        };
        Ok(Ok(Insight {
            model: self.model,
            dataset: self.dataset.name.clone(),
            expected: self.explainer.expected_value(),
            features: self.explainer.used_features().collect(),
            queries,
            sample,
        }))
    }

    /// Explains the first documents of all queries whose documents are shown. Returns a reason if the contributions do
    /// not add up to the scores in the predictions, as with early exits or start scores.
    fn queries(&self, rows: &RowReader<'_>) -> Result<Result<BTreeMap<String, Vec<ExplainedRow>>, String>> {
        let member = |set: &'m QuerySet| {
            let member = set.systems.iter().position(|place| *place == self.system)?;
            set.documents[member].as_ref()
        };
        let lists: Vec<(&String, &QueryList, Vec<usize>)> = self
            .material
            .sets
            .iter()
            .filter_map(member)
            .flat_map(|documents| &documents.lists)
            .map(|(query, list)| {
                // Contributions may depend on all documents of the query.
                let places = match self.explainer.needs_queries() {
                    true => (0..list.all.len()).collect(),
                    false => list.first.iter().take(EXPLAINED).map(|document| document.place).collect(),
                };
                (query, list, places)
            })
            .collect();
        let numbers = |(_, list, places): &(&String, &QueryList, Vec<usize>)| -> Vec<u64> {
            places.iter().map(|place| list.first_row + *place as u64).collect()
        };
        let wanted: Vec<u64> = lists.iter().flat_map(numbers).collect();
        let read = rows.read(&wanted)?;
        if read.len() != wanted.len() {
            return Ok(Err("its rows are not those of the dataset".to_owned()));
        }
        let (mut queries, mut rest) = (BTreeMap::new(), &read[..]);
        for (query, list, places) in lists {
            let (rows, after) = rest.split_at(places.len());
            rest = after;
            if rows.iter().any(|row| row.query != *query) {
                return Ok(Err("its rows are not those of the dataset".to_owned()));
            }
            let explained = self.explained(rows);
            let mut first = Vec::new();
            for document in list.first.iter().take(EXPLAINED) {
                let row = places.iter().position(|place| *place == document.place);
                let Some(row) = row.map(|row| &explained[row]) else { continue };
                let sum = self.explainer.expected_value() + row.contributions.iter().sum::<f64>();
                if (sum - document.score).abs() > 1e-6 * document.score.abs().max(1.0) {
                    return Ok(Err("its scores are not those of the model alone".to_owned()));
                }
                first.push(row.clone());
            }
            queries.insert(query.clone(), first);
        }
        Ok(Ok(queries))
    }

    /// Explains rows, which are all documents of one query if contributions depend on the other documents.
    fn explained(&self, rows: &[DatasetRow]) -> Vec<ExplainedRow> {
        let width = self.explainer.features();
        let used: Vec<usize> = self.explainer.used_features().map(|feature| feature as usize).collect();
        let matrix: Vec<f32> = rows.iter().flat_map(|row| row.values.iter().copied()).collect();
        let mut contributions = vec![0.0; matrix.len()];
        let at_once = if self.explainer.needs_queries() { rows.len().max(1) } else { 16 };
        let chunk = (at_once * width).max(1);
        contributions
            .par_chunks_mut(chunk)
            .zip(matrix.par_chunks(chunk))
            .for_each(|(out, rows)| self.explainer.explain_rows(rows, out));
        let of_row = |row: usize| ExplainedRow {
            values: used.iter().map(|feature| matrix[row * width + feature]).collect(),
            contributions: used.iter().map(|feature| contributions[row * width + feature]).collect(),
        };
        (0..rows.len()).map(of_row).collect()
    }

    /// Returns the numbers of the sampled rows: at regular intervals within row groups at regular intervals.
    fn sampled(&self, reader: &DatasetReader) -> Vec<u64> {
        let nodes: usize = self.model().trees().map(|tree| tree.nodes.len()).sum();
        let most = (WORK / (nodes as u64).max(1)).clamp(50, SAMPLE);
        let groups = group_rows(reader);
        let step = groups.len().div_ceil(GROUPS).max(1);
        let chosen: Vec<(u64, u64)> =
            groups.iter().step_by(step).map(|(_, first, rows)| (*first, *rows)).collect();
        let all: u64 = chosen.iter().map(|(_, rows)| rows).sum();
        let every = all.div_ceil(most).max(1);
        chosen.iter().flat_map(|(first, rows)| (*first..first + rows).step_by(every as usize)).collect()
    }
}

/// A row of a dataset.
struct DatasetRow {
    query: String,
    /// One value per feature of the model. Missing values are NaN.
    values: Vec<f32>,
}

/// Reads single rows of a dataset.
struct RowReader<'r> {
    reader: &'r DatasetReader,
    plan: &'r ColumnPlan,
    width: usize,
}

impl RowReader<'_> {
    /// Reads the rows with the given numbers. Only their row groups are read. Rows beyond the end are left out.
    fn read(&self, wanted: &[u64]) -> Result<Vec<DatasetRow>> {
        let mut found: Vec<Option<DatasetRow>> = wanted.iter().map(|_| None).collect();
        for (id, first, rows) in group_rows(self.reader) {
            let here: Vec<(usize, usize)> = wanted
                .iter()
                .enumerate()
                .filter(|(_, row)| (first..first + rows).contains(row))
                .map(|(place, row)| (place, (row - first) as usize))
                .collect();
            if !here.is_empty() {
                self.read_group(id, &here, &mut found)?;
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    fn read_group(
        &self,
        id: GroupId,
        wanted: &[(usize, usize)],
        found: &mut [Option<DatasetRow>],
    ) -> Result<()> {
        let malformed = || unexpected_columns(self.reader.location());
        let group = self.reader.open_group(id)?;
        let known = &self.reader.manifest().features;
        let first =
            group.columns().checked_sub(known.len()).filter(|first| *first > 0).ok_or_else(malformed)?;
        let mut columns = vec![0];
        columns.extend(self.plan.used.iter().map(|(column, _)| first + column));
        group.read_batches(&columns, group.rows().max(1), &mut |batch: RecordBatch| {
            let queries = batch.column(0).as_string_opt::<i32>().ok_or_else(malformed)?;
            let values = self.plan.values(&batch.columns()[1..], self.reader)?;
            let by_feature = values.by_feature(self.width);
            for (place, row) in wanted {
                let value = |column: &Option<&arrow::array::Float32Array>| {
                    column
                        .filter(|column| column.is_valid(*row))
                        .map_or(f32::NAN, |column| column.value(*row))
                };
                found[*place] = Some(DatasetRow {
                    query: queries.value(*row).to_owned(),
                    values: by_feature.iter().map(value).collect(),
                });
            }
            Ok(())
        })
    }
}

/// Returns every row group with the number of its first row and the number of its rows.
fn group_rows(reader: &DatasetReader) -> Vec<(GroupId, u64, u64)> {
    let mut first = 0;
    let groups = reader.groups().into_iter().map(|id| {
        let rows = reader.manifest().files[id.file].row_groups[id.group].rows;
        first += rows;
        (id, first - rows, rows)
    });
    groups.collect()
}
