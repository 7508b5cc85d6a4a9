//! Shows the progress of long steps: a bar with rate and remaining time on a terminal, otherwise a line every few
//! seconds. Bars have no colours and are removed at the end.

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use planetree_base::progress::{Meter, SharedMeter, unwatched};
use planetree_base::size::{shown_count, shown_size};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Returns whether to draw bars. This requires that standard error is a terminal that can rewrite a line, that
/// `--quiet` is not given, and that the command does not run inside another program.
pub(crate) fn is_live(quiet: bool) -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !quiet && !is_dumb && std::io::stderr().is_terminal() && super::console::current().is_none()
}

/// Maximum length of a step's name, in characters.
const MAX_NAME: usize = 24;

/// Template of a spinner, for a step of unknown size without a counter.
const SPINNER: &str = "{prefix} {spinner} {wide_msg}";

/// Unit of a bar's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BarUnit {
    /// Bytes, shown with binary prefixes.
    Bytes,
    /// Rows, trees or other items. The field is their name in the plural.
    Count(&'static str),
}

/// A progress bar on the terminal.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    bar: ProgressBar,
    unit: BarUnit,
}

impl Bar {
    /// Draws a bar, or a spinner with a counter if the total is unknown.
    pub(crate) fn start(name: &str, total: Option<u64>, unit: BarUnit) -> Self {
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        bar.set_style(style(total.is_some(), unit));
        Self::show(bar, name, unit)
    }

    /// Draws a spinner without a counter.
    pub(crate) fn spinner(name: &str) -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(styled(SPINNER));
        Self::show(bar, name, BarUnit::Count(""))
    }

    fn show(bar: ProgressBar, name: &str, unit: BarUnit) -> Self {
        // The name is shortened, because a line that wraps cannot be rewritten.
        let is_long = name.chars().count() > MAX_NAME;
        let name: String = name.chars().take(if is_long { MAX_NAME - 1 } else { MAX_NAME }).collect();
        bar.set_prefix(if is_long { format!("{name}…") } else { name });
        // The bar is redrawn even without progress, so that the user sees that the program is running.
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar { bar, unit }
    }

    /// Sets the text after the numbers.
    pub(crate) fn set_message(&self, text: String) {
        self.bar.set_message(text);
    }

    /// Prints a line above the bar.
    pub(crate) fn print_above(&self, text: &str) {
        self.bar.suspend(|| super::message(format_args!("{text}")));
    }

    /// Sets the position.
    pub(crate) fn set(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Sets the position without counting the distance in the rate, because that work was done earlier.
    pub(crate) fn resume(&self, position: u64) {
        self.bar.set_position(position);
        self.bar.reset_eta();
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Meter for Bar {
    fn begin(&self, total: Option<u64>) {
        self.bar.reset();
        self.bar.set_style(style(total.is_some(), self.unit));
        match total {
            Some(total) => self.bar.set_length(total),
            None => self.bar.unset_length(),
        }
    }

    fn advance(&self, by: u64) {
        self.bar.inc(by);
    }
}

/// Returns the style of a bar. The text after the numbers is cut to the width of the terminal.
fn style(has_total: bool, unit: BarUnit) -> ProgressStyle {
    let numbers = match (has_total, unit) {
        (true, BarUnit::Bytes) => "{bytes}/{total_bytes} {binary_bytes_per_sec}".to_owned(),
        (false, BarUnit::Bytes) => "{bytes} {binary_bytes_per_sec}".to_owned(),
        (true, BarUnit::Count(name)) => format!("{{done}}/{{all}} {name} {{rate}}/s"),
        (false, BarUnit::Count(name)) => format!("{{done}} {name} {{rate}}/s"),
    };
    let template = match has_total {
        true => format!("{{prefix}} {{bar:12}} {numbers} {{eta}} left {{wide_msg}}"),
        false => format!("{{prefix}} {{spinner}} {numbers} {{wide_msg}}"),
    };
    styled(&template)
        .with_key("done", write_position)
        .with_key("all", write_total)
        .with_key("rate", write_rate)
}

fn write_position(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    let _ = text.write_str(&abbreviated(state.pos() as f64)); // writing to a String cannot fail
}

fn write_total(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    let _ = text.write_str(&abbreviated(state.len().unwrap_or(0) as f64));
}

fn write_rate(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    let _ = text.write_str(&abbreviated(state.per_sec()));
}

/// Formats a number. The result has at most six characters if the number is below a thousand billion.
fn abbreviated(number: f64) -> String {
    match number {
        ..100.0 if number.fract() != 0.0 => format!("{number:.1}"),
        ..1e4 => format!("{number:.0}"),
        ..1e6 => format!("{:.1}k", number / 1e3),
        ..1e9 => format!("{:.1}M", number / 1e6),
        _ => format!("{:.1}G", number / 1e9),
    }
}

fn styled(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("templates are part of the program and tested")
}

/// Shows progress in bytes of input.
pub(crate) struct ByteProgress {
    bar: Option<Bar>,
    quiet: bool,
    name: &'static str,
    started: Instant,
    printed: Instant,
    bytes: u64,
    rows: u64,
    total: Option<u64>,
}

/// Interval between progress lines if there is no bar.
const PRINT_INTERVAL: Duration = Duration::from_secs(10);

impl ByteProgress {
    /// Starts a step of `total` bytes; `None` if the size is unknown.
    pub(crate) fn start(name: &'static str, total: Option<u64>, quiet: bool) -> Self {
        let bar = is_live(quiet).then(|| Bar::start(name, total, BarUnit::Bytes));
        let now = Instant::now();
        ByteProgress { bar, quiet, name, started: now, printed: now, bytes: 0, rows: 0, total }
    }

    /// Adds to the numbers of bytes read and rows decoded.
    pub(crate) fn step(&mut self, bytes: usize, rows: usize) {
        self.bytes += bytes as u64;
        self.rows += rows as u64;
        if let Some(bar) = &self.bar {
            bar.set(self.bytes);
            if self.rows > 0 {
                bar.set_message(format!("{} rows", shown_count(self.rows)));
            }
        } else if !self.quiet && self.printed.elapsed() >= PRINT_INTERVAL {
            self.printed = Instant::now();
            let of = self.total.map_or(String::new(), |total| format!(" of {}", shown_size(total)));
            super::message(format_args!(
                "{}: {}{of}, {} rows, {}/s{}",
                self.name,
                shown_size(self.bytes),
                shown_count(self.rows),
                shown_size(self.rate() as u64),
                self.remaining()
            ));
        }
    }

    fn rate(&self) -> f64 {
        self.bytes as f64 / self.started.elapsed().as_secs_f64().max(1e-9)
    }

    fn remaining(&self) -> String {
        match self.total {
            Some(total) => format!(", {:.0} s left", total.saturating_sub(self.bytes) as f64 / self.rate()),
            None => String::new(),
        }
    }

    /// Removes the bar before the step ends. Returns the number of rows so far.
    pub(crate) fn end_bar(&mut self) -> u64 {
        self.bar.take().iter().for_each(Bar::clear);
        self.rows
    }

    /// Ends the step. Returns its duration in seconds and its rate in bytes per second.
    pub(crate) fn finish(self) -> (f64, f64) {
        (self.started.elapsed().as_secs_f64(), self.rate())
    }
}

impl Drop for ByteProgress {
    fn drop(&mut self) {
        self.bar.iter().for_each(Bar::clear);
    }
}

/// Shows progress in rows or other items, only on a terminal. Dropping it removes the bar, so that an error message
/// starts on its own line.
pub(crate) struct CountProgress {
    bar: Option<Arc<Bar>>,
}

impl CountProgress {
    /// Starts a step of `total` items; `None` if their number is unknown.
    pub(crate) fn start(name: &str, total: Option<u64>, unit: &'static str, quiet: bool) -> Self {
        CountProgress { bar: is_live(quiet).then(|| Arc::new(Bar::start(name, total, BarUnit::Count(unit)))) }
    }

    /// Advances the bar by a number of items.
    pub(crate) fn step(&mut self, by: u64) {
        if let Some(bar) = &self.bar {
            bar.advance(by);
        }
    }

    /// Returns a meter for code that reports its own progress.
    pub(crate) fn meter(&self) -> SharedMeter {
        match &self.bar {
            Some(bar) => bar.clone(),
            None => unwatched(),
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {}
}

impl Drop for CountProgress {
    fn drop(&mut self) {
        self.bar.iter().for_each(|bar| bar.clear());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_valid() {
        for has_total in [true, false] {
            for unit in [BarUnit::Bytes, BarUnit::Count("rows")] {
                style(has_total, unit);
            }
        }
        styled(SPINNER);
    }

    #[test]
    fn numbers_are_abbreviated() {
        let shown = [0.0, 0.25, 99.94, 100.0, 9_999.0, 10_000.0, 1.5e6, 2e9, 4e12].map(abbreviated);
        assert_eq!(shown, ["0", "0.2", "99.9", "100", "9999", "10.0k", "1.5M", "2.0G", "4000.0G"]);
    }
}
