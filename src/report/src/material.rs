//! Reads and computes the data that all sections of a report are rendered from. A system is one ranking of a run.

use super::ReportRequest;
use super::chart::COLOURS;
use super::display::Display;
use super::disputed::{DisputedLabel, disputed_labels};
use super::documents::Documents;
use super::insight::{Insight, insights_of};
use super::rules::EvaluationRules;
use super::run::RunContents;
use super::system::{ReportSystem, systems_of};
use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_data::catalog::CatalogEntry;
use planetree_data::dataset::DatasetReader;
use planetree_data::dataset::Manifest;
use planetree_data::table::provenance::DATASET;
use planetree_data::table::{TableKind, TableReader};
use planetree_judge::compare::{self, AlignedSystems, PairComparison, SignificanceTest, compare};
use planetree_judge::evaluate::CONVENTION;
use planetree_model::model::Model;
use planetree_model::predict::model_fingerprint;
use std::collections::{BTreeMap, BTreeSet};

/// Number of worst queries shown per system. The same number of best queries is shown.
pub(crate) const EXTREMES: usize = 8;
/// Number of most improved queries shown per pair of systems. The same number of most worsened queries is shown.
const MOVED: usize = 6;
/// Maximum number of queries of a set of which all have their documents shown, not only the worst and the best.
const FEW: usize = 60;
/// Maximum number of query sets shown. A query set is a group of systems that rank the same queries.
const SETS: usize = 6;
/// Maximum number of models shown in detail.
pub(crate) const MODELS: usize = 8;

/// All data of a report.
pub(crate) struct Material {
    /// The runs, in the order of the command line.
    pub runs: Vec<RunContents>,
    /// How rankings are evaluated.
    pub judging: EvaluationRules,
    /// The systems of all runs.
    pub systems: Vec<ReportSystem>,
    /// The systems, grouped by the queries that they rank.
    pub sets: Vec<QuerySet>,
    /// Names of systems that are omitted, because there are too many query sets.
    pub left_out: Vec<String>,
    /// The models of all runs. Only the first [`MODELS`] are shown in detail.
    pub models: Vec<NamedModel>,
    /// All datasets.
    pub datasets: Vec<NamedDataset>,
    /// Texts, titles, links and segments from display tables.
    pub display: Display,
    /// For each system, the contributions of the features to its scores, or the reason why they are not known.
    pub insights: Vec<Result<Insight, String>>,
    /// The disputed labels of each system, strongest first.
    pub disputed: Vec<Vec<DisputedLabel>>,
    /// The date to show, as given.
    pub date: Option<String>,
}

/// A dataset of a run.
pub(crate) struct NamedDataset {
    /// The display name.
    pub name: String,
    /// Index of the run.
    pub run: usize,
    /// The directory.
    pub location: Location,
    /// The manifest, always with a fingerprint.
    pub manifest: Manifest,
}

/// Systems that ranked the same queries.
pub(crate) struct QuerySet {
    /// Name of the query set: that of the dataset, or that of the first system if the dataset is not in the run.
    pub name: String,
    /// Name of the dataset, if it is in the run.
    pub dataset: Option<String>,
    /// Indices of the systems shown.
    pub systems: Vec<usize>,
    /// Number of systems that rank the same queries but are not shown.
    pub left_out: usize,
    /// The documents of each system that is shown. `None` for systems without predictions.
    pub documents: Vec<Option<Documents>>,
    /// The worst and the best queries of each system, as indices into the queries of the system.
    pub extremes: Vec<[Vec<usize>; 2]>,
    /// The comparison of the systems, or the reason why they cannot be compared. `None` if there is only one system.
    pub comparison: Option<Result<QuerySetComparison, String>>,
}

/// The comparison of all systems of a query set.
pub(crate) struct QuerySetComparison {
    /// The value of the primary metric for each query in each system.
    pub aligned: AlignedSystems,
    /// The comparison of each pair of systems.
    pub pairs: Vec<PairComparison>,
    /// The options of the significance tests.
    pub options: compare::ComparisonOptions,
}

/// A model of a run.
pub(crate) struct NamedModel {
    /// The display name.
    pub name: String,
    /// Index of the run.
    pub run: usize,
    /// The fingerprint of the model file.
    pub fingerprint: String,
    /// The model.
    pub model: Model,
}

impl Material {
    /// Reads the runs, evaluates their rankings and compares them.
    pub(crate) fn gather(request: &ReportRequest) -> Result<Self> {
        let mut runs: Vec<RunContents> = Vec::new();
        for source in &request.runs {
            runs.push(RunContents::open(source, request.unfinished, request.within_run)?);
        }
        number_names(&mut runs);
        let judging = EvaluationRules::of(&runs, request)?;
        let namer = Namer { runs: &runs };
        let systems = systems_of(&runs, &judging, &|run, entry| namer.system(run, entry))?;
        let mut models = Vec::new();
        let mut datasets = Vec::new();
        for (place, run) in runs.iter().enumerate() {
            for entry in run.tables(TableKind::Model) {
                models.push(NamedModel {
                    name: namer.name(place, &entry.name),
                    run: place,
                    fingerprint: model_fingerprint(&entry.location)?,
                    model: Model::read_unfinished(&entry.location)?,
                });
            }
            for entry in run.datasets() {
                let reader = DatasetReader::open(&entry.location)?;
                let fingerprint = Some(reader.fingerprint()?);
                let manifest = Manifest { fingerprint, ..reader.manifest().clone() };
                let name = namer.name(place, &entry.name);
                let location = entry.location.clone();
                datasets.push(NamedDataset { name, run: place, location, manifest });
            }
        }
        let mut material = Material {
            judging,
            sets: Vec::new(),
            left_out: Vec::new(),
            systems,
            models,
            datasets,
            runs,
            display: Display::default(),
            insights: Vec::new(),
            disputed: Vec::new(),
            date: request.date.clone(),
        };
        (material.sets, material.left_out) = material.query_sets()?;
        material.disputed = material.systems.iter().map(disputed_labels).collect::<Result<_>>()?;
        material.display = Display::read(&request.display, &material.shown_queries())?;
        material.insights = insights_of(&material)?;
        Ok(material)
    }

    /// Returns the systems of a query set, each with the number of its colour.
    pub(crate) fn members<'m>(
        &'m self,
        set: &'m QuerySet,
    ) -> impl Iterator<Item = (usize, &'m ReportSystem)> {
        (1..).zip(set.systems.iter().map(|place| &self.systems[*place]))
    }

    /// Returns all tables of a kind, with their display names.
    pub(crate) fn tables(&self, kind: TableKind) -> Vec<(String, &CatalogEntry)> {
        let namer = Namer { runs: &self.runs };
        let mut tables = Vec::new();
        for (place, run) in self.runs.iter().enumerate() {
            tables.extend(run.tables(kind).map(|entry| (namer.name(place, &entry.name), entry)));
        }
        tables
    }

    /// Returns a sentence that names the convention, which is the set of rules by which the metrics of a table were
    /// computed.
    pub(crate) fn convention_of(table: &TableReader) -> String {
        match table.metadata(CONVENTION) {
            Some(convention) => format!("By the convention {convention}."),
            None => "The table does not say its convention.".to_owned(),
        }
    }

    /// Returns the dataset that a system ranks, if it is in the run.
    pub(crate) fn dataset_of(&self, system: &ReportSystem) -> Option<&NamedDataset> {
        self.dataset_with(system.metadata.get(DATASET)?, system.run)
    }

    /// Returns the index of the model that scored a system, if it is in the run.
    pub(crate) fn model_of(&self, system: &ReportSystem) -> Option<usize> {
        let fingerprint = system.metadata.get("planetree.model_fingerprint")?;
        let is_it = |model: &NamedModel| model.fingerprint == *fingerprint;
        first_of_run(&self.models, system.run, |model| model.run, is_it)
    }

    /// Returns whether two systems rank the rows of the same dataset, so that their tables have the same order.
    pub(crate) fn same_rows(&self, one: usize, other: usize) -> bool {
        let [one, other] = [one, other].map(|place| self.systems[place].metadata.get(DATASET));
        one.is_some() && one == other
    }

    /// Returns the queries whose documents are shown.
    fn shown_queries(&self) -> BTreeSet<&str> {
        let documents = self.sets.iter().flat_map(|set| set.documents.iter().flatten());
        let listed = documents.flat_map(|documents| documents.lists.keys());
        let disputed = self.disputed.iter().flatten().map(|disputed| &disputed.query);
        listed.chain(disputed).map(String::as_str).collect()
    }

    /// Returns the dataset with this fingerprint. If several runs have it, that of the given run is preferred.
    pub(crate) fn dataset_with(&self, fingerprint: &str, run: usize) -> Option<&NamedDataset> {
        // Predictions written by earlier versions of the program identify a dataset by the hash of its files.
        let is_it = |dataset: &NamedDataset| {
            dataset.manifest.fingerprint.is_some_and(|data| data.to_string() == fingerprint)
                || dataset.manifest.files_digest().to_string() == fingerprint
        };
        let place = first_of_run(&self.datasets, run, |dataset| dataset.run, is_it)?;
        Some(&self.datasets[place])
    }

    /// Returns a text that explains why metrics are missing, with a reason for each system without metrics.
    pub(crate) fn why_unjudged(&self) -> String {
        let reasons: Vec<String> = self
            .systems
            .iter()
            .filter_map(|system| Some(format!("{}: {}", system.name, system.judged.as_ref().err()?)))
            .collect();
        match reasons.is_empty() {
            true => "The run has no predictions or metrics.".to_owned(),
            false => format!("Labels are missing. {}.", reasons.join("; ")),
        }
    }

    /// Groups systems by the queries that they rank. Also returns the names of the systems that are omitted.
    fn query_sets(&self) -> Result<(Vec<QuerySet>, Vec<String>)> {
        let mut groups: Vec<(Vec<&str>, Vec<usize>)> = Vec::new();
        for (place, system) in self.systems.iter().enumerate() {
            let Ok(judged) = &system.judged else { continue };
            let names: Vec<&str> = judged.queries.iter().map(|query| query.query.as_str()).collect();
            match groups.iter_mut().find(|(known, _)| *known == names) {
                Some((_, systems)) => systems.push(place),
                None => groups.push((names, vec![place])),
            }
        }
        let others = groups.split_off(groups.len().min(SETS));
        let names = others.iter().flat_map(|(_, systems)| systems);
        let names = names.map(|place| self.systems[*place].name.clone()).collect();
        let sets = groups.into_iter().map(|(_, systems)| self.query_set(systems));
        Ok((sets.collect::<Result<_>>()?, names))
    }

    fn query_set(&self, mut systems: Vec<usize>) -> Result<QuerySet> {
        let left_out = systems.len().saturating_sub(COLOURS);
        systems.truncate(COLOURS);
        let first = &self.systems[systems[0]];
        let dataset = self.dataset_of(first).map(|dataset| dataset.name.clone());
        let name = dataset.clone().unwrap_or_else(|| first.name.clone());
        let comparison = if systems.len() > 1 { Some(self.compared(&systems)?) } else { None };
        let extremes: Vec<[Vec<usize>; 2]> = systems.iter().map(|place| self.extremes(*place)).collect();
        let mut documents = Vec::new();
        for (member, place) in systems.iter().enumerate() {
            let system = &self.systems[*place];
            let (Some(predictions), Ok(judged)) = (&system.predictions, &system.judged) else {
                documents.push(None);
                continue;
            };
            let mut wanted: BTreeSet<&str> = extremes[member]
                .iter()
                .flatten()
                .map(|query| judged.queries[*query].query.as_str())
                .collect();
            if let Some(Ok(comparison)) = &comparison {
                wanted.extend(comparison.moved(member));
            }
            if judged.queries.len() <= FEW {
                wanted.extend(judged.queries.iter().map(|query| query.query.as_str()));
            }
            documents.push(Some(Documents::read(predictions, &wanted)?));
        }
        Ok(QuerySet { name, dataset, systems, left_out, documents, extremes, comparison })
    }

    /// Returns the indices of the worst and of the best queries. Queries without relevant documents are ignored.
    fn extremes(&self, system: usize) -> [Vec<usize>; 2] {
        let Ok(judged) = &self.systems[system].judged else { return [Vec::new(), Vec::new()] };
        let sign = if self.judging.metric.higher_is_better() { 1.0 } else { -1.0 };
        let mut counted: Vec<(f64, usize)> = judged
            .queries
            .iter()
            .enumerate()
            .filter(|(_, query)| query.documents.is_none_or(|(_, relevant)| relevant > 0))
            .filter_map(|(place, query)| Some((sign * query.value?, place)))
            .collect();
        counted.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        // The sorted list is divided into two halves, so that no query is among both the worst and the best.
        let (worst, best) = counted.split_at(counted.len().div_ceil(2));
        let worst = worst.iter().take(EXTREMES).map(|(_, place)| *place).collect();
        let best = best.iter().rev().take(EXTREMES).map(|(_, place)| *place).collect();
        [worst, best]
    }

    fn compared(&self, systems: &[usize]) -> Result<Result<QuerySetComparison, String>> {
        let as_compared = |place: &usize| {
            let system = &self.systems[*place];
            let name = || system.name.clone();
            let queries = system.judged.as_ref().map(|judged| judged.queries.clone()).unwrap_or_default();
            compare::ComparedSystem { name: name(), file: name(), place: name(), queries }
        };
        let systems: Vec<compare::ComparedSystem> = systems.iter().map(as_compared).collect();
        let aligned = match AlignedSystems::of(&systems) {
            Ok(aligned) => aligned,
            Err(error) => return Ok(Err(error.to_string())),
        };
        // These are the default options of `planetree compare`.
        let options = compare::ComparisonOptions {
            higher_is_better: self.judging.metric.higher_is_better(),
            test: SignificanceTest::Randomisation,
            alternative: compare::Alternative::TwoSided,
            alpha: 0.05,
            permutations: 100_000,
            resamples: 10_000,
            level: 0.95,
            seed: 1,
            top: MOVED,
        };
        let pool = self.judging.pool()?;
        let pairs = pool.install(|| compare(&aligned, &options))?;
        Ok(Ok(QuerySetComparison { aligned, pairs, options }))
    }
}

impl QuerySetComparison {
    /// Returns the queries whose values differ most between a system and each of the other systems.
    fn moved(&self, member: usize) -> impl Iterator<Item = &str> {
        let pairs = self.pairs.iter().filter(move |pair| pair.a == member || pair.b == member);
        pairs
            .flat_map(|pair| pair.improved.iter().chain(&pair.worsened))
            .map(|query| self.aligned.queries[*query].as_str())
    }
}

/// Returns the index of the first item that is sought, in the given run if it has one, or else in any run. Different runs
/// may have the same model or dataset.
fn first_of_run<T>(
    items: &[T],
    run: usize,
    run_of: impl Fn(&T) -> usize,
    is_it: impl Fn(&T) -> bool,
) -> Option<usize> {
    let found: Vec<usize> = (0..items.len()).filter(|place| is_it(&items[*place])).collect();
    let of_run = found.iter().copied().find(|place| run_of(&items[*place]) == run);
    of_run.or_else(|| found.first().copied())
}

/// Creates display names. If there are several runs, a name begins with the name of the run.
struct Namer<'r> {
    runs: &'r [RunContents],
}

impl Namer<'_> {
    fn name(&self, run: usize, entry: &str) -> String {
        match self.runs.len() {
            1 => entry.to_owned(),
            _ => format!("{}/{entry}", self.runs[run].name),
        }
    }

    /// Returns the display name of a ranking. If there are several runs, the only ranking of a run is named after the
    /// run. The ranking of a cross-validation is named after its directory.
    fn system(&self, run: usize, entry: &str) -> String {
        let entry = entry.strip_suffix("/predictions").unwrap_or(entry);
        let only = |kind| self.runs[run].tables(kind).count() == 1;
        match self.runs.len() {
            1 => entry.to_owned(),
            _ if only(TableKind::Predictions) => self.runs[run].name.clone(),
            _ => self.name(run, entry),
        }
    }
}

/// Appends a number to run names that occur more than once.
fn number_names(runs: &mut [RunContents]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for run in runs {
        let times = seen.entry(run.name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            run.name = format!("{} ({times})", run.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_run_is_preferred() {
        let models = [(0, "a"), (1, "b"), (1, "a")];
        let found =
            |run: usize, name: &str| first_of_run(&models, run, |model| model.0, |model| model.1 == name);
        assert_eq!([found(0, "a"), found(1, "a"), found(2, "a")], [Some(0), Some(2), Some(0)]);
        assert_eq!([found(0, "b"), found(0, "c")], [Some(1), None]);
    }
}
