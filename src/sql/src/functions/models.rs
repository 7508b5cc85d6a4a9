//! Binds function calls to the models that they name, once per query and before the query is planned.

use super::bin_of::{self, BinOf};
use super::planetree_score::{self, PlanetreeScore};
use crate::error::to_engine_error;
use crate::open::blocking;
use crate::tables::Tables;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result as EngineResult, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::analyzer::AnalyzerRule;
use planetree_base::error::{Error, Result};
use planetree_model::model::Model;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Analyzer rule that reads the models named in a query and binds the function calls to them.
pub(crate) struct ResolveModels(pub Arc<Tables>);

impl fmt::Debug for ResolveModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResolveModels")
    }
}

impl AnalyzerRule for ResolveModels {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> EngineResult<LogicalPlan> {
        let mut models = ModelCache { tables: &self.0, read: HashMap::new() };
        plan.transform_up_with_subqueries(|plan| {
            let mut schema = merge_schema(&plan.inputs());
            schema.merge(plan.schema());
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expression| {
                let name = names.save(&expression);
                let resolved = expression.transform_up(|expression| models.resolve(expression, &schema))?;
                Ok(resolved.update_data(|expression| name.restore(expression)))
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "resolve_models"
    }
}

/// The models that one query names. Each model is read once.
struct ModelCache<'t> {
    tables: &'t Tables,
    read: HashMap<String, Arc<Model>>,
}

impl ModelCache<'_> {
    fn resolve(&mut self, expression: Expr, schema: &DFSchema) -> EngineResult<Transformed<Expr>> {
        let Expr::ScalarFunction(ScalarFunction { func, args }) = &expression else {
            return Ok(Transformed::no(expression));
        };
        let resolved = match (func.name(), args.as_slice()) {
            (name, [model, features @ ..]) if name == planetree_score::FUNCTION.name => {
                if func.inner().downcast_ref::<PlanetreeScore>().is_some_and(PlanetreeScore::is_resolved) {
                    return Ok(Transformed::no(expression)); // the rule may run twice on a plan
                }
                let model = string_literal(model)
                    .ok_or_else(|| model_not_literal(planetree_score::FUNCTION.usage))?;
                PlanetreeScore::resolve(&model, &*self.model(&model)?, features, schema)?
            }
            (name, [value, model, feature]) if name == bin_of::FUNCTION.name => {
                let (Some(model), Some(feature)) = (string_literal(model), string_literal(feature)) else {
                    return Err(model_not_literal(bin_of::FUNCTION.usage));
                };
                BinOf::resolve(&model, &*self.model(&model)?, &feature, value, schema)?
            }
            _ => return Ok(Transformed::no(expression)),
        };
        Ok(Transformed::yes(resolved))
    }

    fn model(&mut self, name: &str) -> EngineResult<Arc<Model>> {
        if let Some(model) = self.read.get(name) {
            return Ok(model.clone());
        }
        let model = Arc::new(blocking(|| read_model(self.tables, name))?);
        self.read.insert(name.to_owned(), model.clone());
        Ok(model)
    }
}

/// Reads a model that a query names, either as a table or by its path.
pub(crate) fn read_model(tables: &Tables, name: &str) -> Result<Model> {
    Model::read(&tables.location(name)?)
}

/// Returns the value of a string literal, or `None` for other expressions.
pub(crate) fn string_literal(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Literal(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::LargeUtf8(Some(text))
            | ScalarValue::Utf8View(Some(text)),
            _,
        ) => Some(text.clone()),
        _ => None,
    }
}

fn model_not_literal(usage: &str) -> datafusion::error::DataFusionError {
    to_engine_error(Error::place(
        "query",
        "the model must be a string literal",
        format_args!("write {usage}"),
    ))
}
