//! Converts function arguments that stand for features of a model. The argument for a numeric feature is a number.
//! The argument for a categorical feature is the name of a category, because the numeric code of a category depends
//! on the dataset, which is unknown here.

use super::SqlFunction;
use crate::error::to_engine_error;
use arrow::array::{Array, ArrayRef, AsArray, Float32Array};
use arrow::datatypes::{DataType, Float32Type};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, cast};
use planetree_base::error::Error;
use planetree_base::suggest;
use planetree_model::model::{Model, ModelFeature};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Converts the values of an argument to the numbers that the model expects. Names of categories are replaced by the
/// codes that the model uses for them.
#[derive(Debug, Clone)]
pub(super) struct WordCodes {
    /// Names of categories and their codes, sorted by name; `None` for a numeric feature.
    codes: Option<Vec<(String, u32)>>,
    /// Whether a warning about unknown categories has already been logged.
    warned: Arc<AtomicBool>,
}

impl PartialEq for WordCodes {
    fn eq(&self, other: &Self) -> bool {
        self.codes == other.codes
    }
}

impl Eq for WordCodes {}

impl Hash for WordCodes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.codes.hash(state);
    }
}

/// A function argument that stands for a feature of a model.
pub(super) struct FeatureArgument<'a> {
    /// The function that is called.
    pub function: &'a SqlFunction,
    /// Name of the argument in messages.
    pub name: &'a str,
    /// The feature that the argument stands for.
    pub feature: &'a ModelFeature,
}

impl FeatureArgument<'_> {
    /// Returns the argument, cast to the type that `WordCodes::numbers` reads, and the conversion of its values to
    /// numbers. Fails if the type of the argument does not fit the feature.
    pub(super) fn resolve(&self, value: Expr, schema: &DFSchema) -> Result<(Expr, WordCodes)> {
        let FeatureArgument { function, name, feature } = self;
        let kind = value.get_type(schema)?;
        if feature.words.is_empty() {
            if !kind.is_numeric() && !kind.is_null() {
                let problem = format!("{name} is of type {kind}, expected a number");
                return Err(to_engine_error(Error::place(function.name, problem, function.usage)));
            }
            return Ok((cast(value, DataType::Float32), WordCodes { codes: None, warned: Arc::default() }));
        }
        if !is_text(&kind) && !kind.is_null() {
            let problem =
                format!("{name} is of type {kind}, but {} is categorical in the model", feature.name);
            let remedy = "pass the names of the categories as strings, or call score('model', 'dataset')";
            return Err(to_engine_error(Error::place(function.name, problem, remedy)));
        }
        let mut codes: Vec<(String, u32)> = feature.words.iter().cloned().zip(0..).collect();
        codes.sort_unstable();
        Ok((cast(value, DataType::Utf8), WordCodes { codes: Some(codes), warned: Arc::default() }))
    }
}

/// Returns the index of a feature in a model. `model_name` is the model's name in the query, for error messages.
pub(crate) fn feature_index(
    function: &SqlFunction,
    model_name: &str,
    model: &Model,
    feature: &str,
) -> planetree_base::error::Result<usize> {
    let names = || model.features.iter().map(|feature| feature.name.as_str());
    names().position(|other| other == feature).ok_or_else(|| {
        let near = suggest::nearest(feature, names());
        let remedy = suggest::did_you_mean(&near, "planetree describe shows a model's features");
        Error::place(function.name, format_args!("{model_name} has no feature {feature}"), remedy)
    })
}

impl WordCodes {
    /// Converts the values of an argument to numbers. Categories that the model does not know become missing values.
    pub(super) fn numbers(&self, values: &ArrayRef) -> Float32Array {
        let Some(codes) = &self.codes else { return values.as_primitive::<Float32Type>().clone() };
        let code = |word: &str| {
            let index = codes.binary_search_by(|(known, _)| known.as_str().cmp(word)).ok()?;
            Some(codes[index].1 as f32)
        };
        let words = values.as_string::<i32>();
        let unknown = words.iter().flatten().filter(|word| code(word).is_none()).count();
        if unknown > 0 && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "categories unknown to the model are treated as missing: {unknown} of the first {} rows",
                words.len()
            );
        }
        words.iter().map(|word| word.and_then(code)).collect()
    }
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}
