//! Values of a model's features as arguments of functions: numbers, or for a feature of words the words themselves.
//! A number would be a code, and nothing says by which dataset.

use super::Function;
use crate::error::outward;
use arrow::array::{Array, ArrayRef, AsArray, Float32Array};
use arrow::datatypes::{DataType, Float32Type};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, cast};
use planetree_base::error::Error;
use planetree_model::model::ModelFeature;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How an argument becomes numbers: by the codes of a model's words, if the feature has any.
#[derive(Debug, Clone)]
pub struct WordCodes {
    /// In the order of the words.
    codes: Option<Vec<(String, u32)>>,
    /// Whether a warning about unknown words was given.
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

/// An argument that stands for a feature.
pub struct Argument<'a> {
    /// Of which function.
    pub function: &'a Function,
    /// What messages call it.
    pub name: &'a str,
    /// The feature.
    pub feature: &'a ModelFeature,
}

impl Argument<'_> {
    /// The argument, cast to what is read later, and how.
    pub fn resolve(&self, value: Expr, schema: &DFSchema) -> Result<(Expr, WordCodes)> {
        let Argument { function, name, feature } = self;
        let kind = value.get_type(schema)?;
        if feature.words.is_empty() {
            if !kind.is_numeric() && !kind.is_null() {
                let problem = format!("{name} is of type {kind}, expected a number");
                return Err(outward(Error::place(function.name, problem, function.usage)));
            }
            return Ok((cast(value, DataType::Float32), WordCodes { codes: None, warned: Arc::default() }));
        }
        if !is_text(&kind) && !kind.is_null() {
            let problem = format!("{name} is of type {kind}, but {} has words in the model", feature.name);
            let remedy =
                "give the words as text, or use score('model', 'dataset'), which maps the codes of a dataset";
            return Err(outward(Error::place(function.name, problem, remedy)));
        }
        let mut codes: Vec<(String, u32)> = feature.words.iter().cloned().zip(0..).collect();
        codes.sort_unstable();
        Ok((cast(value, DataType::Utf8), WordCodes { codes: Some(codes), warned: Arc::default() }))
    }
}

impl WordCodes {
    /// An argument's values as numbers. Words that the model does not know are missing.
    pub fn numbers(&self, values: &ArrayRef) -> Float32Array {
        let Some(codes) = &self.codes else { return values.as_primitive::<Float32Type>().clone() };
        let code = |word: &str| {
            let place = codes.binary_search_by(|(known, _)| known.as_str().cmp(word)).ok()?;
            Some(codes[place].1 as f32)
        };
        let words = values.as_string::<i32>();
        let unknown = words.iter().flatten().filter(|word| code(word).is_none()).count();
        if unknown > 0 && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "words that the model does not know are taken as missing, {unknown} of the first {} rows",
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
