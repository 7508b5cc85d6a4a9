//! Contains the common code of the table functions that apply a model to a dataset. Their arguments are string
//! literals: first the model, then the dataset, then any others.

use super::SqlFunction;
use super::models::{read_model, string_literal};
use crate::error::to_engine_error;
use crate::open::blocking;
use crate::scan::{ScanSource, ScanTable};
use crate::tables::Tables;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::Result as EngineResult;
use planetree_base::error::{Error, Result};
use planetree_data::dataset::DatasetReader;
use planetree_model::model::Model;
use std::fmt;
use std::sync::Arc;

/// Builds the result rows of a table function from its model, its dataset and `MORE` further string arguments.
pub(super) type BuildSource<const MORE: usize> =
    fn(ModelAndDataset, [&str; MORE]) -> Result<Arc<dyn ScanSource>>;

/// A table function with `MORE` arguments after the model and the dataset.
pub(super) struct DatasetFunction<const MORE: usize> {
    /// Name and usage of the function.
    pub function: &'static SqlFunction,
    /// Description of the arguments, for error messages.
    pub arguments: &'static str,
    /// The tables of the session.
    pub tables: Arc<Tables>,
    /// Builds the result from the model, the dataset and the remaining arguments.
    pub build: BuildSource<MORE>,
}

/// A model and a dataset that a query names, both opened.
pub(super) struct ModelAndDataset {
    /// The model.
    pub model: Model,
    /// The model's name in the query.
    pub model_name: String,
    /// Reader of the dataset.
    pub reader: Arc<DatasetReader>,
}

impl<const MORE: usize> DatasetFunction<MORE> {
    fn wrong_arguments(&self) -> Error {
        let SqlFunction { name, usage, .. } = self.function;
        Error::place(
            name,
            format_args!("expected {} as string literals", self.arguments),
            format_args!("write {usage}"),
        )
    }
}

impl<const MORE: usize> fmt::Debug for DatasetFunction<MORE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.function.name)
    }
}

impl<const MORE: usize> TableFunctionImpl for DatasetFunction<MORE> {
    fn call_with_args(&self, arguments: TableFunctionArgs) -> EngineResult<Arc<dyn TableProvider>> {
        let literals: Option<Vec<String>> = arguments.exprs().iter().map(string_literal).collect();
        let literals = literals.unwrap_or_default();
        let literals: Vec<&str> = literals.iter().map(String::as_str).collect();
        let (model_name, dataset, more) = match literals.as_slice() {
            [model, dataset, more @ ..] => (*model, *dataset, <[&str; MORE]>::try_from(more).ok()),
            _ => ("", "", None),
        };
        let more = more.ok_or_else(|| to_engine_error(self.wrong_arguments()))?;
        let source = blocking(|| {
            let model = read_model(&self.tables, model_name)?;
            let reader = Arc::new(DatasetReader::open(&self.tables.location(dataset)?)?);
            (self.build)(ModelAndDataset { model, model_name: model_name.to_owned(), reader }, more)
        })?;
        Ok(Arc::new(ScanTable(source)))
    }
}
