//! Implements the SQL function `planetree_score`, which scores the rows of any table with a model.

use super::feature_argument::{FeatureArgument, WordCodes, feature_index};
use super::{FunctionKind, SqlFunction};
use crate::error::to_engine_error;
use arrow::array::{Array, Float32Array, Float64Array};
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result as EngineResult, ScalarValue, exec_err};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use planetree_base::error::{Error, Result};
use planetree_model::model::Model;
use planetree_model::predict::{NOT_FINITE, Scorer};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub(crate) const FUNCTION: SqlFunction = SqlFunction {
    name: "planetree_score",
    usage: "planetree_score('model', f1, f2, ...) or planetree_score('model', struct)",
    help: "score of a row from columns named like the model's features, or from all features in the model's order",
    kind: FunctionKind::Scalar(|| ScalarUDF::new_from_impl(PlanetreeScore::unresolved())),
};

/// The function `planetree_score`, either as written in a query or already bound to the model that the call names.
#[derive(Debug)]
pub(super) struct PlanetreeScore {
    signature: Signature,
    model: Option<BoundModel>,
}

/// A model, and the mapping of the arguments to its features.
#[derive(Debug, Clone)]
struct BoundModel {
    name: String,
    scorer: Arc<Scorer>,
    /// Names of all features of the model.
    names: Arc<[String]>,
    /// Index of the feature that each argument stands for.
    features: Vec<usize>,
    /// Conversion of each argument to numbers.
    words: Vec<WordCodes>,
}

impl BoundModel {
    /// Returns the error for a row whose score is not finite. The error shows the values of the features, because the
    /// number of the row is unknown here.
    fn not_finite(&self, columns: &[Option<&Float32Array>], row: usize) -> Error {
        const FEW: usize = 8;
        let known = columns.iter().enumerate().filter_map(|(feature, column)| Some((feature, (*column)?)));
        let shown = |(feature, column): (usize, &Float32Array)| match column.is_valid(row) {
            true => format!("{} = {}", self.names[feature], column.value(row)),
            false => format!("{} missing", self.names[feature]),
        };
        let mut values: Vec<String> = known.map(shown).collect();
        let more = if values.len() > FEW { ", ..." } else { "" };
        values.truncate(FEW);
        Error::place(
            FUNCTION.name,
            format_args!("{}: the score of the row with {}{more} {NOT_FINITE}", self.name, values.join(", ")),
            "check the leaf values of the model, or train it with a lower learning_rate",
        )
    }
}

impl PartialEq for PlanetreeScore {
    fn eq(&self, other: &Self) -> bool {
        let key = |one: &Self| one.model.as_ref().map(|model| (model.name.clone(), model.features.clone()));
        key(self) == key(other)
    }
}

impl Eq for PlanetreeScore {}

impl Hash for PlanetreeScore {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.model.as_ref().map(|model| (&model.name, &model.features)).hash(state);
    }
}

impl PlanetreeScore {
    fn unresolved() -> Self {
        PlanetreeScore { signature: Signature::variadic_any(Volatility::Immutable), model: None }
    }

    /// Returns whether the function is bound to its model.
    pub(crate) fn is_resolved(&self) -> bool {
        self.model.is_some()
    }

    /// Binds a call to its model and matches the arguments to the model's features.
    pub(super) fn resolve(
        name: &str,
        model: &Model,
        arguments: &[Expr],
        schema: &DFSchema,
    ) -> EngineResult<Expr> {
        model.check_single_rows(name).map_err(to_engine_error)?;
        let scorer = Arc::new(Scorer::new(model).map_err(to_engine_error)?);
        let used: Vec<usize> = scorer.used_features().map(|feature| feature as usize).collect();
        let mut given: Vec<(usize, Expr)> = Vec::new();
        match arguments {
            [one] if matches!(one.get_type(schema)?, DataType::Struct(_)) => {
                let DataType::Struct(fields) = one.get_type(schema)? else { return exec_err!("no struct") };
                for field in &fields {
                    let feature =
                        feature_index(&FUNCTION, name, model, field.name()).map_err(to_engine_error)?;
                    given.push((feature, get_field(one.clone(), field.name().as_str())));
                }
            }
            _ => match by_names(model, arguments) {
                Some(features) => given.extend(features.into_iter().zip(arguments.iter().cloned())),
                None => {
                    check_count(name, model, arguments).map_err(to_engine_error)?;
                    given.extend(arguments.iter().cloned().enumerate());
                }
            },
        }
        let missing: Vec<&str> = used
            .iter()
            .filter(|feature| given.iter().all(|(given, _)| given != *feature))
            .map(|feature| model.features[*feature].name.as_str())
            .collect();
        if !missing.is_empty() {
            return Err(to_engine_error(Error::place(
                FUNCTION.name,
                format_args!("{name} also needs {}", few(&missing)),
                "pass all features that the trees use, or call score('model', 'dataset'), which reads them from the dataset",
            )));
        }
        let (mut features, mut values, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for (feature, value) in given {
            let known = &model.features[feature];
            let argument = FeatureArgument { function: &FUNCTION, name: &known.name, feature: known };
            let (value, codes) = argument.resolve(value, schema)?;
            features.push(feature);
            values.push(value);
            words.push(codes);
        }
        let resolved = PlanetreeScore {
            signature: Signature::variadic_any(Volatility::Immutable),
            model: Some(BoundModel {
                name: name.to_owned(),
                scorer,
                names: model.features.iter().map(|feature| feature.name.clone()).collect(),
                features,
                words,
            }),
        };
        Ok(ScalarUDF::new_from_impl(resolved).call(values))
    }
}

/// Returns the features that the arguments name, or `None` if an argument is not a column with the name of a feature.
fn by_names(model: &Model, arguments: &[Expr]) -> Option<Vec<usize>> {
    let feature = |argument: &Expr| {
        let name = match argument {
            Expr::Column(column) => &column.name,
            Expr::Alias(alias) => &alias.name,
            _ => return None,
        };
        model.features.iter().position(|feature| feature.name == *name)
    };
    arguments.iter().map(feature).collect()
}

/// Checks that there are as many arguments as features, so that the arguments can be matched to the features by their
/// order.
fn check_count(name: &str, model: &Model, arguments: &[Expr]) -> Result<()> {
    if arguments.len() == model.features.len() {
        return Ok(());
    }
    let names: Vec<&str> = model.features.iter().map(|feature| feature.name.as_str()).collect();
    Err(Error::place(
        FUNCTION.name,
        format_args!(
            "{name} has {} features, but {} arguments are given, and not all of them are columns named like features",
            names.len(),
            arguments.len()
        ),
        format_args!("the features are {}", few(&names)),
    ))
}

fn few(names: &[&str]) -> String {
    const FEW: usize = 8;
    format!("{}{}", names[..names.len().min(FEW)].join(", "), if names.len() > FEW { ", ..." } else { "" })
}

impl ScalarUDFImpl for PlanetreeScore {
    fn name(&self) -> &str {
        FUNCTION.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let Some(model) = &self.model else { return exec_err!("planetree_score: not bound to a model") };
        let is_constant = arguments.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { arguments.number_rows };
        let mut columns: Vec<Option<Float32Array>> = Vec::new();
        for ((feature, words), value) in model.features.iter().zip(&model.words).zip(arguments.args) {
            let column = words.numbers(&value.into_array(rows)?);
            columns.resize(columns.len().max(feature + 1), None);
            columns[*feature] = Some(column);
        }
        let columns: Vec<Option<&Float32Array>> = columns.iter().map(Option::as_ref).collect();
        let mut scores = vec![0.0; rows];
        model.scorer.score_columns(&columns, &mut scores);
        if let Some(row) = scores.iter().position(|score| !score.is_finite()) {
            return Err(to_engine_error(model.not_finite(&columns, row)));
        }
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::Float64(scores.first().copied())),
            false => ColumnarValue::Array(Arc::new(Float64Array::from(scores))),
        })
    }
}
