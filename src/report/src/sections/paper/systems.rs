//! Reads the results of a run by system: means of metrics, and values by query.

use crate::html::Html;
use crate::number::{short, value};
use crate::run::RunContents;
use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableReader, float_column, string_column};
use planetree_judge::compare::{ComparedFile, ComparedSystem, QueryValue, ReadingRules, read_systems};
use planetree_metric::Metric;
use planetree_run::pipeline::{Paper, PaperDifference};
use std::collections::{BTreeMap, BTreeSet};

/// Name of the column of wall times.
pub(super) const SECONDS: &str = "seconds";

/// One system of a run with its values.
pub(super) struct SystemResult {
    /// Name of a `cv` step, `STEP:SYSTEM`, or name of a difference.
    pub name: String,
    /// Means by metric, and `seconds`.
    pub means: BTreeMap<String, f64>,
    /// Values by metric and query, sorted by query.
    pub queries: BTreeMap<String, Vec<QueryValue>>,
    /// Folds by the queries that they test; empty unless the system is a `cv` step.
    pub folds: BTreeMap<String, u64>,
}

impl SystemResult {
    /// Creates a system without values.
    pub(super) fn named(name: &str) -> Self {
        SystemResult {
            name: name.to_owned(),
            means: BTreeMap::new(),
            queries: BTreeMap::new(),
            folds: BTreeMap::new(),
        }
    }
}

/// Several systems that are averaged, or one.
pub(super) type SystemUnit<'r> = Vec<&'r SystemResult>;

/// All systems of a run.
pub(super) struct RunResults {
    systems: Vec<SystemResult>,
}

impl RunResults {
    /// Reads the systems of a run.
    pub(super) fn read(run: &RunContents, paper: &Paper, threads: usize) -> Result<Self> {
        let mut metrics: Vec<&String> = paper.metrics.iter().collect();
        metrics.extend(paper.tables.iter().flat_map(|table| &table.metrics));
        metrics.extend(paper.by_part.iter().flat_map(|table| &table.metrics));
        metrics.extend(paper.findings.iter().flat_map(|finding| &finding.metrics));
        metrics.sort_unstable();
        metrics.dedup();
        let mut systems: Vec<SystemResult> = Vec::new();
        for entry in run.tables(TableKind::Folds) {
            let name = entry.name.strip_suffix("/folds").unwrap_or(&entry.name).to_owned();
            systems.push(SystemResult { means: fold_means(&entry.location)?, ..SystemResult::named(&name) });
        }
        for entry in run.tables(TableKind::Metrics) {
            let of_cv = entry.name.strip_suffix("/metrics");
            if let Some(system) = systems.iter_mut().find(|system| Some(system.name.as_str()) == of_cv) {
                system.folds = folds_of(&entry.location)?;
            }
            for metric in &metrics {
                let has =
                    TableReader::open(&entry.location, TableKind::Metrics)?.schema().index_of(metric).is_ok();
                // Pooled metrics have no value per query.
                let file = [ComparedFile::new(entry.location.clone())];
                let Ok(read) = read_systems(&file, metric, &ReadingRules::default(), threads) else {
                    continue;
                };
                for system in read.systems.into_iter().filter(|_| has) {
                    let name = match of_cv {
                        Some(cv) => cv.to_owned(),
                        None => format!("{}:{}", entry.name, system.name),
                    };
                    let known = systems.iter().position(|known| known.name == name).unwrap_or_else(|| {
                        systems.push(SystemResult::named(&name));
                        systems.len() - 1
                    });
                    let result = &mut systems[known];
                    if let Some(mean) = mean_of(metric, &system.queries) {
                        result.means.entry((*metric).clone()).or_insert(mean);
                    }
                    result.queries.insert((*metric).clone(), system.queries);
                }
            }
        }
        for step in run.manifest.iter().flat_map(|manifest| &manifest.steps) {
            let written = step.outputs.values().filter(|output| output.ends_with(".csv"));
            for output in written.filter(|_| step.kind == "sql") {
                let Some(bytes) = run.location.join(output).read_all()? else { continue };
                systems.extend(rows_of(&step.name, &String::from_utf8_lossy(&bytes)));
            }
        }
        let mut results = RunResults { systems };
        paper.system_differences.iter().for_each(|difference| results.subtract(difference));
        Ok(results)
    }

    /// Creates the results of some systems.
    #[cfg(test)]
    pub(super) fn of(systems: Vec<SystemResult>) -> Self {
        RunResults { systems }
    }

    /// Adds the difference of two systems as a system. There is none if the run does not have both systems.
    fn subtract(&mut self, wanted: &PaperDifference) {
        let (of, minus) = (self.matching(&wanted.of), self.matching(&wanted.minus));
        let mut found = SystemResult::named(&wanted.system);
        let metrics = of.iter().flat_map(|system| system.means.keys());
        for metric in metrics.collect::<BTreeSet<_>>() {
            let (Some(first), Some(second)) = (mean(&of, metric), mean(&minus, metric)) else { continue };
            found.means.insert(metric.clone(), first - second);
            let (Some(first), Some(second)) = (by_query(&of, metric), by_query(&minus, metric)) else {
                continue;
            };
            let pairs = first.queries.into_iter().zip(second.queries);
            let subtracted = pairs.map(|(one, other)| {
                let value = one.value.zip(other.value).filter(|_| one.query == other.query);
                QueryValue { value: value.map(|(one, other)| one - other), ..one }
            });
            found.queries.insert(metric.clone(), subtracted.collect());
        }
        if !found.means.is_empty() {
            self.systems.push(found);
        }
    }

    /// Returns the systems that a name or pattern matches, in the order of the steps.
    pub(super) fn matching(&self, pattern: &str) -> SystemUnit<'_> {
        self.systems.iter().filter(|system| matches(pattern, &system.name)).collect()
    }
}

/// Returns whether a name matches a pattern, in which each `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(name) = name.strip_prefix(start) else { return false };
    match rest.contains('*') {
        true => name.char_indices().any(|(place, _)| matches(rest, &name[place..])),
        false => name.ends_with(rest),
    }
}

/// Returns whether higher values of a metric, or of a column of a CSV file, are better.
pub(super) fn higher_is_better(metric: &str) -> bool {
    match metric.parse::<Metric>() {
        Ok(metric) => metric.higher_is_better(),
        Err(_) => !["seconds", "cost", "correlation", "rmse"].iter().any(|small| metric.ends_with(small)),
    }
}

/// Formats a value of a metric.
pub(super) fn shown(metric: &str, known: Option<f64>) -> Html {
    let text = |found: f64| match metric.parse::<Metric>() {
        Ok(_) => value(found),
        Err(_) if metric == SECONDS => format!("{found:.1}"),
        Err(_) => short(found),
    };
    Html::text(known.filter(|found| found.is_finite()).map_or_else(|| "–".to_owned(), text))
}

/// Returns the mean of a metric over systems; `None` if none has it.
pub(super) fn mean(unit: &[&SystemResult], metric: &str) -> Option<f64> {
    let values: Vec<f64> = unit.iter().filter_map(|system| system.means.get(metric).copied()).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the mean values of several systems by query.
pub(super) fn by_query(unit: &[&SystemResult], metric: &str) -> Option<ComparedSystem> {
    let all: Vec<&Vec<QueryValue>> =
        unit.iter().map(|system| system.queries.get(metric)).collect::<Option<_>>()?;
    let mut queries = all.first()?.to_vec();
    for (place, query) in queries.iter_mut().enumerate() {
        let same = |other: &&Vec<QueryValue>| other.get(place).filter(|one| one.query == query.query)?.value;
        let values: Vec<f64> = all.iter().filter_map(same).collect();
        query.value = (values.len() == all.len()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    }
    let name = unit.first()?.name.clone();
    Some(ComparedSystem { file: name.clone(), place: name.clone(), name, queries })
}

/// Returns the mean of a metric over queries. That of RMSE is over documents.
pub(super) fn mean_of<'q>(metric: &str, queries: impl IntoIterator<Item = &'q QueryValue>) -> Option<f64> {
    let is_rmse = metric.parse::<Metric>().is_ok_and(|metric| metric == Metric::Rmse);
    let mut sums = (0.0, 0.0);
    for query in queries {
        let (Some(value), documents) = (query.value, query.documents.map_or(1, |(all, _)| all) as f64) else {
            continue;
        };
        sums.0 += if is_rmse { documents * value * value } else { value };
        sums.1 += if is_rmse { documents } else { 1.0 };
    }
    let mean = sums.0 / sums.1;
    Some(if is_rmse { mean.sqrt() } else { mean }).filter(|mean| mean.is_finite())
}

/// Returns the fold of each query of a cross-validation.
fn folds_of(location: &Location) -> Result<BTreeMap<String, u64>> {
    let table = TableReader::open(location, TableKind::Metrics)?;
    let mut folds = BTreeMap::new();
    for batch in table.batches() {
        let batch = batch?;
        let (queries, numbers) =
            (string_column(&table, &batch, "query_id")?, float_column(&table, &batch, "fold")?);
        folds.extend(
            (0..batch.num_rows()).map(|row| (queries.value(row).to_owned(), numbers.value(row) as u64)),
        );
    }
    Ok(folds)
}

/// Returns the means of the test metrics over folds, and the seconds of all folds.
fn fold_means(location: &Location) -> Result<BTreeMap<String, f64>> {
    let table = TableReader::open(location, TableKind::Folds)?;
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    let mut seconds: BTreeMap<u64, f64> = BTreeMap::new();
    for batch in table.batches() {
        let batch = batch?;
        let number = |name| float_column(&table, &batch, name);
        let (folds, values, times) = (number("fold")?, number("value")?, number(SECONDS)?);
        let (splits, metrics) =
            (string_column(&table, &batch, "split")?, string_column(&table, &batch, "metric")?);
        for row in (0..batch.num_rows()).filter(|row| splits.value(*row) == "test") {
            seconds.insert(folds.value(row) as u64, times.value(row));
            if values.value(row).is_finite() {
                let sum = sums.entry(metrics.value(row).to_owned()).or_default();
                *sum = (sum.0 + values.value(row), sum.1 + 1.0);
            }
        }
    }
    let mut means: BTreeMap<String, f64> =
        sums.into_iter().map(|(name, (sum, count))| (name, sum / count)).collect();
    means.insert(SECONDS.to_owned(), seconds.values().sum());
    Ok(means)
}

/// Returns the rows of a CSV file as systems: the first column is the name, the others are values.
fn rows_of(step: &str, text: &str) -> Vec<SystemResult> {
    let mut lines = text.lines();
    let header = cells_of(lines.next().unwrap_or_default());
    let row = |line: &str| {
        let mut cells = cells_of(line).into_iter();
        let name = format!("{step}:{}", cells.next().unwrap_or_default());
        let values = header.iter().skip(1).zip(cells);
        let means = values.filter_map(|(key, cell)| Some((key.clone(), cell.parse().ok()?)));
        SystemResult { means: means.collect(), ..SystemResult::named(&name) }
    };
    lines.map(row).collect()
}

/// Splits a line of a CSV file at the commas outside quotes.
fn cells_of(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            other => {
                if let Some(cell) = cells.last_mut() {
                    cell.push(other);
                }
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_csv_file_are_systems() {
        let rows = rows_of("table", "system,learner,\"prec@5\",cost\nRF-0,\"RF, k\",0.25,12\nRF-1,RF,,3\n");
        assert_eq!(rows[0].name, "table:RF-0");
        assert_eq!((rows[0].means["prec@5"], rows[0].means["cost"]), (0.25, 12.0));
        assert!(!rows[1].means.contains_key("prec@5") && rows[1].means["cost"] == 3.0);
    }

    #[test]
    fn errors_costs_and_times_are_better_if_they_are_lower() {
        for metric in ["rmse", "tree_rmse", "seconds", "test_cost", "correlation"] {
            assert!(!higher_is_better(metric), "{metric}");
        }
        assert!(higher_is_better("ndcg@10") && higher_is_better("early_test"));
    }

    #[test]
    fn stars_stand_for_any_text() {
        let all = ["avg-0.1-5", "avg-0.1-15", "avg-0.2-5", "avg-5"];
        let found = |pattern: &str| all.iter().filter(|name| matches(pattern, name)).count();
        assert_eq!(
            ["avg-*-5", "avg-*", "*-5", "avg-*.1-*", "avg-5", "*5*5", "5"].map(found),
            [2, 4, 3, 2, 1, 0, 0]
        );
    }

    #[test]
    fn a_difference_is_a_system_with_values_by_query() {
        let system = |name: &str, values: [f64; 2]| {
            let query = |(name, value): (&str, f64)| QueryValue {
                query: name.to_owned(),
                value: Some(value),
                documents: None,
            };
            let queries = ["q1", "q2"].into_iter().zip(values).map(query).collect();
            SystemResult {
                means: [("err".to_owned(), (values[0] + values[1]) / 2.0)].into(),
                queries: [("err".to_owned(), queries)].into(),
                ..SystemResult::named(name)
            }
        };
        let mut results = RunResults::of(vec![system("a", [0.25, 0.5]), system("b", [0.75, 0.5])]);
        let wanted = |of: &str, minus: &str| PaperDifference {
            system: format!("{of}-{minus}"),
            of: of.to_owned(),
            minus: minus.to_owned(),
        };
        results.subtract(&wanted("b", "a"));
        results.subtract(&wanted("b", "x"));
        let found = results.matching("b-a");
        assert_eq!(mean(&found, "err"), Some(0.25));
        let values: Vec<_> = found[0].queries["err"].iter().map(|query| query.value).collect();
        assert_eq!(values, [Some(0.5), Some(0.0)]);
        assert!(results.matching("b-x").is_empty());
    }

    #[test]
    fn the_mean_of_rmse_is_over_documents() {
        let query = |value, documents| QueryValue {
            query: String::new(),
            value: Some(value),
            documents: Some((documents, 0)),
        };
        let queries = [query(1.0, 3), query(3.0, 1)];
        assert_eq!(mean_of("ndcg@10", &queries), Some(2.0));
        assert_eq!(mean_of("rmse", &queries), Some(3f64.sqrt()));
    }
}
