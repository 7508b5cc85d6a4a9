//! Functions that SQL gains here. A new one is a file and a line in the table.

mod auc;
mod average_precision;
mod bin_of;
mod dcg;
mod err;
mod exact_avg;
mod explain_difference;
mod explain_score;
mod models;
mod ndcg;
mod one_query;
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
mod within_query;
mod words;

pub use models::ResolveModels;
pub use one_query::OneQuery;
pub use rank_in_query::RankInQuery;
pub use ranking::MetricFunction;
pub use within_query::within_query;

use super::tables::Tables;
use datafusion::catalog::TableFunctionImpl;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use ranking::MetricEntry;
use std::sync::Arc;

/// One function.
struct Function {
    name: &'static str,
    /// How it is written.
    usage: &'static str,
    /// One line of help.
    help: &'static str,
    make: Make,
}

/// How a function comes to be.
enum Make {
    Metric(&'static MetricEntry),
    Aggregate(fn() -> AggregateUDF),
    Window(fn() -> WindowUDF),
    Scalar(fn() -> ScalarUDF),
    Table(fn(Arc<Tables>) -> Arc<dyn TableFunctionImpl>),
}

/// All of them.
const FUNCTIONS: [Function; 20] = [
    ndcg::FUNCTION,
    dcg::FUNCTION,
    err::FUNCTION,
    average_precision::FUNCTION,
    reciprocal_rank::FUNCTION,
    precision_at::FUNCTION,
    recall_at::FUNCTION,
    auc::FUNCTION,
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
];

/// A function for the manual, `\h` and the shell's completion.
#[derive(Debug, Clone, Copy)]
pub struct FunctionHelp {
    /// Its name.
    pub name: &'static str,
    /// How it is written.
    pub usage: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// `aggregate`, `window`, `scalar` or `table`.
    pub kind: &'static str,
}

/// All functions of ours.
pub fn function_help() -> Vec<FunctionHelp> {
    let help = |function: &Function| FunctionHelp {
        name: function.name,
        usage: function.usage,
        help: function.help,
        kind: match function.make {
            Make::Metric(_) | Make::Aggregate(_) => "aggregate",
            Make::Window(_) => "window",
            Make::Scalar(_) => "scalar",
            Make::Table(_) => "table",
        },
    };
    FUNCTIONS.iter().map(help).collect()
}

/// The names of all functions of ours, short ones and those for rows of several queries included.
pub fn all_names() -> Vec<&'static str> {
    let names = |function: &Function| match function.make {
        Make::Metric(entry) => {
            [entry.name].iter().chain(entry.aliases).copied().chain(entry.pooled).collect::<Vec<_>>()
        }
        _ => vec![function.name],
    };
    FUNCTIONS.iter().flat_map(names).collect()
}

/// The one window function of ours.
pub const RANK_IN_QUERY: &str = rank_in_query::FUNCTION.name;

/// Whether a function is given a model before it runs, which cannot go elsewhere.
pub fn needs_model(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.name == name && matches!(function.make, Make::Scalar(_)))
}

/// The functions that other machines need to know, to run a query that was planned here.
pub fn travelling_functions() -> Vec<AggregateUDF> {
    let aggregate = |function: &Function| match function.make {
        Make::Metric(entry) => {
            MetricFunction::all(entry).into_iter().map(AggregateUDF::new_from_impl).collect()
        }
        Make::Aggregate(make) => vec![make()],
        Make::Window(_) | Make::Scalar(_) | Make::Table(_) => Vec::new(),
    };
    FUNCTIONS.iter().flat_map(aggregate).collect()
}

/// Makes all functions known to a session.
pub fn register(context: &SessionContext, tables: &Arc<Tables>) {
    for function in &FUNCTIONS {
        match function.make {
            Make::Metric(entry) => MetricFunction::all(entry)
                .into_iter()
                .for_each(|metric| context.register_udaf(AggregateUDF::new_from_impl(metric))),
            Make::Aggregate(make) => context.register_udaf(make()),
            Make::Window(make) => context.register_udwf(make()),
            Make::Scalar(make) => context.register_udf(make()),
            Make::Table(make) => context.register_udtf(function.name, make(tables.clone())),
        }
    }
}
