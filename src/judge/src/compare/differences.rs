//! Writes the table of differences between systems, with one row per query for each pair of systems.

use super::aligned::{AlignedSystems, ComparedSystem};
use super::pair::PairComparison;
use arrow::array::{Float64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use planetree_base::error::Result;
use planetree_base::storage::Location;
use planetree_data::table::{TableKind, TableWriter};
use std::sync::Arc;

/// Writes the differences of all pairs, one pair after another. The metadata of the table names the metric and the
/// convention, which is the set of rules for computing it.
pub fn write_differences(
    location: &Location,
    systems: &[ComparedSystem],
    aligned: &AlignedSystems,
    pairs: &[PairComparison],
    [metric, convention]: [&str; 2],
) -> Result<()> {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let number = |name: &str| Field::new(name, DataType::Float64, false);
    let schema = Arc::new(Schema::new(vec![
        text("query_id"),
        text("system_a"),
        text("system_b"),
        number("value_a"),
        number("value_b"),
        number("difference"),
    ]));
    let mut table = TableWriter::create(location, TableKind::Differences, schema.clone())?;
    table.set_metadata("planetree.metric", metric.to_owned());
    table.set_metadata("planetree.convention", convention.to_owned());
    for pair in pairs {
        let [first, second] = [pair.a, pair.b].map(|system| &aligned.values[system]);
        let names = [pair.a, pair.b].map(|system| systems[system].name.as_str());
        let [name_a, name_b] =
            names.map(|name| StringArray::from_iter_values(std::iter::repeat_n(name, aligned.queries.len())));
        let differences = first.iter().zip(second).map(|(a, b)| b - a);
        let batch = RecordBatch::try_new(
            schema.clone(),
            vec![
                Arc::new(StringArray::from_iter_values(&aligned.queries)),
                Arc::new(name_a),
                Arc::new(name_b),
                Arc::new(Float64Array::from_iter_values(first.iter().copied())),
                Arc::new(Float64Array::from_iter_values(second.iter().copied())),
                Arc::new(Float64Array::from_iter_values(differences)),
            ],
        );
        table.write(&batch.expect("the columns match the schema"))?;
    }
    table.finish()
}
