//! Registers the SQL functions of planetree. To add a function, add a file for it and a line in `FUNCTIONS`.

mod auc;
mod average_precision;
mod bin_of;
mod bounded;
mod dataset_function;
mod dcg;
mod err;
mod exact_avg;
mod explain_difference;
mod explain_score;
mod feature_argument;
mod models;
mod ndcg;
mod one_query;
mod parquet_kv_metadata;
mod pauc;
mod planetree_score;
mod precision_at;
mod rank_in_query;
mod ranked_rows;
mod ranking;
mod read;
mod recall_at;
mod reciprocal_rank;
mod rmse;
mod score;
mod success_at;
mod within_query;

pub(crate) use bounded::register_bounded;
pub(crate) use models::ResolveModels;
pub(crate) use one_query::OneQuery;
pub(crate) use rank_in_query::RankInQuery;
pub(crate) use ranking::MetricFunction;
pub use within_query::within_query;

use super::tables::Tables;
use datafusion::catalog::TableFunctionImpl;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use ranking::MetricEntry;
use std::sync::Arc;

/// A SQL function of planetree.
struct SqlFunction {
    name: &'static str,
    /// The call with its arguments. Optional arguments are in brackets.
    usage: &'static str,
    /// One-line description.
    help: &'static str,
    kind: FunctionKind,
}

/// Kind of a function, with its constructor.
enum FunctionKind {
    Metric(&'static MetricEntry),
    Aggregate(fn() -> AggregateUDF),
    Window(fn() -> WindowUDF),
    Scalar(fn() -> ScalarUDF),
    Table(fn(Arc<Tables>) -> Arc<dyn TableFunctionImpl>),
}

/// All functions, in the order of the manual.
const FUNCTIONS: [SqlFunction; 23] = [
    ndcg::FUNCTION,
    dcg::FUNCTION,
    err::FUNCTION,
    average_precision::FUNCTION,
    reciprocal_rank::FUNCTION,
    precision_at::FUNCTION,
    recall_at::FUNCTION,
    success_at::FUNCTION,
    auc::FUNCTION,
    pauc::FUNCTION,
    rmse::FUNCTION,
    exact_avg::FUNCTION,
    rank_in_query::FUNCTION,
    planetree_score::FUNCTION,
    bin_of::FUNCTION,
    score::FUNCTION,
    explain_score::FUNCTION,
    explain_difference::FUNCTION,
    read::PARQUET,
    read::CSV,
    read::JSON,
    read::TABLE,
    parquet_kv_metadata::FUNCTION,
];

/// Names of DuckDB for functions of the engine.
const ALIASES: [(&str, &str); 1] = [("to_char", "strftime")];

/// Description of a function, for the manual, the shell command `\df` and the shell's completion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FunctionHelp {
    /// Name of the function.
    pub name: &'static str,
    /// The call with its arguments. Optional arguments are in brackets.
    pub usage: &'static str,
    /// One-line description.
    pub help: &'static str,
    /// `aggregate`, `window`, `scalar` or `table`.
    pub kind: &'static str,
}

/// Returns the descriptions of all functions of planetree, in the order of the manual.
pub(crate) fn function_help() -> Vec<FunctionHelp> {
    let help = |function: &SqlFunction| FunctionHelp {
        name: function.name,
        usage: function.usage,
        help: function.help,
        kind: match function.kind {
            FunctionKind::Metric(_) | FunctionKind::Aggregate(_) => "aggregate",
            FunctionKind::Window(_) => "window",
            FunctionKind::Scalar(_) => "scalar",
            FunctionKind::Table(_) => "table",
        },
    };
    FUNCTIONS.iter().map(help).collect()
}

/// Returns the names of all functions of planetree, including aliases and pooled variants, which accept rows of
/// several queries.
pub(crate) fn all_function_names() -> Vec<&'static str> {
    let names = |function: &SqlFunction| match function.kind {
        FunctionKind::Metric(entry) => {
            [entry.name].iter().chain(entry.aliases).copied().chain(entry.pooled).collect::<Vec<_>>()
        }
        _ => vec![function.name],
    };
    FUNCTIONS.iter().flat_map(names).collect()
}

/// Name of planetree's only window function.
pub(crate) const RANK_IN_QUERY: &str = rank_in_query::FUNCTION.name;

/// Checks whether a function must be bound to a model before it runs. Such a function cannot run on a cluster.
pub(crate) fn needs_model(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.name == name && matches!(function.kind, FunctionKind::Scalar(_)))
}

/// Returns the functions that the executors of a cluster must know, so that they can run queries planned by this
/// process.
pub fn distributed_functions() -> Vec<AggregateUDF> {
    let aggregate = |function: &SqlFunction| match function.kind {
        FunctionKind::Metric(entry) => {
            MetricFunction::all(entry).into_iter().map(AggregateUDF::new_from_impl).collect()
        }
        FunctionKind::Aggregate(make) => vec![make()],
        FunctionKind::Window(_) | FunctionKind::Scalar(_) | FunctionKind::Table(_) => Vec::new(),
    };
    FUNCTIONS.iter().flat_map(aggregate).collect()
}

/// Registers all functions in a session.
pub(crate) fn register(context: &SessionContext, tables: &Arc<Tables>) {
    for function in &FUNCTIONS {
        match function.kind {
            FunctionKind::Metric(entry) => MetricFunction::all(entry)
                .into_iter()
                .for_each(|metric| context.register_udaf(AggregateUDF::new_from_impl(metric))),
            FunctionKind::Aggregate(make) => context.register_udaf(make()),
            FunctionKind::Window(make) => context.register_udwf(make()),
            FunctionKind::Scalar(make) => context.register_udf(make()),
            FunctionKind::Table(make) => context.register_udtf(function.name, make(tables.clone())),
        }
    }
    for (name, alias) in ALIASES {
        let function = context.state().scalar_functions().get(name).map(|function| (**function).clone());
        function.into_iter().for_each(|function| context.register_udf(function.with_aliases([alias])));
    }
}
