//! Gives functions that name a model their model, once a query, before anything is planned.

use super::bin_of::{self, BinOf};
use super::planetree_score::{self, PlanetreeScore};
use crate::error::outward;
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

/// See the module.
pub struct ResolveModels(pub Arc<Tables>);

impl fmt::Debug for ResolveModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResolveModels")
    }
}

impl AnalyzerRule for ResolveModels {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> EngineResult<LogicalPlan> {
        let mut models = Models { tables: &self.0, read: HashMap::new() };
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

struct Models<'t> {
    tables: &'t Tables,
    read: HashMap<String, Arc<Model>>,
}

impl Models<'_> {
    fn resolve(&mut self, expression: Expr, schema: &DFSchema) -> EngineResult<Transformed<Expr>> {
        let Expr::ScalarFunction(ScalarFunction { func, args }) = &expression else {
            return Ok(Transformed::no(expression));
        };
        let resolved = match (func.name(), args.as_slice()) {
            (name, [model, features @ ..]) if name == planetree_score::FUNCTION.name => {
                if func.inner().downcast_ref::<PlanetreeScore>().is_some_and(PlanetreeScore::is_resolved) {
                    return Ok(Transformed::no(expression)); // a plan may come here twice
                }
                let model = text(model).ok_or_else(|| wrong_model(planetree_score::FUNCTION.usage))?;
                PlanetreeScore::resolve(&model, &*self.model(&model)?, features, schema)?
            }
            (name, [value, model, feature]) if name == bin_of::FUNCTION.name => {
                let (Some(model), Some(feature)) = (text(model), text(feature)) else {
                    return Err(wrong_model(bin_of::FUNCTION.usage));
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

/// Reads the model that a query names: a table, or a path.
pub fn read_model(tables: &Tables, name: &str) -> Result<Model> {
    Model::read(&tables.place(name)?)
}

/// A text that is written out.
pub fn text(expression: &Expr) -> Option<String> {
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

fn wrong_model(usage: &str) -> datafusion::error::DataFusionError {
    outward(Error::place("query", "the model is not named by a text", format_args!("write {usage}")))
}
