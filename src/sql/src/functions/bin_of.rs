//! Implements the SQL function `bin_of`, which returns the bin of a feature's value: the number of the model's
//! thresholds that are below the value.

use super::feature_argument::{FeatureArgument, WordCodes, feature_index};
use super::{FunctionKind, SqlFunction};
use crate::error::to_engine_error;
use arrow::array::{Array, Int32Array};
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result as EngineResult, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use planetree_base::error::Error;
use planetree_model::model::Model;
use std::sync::Arc;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "bin_of",
    usage: "bin_of(value, 'model', 'feature')",
    help: "number of the model's distinct thresholds of the feature below the value",
    kind: FunctionKind::Scalar(|| ScalarUDF::new_from_impl(BinOf::with(Vec::new()))),
};

/// The function `bin_of`, either as written in a query or already bound to the model that the call names.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct BinOf {
    signature: Signature,
    /// Distinct thresholds of the feature in ascending order, stored as bits because `f32` does not implement `Eq`
    /// and `Hash`. Empty until the function is bound to a model.
    thresholds: Vec<u32>,
    /// Conversion of the argument to numbers; `None` until the function is bound to a model.
    words: Option<WordCodes>,
}

impl BinOf {
    fn with(thresholds: Vec<u32>) -> Self {
        BinOf { signature: Signature::any(3, Volatility::Immutable), thresholds, words: None }
    }

    /// Binds a call to the thresholds that the model has for the feature.
    pub(super) fn resolve(
        name: &str,
        model: &Model,
        feature: &str,
        value: &Expr,
        schema: &DFSchema,
    ) -> EngineResult<Expr> {
        let index = feature_index(&FUNCTION, name, model, feature).map_err(to_engine_error)?;
        let argument =
            FeatureArgument { function: &FUNCTION, name: "value", feature: &model.features[index] };
        let (value, words) = argument.resolve(value.clone(), schema)?;
        if model.parts.iter().all(|part| part.family.trees().is_none()) {
            return Err(to_engine_error(Error::place(
                FUNCTION.name,
                format_args!("{name} has no trees, so it has no bins"),
                "name a model that consists of trees",
            )));
        }
        if let Some(part) = model.normalised_trees() {
            let label = model.part_label(part);
            return Err(to_engine_error(Error::place(
                FUNCTION.name,
                format_args!(
                    "{name}: {label} normalises features over the documents of a query, so its thresholds are not values \
                     of {feature}"
                ),
                "name a model trained with normalise_features=none",
            )));
        }
        let thresholds = thresholds_of(model, index);
        let bits = thresholds.into_iter().map(f32::to_bits).collect();
        let signature = Signature::any(1, Volatility::Immutable);
        let resolved = BinOf { signature, words: Some(words), ..BinOf::with(bits) };
        Ok(ScalarUDF::new_from_impl(resolved).call(vec![value]))
    }
}

/// Returns the distinct thresholds of a feature, in ascending order.
fn thresholds_of(model: &Model, feature: usize) -> Vec<f32> {
    let splits = model.trees().flat_map(|tree| &tree.nodes).filter_map(|node| node.split.as_ref());
    let mut thresholds: Vec<f32> =
        splits.filter(|split| split.feature as usize == feature).map(|split| split.threshold + 0.0).collect();
    thresholds.sort_by(f32::total_cmp);
    thresholds.dedup();
    thresholds
}

impl ScalarUDFImpl for BinOf {
    fn name(&self) -> &str {
        FUNCTION.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::Int32)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let Some(words) = &self.words else { return exec_err!("bin_of: not bound to a model") };
        let thresholds: Vec<f32> = self.thresholds.iter().map(|bits| f32::from_bits(*bits)).collect();
        let is_constant = matches!(arguments.args[0], ColumnarValue::Scalar(_));
        let rows = if is_constant { 1 } else { arguments.number_rows };
        let values = words.numbers(&arguments.args[0].to_array(rows)?);
        // A row goes to the left child if its value is at most the threshold, so a threshold equal to the value is not
        // below it.
        let bin = |value: f32| thresholds.partition_point(|threshold| *threshold < value) as i32;
        let bins: Int32Array =
            values.iter().map(|value| value.filter(|value| !value.is_nan()).map(bin)).collect();
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&bins, 0)?),
            false => ColumnarValue::Array(Arc::new(bins) as Arc<dyn Array>),
        })
    }
}
