//! Renders tables of two systems by the part that each fold of a cross-validation tests, with the p-values of one-sided
//! tests beside those of the paper.

use super::systems::{RunResults, SystemUnit, by_query, higher_is_better, mean_of, shown};
use crate::html::{Html, HtmlTable, figures, words};
use crate::number::{count, probability};
use planetree_judge::compare::{Alternative, Moments, QueryValue, t_test};
use planetree_run::pipeline::{Paper, PaperByPart};

/// The data of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunData<'r> {
    /// The folder.
    pub folder: &'r str,
    /// Names of the parts in the order of the cross-validation, separated by commas; empty if they are unknown.
    pub parts: &'r str,
}

/// Renders one card per metric.
pub(super) fn cards(results: &RunResults, table: &PaperByPart, paper: &Paper, data: RunData<'_>) -> Html {
    let metrics = if table.metrics.is_empty() { &paper.metrics } else { &table.metrics };
    let systems = table.systems.each_ref().map(|system| results.matching(system));
    let numbered = metrics.iter().enumerate();
    let card = |(place, metric): (usize, &String)| {
        let rows = rows_of(&systems, metric, &TestPart::all(data.parts));
        let card = table_of(table, metric, place, &rows, data.folder).html();
        Html::card(format_args!("{}: {metric}", table.title), card)
    };
    let note = format!("p: one-sided paired t-test of {} being better.", table.names[1]);
    numbered.map(card).collect::<Html>().and(Html::paragraph("note", note))
}

/// A part of the data.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum TestPart {
    /// One of LETOR's parts S1, S2, ...
    Numbered(u64),
    /// Another part, by its name.
    Named(String),
    /// All parts. Their means are averaged, as in the paper.
    All,
}

impl TestPart {
    /// Returns the parts of a run, in their order. The test files of LETOR's Fold1 are its last part, S5, and those of Fold2
    /// are S1.
    fn all(names: &str) -> Vec<TestPart> {
        let of_fold = |name: &str| name.strip_prefix("Fold")?.strip_suffix("/test")?.parse::<u64>().ok();
        let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
        let last = names.iter().filter_map(|name| of_fold(name)).fold(5, u64::max);
        let number = |name: &str| match of_fold(name) {
            Some(fold) => fold.checked_sub(1).map(|part| if part == 0 { last } else { part }),
            None => name.strip_prefix('S')?.parse().ok(),
        };
        let part = |name: &&str| {
            number(name).map_or_else(|| TestPart::Named((*name).to_owned()), TestPart::Numbered)
        };
        names.iter().map(part).collect()
    }

    fn of_paper(number: u32) -> TestPart {
        if number == 0 { TestPart::All } else { TestPart::Numbered(number.into()) }
    }

    fn name(&self) -> String {
        match self {
            TestPart::Numbered(number) => format!("S{number}"),
            TestPart::Named(name) => name.clone(),
            TestPart::All => "all, mean of parts".to_owned(),
        }
    }
}

/// The two systems on the queries of one part, or of all parts.
#[derive(Debug, PartialEq)]
struct PartRow {
    part: TestPart,
    queries: u64,
    means: [f64; 2],
    /// p-value of the second system being better; `None` if the differences do not vary.
    p: Option<f64>,
}

/// Compares two systems part by part, then on all parts: their means are averaged, as those of folds are elsewhere, and
/// the test is over all queries. Returns no rows if the systems have no values by query, or are not of
/// cross-validations with the same folds. Parts without names are numbered.
fn rows_of(systems: &[SystemUnit<'_>; 2], metric: &str, names: &[TestPart]) -> Vec<PartRow> {
    let [Some(first), Some(second)] = systems.each_ref().map(|unit| by_query(unit, metric)) else {
        return Vec::new();
    };
    let folds = &systems[0][0].folds;
    let parts = folds.values().copied().max().unwrap_or(0);
    if systems.iter().flatten().any(|system| system.folds != *folds) {
        return Vec::new();
    }
    // Fold 1 tests the last part, and fold 2 the first one.
    let part_of = |query: &str| folds.get(query).map(|fold| if *fold == 1 { parts } else { fold - 1 });
    let name = |part: u64| match part.checked_sub(1) {
        None => TestPart::All,
        Some(place) if names.len() as u64 == parts => names[place as usize].clone(),
        Some(_) => TestPart::Numbered(part),
    };
    let row = |part: u64| {
        let both = first.queries.iter().zip(&second.queries).map(|(one, other)| [one, other]);
        let pairs: Vec<[&QueryValue; 2]> = both
            .filter(|[one, other]| one.query == other.query && one.value.is_some() && other.value.is_some())
            .filter(|[one, _]| part == 0 || part_of(&one.query) == Some(part))
            .collect();
        let mean = |side: usize| mean_of(metric, pairs.iter().map(|pair| pair[side])).unwrap_or(f64::NAN);
        let better = if higher_is_better(metric) { 1.0 } else { -1.0 };
        let gain = |[one, other]: &[&QueryValue; 2]| Some(better * (other.value? - one.value?));
        let gains: Vec<f64> = pairs.iter().filter_map(gain).collect();
        let p = t_test(&Moments::of(&gains), Alternative::Greater).map(|test| test.p);
        PartRow { part: name(part), queries: pairs.len() as u64, means: [mean(0), mean(1)], p }
    };
    let mut rows: Vec<PartRow> = (1..=parts).map(row).collect();
    let known = |side: usize| rows.iter().map(move |row| row.means[side]).filter(|mean| mean.is_finite());
    let means = [0, 1].map(|side| known(side).sum::<f64>() / known(side).count() as f64);
    rows.push(PartRow { means, ..row(0) });
    rows
}

/// Creates the table of a metric: the figures of the run, and those of the paper beside them.
fn table_of(table: &PaperByPart, metric: &str, place: usize, rows: &[PartRow], data: &str) -> HtmlTable {
    let datasets = datasets_of(table, data);
    let mut columns = vec![words("test part"), figures("queries")];
    columns.extend(table.names.iter().map(|name| figures(format_args!("{name}, ours"))));
    columns.push(figures("p, ours"));
    for dataset in &datasets {
        columns.extend(table.names.iter().map(|name| figures(format_args!("{name}, {dataset}"))));
        columns.push(figures(format_args!("p, {dataset}")));
    }
    let mut html = HtmlTable::new(columns);
    let p_value = |p: Option<f64>| Html::text(p.map_or_else(|| "–".to_owned(), probability));
    let mut parts: Vec<TestPart> = rows.iter().map(|row| row.part.clone()).collect();
    parts.extend(table.rows.iter().map(|row| TestPart::of_paper(row.part)));
    parts.sort_unstable();
    parts.dedup();
    for part in parts {
        let missing = PartRow { part: part.clone(), queries: 0, means: [f64::NAN; 2], p: None };
        let ours = rows.iter().find(|row| row.part == part).unwrap_or(&missing);
        let mut cells = vec![
            Html::text(part.name()),
            if ours.queries == 0 { Html::text("–") } else { count(ours.queries) },
        ];
        cells.extend(ours.means.map(|mean| shown(metric, Some(mean))));
        cells.push(p_value(ours.p));
        let theirs = table.rows.iter().find(|row| TestPart::of_paper(row.part) == part);
        for dataset in &datasets {
            let figure = |column: usize| *theirs?.theirs.get(*dataset)?.get(3 * place + column)?;
            cells.extend([0, 1].map(|column| shown(metric, figure(column))));
            cells.push(p_value(figure(2)));
        }
        html.row(cells);
    }
    html
}

/// Returns the datasets of the paper to show: that of the run if the paper has it, otherwise all.
fn datasets_of<'t>(table: &'t PaperByPart, data: &str) -> Vec<&'t str> {
    let mut datasets: Vec<&str> =
        table.rows.iter().flat_map(|row| row.theirs.keys().map(String::as_str)).collect();
    datasets.sort_unstable();
    datasets.dedup();
    let own: Vec<&str> = datasets.iter().copied().filter(|dataset| data.contains(dataset)).collect();
    if own.is_empty() { datasets } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::paper::systems::SystemResult;
    use planetree_run::pipeline::PaperPartRow;

    /// Numbers of queries that the folds of the cross-validation test.
    const QUERIES: [u64; 3] = [3, 4, 5];

    /// Value of the first system for a query.
    fn value(place: u64) -> f64 {
        0.25 + 0.125 * place as f64
    }

    /// A cross-validation of three folds. The gain over the first system depends on the fold.
    fn system(name: &str, gain: impl Fn(u64, u64) -> f64) -> SystemResult {
        let of_fold = |fold: u64| (0..QUERIES[fold as usize - 1]).map(move |place| (fold, place));
        let queries = (1..=3).flat_map(of_fold);
        let queries = queries.map(|(fold, place)| (format!("q{fold}{place}"), fold, place));
        let value = |(query, fold, place): (String, u64, u64)| QueryValue {
            query,
            value: Some(value(place) + gain(fold, place)),
            documents: None,
        };
        SystemResult {
            queries: [("ndcg@10".to_owned(), queries.clone().map(value).collect())].into(),
            folds: queries.map(|(query, fold, _)| (query, fold)).collect(),
            ..SystemResult::named(name)
        }
    }

    #[test]
    fn parts_are_compared_as_their_queries_alone() {
        let gains = |fold: u64, place: u64| 0.01 * fold as f64 + 0.005 * (place % 2) as f64;
        let results = RunResults::of(vec![system("a", |_, _| 0.0), system("b", gains)]);
        let rows = rows_of(&[results.matching("a"), results.matching("b")], "ndcg@10", &[]);
        let parts: Vec<(String, u64)> = rows.iter().map(|row| (row.part.name(), row.queries)).collect();
        assert_eq!(
            parts,
            [("S1", 4), ("S2", 5), ("S3", 3), ("all, mean of parts", 12)]
                .map(|(name, count)| (name.to_owned(), count))
        );
        // The slow twin: fold 2 tests part 1, fold 3 part 2, and fold 1 the last part.
        for (row, folds) in rows.iter().zip([&[2][..], &[3], &[1], &[1, 2, 3]]) {
            let (mut differences, mut sums) = (Vec::new(), [0.0, 0.0]);
            for fold in folds {
                let queries = QUERIES[*fold as usize - 1];
                for place in 0..queries {
                    let values = [value(place), value(place) + gains(*fold, place)];
                    differences.push(values[1] - values[0]);
                    sums = [0, 1].map(|side| sums[side] + values[side] / queries as f64);
                }
            }
            let expected = sums.map(|sum| sum / folds.len() as f64);
            assert!(
                (0..2).all(|side| (row.means[side] - expected[side]).abs() < 1e-12),
                "{row:?} {expected:?}"
            );
            let count = differences.len() as f64;
            let mean = differences.iter().sum::<f64>() / count;
            let squares: f64 = differences.iter().map(|value| (value - mean).powi(2)).sum();
            let t = mean / (squares / (count - 1.0) / count).sqrt();
            let expected = upper_tail(t, count - 1.0);
            assert!((row.p.unwrap() - expected).abs() < 1e-5, "{row:?} {expected}");
        }
        let worse = rows_of(&[results.matching("b"), results.matching("a")], "ndcg@10", &[]);
        assert!(worse.iter().all(|row| row.p.unwrap() > 0.95), "the test is one-sided");
        // Other names of the parts change the names of the rows alone, also if they start with another part.
        for (names, expected) in [
            ("S1,S2,S3", ["S1", "S2", "S3"]),
            ("S2,S3,S4", ["S2", "S3", "S4"]),
            ("Fold1/test,Fold2/test,Fold3/test", ["S5", "S1", "S2"]),
            ("Fold2/test,Fold3/test,Fold6/test", ["S1", "S2", "S5"]),
            ("train,vali,test", ["train", "vali", "test"]),
            ("S1,S2", ["S1", "S2", "S3"]),
        ] {
            let named =
                rows_of(&[results.matching("a"), results.matching("b")], "ndcg@10", &TestPart::all(names));
            for ((named, row), expected) in
                named.iter().zip(&rows).zip(expected.into_iter().chain(["all, mean of parts"]))
            {
                assert_eq!((named.part.name().as_str(), named.means), (expected, row.means), "{names}");
            }
        }
    }

    /// RMSE is over documents within a part, as in the other tables, and averaged over parts.
    #[test]
    fn the_rmse_of_a_part_is_over_documents() {
        let query = |query: &str, value: f64, documents: u64| QueryValue {
            query: query.to_owned(),
            value: Some(value),
            documents: Some((documents, 0)),
        };
        let system = |name: &str, shift: f64| SystemResult {
            queries: [(
                "rmse".to_owned(),
                vec![query("a", 1.0 + shift, 3), query("b", 3.0 + shift, 1), query("c", 2.0 + shift, 7)],
            )]
            .into(),
            folds: [("a", 2), ("b", 2), ("c", 1)].map(|(query, fold)| (query.to_owned(), fold)).into(),
            ..SystemResult::named(name)
        };
        let results = RunResults::of(vec![system("a", 0.0), system("b", 1.0)]);
        let rows = rows_of(&[results.matching("a"), results.matching("b")], "rmse", &[]);
        // (3 * 1 + 1 * 9) / 4 = 3, and (3 * 4 + 1 * 16) / 4 = 7.
        let first = [3f64.sqrt(), 7f64.sqrt()];
        let expected = [first, [2.0, 3.0], [0, 1].map(|side| (first[side] + 2.0 + side as f64) / 2.0)];
        for (row, expected) in rows.iter().zip(expected) {
            assert!(
                (0..2).all(|side| (row.means[side] - expected[side]).abs() < 1e-12),
                "{row:?} {expected:?}"
            );
        }
        assert_eq!(rows.len(), 3);
    }

    /// The probability that Student's t exceeds a value, by integrating its density.
    fn upper_tail(t: f64, freedom: f64) -> f64 {
        let density = |x: f64| (1.0 + x * x / freedom).powf(-(freedom + 1.0) / 2.0);
        // x = tan(u) makes the range finite.
        let integral = |from: f64| {
            let (steps, to) = (400_000, std::f64::consts::FRAC_PI_2);
            let width = (to - from) / f64::from(steps);
            let at = |step: i32| {
                let angle = from + width * (f64::from(step) + 0.5);
                density(angle.tan()) / angle.cos().powi(2)
            };
            (0..steps).map(at).sum::<f64>() * width
        };
        integral(t.atan()) / integral(-std::f64::consts::FRAC_PI_2)
    }

    #[test]
    fn the_papers_figures_are_those_of_the_dataset() {
        let row = |part: u32, value: f64| PaperPartRow {
            part,
            theirs: [("MQ2007", value), ("MQ2008", value + 0.5)]
                .map(|(name, value)| (name.to_owned(), vec![Some(value), Some(value + 0.01), Some(0.04)]))
                .into(),
        };
        let table = PaperByPart {
            title: "T".to_owned(),
            systems: ["a", "b"].map(str::to_owned),
            names: ["A", "B"].map(str::to_owned),
            metrics: vec!["ndcg@10".to_owned()],
            rows: vec![row(1, 0.125), row(5, 0.375)],
        };
        assert_eq!(datasets_of(&table, "parts/MQ2008"), ["MQ2008"]);
        assert_eq!(datasets_of(&table, "other"), ["MQ2007", "MQ2008"]);
        let ours = [
            PartRow { part: TestPart::Numbered(1), queries: 3, means: [0.2, 0.3], p: Some(0.0625) },
            PartRow { part: TestPart::All, queries: 3, means: [0.2, 0.3], p: None },
        ];
        let html = table_of(&table, "ndcg@10", 0, &ours, "MQ2008").html();
        let text = html.as_str();
        let cells = [
            "S1",
            "0.2000",
            "0.3000",
            "0.0625",
            "0.6250",
            "0.6350",
            "0.0400",
            "S5",
            "0.8750",
            "all, mean of parts",
        ];
        let mut rest = text;
        for cell in cells {
            let place = rest.find(&format!(">{cell}<"));
            rest = &rest[place.unwrap_or_else(|| panic!("{cell} is missing in {text}"))..];
        }
        assert!(!text.contains("MQ2007"));
    }
}
