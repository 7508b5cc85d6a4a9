//! Metrics of rankings as aggregates: a judge of `metric/` takes the rows of each group, so that a value here is,
//! to the bit, the one of `planetree evaluate`.
//!
//! Where equal scores keep the order of the rows (`ties=input`), the aggregate must know that order. One that
//! `order/` gave rows in order trusts in it. Any other takes the worst order instead, which is the same however
//! the rows come, so that no result ever depends on threads.

use super::ranked_rows::{RankedAccumulator, RankedGroups, state_fields};
use crate::error::outward;
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

/// Whether a metric has a depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// It may be left out.
    Optional,
    /// It must be there.
    Needed,
    /// It has none.
    None,
}

/// One metric.
#[derive(Debug)]
pub struct MetricEntry {
    /// The function's name.
    pub name: &'static str,
    /// Other names of it.
    pub aliases: &'static [&'static str],
    /// The function that takes rows of several queries for one ranking; `None` if this one does, because rows are
    /// all that counts.
    pub pooled: Option<&'static str>,
    /// How it is written.
    pub usage: &'static str,
    /// Whether there is a depth.
    pub depth: Depth,
    /// The metric of a depth.
    pub metric: fn(Option<u32>) -> Metric,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct MetricFunction {
    entry: &'static MetricEntry,
    name: &'static str,
    aliases: Vec<String>,
    signature: Signature,
    /// Whether its rows come in the order that counts.
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

/// What the constant arguments say.
struct Settings {
    metric: Metric,
    convention: Convention,
    has_documents: bool,
}

impl MetricFunction {
    /// The functions of a metric: of a query's rows, and of any, which are given rows in any order.
    pub fn all(entry: &'static MetricEntry) -> Vec<Self> {
        let called = |name: &'static str, aliases: &[&str]| MetricFunction {
            entry,
            name,
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            signature: Signature::user_defined(Volatility::Immutable),
            in_order: false,
        };
        let pooled = entry.pooled.map(|name| called(name, &[]));
        [called(entry.name, entry.aliases)].into_iter().chain(pooled).collect()
    }

    /// The name of the function that takes rows of several queries, if this one takes rows of one query only.
    pub fn pooled_name(&self) -> Option<&'static str> {
        self.entry.pooled.filter(|pooled| *pooled != self.name)
    }

    /// The same for rows that come in order.
    pub fn in_order(&self) -> Self {
        MetricFunction { in_order: true, ..self.clone() }
    }

    /// Whether the order of the rows can change its value.
    pub fn looks_at_order(&self, aggregate: &AggregateFunctionExpr) -> Result<bool> {
        let Settings { metric, convention, .. } = self.settings(&aggregate.expressions())?;
        Ok(match metric {
            Metric::Ndcg(_) | Metric::Dcg(_) | Metric::Err(_) => convention.ties == Ties::Input,
            Metric::Auc => false,
            Metric::Rmse => true, // a sum of floating-point numbers
            _ => convention.binary_ties == Ties::Input,
        })
    }

    /// Places of depth, convention and document ids among the arguments.
    fn places(&self) -> (Option<usize>, usize, usize) {
        match self.entry.depth {
            Depth::None => (None, 2, 3),
            _ => (Some(2), 3, 4),
        }
    }

    fn settings(&self, arguments: &[Arc<dyn PhysicalExpr>]) -> Result<Settings> {
        let (depth, convention, documents) = self.places();
        let constant = |place: usize, what: &str| -> Result<Option<&ScalarValue>> {
            let Some(argument) = arguments.get(place) else { return Ok(None) };
            match argument.downcast_ref::<Literal>() {
                Some(literal) if literal.value().is_null() => Ok(None),
                Some(literal) => Ok(Some(literal.value())),
                None => Err(self.fault(&format!("{what} is not the same for all rows"), "write a constant")),
            }
        };
        let depth = match depth.map(|place| constant(place, "k")).transpose()?.flatten() {
            Some(ScalarValue::Int64(Some(depth))) => match u32::try_from(*depth) {
                Ok(depth) if depth > 0 => Some(depth),
                _ => return Err(self.fault(&format!("k is {depth}"), "look at 1 document or more")),
            },
            Some(other) => return Err(self.fault(&format!("k is {other}"), "write a whole number")),
            None if self.entry.depth == Depth::Needed => {
                return Err(self.fault("k is NULL", "say how many documents to look at"));
            }
            None => None,
        };
        let convention: Convention = match constant(convention, "the convention")? {
            Some(ScalarValue::Utf8(Some(text))) => text.parse().map_err(outward)?,
            Some(other) => return Err(self.fault(&format!("the convention is {other}"), "write a text")),
            None => Convention::default(),
        };
        let metric = (self.entry.metric)(depth);
        Ok(Settings { metric, convention, has_documents: arguments.len() > documents })
    }

    fn rows(&self, arguments: &AccumulatorArgs<'_>) -> Result<RankedGroups> {
        if arguments.is_distinct {
            return Err(self.fault("DISTINCT has no meaning for a ranking", "leave it out"));
        }
        let Settings { metric, mut convention, has_documents } = self.settings(arguments.exprs)?;
        if !self.in_order {
            let settled = |ties: Ties| if ties == Ties::Input { Ties::Worst } else { ties };
            convention.ties = settled(convention.ties);
            convention.binary_ties = settled(convention.binary_ties);
        }
        Ok(RankedGroups::new(self.name, Judge::new(&[metric], &convention), has_documents))
    }

    /// How it is written.
    fn usage(&self) -> String {
        self.entry.usage.replacen(self.entry.name, self.name, 1)
    }

    fn fault(&self, problem: &str, remedy: &str) -> datafusion::error::DataFusionError {
        outward(Error::place(self.name, problem, format_args!("{remedy}: {}", self.usage())))
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
        let (depth_place, convention, documents) = self.places();
        let least = if depth == Depth::Needed { 3 } else { 2 };
        let most = if name == "rmse" {
            2
        } else if depth == Depth::None {
            3
        } else {
            5
        };
        if !(least..=most).contains(&types.len()) {
            return plan_err!("{name}: {} arguments do not fit: {usage}", types.len());
        }
        let mut coerced = Vec::with_capacity(types.len());
        for (place, kind) in types.iter().enumerate() {
            let (what, expected, wanted) = match place {
                0 => ("label", "a number", DataType::Float32),
                1 => ("score", "a number", DataType::Float64),
                _ if Some(place) == depth_place => ("k", "a whole number", DataType::Int64),
                _ if place == convention => ("convention", "a text such as 'trec'", DataType::Utf8),
                _ if place == documents => ("doc_id", "a text", DataType::Utf8),
                _ => return plan_err!("{name}: there are too many arguments: {usage}"),
            };
            let fits = match (&wanted, kind) {
                (_, DataType::Null) => place > 1,
                (DataType::Int64, kind) => kind.is_integer(),
                (DataType::Utf8, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => true,
                (DataType::Utf8, DataType::Dictionary(_, values)) => values.is_string(),
                (DataType::Utf8, kind) => place == documents && kind.is_integer(),
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
        Ok(Box::new(RankedAccumulator::new(self.rows(&arguments)?)))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let (_, _, documents) = self.places();
        Ok(state_fields(arguments.name, arguments.input_fields.len() > documents))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.rows(&arguments)?))
    }
}
