//! Renders the section that shows quality against the cost of scoring a document, and the costs of models by tree and by
//! feature.

use super::Content;
use crate::chart::{Axis, BarRow, COLOURS, Chart, LineSeries, Mark, rounded};
use crate::html::{Html, HtmlTable, figures, shortened, words};
use crate::material::{MODELS, Material};
use crate::number::{count, or_dash, short, shown_count};
use crate::page::{Figure, Page};
use arrow::array::Array;
use planetree_base::error::Result;
use planetree_data::table::{TableKind, TableReader, float_column, string_column};
use planetree_metric::Metric;
use planetree_model::cost::ModelCosts;
use planetree_model::model::Model;

/// Maximum number of tables whose curves are shown.
const SHOWN: usize = 8;
/// Maximum number of features in a chart.
const DRAWN: usize = 20;
/// Columns of a table of costs that are not metrics.
const COLUMNS: [&str; 6] = ["model", "exit_percent", "trees", "documents", "cost", "tree_cost"];

/// A point of a curve.
struct Point {
    trees: u64,
    documents: u64,
    cost: f64,
    tree_cost: f64,
    /// The values of the metrics. `None` if a metric is undefined.
    values: Vec<Option<f64>>,
}

/// The curve of a model with one percentage of exits.
struct CostCurve {
    model: String,
    percent: f64,
    points: Vec<Point>,
}

/// The curves of a table.
struct CostCurves {
    /// What the exits of the table have in common, as a sentence.
    exits: String,
    convention: String,
    metrics: Vec<String>,
    curves: Vec<CostCurve>,
}

impl CostCurves {
    fn read(table: &TableReader) -> Result<Self> {
        let names = table.schema().fields().iter().map(|field| field.name().clone());
        let metrics: Vec<String> = names.filter(|name| !COLUMNS.contains(&name.as_str())).collect();
        let mut curves: Vec<CostCurve> = Vec::new();
        for batch in table.batches() {
            let batch = batch?;
            let models = string_column(table, &batch, "model")?;
            let number = |name: &str| float_column(table, &batch, name);
            let (percents, trees, documents) =
                (number("exit_percent")?, number("trees")?, number("documents")?);
            let (costs, tree_costs) = (number("cost")?, number("tree_cost")?);
            let values = metrics.iter().map(|name| number(name)).collect::<Result<Vec<_>>>()?;
            for row in 0..batch.num_rows() {
                let (model, percent) = (models.value(row), percents.value(row));
                let point = Point {
                    trees: trees.value(row) as u64,
                    documents: documents.value(row) as u64,
                    cost: costs.value(row),
                    tree_cost: tree_costs.value(row),
                    values: values
                        .iter()
                        .map(|column| column.is_valid(row).then(|| column.value(row)))
                        .collect(),
                };
                match curves.last_mut() {
                    Some(curve) if curve.model == model && curve.percent == percent => {
                        curve.points.push(point);
                    }
                    _ => curves.push(CostCurve { model: model.to_owned(), percent, points: vec![point] }),
                }
            }
        }
        let of = |key: &str| table.metadata(key).unwrap_or_default().to_owned();
        let scope = match of("planetree.exit_scope").as_str() {
            "query" => "of each query",
            _ => "of all queries together",
        };
        let share = match of("planetree.exit_of").as_str() {
            "all" => "all documents",
            _ => "the remaining documents",
        };
        let every = of("planetree.exit_every");
        let exits = match curves.iter().any(|curve| curve.percent > 0.0) {
            true => format!(
                "After every {every} trees, the given percentage of {share} {scope} exit: those with the lowest scores."
            ),
            false => format!("One point per {every} trees."),
        };
        Ok(CostCurves { exits, convention: Material::convention_of(table), metrics, curves })
    }

    /// Returns the name of a curve, which says only in what it differs from the others.
    fn name_of(&self, curve: &CostCurve) -> String {
        let first = &self.curves[0];
        let exits = match curve.percent {
            0.0 => "no exits".to_owned(),
            percent => format!("{percent} % exit"),
        };
        let differ = |differs: &dyn Fn(&CostCurve) -> bool| self.curves.iter().any(differs);
        match (differ(&|other| other.model != first.model), differ(&|other| other.percent != first.percent)) {
            (true, true) => format!("{}, {exits}", curve.model),
            (false, true) => exits,
            _ => curve.model.clone(),
        }
    }
}

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let mut html = Html::new();
    let tables = material.tables(TableKind::Costs);
    let mut panels = Vec::new();
    for (name, entry) in tables.iter().take(SHOWN) {
        let curves = CostCurves::read(&TableReader::open(&entry.location, TableKind::Costs)?)?;
        let drawn: Html = (0..curves.metrics.len())
            .filter_map(|metric| Some(page.figure(quality_figure(&curves, metric)?)))
            .collect();
        panels.push((name.clone(), Html::classed("div", "grid", drawn)));
    }
    if !panels.is_empty() {
        html.push(page.tabs("Quality against cost", panels));
    }
    if tables.len() > SHOWN {
        html.push(Html::paragraph("note", format_args!("The first {SHOWN} of {} are shown.", tables.len())));
    }
    let costs = |model: &Model| ModelCosts::recorded(model).filter(|costs| !costs.used().is_empty());
    let priced: Vec<_> =
        material.models.iter().filter_map(|named| Some((named, costs(&named.model)?))).collect();
    let panels: Vec<(String, Html)> = priced
        .iter()
        .take(MODELS)
        .map(|(named, costs)| {
            let trees = page.figure(tree_figure(&named.name, costs));
            let features = page.figure(feature_figure(&named.name, &named.model, costs));
            (named.name.clone(), Html::classed("div", "grid", trees.and(features)))
        })
        .collect();
    if !panels.is_empty() {
        html.push(Html::paragraph("lead", "Models that were trained with costs, by tree and by feature."));
        html.push(page.tabs("Costs of models", panels));
    }
    if priced.len() > MODELS {
        let all = priced.len();
        html.push(Html::paragraph("note", format_args!("The first {MODELS} of {all} models are shown.")));
    }
    Ok(if html.is_empty() { Content::Nothing } else { Content::Shown(html) })
}

/// Draws a metric against the cost of a document. Returns `None` if the metric is undefined everywhere.
fn quality_figure(curves: &CostCurves, metric: usize) -> Option<Figure> {
    let name = &curves.metrics[metric];
    let higher = name.parse::<Metric>().map_or(true, |metric| metric.higher_is_better());
    let best_of = |curve: &CostCurve| -> Option<f64> {
        let values = curve.points.iter().filter_map(|point| point.values[metric]);
        values.reduce(|best, value| if (value > best) == higher { value } else { best })
    };
    let mut table = HtmlTable::new([
        words("model"),
        figures("exit %"),
        figures("trees"),
        figures("documents"),
        figures("cost"),
        figures("tree cost"),
        figures(name),
    ]);
    for curve in &curves.curves {
        let best = best_of(curve);
        for point in &curve.points {
            let found = point.values[metric];
            let cells = [
                Html::name(&curve.model),
                Html::text(curve.percent),
                count(point.trees),
                count(point.documents),
                Html::text(short(point.cost)),
                Html::text(short(point.tree_cost)),
                or_dash(found),
            ];
            if found.is_some() && found == best { table.best_row(cells) } else { table.row(cells) }
        }
    }
    let drawn: Vec<(&CostCurve, Vec<(f64, f64)>)> = curves
        .curves
        .iter()
        .map(|curve| {
            let point = |point: &Point| Some((rounded(point.cost), rounded(point.values[metric]?)));
            (curve, curve.points.iter().filter_map(point).collect::<Vec<_>>())
        })
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let (all, shown) = (drawn.len(), &drawn[..drawn.len().min(COLOURS)]);
    let costs = || shown.iter().flat_map(|(_, points)| points).map(|point| point.0);
    let (least, most) = (costs().reduce(f64::min)?, costs().reduce(f64::max)?);
    let series: Vec<LineSeries> = (1..)
        .zip(shown)
        .map(|(slot, (curve, points))| LineSeries {
            name: shortened(&curves.name_of(curve)),
            slot,
            dashed: curve.percent > 0.0,
            points: points.clone(),
            mark: None,
        })
        .collect();
    let mut note = format!("{} {}", curves.exits, curves.convention);
    if all > COLOURS {
        note.push_str(&format!(" The first {COLOURS} of {all} curves are drawn; the table has all."));
    }
    Some(Figure {
        title: format!("{name} against cost"),
        note,
        chart: Chart::Lines {
            x: Axis { log: least > 0.0 && most / least >= 16.0, ..Axis::of("mean cost of a document") },
            y: Axis::of(name),
            series,
        },
        table,
    })
}

/// Draws the cost of a document by the number of trees.
fn tree_figure(name: &str, costs: &ModelCosts) -> Figure {
    let all = &costs.trees.trees;
    let mut table =
        HtmlTable::new([figures("tree"), figures("its features"), figures("added"), figures("cost so far")]);
    let adding = all.iter().enumerate().filter(|(_, tree)| tree.added > 0.0);
    for (number, tree) in adding {
        table.row([
            count(number as u64),
            Html::text(short(tree.own)),
            Html::text(short(tree.added)),
            Html::text(short(tree.cumulative)),
        ]);
    }
    let step = all.len().div_ceil(400).max(1); // more points than pixels would not be seen
    let is_drawn = |(number, _): &(usize, _)| number % step == 0 || number + 1 == all.len();
    let points: Vec<(f64, f64)> = all
        .iter()
        .enumerate()
        .filter(is_drawn)
        .map(|(number, tree)| ((number + 1) as f64, rounded(tree.cumulative)))
        .collect();
    let mark = points.last().map(|(x, y)| Mark { x: *x, y: *y, text: short(*y) });
    Figure {
        title: format!("Cost by tree of {name}"),
        note: format!(
            "Cost of a document after each tree; mean tree cost {:.1}. The table has the trees that add costs.",
            costs.mean()
        ),
        chart: Chart::Lines {
            x: Axis::whole("trees"),
            y: Axis::of("cost of a document"),
            series: vec![LineSeries { name: name.to_owned(), slot: 1, dashed: false, points, mark }],
        },
        table,
    }
}

/// Draws the costs of the features of a model, in the order in which trees use them.
fn feature_figure(name: &str, model: &Model, costs: &ModelCosts) -> Figure {
    let used = costs.used();
    let label = |feature: u32| shortened(&model.features[feature as usize].name);
    let mut table = HtmlTable::new([words("feature"), figures("cost"), figures("first tree")]);
    for (tree, feature) in &used {
        let cost = short(costs.features.of(*feature));
        table.row([Html::text(label(*feature)), Html::text(cost), count(*tree as u64)]);
    }
    // The costliest features first; of equal costs, those that are used earlier.
    let mut sorted: Vec<u32> = used.iter().map(|(_, feature)| *feature).collect();
    sorted.sort_by(|one, other| costs.features.of(*other).total_cmp(&costs.features.of(*one)));
    let rows: Vec<BarRow> = sorted
        .iter()
        .take(DRAWN)
        .map(|feature| {
            let cost = costs.features.of(*feature);
            BarRow { name: label(*feature), value: rounded(cost), text: short(cost), slot: 1 }
        })
        .collect();
    let mut note = format!(
        "{} of {} features are used; the cost of a group is paid once for all its features.",
        shown_count(used.len() as u64),
        shown_count(model.features.len() as u64)
    );
    if used.len() > DRAWN {
        note.push_str(&format!(
            " The {DRAWN} costliest; the table has all, in the order of their first use."
        ));
    }
    Figure {
        title: format!("Cost by feature of {name}"),
        note,
        chart: Chart::Bars { measure: "cost".to_owned(), rows },
        table,
    }
}
