//! What a chart shows, as `assets/charts.js` draws it: data and words, no pictures.

use serde::Serialize;

/// A chart. Series have a colour by number, from 1 to [`COLOURS`].
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Chart {
    /// Values over a number, a line a series.
    Lines {
        /// The horizontal axis.
        x: Axis,
        /// The vertical axis.
        y: Axis,
        /// The lines.
        series: Vec<LineSeries>,
    },
    /// How many values are within each bin.
    Histogram {
        /// The horizontal axis.
        x: Axis,
        /// The vertical axis.
        y: Axis,
        /// Where bins begin and end.
        edges: Vec<f64>,
        /// The counts.
        series: Vec<CountSeries>,
        /// A value to compare with.
        reference: Option<f64>,
        /// The colours of bins below, around and above it, instead of the series'.
        sides: Option<[usize; 3]>,
    },
    /// A bar a name.
    Bars {
        /// What the bars measure.
        measure: String,
        /// The bars.
        rows: Vec<BarRow>,
    },
    /// Bars of parts that add up to a whole.
    Stack {
        /// The parts.
        parts: Vec<LegendItem>,
        /// The bars.
        rows: Vec<StackRow>,
    },
    /// A value with an interval a name.
    Intervals {
        /// The axis.
        x: Axis,
        /// A value to compare with.
        reference: Option<f64>,
        /// The intervals.
        rows: Vec<IntervalRow>,
    },
    /// How values are spread, a box a name.
    Boxes {
        /// The axis.
        x: Axis,
        /// A value to compare with.
        reference: Option<f64>,
        /// What the marks mean.
        parts: Vec<LegendItem>,
        /// The boxes.
        rows: Vec<BoxRow>,
    },
    /// Shares in a grid.
    Heat {
        /// What columns are.
        x: Axis,
        /// What rows are.
        y: Axis,
        /// The columns' names.
        columns: Vec<String>,
        /// The rows' names.
        rows: Vec<String>,
        /// The shares, row by row.
        shares: Vec<Vec<f64>>,
        /// What they are shares of.
        counts: Vec<Vec<u64>>,
    },
    /// Points of two values each, beside the line where both are the same.
    Scatter {
        /// The horizontal axis.
        x: Axis,
        /// The vertical axis.
        y: Axis,
        /// Whether above the line is better.
        higher: bool,
        /// What the colours mean.
        parts: Vec<LegendItem>,
        /// The points and their names.
        points: Vec<(f64, f64, String)>,
    },
}

/// How many colours there are.
pub const COLOURS: usize = 8;

/// An axis.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Axis {
    /// What stands beside it.
    pub label: String,
    /// What one of its values is called.
    pub name: String,
    /// Whether its values are whole numbers.
    pub whole: bool,
    /// Whether equal distances are equal ratios; for the values of lines that are all above 0.
    pub log: bool,
    /// From where to where; `None` for as far as the values go.
    pub domain: Option<[f64; 2]>,
}

impl Axis {
    /// An axis of numbers.
    pub fn of(label: &str) -> Self {
        Axis { label: label.to_owned(), name: label.to_owned(), ..Axis::default() }
    }

    /// An axis of whole numbers.
    pub fn whole(label: &str) -> Self {
        Axis { whole: true, ..Axis::of(label) }
    }
}

/// A line of a chart.
#[derive(Debug, Clone, Serialize)]
pub struct LineSeries {
    /// What it is.
    pub name: String,
    /// Its colour.
    pub slot: usize,
    /// Whether it is dashed.
    pub dashed: bool,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// A point to look at.
    pub mark: Option<Mark>,
}

/// A point with a word beside it.
#[derive(Debug, Clone, Serialize)]
pub struct Mark {
    /// Where it is.
    pub x: f64,
    /// Where it is.
    pub y: f64,
    /// The word.
    pub text: String,
}

/// The counts of a histogram.
#[derive(Debug, Clone, Serialize)]
pub struct CountSeries {
    /// Of what.
    pub name: String,
    /// The colour.
    pub slot: usize,
    /// A count a bin.
    pub counts: Vec<u64>,
}

/// A bar.
#[derive(Debug, Clone, Serialize)]
pub struct BarRow {
    /// Of what.
    pub name: String,
    /// How long.
    pub value: f64,
    /// The value as text.
    pub text: String,
    /// The colour.
    pub slot: usize,
}

/// A part of stacked bars.
#[derive(Debug, Clone, Serialize)]
pub struct LegendItem {
    /// What it is.
    pub name: String,
    /// Its colour.
    pub slot: usize,
}

/// Some parts by name, each with a colour.
pub fn legend(parts: &[(&str, usize)]) -> Vec<LegendItem> {
    parts.iter().map(|(name, slot)| LegendItem { name: (*name).to_owned(), slot: *slot }).collect()
}

/// A stacked bar.
#[derive(Debug, Clone, Serialize)]
pub struct StackRow {
    /// Of what.
    pub name: String,
    /// A count a part.
    pub counts: Vec<u64>,
}

/// A value with an interval.
#[derive(Debug, Clone, Serialize)]
pub struct IntervalRow {
    /// Of what.
    pub name: String,
    /// The interval's lower end.
    pub low: f64,
    /// The value.
    pub middle: f64,
    /// The interval's upper end.
    pub high: f64,
    /// The colour.
    pub slot: usize,
    /// Single values that are behind it.
    pub dots: Vec<f64>,
    /// What to tell about it: names and values.
    pub tells: Vec<(String, String)>,
}

/// How values are spread.
#[derive(Debug, Clone, Serialize)]
pub struct BoxRow {
    /// Of what.
    pub name: String,
    /// The values that 5, 25, 50, 75 and 95 per cent are below.
    pub quantiles: [f64; 5],
    /// Their mean.
    pub mean: f64,
    /// How many there are.
    pub count: u64,
}

/// A number with as many digits as a picture needs, so that the data stay small.
pub fn rounded(value: f64) -> f64 {
    // What was a number stays one.
    format!("{value:.5e}").parse().unwrap_or(value)
}
