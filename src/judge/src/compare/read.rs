//! Reads the systems to compare. The values of a system are read from a metrics table or computed from predictions.
//! All values are of the same metric and follow the same convention, which is the set of rules for computing metrics.

use super::aligned::ComparedSystem;
use super::metrics::{TableSystem, read_metric};
use super::query_value::{QueryValue, sorted_and_checked};
use crate::evaluate::{Baseline, CONVENTION, EvaluateRequest, Judgments, Ranking, Results, evaluate};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::LabelMap;
use planetree_data::table::{TableKind, TableReader};
use planetree_metric::{Convention, Metric};

/// A file to compare, which may contain several systems.
#[derive(Debug, Clone)]
pub struct ComparedFile {
    /// Name of the system; `None` to use the name in the table or, if the table has none, the file name.
    pub name: Option<String>,
    /// The file or URL.
    pub location: Location,
    /// A baseline to evaluate if the location is a dataset.
    pub baseline: Option<Baseline>,
    /// Whether the file is a run file of trec_eval.
    pub is_run: bool,
}

impl ComparedFile {
    /// Creates an unnamed file of metrics or predictions.
    pub fn new(location: Location) -> Self {
        ComparedFile { name: None, location, baseline: None, is_run: false }
    }

    fn ranking(&self) -> Ranking {
        let location = self.location.clone();
        match self.baseline.clone() {
            Some(baseline) => Ranking::Baseline { data: location, baseline },
            None if self.is_run => Ranking::Run(location),
            None => Ranking::Predictions(location),
        }
    }
}

/// The systems in all files, and the metric of their values.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadSystems {
    /// The systems, in the order of the files and of the rows within a file.
    pub systems: Vec<ComparedSystem>,
    /// Name of the metric.
    pub metric: String,
    /// Whether higher values are better.
    pub higher_is_better: bool,
    /// Convention by which all values were computed.
    pub convention: Convention,
    /// Map of the labels by which all values were computed, if any.
    pub label_map: Option<LabelMap>,
    /// Warnings of the evaluation of rankings.
    pub warnings: Vec<String>,
}

/// The rules by which predictions are evaluated. Where they are `None`, those of the metrics tables apply, or the
/// defaults if there are no tables.
#[derive(Debug, Clone, Default)]
pub struct ReadingRules {
    /// Convention by which the metric is computed.
    pub convention: Option<Convention>,
    /// Map of labels to others.
    pub label_map: Option<LabelMap>,
    /// Judgments that replace the labels of rankings.
    pub judgments: Option<Judgments>,
}

/// Reads the values of a metric from all files. Predictions are evaluated by `rules`. If `threads` is 0, all cores are
/// used.
pub fn read_systems(
    files: &[ComparedFile],
    metric: &str,
    rules: &ReadingRules,
    threads: usize,
) -> Result<ReadSystems> {
    let parsed = metric.parse::<Metric>();
    // A table may have columns that are not metrics of planetree, so an unknown metric name is used as a column name.
    let column = parsed.as_ref().map_or_else(|_| metric.trim().to_owned(), Metric::to_string);
    let tables: Vec<Option<TableReader>> = files.iter().map(open_metrics).collect::<Result<_>>()?;
    let convention = common_convention(&tables, rules.convention.as_ref())?;
    if let Ok(pooled) = parsed.as_ref().map(|metric| convention.meant(*metric))
        && pooled.is_pooled()
    {
        return Err(Error::usage(
            format_args!(
                "metric {pooled} has no value per query, so systems cannot be compared query by query"
            ),
            "choose a metric that has, such as ndcg, or auc and pauc@0-5 with auc=query in the convention",
        ));
    }
    let label_map = common_label_map(&tables, rules.label_map.as_ref())?;
    let (mut systems, mut warnings) = (Vec::new(), Vec::new());
    for (compared, table) in files.iter().zip(&tables) {
        let file = compared.ranking().to_string();
        let read = match table {
            Some(table) => read_metric(table, &column)?,
            None => {
                let request = EvaluateRequest {
                    threads,
                    label_map: label_map.clone(),
                    judgments: rules.judgments.clone(),
                    ..EvaluateRequest::new(vec![metric.parse()?], convention.clone())
                };
                let results = evaluate(&compared.ranking(), &request)?;
                let warning = results.overlap.warning(results.unranked);
                warnings.extend(warning.map(|warning| format!("{file}: {warning}")));
                vec![TableSystem { name: None, values: values_of(&results) }]
            }
        };
        for TableSystem { name, values } in read {
            let place = name.as_ref().map_or_else(|| file.clone(), |name| format!("{file} ({name})"));
            let queries = sorted_and_checked(&place, &column, values)?;
            let name = match (&compared.name, name) {
                (Some(given), Some(name)) => format!("{given}/{name}"),
                (Some(given), None) => given.clone(),
                (None, Some(name)) => name,
                (None, None) => match &compared.baseline {
                    Some(baseline) => baseline.to_string(),
                    None => file_stem(&file),
                },
            };
            systems.push(ComparedSystem { name, file: file.clone(), place, queries });
        }
    }
    make_names_unique(&mut systems);
    let higher_is_better = parsed.map_or(true, |metric| metric.higher_is_better());
    Ok(ReadSystems { systems, metric: column, higher_is_better, convention, label_map, warnings })
}

/// Returns the first metric of every query.
fn values_of(results: &Results) -> Vec<QueryValue> {
    let queries = results.names().zip(results.column(0)).enumerate();
    let value = |(index, (query, value)): (usize, (&str, Option<f64>))| QueryValue {
        query: query.to_owned(),
        value,
        documents: Some((results.documents[index].into(), results.relevant[index].into())),
    };
    queries.map(value).collect()
}

/// Opens a metrics table. Returns `None` for any other file, which is then read as predictions.
fn open_metrics(file: &ComparedFile) -> Result<Option<TableReader>> {
    if file.baseline.is_some() || file.is_run {
        return Ok(None);
    }
    match TableReader::kind_of(&file.location)? {
        Some(TableKind::Metrics) => TableReader::open(&file.location, TableKind::Metrics).map(Some),
        _ => Ok(None),
    }
}

/// Returns the convention with which predictions are evaluated, so that they are comparable with the metrics tables.
/// Returns an error if the tables have different conventions.
fn common_convention(tables: &[Option<TableReader>], requested: Option<&Convention>) -> Result<Convention> {
    let mut common: Option<(String, Convention)> =
        requested.map(|convention| ("--convention".to_owned(), convention.clone()));
    for table in tables.iter().flatten() {
        let place = table.location().to_string();
        let Some(text) = table.metadata(CONVENTION) else {
            let problem = "the table does not record its convention";
            return Err(Error::place(place, problem, "evaluate the predictions again"));
        };
        let convention: Convention = text.parse().map_err(|error| {
            Error::place(&place, &error, "evaluate the predictions again").caused_by(error)
        })?;
        match &common {
            None => common = Some((place, convention)),
            Some((_, other)) if *other == convention => {}
            Some((first, other)) => {
                return Err(Error::place(
                    format_args!("{first} and {place}"),
                    format_args!("conventions differ: {other} and {convention}"),
                    "evaluate both with the same --convention",
                ));
            }
        }
    }
    Ok(common.map(|(_, convention)| convention).unwrap_or_default())
}

/// Returns the map of labels with which predictions are evaluated. Returns an error if the tables have different maps.
fn common_label_map(
    tables: &[Option<TableReader>],
    requested: Option<&LabelMap>,
) -> Result<Option<LabelMap>> {
    let shown = |map: &Option<LabelMap>| map.as_ref().map_or("none".to_owned(), LabelMap::to_string);
    let mut common = requested.map(|map| ("--label-map".to_owned(), Some(map.clone())));
    for table in tables.iter().flatten() {
        let place = table.location().to_string();
        let map: Option<LabelMap> = table.metadata(LabelMap::KEY).map(str::parse).transpose()?;
        match &common {
            None => common = Some((place, map)),
            Some((_, other)) if *other == map => {}
            Some((first, other)) => {
                return Err(Error::place(
                    format_args!("{first} and {place}"),
                    format_args!("label maps differ: {} and {}", shown(other), shown(&map)),
                    "evaluate both with the same --label-map",
                ));
            }
        }
    }
    Ok(common.and_then(|(_, map)| map))
}

/// Returns the file name without `.parquet`.
fn file_stem(file: &str) -> String {
    let name = file.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    name.strip_suffix(".parquet").unwrap_or(name).to_owned()
}

/// Makes system names unique: systems with equal names are renamed to their paths, and systems with equal paths are
/// numbered.
fn make_names_unique(systems: &mut [ComparedSystem]) {
    let names: Vec<String> = systems.iter().map(|system| system.name.clone()).collect();
    for system in systems.iter_mut() {
        if names.iter().filter(|name| **name == system.name).count() > 1 {
            system.name = system.place.clone();
        }
    }
    for index in 1..systems.len() {
        let (before, after) = systems.split_at_mut(index);
        let same = before.iter().filter(|system| system.place == after[0].place).count();
        if before.iter().any(|system| system.name == after[0].name) {
            after[0].name = format!("{} ({})", after[0].name, same + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_names_are_unique() {
        let named = |texts: &[(&str, &str)]| {
            let system = |(name, file): &(&str, &str)| ComparedSystem {
                name: if name.is_empty() { file_stem(file) } else { (*name).to_owned() },
                file: (*file).to_owned(),
                place: (*file).to_owned(),
                queries: Vec::new(),
            };
            let mut systems: Vec<ComparedSystem> = texts.iter().map(system).collect();
            make_names_unique(&mut systems);
            systems.into_iter().map(|system| system.name).collect::<Vec<_>>()
        };
        assert_eq!(named(&[("", "runs/a.parquet"), ("", "runs/b.metrics")]), ["a", "b.metrics"]);
        assert_eq!(named(&[("old", "a.parquet"), ("", "b.parquet")]), ["old", "b"]);
        assert_eq!(
            named(&[("", "mon/m.parquet"), ("", "tue/m.parquet"), ("", "x")]),
            ["mon/m.parquet", "tue/m.parquet", "x"]
        );
        assert_eq!(named(&[("", "m"), ("", "m"), ("", "m")]), ["m", "m (2)", "m (3)"]);
        assert_eq!(named(&[("a", "x"), ("a", "y")]), ["x", "y"]);
    }
}
