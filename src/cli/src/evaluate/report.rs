//! Formats the result of an evaluation: tables, or one JSON object.

use planetree_base::size::shown_count;
use planetree_data::LabelMap;
use planetree_judge::evaluate::{
    CurvePoint, EvaluationSummary, MetricSummary, PERCENTILES, Results, SegmentSummary,
};
use planetree_metric::{Convention, Metric};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// A ranking and its metrics.
pub(super) struct EvaluatedSystem {
    /// Name of the system.
    pub name: String,
    /// File that contains the ranking, or the baseline and its dataset.
    pub ranking: String,
    /// Metrics of each query.
    pub results: Results,
    /// Means over all queries, and the worst queries.
    pub summary: EvaluationSummary,
    /// Means by segment, with `--by`.
    pub segments: Option<Vec<SegmentSummary>>,
}

/// What `evaluate` prints, as text or JSON, of all its systems.
pub(super) struct EvaluationReport<'a> {
    /// The systems, in the order of the arguments.
    pub systems: &'a [EvaluatedSystem],
    /// The metrics, in the order of the arguments.
    pub metrics: &'a [Metric],
    /// The metric convention, by which all metrics of all systems are computed.
    pub convention: &'a Convention,
    /// The map of labels, if any.
    pub label_map: Option<&'a LabelMap>,
    /// The column that defines the segments, with `--by`.
    pub by: Option<&'a str>,
    /// The systems as points of curves, with `--curve`.
    pub curve: Option<SystemCurve<'a>>,
}

/// Systems as points of curves.
pub(super) struct SystemCurve<'a> {
    /// Name of the quantity that varies between the systems.
    pub varied: &'a str,
    /// One point per system.
    pub points: &'a [CurvePoint],
}

/// Maximum number of segments to print.
const MAX_SEGMENTS: usize = 40;

impl EvaluationReport<'_> {
    /// Formats the evaluation as tables.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        put(&mut text, format_args!("{:<22}{}", "convention", self.convention));
        if let Some(map) = self.label_map {
            put(&mut text, format_args!("{:<22}{map}", "label map"));
        }
        match (&self.curve, self.systems) {
            (Some(curve), systems) => self.put_curves(&mut text, curve, systems),
            (None, [system]) => self.put_system(&mut text, system),
            (None, systems) => self.put_side_by_side(&mut text, systems),
        }
        text
    }

    fn put_system(&self, text: &mut String, system: &EvaluatedSystem) {
        put(text, format_args!("{:<22}{}", "ranking", system.ranking));
        put_counts(text, &system.summary);
        let percents = PERCENTILES.map(|percent| format!("{percent} %"));
        let heads: String = percents.iter().map(|percent| format!(" {percent:>8}")).collect();
        put(text, format_args!("\n{:<12} {:>10} {:>14}{heads}", "metric", "mean", "non-empty mean"));
        for metric in &system.summary.metrics {
            let spread: String = match metric.percentiles {
                Some(values) => values.map(|value| format!(" {value:>8.4}")).concat(),
                None => PERCENTILES.map(|_| format!(" {:>8}", "-")).concat(),
            };
            let (mean, rest) = (shown(metric.mean), shown(metric.mean_without_empty));
            put(text, format_args!("{:<12} {mean:>10} {rest:>14}{spread}", metric.metric.to_string()));
        }
        for metric in system.summary.metrics.iter().filter(|metric| metric.mean.is_none()) {
            put(text, format_args!("\n{} is undefined: {}", metric.metric, metric.metric.why_undefined()));
        }
        if let Some(segments) = &system.segments {
            self.put_segments(text, segments);
        }
        self.put_worst(text, system);
    }

    fn put_segments(&self, text: &mut String, segments: &[SegmentSummary]) {
        let heads: String =
            self.metrics.iter().map(|metric| format!(" {:>10}", metric.to_string())).collect();
        let by = self.by.unwrap_or("segment");
        put(text, format_args!("\n{by:<22} {:>9} {:>9}{heads}", "queries", "empty"));
        for segment in segments.iter().take(MAX_SEGMENTS) {
            let means: String = segment.means.iter().map(|mean| format!(" {:>10}", shown(*mean))).collect();
            let (queries, empty) = (shown_count(segment.queries as u64), shown_count(segment.empty as u64));
            let name = segment.segment.as_deref().unwrap_or("(none)");
            put(text, format_args!("{name:<22} {queries:>9} {empty:>9}{means}"));
        }
        if segments.len() > MAX_SEGMENTS {
            let more = shown_count((segments.len() - MAX_SEGMENTS) as u64);
            put(text, format_args!("... and {more} more; --json prints all"));
        }
    }

    fn put_worst(&self, text: &mut String, system: &EvaluatedSystem) {
        let (Some(first), false) = (self.metrics.first(), system.summary.worst.is_empty()) else { return };
        let heads: String =
            self.metrics.iter().map(|metric| format!(" {:>10}", metric.to_string())).collect();
        put(text, format_args!("\nworst by {first}, among queries with relevant documents"));
        put(text, format_args!("{:<22} {:>9} {:>9}{heads}", "query", "documents", "relevant"));
        for query in &system.summary.worst {
            let values: String = (0..self.metrics.len())
                .map(|metric| format!(" {:>10}", shown(system.results.value(*query, metric))))
                .collect();
            let (name, results) = (system.results.name(*query), &system.results);
            let (documents, relevant) = (results.documents[*query], results.relevant[*query]);
            put(text, format_args!("{name:<22} {documents:>9} {relevant:>9}{values}"));
        }
    }

    fn put_side_by_side(&self, text: &mut String, systems: &[EvaluatedSystem]) {
        if let Some(first) = systems.first() {
            put_counts(text, &first.summary);
        }
        let width = systems.iter().map(|system| system.name.chars().count()).max().unwrap_or(0).max(10);
        let line = |name: &str, cells: &mut dyn Iterator<Item = String>| {
            let cells: String = cells.map(|cell| format!(" {cell:>width$}")).collect();
            format!("{name:<12}{cells}")
        };
        let names = &mut systems.iter().map(|system| system.name.clone());
        put(text, format_args!("\n{}", line("metric", names)));
        let table = |text: &mut String, mean: fn(&MetricSummary) -> Option<f64>| {
            for (index, metric) in self.metrics.iter().enumerate() {
                let cells = &mut systems.iter().map(|system| shown(mean(&system.summary.metrics[index])));
                put(text, format_args!("{}", line(&metric.to_string(), cells)));
            }
        };
        table(text, |metric| metric.mean);
        if systems.iter().any(|system| system.summary.empty > 0) {
            put(text, format_args!("\nmeans over queries with relevant documents"));
            table(text, |metric| metric.mean_without_empty);
        }
        for system in systems {
            if let Some(segments) = &system.segments {
                put(text, format_args!("\n{}", system.name));
                self.put_segments(text, segments);
            }
        }
    }

    /// Appends one line per system, in the order of the arguments.
    fn put_curves(&self, text: &mut String, curve: &SystemCurve<'_>, systems: &[EvaluatedSystem]) {
        if let Some(first) = systems.first() {
            put_counts(text, &first.summary);
        }
        let heads: String =
            self.metrics.iter().map(|metric| format!(" {:>10}", metric.to_string())).collect();
        let wide = curve.varied.chars().count().max(10);
        put(text, format_args!("\n{:<16} {:>wide$}{heads}", "curve", curve.varied));
        for (point, system) in curve.points.iter().zip(systems) {
            let means = system.summary.metrics.iter().map(|metric| format!(" {:>10}", shown(metric.mean)));
            let series = if point.series.is_empty() { "-" } else { &point.series };
            put(text, format_args!("{series:<16} {:>wide$}{}", point.value, means.collect::<String>()));
        }
    }

    /// Converts the evaluation to one JSON object.
    pub(super) fn json(&self) -> Value {
        let names: Vec<String> = self.metrics.iter().map(Metric::to_string).collect();
        let means = |means: &mut dyn Iterator<Item = Option<f64>>| -> Map<String, Value> {
            names.iter().cloned().zip(means.map(|mean| json!(mean))).collect()
        };
        let metric = |metric: &MetricSummary| {
            let spread = metric.percentiles.map(|values| -> Map<String, Value> {
                PERCENTILES
                    .iter()
                    .map(|percent| percent.to_string())
                    .zip(values.map(|value| json!(value)))
                    .collect()
            });
            json!({
                "metric": metric.metric.to_string(),
                "mean": metric.mean,
                "queries": metric.counted,
                "mean_without_empty": metric.mean_without_empty,
                "percentiles": spread,
            })
        };
        let systems: Vec<Value> = self
            .systems
            .iter()
            .map(|system| {
                let EvaluationSummary { rows, queries, empty, unjudged, unranked, metrics, worst } = &system.summary;
                let query = |query: &usize| {
                    json!({
                        "query_id": system.results.name(*query),
                        "documents": system.results.documents[*query],
                        "relevant": system.results.relevant[*query],
                        "values": means(&mut (0..names.len()).map(|metric| system.results.value(*query, metric))),
                    })
                };
                let segment = |segment: &SegmentSummary| {
                    json!({
                        "segment": segment.segment,
                        "rows": segment.rows,
                        "queries": segment.queries,
                        "empty_queries": segment.empty,
                        "means": means(&mut segment.means.iter().copied()),
                    })
                };
                json!({
                    "name": system.name,
                    "ranking": system.ranking,
                    "rows": rows,
                    "queries": queries,
                    "empty_queries": empty,
                    "queries_without_judgments": unjudged,
                    "queries_without_documents": unranked,
                    "means": means(&mut metrics.iter().map(|metric| metric.mean)),
                    "metrics": metrics.iter().map(metric).collect::<Vec<_>>(),
                    "worst": worst.iter().map(query).collect::<Vec<_>>(),
                    "segments": system.segments.as_ref().map(|all| all.iter().map(segment).collect::<Vec<_>>()),
                })
            })
            .collect();
        json!({
            "convention": self.convention.to_string(),
            "label_map": self.label_map.map(ToString::to_string),
            "metrics": names,
            "by": self.by,
            "curve": self.curve.as_ref().map(|curve| curve.varied),
            "systems": systems,
        })
    }
}

fn put_counts(text: &mut String, summary: &EvaluationSummary) {
    let count = |count: usize| shown_count(count as u64);
    put(text, format_args!("{:<22}{}", "documents", shown_count(summary.rows)));
    let empty = match summary.empty {
        0 => String::new(),
        empty => format!(", {} of them empty (no relevant document)", count(empty)),
    };
    put(text, format_args!("{:<22}{}{empty}", "queries", count(summary.queries)));
    for (name, queries) in [("without judgments", summary.unjudged), ("without documents", summary.unranked)]
    {
        if queries > 0 {
            put(text, format_args!("{name:<22}{} more", shown_count(queries)));
        }
    }
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.6}"))
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "{line}"); // writing to a String cannot fail
}
