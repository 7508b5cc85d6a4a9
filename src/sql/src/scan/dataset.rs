//! Scans datasets. Every row group is verified against the dataset's manifest when it is read.

use super::{BatchSink, ScanRequest, ScanSource};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use planetree_base::error::Result;
use planetree_data::dataset::{DatasetReader, Manifest};
use std::ops::Range;
use std::sync::Arc;

/// A dataset as a source of rows.
pub(crate) struct DatasetSource {
    reader: Arc<DatasetReader>,
    schema: SchemaRef,
}

impl DatasetSource {
    /// Creates a source that reads an open dataset.
    pub(crate) fn new(reader: Arc<DatasetReader>) -> Self {
        let schema = Arc::new(dataset_schema(reader.manifest()));
        DatasetSource { reader, schema }
    }
}

/// Returns the columns of a dataset.
pub(crate) fn dataset_schema(manifest: &Manifest) -> Schema {
    let mut fields = vec![
        Field::new("query_id", DataType::Utf8, false),
        Field::new("doc_id", DataType::Utf8, true),
        Field::new("label", DataType::Float32, true),
    ];
    fields.extend(manifest.weight.then(|| Field::new("weight", DataType::Float32, true)));
    fields.extend(manifest.position.then(|| Field::new("position", DataType::Int32, true)));
    fields.extend(manifest.features.iter().map(|name| Field::new(name, DataType::Float32, true)));
    Schema::new(fields)
}

impl ScanSource for DatasetSource {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn description(&self) -> String {
        format!("dataset {}", self.reader.location())
    }

    fn row_group_rows(&self) -> Vec<u64> {
        let files = self.reader.manifest().files.iter();
        files.flat_map(|file| file.row_groups.iter().map(|group| group.rows)).collect()
    }

    fn row_group_bytes(&self) -> u64 {
        let groups = self.reader.manifest().files.iter().flat_map(|file| &file.row_groups);
        groups.map(|group| group.range.bytes).max().unwrap_or(0)
    }

    fn counted_by(&self) -> Option<&DatasetReader> {
        Some(&self.reader)
    }

    fn read(&self, row_groups: Range<usize>, request: &ScanRequest, sink: &mut BatchSink<'_>) -> Result<()> {
        let ascending = request.ascending();
        for id in self.reader.groups().drain(row_groups) {
            let group = self.reader.open_group(id)?;
            group.read_batches(&ascending, request.batch_rows, &mut |batch| {
                sink(request.reordered(&batch, &ascending)?)
            })?;
        }
        Ok(())
    }
}
