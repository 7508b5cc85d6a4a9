//! Implements the ranking metrics as SQL aggregate functions. They use the code of `planetree evaluate`, so both
//! return bit-identical values.
//!
//! If the metric convention ranks rows with equal scores in the order of the table (`ties=input`), the aggregate must
//! know this order. It uses the order in which the rows arrive if the rules in `order/` guarantee that this is the
//! order of the table. Otherwise it assumes the worst order (`ties=worst`), so that the result does not depend on the
//! number of threads.

use super::ranked_rows::{RankedAccumulator, RankedGroups, state_fields};
use crate::error::to_engine_error;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use planetree_base::error::Error;
use planetree_metric::{Convention, Judge, Metric, Ties};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Whether a metric has the depth argument `k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DepthArgument {
    /// The depth may be omitted.
    Optional,
    /// The depth is required.
    Required,
    /// The metric has a range of false-positive rates instead, which is required.
    Range,
    /// The metric has no depth.
    None,
}

/// Value of the argument after the score.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MetricArgument {
    /// Depth; `None` for the default depth of the convention.
    Depth(Option<u32>),
    /// False-positive rates in percent.
    Range(u32, u32),
}

impl MetricArgument {
    /// Returns the depth.
    pub(crate) fn depth(self) -> Option<u32> {
        match self {
            MetricArgument::Depth(depth) => depth,
            MetricArgument::Range(..) => None,
        }
    }

    /// Returns the range of false-positive rates; all rates if there is none.
    pub(crate) fn range(self) -> (u32, u32) {
        match self {
            MetricArgument::Depth(_) => (0, 100),
            MetricArgument::Range(from, to) => (from, to),
        }
    }
}

/// A metric and the names of its SQL functions.
#[derive(Debug)]
pub(crate) struct MetricEntry {
    /// Name of the function.
    pub name: &'static str,
    /// Other names of the function.
    pub aliases: &'static [&'static str],
    /// Name of the function that accepts rows of several queries. `None` if the metric is defined on rows instead of
    /// rankings, so that its only function accepts rows of several queries.
    pub pooled: Option<&'static str>,
    /// The call with its arguments. Optional arguments are in brackets.
    pub usage: &'static str,
    /// Whether the function has a depth argument.
    pub depth: DepthArgument,
    /// Returns the metric with this argument.
    pub metric: fn(MetricArgument) -> Metric,
}

/// A ranking metric as an aggregate function.
#[derive(Debug, Clone)]
pub(crate) struct MetricFunction {
    entry: &'static MetricEntry,
    name: &'static str,
    aliases: Vec<String>,
    signature: Signature,
    /// Whether rows arrive in the order that decides between equal scores.
    in_order: bool,
}

impl PartialEq for MetricFunction {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.in_order) == (other.name, other.in_order)
    }
}

impl Eq for MetricFunction {}

impl Hash for MetricFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.name, self.in_order).hash(state);
    }
}

/// Values of the arguments that must be constant.
struct MetricSettings {
    metric: Metric,
    convention: Convention,
    has_documents: bool,
}

impl MetricFunction {
    /// Returns the functions of a metric: one for the rows of a single query, and one for the rows of several queries
    /// (the pooled function), if the metric has it. Both accept rows in any order.
    pub(crate) fn all(entry: &'static MetricEntry) -> Vec<Self> {
        let function = |name: &'static str, aliases: &[&str]| MetricFunction {
            entry,
            name,
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            signature: Signature::user_defined(Volatility::Immutable),
            in_order: false,
        };
        let pooled = entry.pooled.map(|name| function(name, &[]));
        [function(entry.name, entry.aliases)].into_iter().chain(pooled).collect()
    }

    /// Returns the name of the pooled function, or `None` if this function accepts rows of several queries itself.
    pub(crate) fn pooled_name(&self) -> Option<&'static str> {
        self.entry.pooled.filter(|pooled| *pooled != self.name)
    }

    /// Returns a variant of this function for rows that arrive in the order that decides between equal scores.
    pub(crate) fn in_order(&self) -> Self {
        MetricFunction { in_order: true, ..self.clone() }
    }

    /// Checks whether the order of the rows can change the value of an aggregate.
    pub(crate) fn depends_on_order(&self, aggregate: &AggregateFunctionExpr) -> Result<bool> {
        let MetricSettings { metric, convention, .. } = self.settings(&aggregate.expressions())?;
        Ok(match metric {
            Metric::Ndcg(_) | Metric::Dcg(_) | Metric::Err(_) => convention.ties == Ties::Input,
            Metric::Auc | Metric::PartialAuc(..) => false,
            Metric::Rmse => true, // it sums floating-point numbers
            _ => convention.binary_ties == Ties::Input,
        })
    }

    /// Returns the indices of the depth, convention and document id arguments.
    fn argument_indices(&self) -> (Option<usize>, usize, usize) {
        match self.entry.depth {
            DepthArgument::None => (None, 2, 3),
            _ => (Some(2), 3, 4),
        }
    }

    fn settings(&self, arguments: &[Arc<dyn PhysicalExpr>]) -> Result<MetricSettings> {
        let (depth, convention, documents) = self.argument_indices();
        let constant = |index: usize, what: &str| -> Result<Option<&ScalarValue>> {
            let Some(argument) = arguments.get(index) else { return Ok(None) };
            match argument.downcast_ref::<Literal>() {
                Some(literal) if literal.value().is_null() => Ok(None),
                Some(literal) => Ok(Some(literal.value())),
                None => Err(self.fault(&format!("{what} must be constant"), "pass a literal")),
            }
        };
        let is_range = self.entry.depth == DepthArgument::Range;
        let what = if is_range { "the range" } else { "k" };
        let mut range = (0, 100);
        let depth = match depth.map(|index| constant(index, what)).transpose()?.flatten() {
            Some(ScalarValue::Utf8(Some(text))) if is_range => match format!("pauc@{text}").parse() {
                Ok(Metric::PartialAuc(from, to)) => {
                    range = (from, to);
                    None
                }
                _ => {
                    return Err(self.fault(
                        &format!("{text:?} is not a range of percentages"),
                        "pass two false-positive rates, such as '0-5'",
                    ));
                }
            },
            _ if is_range => {
                return Err(self.fault(
                    "the range must be a string",
                    "pass two false-positive rates in percent, such as '0-5'",
                ));
            }
            Some(ScalarValue::Int64(Some(depth))) => match u32::try_from(*depth) {
                Ok(depth) if depth > 0 => Some(depth),
                _ => {
                    return Err(
                        self.fault(&format!("k must be at least 1, not {depth}"), "pass a positive number")
                    );
                }
            },
            Some(other) => {
                return Err(self.fault(&format!("k must be a whole number, not {other}"), "pass an integer"));
            }
            None if self.entry.depth == DepthArgument::Required => {
                return Err(self.fault("k must not be NULL", "pass the number of top documents to evaluate"));
            }
            None => None,
        };
        let convention: Convention = match constant(convention, "the convention")? {
            Some(ScalarValue::Utf8(Some(text))) => text.parse().map_err(to_engine_error)?,
            Some(other) => {
                return Err(self.fault(
                    &format!("the convention must be a string, not {other}"),
                    "pass a string literal",
                ));
            }
            None => Convention::default(),
        };
        let argument =
            if is_range { MetricArgument::Range(range.0, range.1) } else { MetricArgument::Depth(depth) };
        let metric = (self.entry.metric)(argument);
        Ok(MetricSettings { metric, convention, has_documents: arguments.len() > documents })
    }

    fn new_groups(&self, arguments: &AccumulatorArgs<'_>) -> Result<RankedGroups> {
        if arguments.is_distinct {
            return Err(self.fault("DISTINCT is not supported", "remove it"));
        }
        let MetricSettings { metric, mut convention, has_documents } = self.settings(arguments.exprs)?;
        if !self.in_order {
            let without_order = |ties: Ties| if ties == Ties::Input { Ties::Worst } else { ties };
            convention.ties = without_order(convention.ties);
            // The ROC curve is a straight line between equal scores, so their order does not matter to areas.
            if !matches!(metric, Metric::Auc | Metric::PartialAuc(..)) {
                convention.binary_ties = without_order(convention.binary_ties);
            }
        }
        Ok(RankedGroups::new(self.name, Judge::new(&[metric], &convention), has_documents))
    }

    /// Returns the call with its arguments, for error messages.
    fn usage(&self) -> String {
        self.entry.usage.replacen(self.entry.name, self.name, 1)
    }

    fn fault(&self, problem: &str, remedy: &str) -> datafusion::error::DataFusionError {
        to_engine_error(Error::place(self.name, problem, format_args!("{remedy}: {}", self.usage())))
    }
}

impl AggregateUDFImpl for MetricFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (name, usage, depth) = (self.name, self.usage(), self.entry.depth);
        let (depth_index, convention, documents) = self.argument_indices();
        let (min, max) = match depth {
            DepthArgument::None if name == "rmse" => (2, 2),
            DepthArgument::None => (2, 3),
            DepthArgument::Range => (3, 4),
            DepthArgument::Required => (3, 5),
            DepthArgument::Optional => (2, 5),
        };
        if !(min..=max).contains(&types.len()) {
            return plan_err!("{name}: wrong number of arguments ({}): {usage}", types.len());
        }
        let mut coerced = Vec::with_capacity(types.len());
        for (index, kind) in types.iter().enumerate() {
            let (what, expected, wanted) = match index {
                0 => ("label", "a number", DataType::Float32),
                1 => ("score", "a number", DataType::Float64),
                _ if Some(index) == depth_index && depth == DepthArgument::Range => {
                    ("range", "a string such as '0-5'", DataType::Utf8)
                }
                _ if Some(index) == depth_index => ("k", "a whole number", DataType::Int64),
                _ if index == convention => ("convention", "a string such as 'trec'", DataType::Utf8),
                _ if index == documents => ("doc_id", "a string", DataType::Utf8),
                _ => return plan_err!("{name}: too many arguments: {usage}"),
            };
            let fits = match (&wanted, kind) {
                (_, DataType::Null) => index > 1,
                (DataType::Int64, kind) => kind.is_integer(),
                (DataType::Utf8, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => true,
                (DataType::Utf8, DataType::Dictionary(_, values)) => values.is_string(),
                (DataType::Utf8, kind) => index == documents && kind.is_integer(),
                (_, kind) => kind.is_numeric(),
            };
            if !fits {
                return plan_err!("{name}: {what} is of type {kind}, expected {expected}: {usage}");
            }
            coerced.push(wanted);
        }
        Ok(coerced)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(RankedAccumulator::new(self.new_groups(&arguments)?)))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let (_, _, documents) = self.argument_indices();
        Ok(state_fields(arguments.name, arguments.input_fields.len() > documents))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.new_groups(&arguments)?))
    }
}
