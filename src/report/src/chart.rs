//! Defines the data and labels of charts. `assets/charts.js` draws the charts in the browser.

use serde::Serialize;

/// A chart. A series is a set of values that are drawn in the same colour. Colours are numbered from 1 to
/// [`COLOURS`].
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Chart {
    /// A line chart with one line per series.
    Lines {
        /// The horizontal axis.
        x: Axis,
        /// The vertical axis.
        y: Axis,
        /// The lines.
        series: Vec<LineSeries>,
    },
    /// A histogram, which shows the number of values in each bin.
    Histogram {
        /// The horizontal axis.
        x: Axis,
        /// The vertical axis.
        y: Axis,
        /// The edges of the bins, in ascending order. There is one more edge than there are bins.
        edges: Vec<f64>,
        /// The name, the colour and the counts of each series.
        series: Vec<CountSeries>,
        /// A value that is marked by a line, to compare the others with it.
        reference: Option<f64>,
        /// The colours of bins below, around and above the reference value. They replace the colours of the series.
        sides: Option<[usize; 3]>,
    },
    /// A bar chart with one bar per name.
    Bars {
        /// The name of the quantity that the bars show.
        measure: String,
        /// The bars.
        rows: Vec<BarRow>,
    },
    /// A bar chart whose bars consist of parts that add up to a whole.
    Stack {
        /// The legend of the parts.
        parts: Vec<LegendItem>,
        /// The bars.
        rows: Vec<StackRow>,
    },
    /// A chart with one value and its interval per name.
    Intervals {
        /// The horizontal axis.
        x: Axis,
        /// A value that is marked by a line, to compare the others with it.
        reference: Option<f64>,
        /// The intervals.
        rows: Vec<IntervalRow>,
    },
    /// A box plot with one box per name.
    Boxes {
        /// The horizontal axis.
        x: Axis,
        /// A value that is marked by a line, to compare the others with it.
        reference: Option<f64>,
        /// The entries of the legend.
        parts: Vec<LegendItem>,
        /// The boxes.
        rows: Vec<BoxRow>,
    },
    /// A heat map in which the colour of a cell shows a fraction.
    Heat {
        /// The horizontal axis, along which the columns lie.
        x: Axis,
        /// The vertical axis, along which the rows lie.
        y: Axis,
        /// The names of the columns.
        columns: Vec<String>,
        /// The names of the rows.
        rows: Vec<String>,
        /// The fraction that each cell shows, from 0 to 1, row by row.
        shares: Vec<Vec<f64>>,
        /// The counts that the fractions are computed from.
        counts: Vec<Vec<u64>>,
    },
    /// A chart with one row of points per name. The colour of a point shows whether the value behind it is low or high.
    Swarm {
        /// The horizontal axis.
        x: Axis,
        /// A value that is marked by a line, to compare the others with it.
        reference: Option<f64>,
        /// The rows.
        rows: Vec<SwarmRow>,
    },
    /// A scatter plot, with the diagonal on which both values are equal.
    Scatter {
        /// The horizontal axis.
        x: Axis,
        /// The vertical axis.
        y: Axis,
        /// Whether points above the diagonal mean an improvement.
        higher: bool,
        /// The legend of the colours.
        parts: Vec<LegendItem>,
        /// The coordinates and the name of each point.
        points: Vec<(f64, f64, String)>,
    },
}

/// Number of distinct colours of series.
pub(crate) const COLOURS: usize = 8;

/// An axis.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Axis {
    /// The label of the axis.
    pub label: String,
    /// The name of a value on this axis, for tooltips.
    pub name: String,
    /// Whether the values are integers.
    pub whole: bool,
    /// Whether the scale is logarithmic. Only line charts with positive values support this.
    pub log: bool,
    /// The range of the axis. `None` means the range of the values.
    pub domain: Option<[f64; 2]>,
    /// Names of the values 1, 2 and so on. Empty if values have no names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl Axis {
    /// Creates an axis of real numbers.
    pub(crate) fn of(label: &str) -> Self {
        Axis { label: label.to_owned(), name: label.to_owned(), ..Axis::default() }
    }

    /// Creates an axis of integers.
    pub(crate) fn whole(label: &str) -> Self {
        Axis { whole: true, ..Axis::of(label) }
    }
}

/// One line of a line chart.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LineSeries {
    /// The name of the series.
    pub name: String,
    /// The number of the colour, from 1 to [`COLOURS`].
    pub slot: usize,
    /// Whether the line is dashed.
    pub dashed: bool,
    /// The points in ascending order of x.
    pub points: Vec<(f64, f64)>,
    /// A point of the line that is highlighted, if any.
    pub mark: Option<Mark>,
}

/// A highlighted point with a label.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Mark {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
    /// The label of the point.
    pub text: String,
}

/// One series of a histogram.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CountSeries {
    /// The name of the series.
    pub name: String,
    /// The number of the colour, from 1 to [`COLOURS`].
    pub slot: usize,
    /// One count per bin.
    pub counts: Vec<u64>,
}

/// One bar of a bar chart.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BarRow {
    /// The name of the bar.
    pub name: String,
    /// The value that determines the length of the bar.
    pub value: f64,
    /// The value as text, as it is shown next to the bar.
    pub text: String,
    /// The number of the colour, from 1 to [`COLOURS`].
    pub slot: usize,
}

/// An entry of a legend.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LegendItem {
    /// The name of the entry.
    pub name: String,
    /// The number of the colour, from 1 to [`COLOURS`].
    pub slot: usize,
}

/// Creates legend entries from names and colour numbers.
pub(crate) fn legend(parts: &[(&str, usize)]) -> Vec<LegendItem> {
    parts.iter().map(|(name, slot)| LegendItem { name: (*name).to_owned(), slot: *slot }).collect()
}

/// One bar of a stacked bar chart.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct StackRow {
    /// The name of the bar.
    pub name: String,
    /// One count for each part of the bar.
    pub counts: Vec<u64>,
}

/// One value of an interval chart.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct IntervalRow {
    /// The name of the value.
    pub name: String,
    /// The interval's lower end.
    pub low: f64,
    /// The value.
    pub middle: f64,
    /// The interval's upper end.
    pub high: f64,
    /// The number of the colour, from 1 to [`COLOURS`].
    pub slot: usize,
    /// The individual values behind the interval, which are drawn as dots.
    pub dots: Vec<f64>,
    /// The lines of the tooltip, as pairs of name and value.
    pub tells: Vec<(String, String)>,
}

/// One row of points.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SwarmRow {
    /// The name of the row.
    pub name: String,
    /// Horizontal position of each point, and its colour from 0 (low) to 1 (high). `None` if the value is missing.
    pub points: Vec<(f64, Option<f64>)>,
    /// The lines of the tooltip, as pairs of name and value.
    pub tells: Vec<(String, String)>,
}

/// One box of a box plot.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BoxRow {
    /// The name of the box.
    pub name: String,
    /// The 5th, 25th, 50th, 75th and 95th percentiles.
    pub quantiles: [f64; 5],
    /// The mean of the values.
    pub mean: f64,
    /// Number of values.
    pub count: u64,
}

/// Rounds a number to the precision that a chart needs, which keeps the page small.
pub(crate) fn rounded(value: f64) -> f64 {
    // Parsing cannot fail, because the text is a formatted number.
    format!("{value:.5e}").parse().unwrap_or(value)
}
