//! From files to systems: a table of metrics has the values, predictions are evaluated. All of them by
//! the same metric under the same convention.

use super::aligned::System;
use super::metrics::{TableSystem, read_metric};
use super::query_value::{QueryValue, checked};
use crate::evaluate::{CONVENTION, Ranking, Request, evaluate};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableReader};
use planetree_metric::{Convention, Metric};

/// A file to compare.
#[derive(Debug, Clone)]
pub struct Source {
    /// What it is called; `None` for what the file or its name says.
    pub name: Option<String>,
    /// Where it is.
    pub location: Location,
}

/// What was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadSystems {
    /// The systems in the order of the files, and of their rows.
    pub systems: Vec<System>,
    /// The metric's name.
    pub metric: String,
    /// Whether more of it is better.
    pub higher_is_better: bool,
    /// By which rules it was taken.
    pub convention: Convention,
}

/// Reads the values of a metric from all files. Predictions are evaluated with the convention that is
/// given; without one, with that of the tables of metrics, or else the default. No threads are all cores.
pub fn read_systems(
    sources: &[Source],
    metric: &str,
    convention: Option<&Convention>,
    threads: usize,
) -> Result<ReadSystems> {
    let parsed = metric.parse::<Metric>();
    // A table may have columns that are no metrics of ours.
    let column = parsed.as_ref().map_or_else(|_| metric.trim().to_owned(), Metric::to_string);
    let tables: Vec<Option<TableReader>> = sources.iter().map(open_metrics).collect::<Result<_>>()?;
    let convention = common_convention(&tables, convention)?;
    let mut systems = Vec::new();
    for (source, table) in sources.iter().zip(&tables) {
        let file = source.location.to_string();
        let found = match table {
            Some(table) => read_metric(table, &column)?,
            None => {
                let values = evaluated(&source.location, metric.parse()?, &convention, threads)?;
                vec![TableSystem { name: None, values }]
            }
        };
        for TableSystem { name, values } in found {
            let place = name.as_ref().map_or_else(|| file.clone(), |name| format!("{file} ({name})"));
            let queries = checked(&place, &column, values)?;
            let name = match (&source.name, name) {
                (Some(given), Some(name)) => format!("{given}/{name}"),
                (Some(given), None) => given.clone(),
                (None, Some(name)) => name,
                (None, None) => stem(&file),
            };
            systems.push(System { name, file: file.clone(), place, queries });
        }
    }
    tell_apart(&mut systems);
    let higher_is_better = parsed.map_or(true, |metric| metric.higher_is_better());
    Ok(ReadSystems { systems, metric: column, higher_is_better, convention })
}

/// The values of predictions.
fn evaluated(
    location: &Location,
    metric: Metric,
    convention: &Convention,
    threads: usize,
) -> Result<Vec<QueryValue>> {
    let request = Request { threads, ..Request::new(vec![metric], convention.clone()) };
    let results = evaluate(&Ranking::Predictions(location.clone()), &request)?;
    let queries = results.names().zip(results.column(0)).enumerate();
    let value = |(place, (query, value)): (usize, (&str, Option<f64>))| QueryValue {
        query: query.to_owned(),
        value,
        documents: Some((results.documents[place].into(), results.relevant[place].into())),
    };
    Ok(queries.map(value).collect())
}

/// Opens a table of metrics; `None` for anything else, which may be predictions.
fn open_metrics(source: &Source) -> Result<Option<TableReader>> {
    match TableReader::kind_of(&source.location)? {
        Some(TableKind::Metrics) => TableReader::open(&source.location, TableKind::Metrics).map(Some),
        _ => Ok(None),
    }
}

/// The convention of all tables, and of what is to be evaluated; an error if they are not the same.
fn common_convention(tables: &[Option<TableReader>], asked: Option<&Convention>) -> Result<Convention> {
    let mut common: Option<(String, Convention)> =
        asked.map(|convention| ("--convention".to_owned(), convention.clone()));
    for table in tables.iter().flatten() {
        let place = table.location().to_string();
        let Some(text) = table.metadata(CONVENTION) else {
            let problem = "it does not say which convention its metrics follow";
            return Err(Error::place(place, problem, "evaluate the predictions again"));
        };
        let convention: Convention =
            text.parse().map_err(|error| Error::place(&place, error, "evaluate the predictions again"))?;
        match &common {
            None => common = Some((place, convention)),
            Some((_, other)) if *other == convention => {}
            Some((first, other)) => {
                return Err(Error::place(
                    format_args!("{first} and {place}"),
                    format_args!("they follow different conventions, {other} and {convention}"),
                    "evaluate the predictions of both with the same --convention",
                ));
            }
        }
    }
    Ok(common.map(|(_, convention)| convention).unwrap_or_default())
}

/// The name of a file without its ending.
fn stem(file: &str) -> String {
    let name = file.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    name.strip_suffix(".parquet").unwrap_or(name).to_owned()
}

/// Gives every system a name of its own: where two have the same, their whole paths; where these are the
/// same, too, a number.
fn tell_apart(systems: &mut [System]) {
    let names: Vec<String> = systems.iter().map(|system| system.name.clone()).collect();
    for system in systems.iter_mut() {
        if names.iter().filter(|name| **name == system.name).count() > 1 {
            system.name = system.place.clone();
        }
    }
    for place in 1..systems.len() {
        let (before, after) = systems.split_at_mut(place);
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
    fn names_tell_systems_apart() {
        let named = |texts: &[(&str, &str)]| {
            let system = |(name, file): &(&str, &str)| System {
                name: if name.is_empty() { stem(file) } else { (*name).to_owned() },
                file: (*file).to_owned(),
                place: (*file).to_owned(),
                queries: Vec::new(),
            };
            let mut systems: Vec<System> = texts.iter().map(system).collect();
            tell_apart(&mut systems);
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
