//! Renders the section that shows cross-validations, with the metrics of each fold, their mean and their standard
//! deviation.

use super::Content;
use crate::chart::{Axis, Chart, IntervalRow, rounded};
use crate::html::{Html, HtmlTable, figures, words};
use crate::material::Material;
use crate::number::value;
use crate::page::{Figure, Page};
use arrow::array::Array;
use planetree_base::error::Result;
use planetree_data::table::{TableKind, TableReader, float_column, string_column};
use planetree_run::cv::Spread;

/// Maximum number of cross-validations shown.
const SHOWN: usize = 12;

/// The values of one metric on the validation data or on the test data of each fold.
struct FoldValues {
    split: String,
    metric: String,
    folds: Vec<(u64, f64)>,
}

/// Renders the section.
pub(super) fn make(material: &Material, page: &mut Page) -> Result<Content> {
    let tables = material.tables(TableKind::Folds);
    if tables.is_empty() {
        return Ok(Content::Nothing);
    }
    let mut panels = Vec::new();
    for (name, entry) in tables.iter().take(SHOWN) {
        let table = TableReader::open(&entry.location, TableKind::Folds)?;
        let convention = Material::convention_of(&table);
        panels.push((name.clone(), page.figure(figure(name, &values(&table)?, &convention))));
    }
    let mut html = page.tabs("Cross-validations", panels);
    if tables.len() > SHOWN {
        html.push(Html::paragraph("note", format_args!("The first {SHOWN} of {} are shown.", tables.len())));
    }
    Ok(Content::Shown(html))
}

fn values(table: &TableReader) -> Result<Vec<FoldValues>> {
    let mut all: Vec<FoldValues> = Vec::new();
    for batch in table.batches() {
        let batch = batch?;
        let (folds, found) = (float_column(table, &batch, "fold")?, float_column(table, &batch, "value")?);
        let (splits, metrics) =
            (string_column(table, &batch, "split")?, string_column(table, &batch, "metric")?);
        for row in (0..batch.num_rows()).filter(|row| found.is_valid(*row) && found.value(*row).is_finite()) {
            let (split, metric) = (splits.value(row), metrics.value(row));
            let fold = (folds.value(row) as u64, found.value(row));
            match all.iter_mut().find(|one| one.split == split && one.metric == metric) {
                Some(one) => one.folds.push(fold),
                None => all.push(FoldValues {
                    split: split.to_owned(),
                    metric: metric.to_owned(),
                    folds: vec![fold],
                }),
            }
        }
    }
    Ok(all)
}

fn figure(name: &str, all: &[FoldValues], convention: &str) -> Figure {
    let mut numbers: Vec<u64> = all.iter().flat_map(|one| one.folds.iter().map(|(fold, _)| *fold)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut columns = vec![words("split"), words("metric"), figures("mean"), figures("deviation")];
    columns.extend(numbers.iter().map(|fold| figures(format_args!("fold {fold}"))));
    let mut table = HtmlTable::new(columns);
    let mut rows = Vec::new();
    for one in all {
        let values: Vec<f64> = one.folds.iter().map(|(_, value)| *value).collect();
        let Spread { mean, deviation } = Spread::of(&values);
        let mut cells = vec![
            Html::name(&one.split),
            Html::name(&one.metric),
            Html::text(value(mean)),
            Html::text(value(deviation)),
        ];
        cells.extend(numbers.iter().map(|fold| {
            let found = one.folds.iter().find(|(number, _)| number == fold);
            Html::text(found.map_or_else(|| "–".to_owned(), |(_, found)| value(*found)))
        }));
        table.row(cells);
        let mut tells = vec![("mean".to_owned(), value(mean)), ("deviation".to_owned(), value(deviation))];
        tells.extend(one.folds.iter().take(12).map(|(fold, found)| (format!("fold {fold}"), value(*found))));
        rows.push(IntervalRow {
            name: format!("{} {}", one.split, one.metric),
            low: rounded(mean - deviation),
            middle: rounded(mean),
            high: rounded(mean + deviation),
            slot: if one.split == "test" { 1 } else { 8 },
            dots: values.iter().map(|value| rounded(*value)).collect(),
            tells,
        });
    }
    Figure {
        title: format!("Metrics over {} folds, {name}", numbers.len()),
        note: format!(
            "{convention} A pale dot a fold, their mean, and one standard deviation of a sample on either side. \
             Blue: test parts."
        ),
        chart: Chart::Intervals { x: Axis::of("value"), reference: None, rows },
        table,
    }
}
