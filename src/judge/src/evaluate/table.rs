//! The metrics table: a row per query. Written by `evaluate`, read by whoever compares systems.

use super::results::{QueryResult, Results};
use super::{CURVE, DEFAULT_METRICS, Ranking, Request, evaluate};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Int32Type, Schema, SchemaRef};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_base::suggest;
use planetree_data::table::{TableKind, TableReader, TableWriter};
use planetree_metric::{Convention, Metric};
use std::sync::Arc;

/// The metadata key of the rules that values were taken by.
pub const CONVENTION: &str = Convention::KEY;
/// The metadata key of the names of all metrics.
pub const METRICS: &str = "planetree.metrics";

/// The columns beside the metrics that every metrics table has.
const GAINS: [&str; 2] = ["dcg", "idcg"];

/// What a metrics table has.
#[derive(Debug, Clone, Copy)]
pub struct MetricsLayout<'a> {
    /// A column each.
    pub metrics: &'a [Metric],
    /// The rules.
    pub convention: &'a Convention,
    /// Whether there is a column of what queries are counted under.
    pub segments: bool,
    /// Whether there is a column of the system that ranked.
    pub systems: bool,
    /// The number that systems differ in, if they are points of curves.
    pub curve: Option<&'a str>,
}

/// A metrics table while it is written.
pub struct MetricsTable<'a> {
    layout: MetricsLayout<'a>,
    writer: TableWriter,
    schema: SchemaRef,
}

impl<'a> MetricsTable<'a> {
    /// Prepares a table.
    pub fn create(location: &Location, layout: MetricsLayout<'a>) -> Result<Self> {
        let MetricsLayout { metrics, convention, segments, systems, curve } = layout;
        let names: Vec<String> = metrics.iter().map(Metric::to_string).collect();
        let mut fields = vec![
            Field::new("query_id", DataType::Utf8, false),
            Field::new("documents", DataType::Int32, false),
            Field::new("relevant", DataType::Int32, false),
        ];
        fields.extend(names.iter().map(|name| Field::new(name, DataType::Float64, true)));
        let gains = GAINS.iter().filter(|name| !names.iter().any(|other| other == *name));
        fields.extend(gains.map(|name| Field::new(*name, DataType::Float64, false)));
        fields.extend(segments.then(|| Field::new("segment", DataType::Utf8, true)));
        fields.extend(systems.then(|| Field::new("system", DataType::Utf8, false)));
        let schema = Arc::new(Schema::new(fields));
        let mut writer = TableWriter::create(location, TableKind::Metrics, schema.clone())?;
        writer.set_metadata(CONVENTION, convention.to_string());
        writer.set_metadata(METRICS, names.join(","));
        if let Some(varied) = curve {
            writer.set_metadata(CURVE, varied.to_owned());
        }
        Ok(MetricsTable { layout, writer, schema })
    }

    /// Appends a system's results, which have DCG and its ideal.
    pub fn write(&mut self, results: &Results, system: &str) -> Result<()> {
        let queries = results.queries();
        let counts = |counts: &[u32]| -> ArrayRef {
            Arc::new(Int32Array::from_iter_values(counts.iter().map(|count| *count as i32)))
        };
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(results.names())),
            counts(&results.documents),
            counts(&results.relevant),
        ];
        for metric in 0..results.width() {
            columns.push(Arc::new(results.column(metric).collect::<Float64Array>()));
        }
        for (name, values) in GAINS.iter().zip([&results.dcg, &results.ideal_dcg]) {
            // A metric that is called so is there already.
            if !self.schema.fields()[3..3 + results.width()].iter().any(|field| field.name() == name) {
                columns.push(Arc::new(Float64Array::from(values.clone())));
            }
        }
        if self.layout.segments {
            columns.push(Arc::new(StringArray::from_iter(results.segments.iter().map(Option::as_deref))));
        }
        if self.layout.systems {
            columns.push(Arc::new(StringArray::from_iter_values(std::iter::repeat_n(system, queries))));
        }
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error| Error::place("metrics", error, "report this: it is a fault of planetree"))?;
        self.writer.write(&batch)
    }

    /// Completes the table and makes it visible.
    pub fn finish(self) -> Result<()> {
        self.writer.finish()
    }
}

/// The values of every query, and by which rules they were taken.
pub struct Evaluated {
    /// The metrics, in the order of the results.
    pub metrics: Vec<Metric>,
    /// The rules.
    pub convention: Convention,
    /// The values.
    pub results: Results,
}

/// The values of every query of a metrics table or, evaluated here, of predictions. Without metrics, all
/// that the table has, or the usual ones; without rules, those of the table, or the default ones.
pub fn per_query(
    location: &Location,
    metrics: &[Metric],
    convention: Option<&Convention>,
) -> Result<Evaluated> {
    if TableReader::kind_of(location)? == Some(TableKind::Metrics) {
        return read(&TableReader::open(location, TableKind::Metrics)?, metrics, convention);
    }
    let metrics = if metrics.is_empty() { default_metrics()? } else { metrics.to_vec() };
    let convention = convention.cloned().unwrap_or_default();
    let request = Request::new(metrics.clone(), convention.clone());
    let results = evaluate(&Ranking::Predictions(location.clone()), &request)?;
    Ok(Evaluated { metrics, convention, results })
}

/// The metrics that are taken when none are named.
pub fn default_metrics() -> Result<Vec<Metric>> {
    DEFAULT_METRICS.split(',').map(str::parse).collect()
}

fn read(table: &TableReader, metrics: &[Metric], convention: Option<&Convention>) -> Result<Evaluated> {
    let location = table.location();
    let faulty = |problem: String| Error::place(location, problem, "make the file again, or ask who made it");
    let written = table.metadata(CONVENTION).unwrap_or_default();
    let theirs: Convention =
        written.parse().map_err(|error: Error| faulty(format!("its convention is unknown: {error}")))?;
    if let Some(ours) = convention.filter(|ours| **ours != theirs) {
        return Err(Error::place(
            location,
            format_args!("its values were taken by the convention {theirs}, not {ours}"),
            format_args!("leave --convention out, or evaluate the predictions again with {ours}"),
        ));
    }
    if table.schema().column_with_name("system").is_some() {
        return Err(Error::place(
            location,
            "it holds several systems side by side",
            "evaluate each system into a file of its own",
        ));
    }
    let names: Vec<&str> =
        table.metadata(METRICS).unwrap_or_default().split(',').filter(|name| !name.is_empty()).collect();
    let metrics = match metrics {
        [] => names.iter().map(|name| name.parse()).collect::<Result<Vec<Metric>>>()?,
        metrics => metrics.to_vec(),
    };
    let shown: Vec<String> = metrics.iter().map(Metric::to_string).collect();
    if let Some(absent) = shown.iter().find(|name| table.schema().column_with_name(name).is_none()) {
        let otherwise =
            format!("it has {}; evaluate the predictions again with --metrics {absent}", names.join(", "));
        let near = suggest::nearest(absent, names.iter().copied());
        return Err(Error::place(
            location,
            format_args!("there is no metric {absent}"),
            suggest::did_you_mean(&near, &otherwise),
        ));
    }
    let mut results = Results::new(metrics.len());
    for batch in table.batches() {
        let batch = batch?;
        let column = |name: &str, kind: &DataType| {
            let column =
                batch.column_by_name(name).ok_or_else(|| faulty(format!("there is no column {name}")))?;
            cast(column, kind).map_err(|error| faulty(format!("column {name}: {error}")))
        };
        let queries = column("query_id", &DataType::Utf8)?;
        let (documents, relevant) =
            (column("documents", &DataType::Int32)?, column("relevant", &DataType::Int32)?);
        let (documents, relevant) =
            (documents.as_primitive::<Int32Type>(), relevant.as_primitive::<Int32Type>());
        let values: Vec<ArrayRef> =
            shown.iter().map(|name| column(name, &DataType::Float64)).collect::<Result<_>>()?;
        let mut row_values = vec![None; values.len()];
        for (row, name) in queries.as_string::<i32>().iter().enumerate() {
            for (value, column) in row_values.iter_mut().zip(&values) {
                let column = column.as_primitive::<Float64Type>();
                *value = column.is_valid(row).then(|| column.value(row));
            }
            results.push(&QueryResult {
                name: name.unwrap_or_default(),
                documents: documents.value(row).max(0) as usize,
                relevant: relevant.value(row).max(0) as usize,
                first_row: row as u64,
                values: &row_values,
            });
        }
    }
    Ok(Evaluated { metrics, convention: theirs, results })
}
