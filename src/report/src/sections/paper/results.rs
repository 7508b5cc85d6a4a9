//! Reads the results of a run by system, and judges the findings of a paper by them.

use crate::html::Html;
use crate::number::{probability, short, value};
use crate::run::RunContents;
use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableReader, float_column, string_column};
use planetree_judge::compare::{
    AlignedSystems, Alternative, ComparedFile, ComparedSystem, ComparisonOptions, QueryValue, ReadingRules,
    SignificanceTest, compare, holm, read_systems,
};
use planetree_metric::Metric;
use planetree_run::pipeline::{Paper, PaperFinding};
use std::collections::BTreeMap;

/// Significance level of findings.
const ALPHA: f64 = 0.05;
/// Name of the column of wall times.
const SECONDS: &str = "seconds";

/// Whether a finding holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// In the stated direction, and significant.
    Beyond,
    /// In the stated direction, but it may be chance.
    Within,
    /// Systems that should not differ do not differ significantly.
    Same,
    /// In the stated direction; there are no values per query to test.
    Untested,
    /// Not in the stated direction, but that may be chance.
    Not,
    /// Not in the stated direction; there are no values per query to test.
    NotUntested,
    /// Significantly in the opposite direction.
    Opposite,
    /// The run does not have the systems.
    Missing,
}

impl Verdict {
    /// Returns what the report says.
    pub(super) fn words(self) -> &'static str {
        match self {
            Verdict::Beyond => "✓ holds beyond chance",
            Verdict::Within => "(✓) holds, within chance",
            Verdict::Same => "✓ holds: no significant difference",
            Verdict::Untested => "✓ holds, not tested",
            Verdict::Not => "(✗) does not hold, within chance",
            Verdict::NotUntested => "✗ does not hold, not tested",
            Verdict::Opposite => "✗ does not hold, beyond chance",
            Verdict::Missing => "– not in this run",
        }
    }
}

/// One system of a run with its values.
pub(super) struct SystemResult {
    /// Name of a `cv` step, or `STEP:SYSTEM`.
    name: String,
    /// Means by metric, and `seconds`.
    means: BTreeMap<String, f64>,
    /// Values by metric and query, sorted by query.
    queries: BTreeMap<String, Vec<QueryValue>>,
}

/// Several systems that are averaged, or one.
pub(super) type Unit<'r> = Vec<&'r SystemResult>;

/// All systems of a run.
pub(super) struct RunResults {
    systems: Vec<SystemResult>,
}

impl RunResults {
    /// Reads the systems of a run.
    pub(super) fn read(run: &RunContents, paper: &Paper, threads: usize) -> Result<Self> {
        let mut metrics: Vec<&String> = paper.metrics.iter().collect();
        metrics.extend(paper.tables.iter().flat_map(|table| &table.metrics));
        metrics.extend(paper.findings.iter().flat_map(|finding| &finding.metrics));
        metrics.sort_unstable();
        metrics.dedup();
        let mut systems: Vec<SystemResult> = Vec::new();
        for entry in run.tables(TableKind::Folds) {
            let name = entry.name.strip_suffix("/folds").unwrap_or(&entry.name).to_owned();
            let (means, queries) = (fold_means(&entry.location)?, BTreeMap::new());
            systems.push(SystemResult { name, means, queries });
        }
        for entry in run.tables(TableKind::Metrics) {
            let of_cv = entry.name.strip_suffix("/metrics");
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
                        let (means, queries) = (BTreeMap::new(), BTreeMap::new());
                        systems.push(SystemResult { name, means, queries });
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
        Ok(RunResults { systems })
    }

    /// Returns the systems that a name or pattern matches, in the order of the steps.
    pub(super) fn matching(&self, pattern: &str) -> Unit<'_> {
        let fits = |name: &str| match pattern.split_once('*') {
            Some((start, end)) => {
                name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
            }
            None => name == pattern,
        };
        self.systems.iter().filter(|system| fits(&system.name)).collect()
    }

    fn units(&self, patterns: &[String], average: bool) -> Vec<Unit<'_>> {
        let matched = patterns.iter().map(|pattern| self.matching(pattern)).filter(|unit| !unit.is_empty());
        if average {
            return matched.collect();
        }
        matched.flatten().map(|system| vec![system]).collect()
    }

    /// Judges a finding by one metric. Returns the verdict and what it is based on.
    pub(super) fn judge(&self, finding: &PaperFinding, metric: &str) -> Result<(Verdict, String)> {
        let units = |patterns: &[String]| self.units(patterns, finding.average);
        let pairs: Vec<[Unit<'_>; 2]> = if !finding.rising.is_empty() {
            let all = units(&finding.rising);
            all.first()
                .zip(all.last())
                .map(|(first, last)| [last.clone(), first.clone()])
                .into_iter()
                .collect()
        } else if !finding.alike.is_empty() {
            let all = units(&finding.alike);
            if let Some(within) = finding.within {
                return Ok(close(&all, metric, within));
            }
            (0..all.len())
                .flat_map(|b| (0..b).map(move |a| (a, b)))
                .map(|(a, b)| [all[a].clone(), all[b].clone()])
                .collect()
        } else {
            let than = units(&finding.than);
            units(&finding.better)
                .into_iter()
                .flat_map(|one| than.iter().map(move |other| [one.clone(), other.clone()]))
                .collect()
        };
        let better = if higher_is_better(metric) { 1.0 } else { -1.0 };
        let mut differences = Vec::new();
        let mut tests = Vec::new();
        for [one, other] in pairs.iter().filter(|[one, other]| one[0].name != other[0].name) {
            let (Some(first), Some(second)) = (mean(one, metric), mean(other, metric)) else { continue };
            differences.push((better * (first - second), first - second));
            // The mean of folds, or of documents for RMSE, may differ in sign from the mean of queries, which is tested.
            let test = tested(one, other, metric)?;
            tests.push(test.map(|(p, mean)| if mean * (first - second) < 0.0 { 1.0 } else { p }));
        }
        if differences.is_empty() {
            return Ok((Verdict::Missing, String::new()));
        }
        let known: Option<Vec<f64>> = tests.into_iter().collect();
        let p = known.map(|p| holm(&p));
        let least = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values.first().copied().unwrap_or(1.0)
        };
        if !finding.alike.is_empty() {
            let Some(p) = p else { return Ok((Verdict::Missing, "no values per query".to_owned())) };
            let differ = p.iter().filter(|p| **p <= ALPHA).count();
            let said =
                format!("{differ} of {} pairs differ, least p {}", p.len(), probability(least(p.clone())));
            return Ok((if differ == 0 { Verdict::Same } else { Verdict::Opposite }, said));
        }
        let right = differences.iter().filter(|(gain, _)| *gain > 0.0).count();
        let all_right = right == differences.len();
        let worst =
            differences.iter().min_by(|one, other| one.0.total_cmp(&other.0)).map_or(0.0, |one| one.1);
        let mut said = format!("{right} of {} as stated; least difference {worst:+.4}", differences.len());
        let Some(p) = p else {
            return Ok((if all_right { Verdict::Untested } else { Verdict::NotUntested }, said));
        };
        let of = |sign: bool| {
            let pairs = differences.iter().zip(&p).filter(move |((gain, _), _)| (*gain > 0.0) == sign);
            pairs.map(|(_, p)| *p).collect::<Vec<f64>>()
        };
        let verdict = match all_right {
            true if p.iter().all(|p| *p <= ALPHA) => Verdict::Beyond,
            true => Verdict::Within,
            false if of(false).iter().any(|p| *p <= ALPHA) => Verdict::Opposite,
            false => Verdict::Not,
        };
        let greatest = p.iter().copied().fold(0.0, f64::max);
        said.push_str(&match all_right {
            true => format!("; greatest p {}", probability(greatest)),
            false => format!("; least p of the others {}", probability(least(of(false)))),
        });
        Ok((verdict, said))
    }
}

/// Whether all systems are within a relative distance of the best one.
fn close(units: &[Unit<'_>], metric: &str, within: f64) -> (Verdict, String) {
    let values: Vec<f64> = units.iter().filter_map(|unit| mean(unit, metric)).collect();
    let (low, high) =
        (values.iter().copied().fold(f64::MAX, f64::min), values.iter().copied().fold(0.0, f64::max));
    if values.len() < 2 || high <= 0.0 {
        return (Verdict::Missing, String::new());
    }
    let distance = 1.0 - low / high;
    let verdict = if distance <= within { Verdict::Untested } else { Verdict::NotUntested };
    (verdict, format!("relative distance {distance:.4}, the paper's is {within}"))
}

fn higher_is_better(metric: &str) -> bool {
    match metric.parse::<Metric>() {
        Ok(metric) => metric.higher_is_better(),
        Err(_) => !["seconds", "cost", "correlation"].iter().any(|small| metric.ends_with(small)),
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

/// Returns the two-sided p-value of the difference of two systems, and the mean difference over queries; `None` without
/// values per query.
fn tested(one: &[&SystemResult], other: &[&SystemResult], metric: &str) -> Result<Option<(f64, f64)>> {
    let (Some(one), Some(other)) = (by_query(one, metric), by_query(other, metric)) else { return Ok(None) };
    let Ok(aligned) = AlignedSystems::of(&[one, other]) else { return Ok(None) };
    let options = ComparisonOptions {
        higher_is_better: higher_is_better(metric),
        test: SignificanceTest::Randomisation,
        alternative: Alternative::TwoSided,
        alpha: ALPHA,
        permutations: 20_000,
        resamples: 1,
        level: 0.95,
        seed: 1,
        top: 0,
    };
    Ok(compare(&aligned, &options)?.first().map(|pair| (pair.corrected, -pair.difference.mean)))
}

/// Returns the mean values of several systems by query.
fn by_query(unit: &[&SystemResult], metric: &str) -> Option<ComparedSystem> {
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
fn mean_of(metric: &str, queries: &[QueryValue]) -> Option<f64> {
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
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let row = |line: &str| {
        let mut cells = line.split(',');
        let name = format!("{step}:{}", cells.next().unwrap_or_default().trim_matches('"'));
        let values = header.iter().skip(1).zip(cells);
        let means =
            values.filter_map(|(key, cell)| Some(((*key).trim_matches('"').to_owned(), cell.parse().ok()?)));
        SystemResult { name, means: means.collect(), queries: BTreeMap::new() }
    };
    lines.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Systems whose values of 40 queries are those of a base plus a shift, with a spread that differs by system.
    fn results(systems: &[(&str, f64, f64)]) -> RunResults {
        let system = |(name, shift, spread): &(&str, f64, f64)| {
            let value =
                |query: usize| 0.5 + shift + spread * if query.is_multiple_of(2) { 1.0 } else { -1.0 };
            let queries: Vec<QueryValue> = (0..40)
                .map(|query| QueryValue {
                    query: format!("{query:02}"),
                    value: Some(value(query)),
                    documents: None,
                })
                .collect();
            let means = [("err".to_owned(), 0.5 + shift), (SECONDS.to_owned(), 10.0 - shift)].into();
            SystemResult { name: (*name).to_owned(), means, queries: [("err".to_owned(), queries)].into() }
        };
        RunResults { systems: systems.iter().map(system).collect() }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn verdict(results: &RunResults, finding: PaperFinding, metric: &str) -> Verdict {
        results.judge(&finding, metric).unwrap().0
    }

    #[test]
    fn a_finding_holds_beyond_or_within_chance_or_not() {
        let results: RunResults =
            results(&[("a-1", 0.0, 0.0), ("a-2", 0.01, 0.0), ("b", 0.1, 0.01), ("c", 0.101, 0.3)]);
        let better = |one: &str, other: &str| PaperFinding {
            better: names(&[one]),
            than: names(&[other]),
            ..PaperFinding::default()
        };
        assert_eq!(verdict(&results, better("b", "a-*"), "err"), Verdict::Beyond);
        assert_eq!(verdict(&results, better("c", "b"), "err"), Verdict::Within);
        assert_eq!(verdict(&results, better("b", "c"), "err"), Verdict::Not);
        assert_eq!(verdict(&results, better("a-*", "b"), "err"), Verdict::Opposite);
        assert_eq!(verdict(&results, better("a-*", "x"), "err"), Verdict::Missing);
        assert_eq!(verdict(&results, better("b", "a-1"), SECONDS), Verdict::Untested, "less is better");
        let average = PaperFinding { average: true, ..better("b", "a-*") };
        assert!(results.judge(&average, "err").unwrap().1.starts_with("1 of 1 as stated"));
        let rising = |systems| PaperFinding { rising: names(systems), ..PaperFinding::default() };
        assert_eq!(verdict(&results, rising(&["a-1", "a-2", "b"]), "err"), Verdict::Beyond);
        assert_eq!(verdict(&results, rising(&["b", "a-1"]), "err"), Verdict::Opposite);
        let alike =
            |systems, within| PaperFinding { alike: names(systems), within, ..PaperFinding::default() };
        assert_eq!(verdict(&results, alike(&["b", "c"], None), "err"), Verdict::Same);
        assert_eq!(verdict(&results, alike(&["a-*"], None), "err"), Verdict::Opposite);
        assert_eq!(verdict(&results, alike(&["a-*"], Some(0.02)), "err"), Verdict::Untested);
        assert_eq!(verdict(&results, alike(&["a-1", "b"], Some(0.02)), "err"), Verdict::NotUntested);
        // A test over queries is no evidence for means of the opposite sign.
        let mut others = results;
        others.systems[2].means.insert("err".to_owned(), 0.4);
        assert_eq!(verdict(&others, better("b", "a-1"), "err"), Verdict::Not);
    }

    #[test]
    fn rows_of_a_csv_file_are_systems() {
        let rows = rows_of("table", "system,learner,\"prec@5\",cost\nRF-0,RF,0.25,12\nRF-1,RF,,3\n");
        assert_eq!(rows[0].name, "table:RF-0");
        assert_eq!((rows[0].means["prec@5"], rows[0].means["cost"]), (0.25, 12.0));
        assert!(!rows[1].means.contains_key("prec@5") && rows[1].means["cost"] == 3.0);
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
