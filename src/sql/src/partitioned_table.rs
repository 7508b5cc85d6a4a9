//! Reads the files of a partitioned table in one scan. A file contributes the values of its folder as columns.

use super::objects::objects_at;
use arrow::datatypes::{DataType, Field, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result, ScalarValue, project_schema};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::helpers::{expr_applicable_for_cols, filter_partitioned_file};
use datafusion::datasource::listing::{ListingTableUrl, PartitionedFile};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::{TableSchema, TableSchemaBuilder};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use std::sync::Arc;

/// A folder of a partitioned table.
#[derive(Debug)]
pub(crate) struct TableFolder {
    /// The values of the keys. `None` is NULL.
    pub values: Vec<Option<String>>,
    /// The files, in the order of their rows.
    pub files: Vec<ListingTableUrl>,
}

impl TableFolder {
    fn values(&self) -> Vec<ScalarValue> {
        self.values.iter().cloned().map(ScalarValue::Utf8).collect()
    }
}

/// A table of files in folders named `key=value`. Its rows are in the order of the folders and of their files.
#[derive(Debug)]
pub(crate) struct PartitionedTable {
    format: Arc<dyn FileFormat>,
    schema: TableSchema,
    /// The columns of the keys alone.
    keys: DFSchema,
    folders: Vec<TableFolder>,
}

impl PartitionedTable {
    /// Creates a table. `columns` are those of the files, and `keys` are the names of those of the folders.
    pub(crate) fn new(
        format: Arc<dyn FileFormat>,
        columns: SchemaRef,
        keys: &[String],
        folders: Vec<TableFolder>,
    ) -> Result<Self> {
        let field = |(level, key): (usize, &String)| {
            let has_null = folders.iter().any(|folder| folder.values[level].is_none());
            Arc::new(Field::new(key, DataType::Utf8, has_null))
        };
        let fields: Vec<Arc<Field>> = keys.iter().enumerate().map(field).collect();
        let keys = DFSchema::from_unqualified_fields(fields.clone().into(), Default::default())?;
        let schema = TableSchemaBuilder::new(columns).with_table_partition_cols(fields).build();
        Ok(PartitionedTable { format, schema, keys, folders })
    }

    /// Checks whether a folder may have rows that satisfy all filters.
    fn may_match(&self, folder: &TableFolder, filters: &[Expr]) -> bool {
        let file = PartitionedFile::new("", 0).with_partition_values(folder.values());
        // An expression that fails is evaluated again for the rows, where its error is reported.
        filter_partitioned_file(file, filters, &self.keys).map_or(true, |kept| kept.is_some())
    }

    /// Returns the files of the folders that may have rows that satisfy the filters.
    async fn files(&self, state: &dyn Session, filters: &[Expr]) -> Result<Vec<PartitionedFile>> {
        let keys: Vec<&str> = self.keys.fields().iter().map(|field| field.name().as_str()).collect();
        let of_keys = |filter: &&Expr| expr_applicable_for_cols(&keys, filter);
        let filters: Vec<Expr> = filters.iter().filter(of_keys).cloned().collect();
        let (mut urls, mut values) = (Vec::new(), Vec::new());
        for folder in self.folders.iter().filter(|folder| self.may_match(folder, &filters)) {
            urls.extend_from_slice(&folder.files);
            values.extend(folder.files.iter().map(|_| folder.values()));
        }
        let objects = objects_at(state, &urls).await?.into_iter().zip(values);
        let files = objects.filter_map(|(object, values)| {
            Some(PartitionedFile::new_from_meta(object?).with_partition_values(values))
        });
        Ok(files.collect())
    }
}

#[async_trait]
impl TableProvider for PartitionedTable {
    fn schema(&self) -> SchemaRef {
        self.schema.table_schema().clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = self.files(state, filters).await?;
        let first = self.folders.iter().find_map(|folder| folder.files.first());
        let Some(url) = first.filter(|_| !files.is_empty()) else {
            return Ok(Arc::new(EmptyExec::new(project_schema(&self.schema(), projection)?)));
        };
        // The partitions are adjacent files, so that all of them in order have the rows in the order of the table.
        let per_group = files.len().div_ceil(state.config().target_partitions().max(1));
        let groups = files.chunks(per_group).map(|files| FileGroup::new(files.to_vec())).collect();
        let source = self.format.file_source(self.schema.clone());
        let scan = FileScanConfigBuilder::new(url.object_store(), source)
            .with_file_groups(groups)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        self.format.create_physical_plan(state, scan).await
    }
}
