//! Writes metrics tables, which have one row per query, or per system and query. The commands `evaluate` and `cv`
//! write such tables; comparisons and reports read them.

use super::results::Results;
use super::summary::EvaluationSummary;
use super::{CURVE, DEFAULT_METRICS};
use arrow::array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Location;
use planetree_data::LabelMap;
use planetree_data::table::{TableKind, TableWriter};
use planetree_metric::{Convention, Metric};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Metadata key for the convention, which is the set of rules by which the metrics were computed.
pub const CONVENTION: &str = Convention::KEY;
/// Metadata key for the names of the metrics, separated by commas.
pub const METRICS: &str = "planetree.metrics";
/// Metadata key for the values of pooled metrics, which have no value per query: a JSON object with a member per system,
/// which has a member per metric. The name of the only system is empty.
pub const POOLED: &str = "planetree.pooled";

/// Names of the columns for DCG and ideal DCG, which come after the columns of the metrics.
const GAINS: [&str; 2] = ["dcg", "idcg"];

/// The columns and metadata of a metrics table.
#[derive(Debug, Clone, Copy)]
pub struct MetricsLayout<'a> {
    /// The metrics, one column each. Pooled metrics have no column.
    pub metrics: &'a [Metric],
    /// Convention by which all metrics are computed.
    pub convention: &'a Convention,
    /// Map of the labels that were evaluated, if any.
    pub label_map: Option<&'a LabelMap>,
    /// Whether there is a column `segment`.
    pub segments: bool,
    /// Whether there is a column `system`.
    pub systems: bool,
    /// Whether there is a column `fold`.
    pub folds: bool,
    /// Name of the quantity that varies between systems, if the systems are points on curves.
    pub curve: Option<&'a str>,
}

/// The origin of the rows that one call of [`MetricsTable::write`] appends. A field is written only if the layout has
/// a column for it.
#[derive(Debug, Clone, Copy)]
pub struct RowOrigin<'a> {
    /// System that ranked the queries.
    pub system: &'a str,
    /// Fold in which the queries were tested.
    pub fold: usize,
}

/// Writes a metrics table.
pub struct MetricsTable<'a> {
    layout: MetricsLayout<'a>,
    writer: TableWriter,
    schema: SchemaRef,
    pooled: Map<String, Value>,
}

impl<'a> MetricsTable<'a> {
    /// Creates a table with this layout.
    pub fn create(location: &Location, layout: MetricsLayout<'a>) -> Result<Self> {
        let MetricsLayout { metrics, convention, label_map, segments, systems, folds, curve } = layout;
        let by_query = metrics.iter().filter(|metric| !metric.is_pooled());
        let names: Vec<String> = by_query.map(Metric::to_string).collect();
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
        fields.extend(folds.then(|| Field::new("fold", DataType::Int32, false)));
        let schema = Arc::new(Schema::new(fields));
        let mut writer = TableWriter::create(location, TableKind::Metrics, schema.clone())?;
        writer.set_metadata(CONVENTION, convention.to_string());
        writer.set_metadata(METRICS, names.join(","));
        if let Some(map) = label_map {
            writer.set_metadata(LabelMap::KEY, map.to_string());
        }
        if let Some(varied) = curve {
            writer.set_metadata(CURVE, varied.to_owned());
        }
        Ok(MetricsTable { layout, writer, schema, pooled: Map::new() })
    }

    /// Appends results, which must include DCG and ideal DCG.
    pub fn write(&mut self, results: &Results, origin: RowOrigin<'_>) -> Result<()> {
        let queries = results.queries();
        let counts = |counts: &[u32]| -> ArrayRef {
            Arc::new(Int32Array::from_iter_values(counts.iter().map(|count| *count as i32)))
        };
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(results.names())),
            counts(&results.documents),
            counts(&results.relevant),
        ];
        let metrics = self.layout.metrics.iter().enumerate().filter(|(_, metric)| !metric.is_pooled());
        for (metric, _) in metrics {
            columns.push(Arc::new(results.column(metric).collect::<Float64Array>()));
        }
        let named = &self.schema.fields()[3..columns.len()];
        for (name, values) in GAINS.iter().zip([&results.dcg, &results.ideal_dcg]) {
            // The column already exists if DCG is one of the metrics.
            if !named.iter().any(|field| field.name() == name) {
                columns.push(Arc::new(Float64Array::from(values.clone())));
            }
        }
        if self.layout.segments {
            columns.push(Arc::new(StringArray::from_iter(results.segments.iter().map(Option::as_deref))));
        }
        if self.layout.systems {
            let systems = std::iter::repeat_n(origin.system, queries);
            columns.push(Arc::new(StringArray::from_iter_values(systems)));
        }
        if self.layout.folds {
            columns.push(Arc::new(Int32Array::from_value(origin.fold as i32, queries)));
        }
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error| Error::bug("metrics", &error).caused_by(error))?;
        self.writer.write(&batch)
    }

    /// Records the pooled metrics of a system, from the summary of all its results.
    pub fn record_pooled(&mut self, summary: &EvaluationSummary, origin: RowOrigin<'_>) {
        let pooled = summary.metrics.iter().filter(|summary| summary.metric.is_pooled());
        let values: Map<String, Value> =
            pooled.map(|summary| (summary.metric.to_string(), json!(summary.mean))).collect();
        if !values.is_empty() {
            let system = if self.layout.systems { origin.system } else { "" };
            self.pooled.insert(system.to_owned(), Value::Object(values));
        }
    }

    /// Completes the table and moves it to its final location.
    pub fn finish(mut self) -> Result<()> {
        if !self.pooled.is_empty() {
            self.writer.set_metadata(POOLED, Value::Object(self.pooled).to_string());
        }
        self.writer.finish()
    }
}

/// Parses [`DEFAULT_METRICS`].
pub fn default_metrics() -> Result<Vec<Metric>> {
    DEFAULT_METRICS.split(',').map(str::parse).collect()
}
