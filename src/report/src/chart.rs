//! Chart data and labels, which `assets/charts.js` draws.

use serde::Serialize;

/// A chart. Series have a colour by number, from 1 to [`COLOURS`].
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Chart {
    /// Values over a number, one line per series.
    Lines {
        /// The horizontal axis.
        x: Axis,
        /// The vertical axis.
        y: Axis,
        /// The lines.
        series: Vec<LineSeries>,
    },
    /// Number of values in each bin.
    Histogram {
        /// The horizontal axis.
        x: Axis,
        /// The vertical axis.
        y: Axis,
        /// Bin edges.
        edges: Vec<f64>,
        /// The counts.
        series: Vec<CountSeries>,
        /// A value to compare with.
        reference: Option<f64>,
        /// The colours of bins below, around and above it, instead of the series'.
        sides: Option<[usize; 3]>,
    },
    /// One bar per name.
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
    /// One value with an interval per name.
    Intervals {
        /// The axis.
        x: Axis,
        /// A value to compare with.
        reference: Option<f64>,
        /// The intervals.
        rows: Vec<IntervalRow>,
    },
    /// Box plot, one box per name.
    Boxes {
        /// The axis.
        x: Axis,
        /// A value to compare with.
        reference: Option<f64>,
        /// Legend of the marks.
        parts: Vec<LegendItem>,
        /// The boxes.
        rows: Vec<BoxRow>,
    },
    /// Heat map of shares.
    Heat {
        /// The axis of columns.
        x: Axis,
        /// The axis of rows.
        y: Axis,
        /// The columns' names.
        columns: Vec<String>,
        /// The rows' names.
        rows: Vec<String>,
        /// The shares, row by row.
        shares: Vec<Vec<f64>>,
        /// The counts behind the shares.
        counts: Vec<Vec<u64>>,
    },
    /// Scatter plot with the diagonal where both values are equal.
    Scatter {
        /// The horizontal axis.
        x: Axis,
        /// The vertical axis.
        y: Axis,
        /// Whether points above the diagonal are better.
        higher: bool,
        /// Legend of the colours.
        parts: Vec<LegendItem>,
        /// The points and their names.
        points: Vec<(f64, f64, String)>,
    },
}

/// Number of colours.
pub const COLOURS: usize = 8;

/// An axis.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Axis {
    /// Axis label.
    pub label: String,
    /// Name of a single value, for tooltips.
    pub name: String,
    /// Whether its values are integers.
    pub whole: bool,
    /// Whether the scale is logarithmic; only for line charts with positive values.
    pub log: bool,
    /// Range of the axis; `None` for the range of the values.
    pub domain: Option<[f64; 2]>,
}

impl Axis {
    /// An axis of numbers.
    pub fn of(label: &str) -> Self {
        Axis { label: label.to_owned(), name: label.to_owned(), ..Axis::default() }
    }

    /// An axis of integers.
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
    /// A highlighted point.
    pub mark: Option<Mark>,
}

/// A point with a label.
#[derive(Debug, Clone, Serialize)]
pub struct Mark {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
    /// The label.
    pub text: String,
}

/// The counts of a histogram.
#[derive(Debug, Clone, Serialize)]
pub struct CountSeries {
    /// Of what.
    pub name: String,
    /// The colour.
    pub slot: usize,
    /// One count per bin.
    pub counts: Vec<u64>,
}

/// A bar.
#[derive(Debug, Clone, Serialize)]
pub struct BarRow {
    /// Of what.
    pub name: String,
    /// Length.
    pub value: f64,
    /// The value as text.
    pub text: String,
    /// The colour.
    pub slot: usize,
}

/// An entry of a legend.
#[derive(Debug, Clone, Serialize)]
pub struct LegendItem {
    /// What it is.
    pub name: String,
    /// Its colour.
    pub slot: usize,
}

/// Makes legend entries from names and colours.
pub fn legend(parts: &[(&str, usize)]) -> Vec<LegendItem> {
    parts.iter().map(|(name, slot)| LegendItem { name: (*name).to_owned(), slot: *slot }).collect()
}

/// A stacked bar.
#[derive(Debug, Clone, Serialize)]
pub struct StackRow {
    /// Of what.
    pub name: String,
    /// One count per part.
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
    /// The individual values.
    pub dots: Vec<f64>,
    /// Tooltip rows: names and values.
    pub tells: Vec<(String, String)>,
}

/// A box of a box plot.
#[derive(Debug, Clone, Serialize)]
pub struct BoxRow {
    /// Of what.
    pub name: String,
    /// The 5th, 25th, 50th, 75th and 95th percentiles.
    pub quantiles: [f64; 5],
    /// Their mean.
    pub mean: f64,
    /// Number of values.
    pub count: u64,
}

/// Rounds a number to the precision of a chart, which keeps the data small.
pub fn rounded(value: f64) -> f64 {
    // The formatted text always parses.
    format!("{value:.5e}").parse().unwrap_or(value)
}
