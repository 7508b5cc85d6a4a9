//! Between which thresholds of a model a feature's value lies.

use super::words::{Argument, WordCodes};
use super::{Function, Make};
use crate::error::outward;
use arrow::array::{Array, Int32Array};
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result as EngineResult, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use planetree_model::model::Model;
use std::sync::Arc;

pub const FUNCTION: Function = Function {
    name: "bin_of",
    usage: "bin_of(value, 'model', 'feature')",
    help: "how many of the model's distinct thresholds of the feature are below the value",
    make: Make::Scalar(|| ScalarUDF::new_from_impl(BinOf::with(Vec::new()))),
};

/// The function, with the thresholds in ascending order once they are known.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct BinOf {
    signature: Signature,
    /// As bits, which can be compared and hashed.
    thresholds: Vec<u32>,
    /// How the value is read, once that is known.
    words: Option<WordCodes>,
}

impl BinOf {
    fn with(thresholds: Vec<u32>) -> Self {
        BinOf { signature: Signature::any(3, Volatility::Immutable), thresholds, words: None }
    }

    /// The call with its thresholds.
    pub fn resolve(
        name: &str,
        model: &Model,
        feature: &str,
        value: &Expr,
        schema: &DFSchema,
    ) -> EngineResult<Expr> {
        let place = place_of(name, model, feature).map_err(outward)?;
        let argument = Argument { function: &FUNCTION, name: "value", feature: &model.features[place] };
        let (value, words) = argument.resolve(value.clone(), schema)?;
        let thresholds = thresholds_of(model, place);
        let bits = thresholds.into_iter().map(f32::to_bits).collect();
        let signature = Signature::any(1, Volatility::Immutable);
        let resolved = BinOf { signature, words: Some(words), ..BinOf::with(bits) };
        Ok(ScalarUDF::new_from_impl(resolved).call(vec![value]))
    }
}

/// Which feature it is.
fn place_of(name: &str, model: &Model, feature: &str) -> Result<usize> {
    let names = || model.features.iter().map(|feature| feature.name.as_str());
    names().position(|other| other == feature).ok_or_else(|| {
        let near = suggest::nearest(feature, names());
        let remedy = suggest::did_you_mean(&near, "planetree describe shows a model's features");
        Error::place(FUNCTION.name, format_args!("{name} has no feature {feature}"), remedy)
    })
}

/// The distinct thresholds of a feature, in ascending order.
fn thresholds_of(model: &Model, place: usize) -> Vec<f32> {
    let splits = model.trees.iter().flat_map(|tree| &tree.nodes).filter_map(|node| node.split.as_ref());
    let mut thresholds: Vec<f32> =
        splits.filter(|split| split.feature as usize == place).map(|split| split.threshold + 0.0).collect();
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
        let Some(words) = &self.words else { return exec_err!("bin_of: the model was not found") };
        let thresholds: Vec<f32> = self.thresholds.iter().map(|bits| f32::from_bits(*bits)).collect();
        let is_constant = matches!(arguments.args[0], ColumnarValue::Scalar(_));
        let rows = if is_constant { 1 } else { arguments.number_rows };
        let values = words.numbers(&arguments.args[0].to_array(rows)?);
        // A row goes left when its value is at most the threshold, so only lower ones are below it.
        let bin = |value: f32| thresholds.partition_point(|threshold| *threshold < value) as i32;
        let bins: Int32Array =
            values.iter().map(|value| value.filter(|value| !value.is_nan()).map(bin)).collect();
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&bins, 0)?),
            false => ColumnarValue::Array(Arc::new(bins) as Arc<dyn Array>),
        })
    }
}
