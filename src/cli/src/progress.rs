//! How far a long step is: a bar with rate and time left on a terminal, a line now and then
//! elsewhere. Bars have no colours, and leave nothing behind.

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use planetree_base::progress::{Meter, SharedMeter, unwatched};
use planetree_base::size::{shown_count, shown_size};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether there is somebody who sees bars: a terminal that can rewrite a line, and no wish for silence.
pub fn is_live(quiet: bool) -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !quiet && !is_dumb && std::io::stderr().is_terminal()
}

/// Letters of a step's name.
const MOST: usize = 24;

/// The look of a step of which nothing is known.
const TURNING: &str = "{prefix} {spinner} {wide_msg}";

/// What a step is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, shown as kibibytes and so on.
    Bytes,
    /// Things that have a name.
    Things(&'static str),
}

/// A bar on the terminal.
#[derive(Debug, Clone)]
pub struct Bar {
    bar: ProgressBar,
    unit: Unit,
}

impl Bar {
    /// Draws a bar, or something that turns where the total is not known.
    pub fn start(what: &str, total: Option<u64>, unit: Unit) -> Self {
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        bar.set_style(style(total.is_some(), unit));
        Self::show(bar, what, unit)
    }

    /// Draws something that turns, for a step of which nothing is known.
    pub fn turning(what: &str) -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(styled(TURNING));
        Self::show(bar, what, Unit::Things(""))
    }

    fn show(bar: ProgressBar, what: &str, unit: Unit) -> Self {
        // A line that is too long for the terminal could not be rewritten.
        let is_long = what.chars().count() > MOST;
        let what: String = what.chars().take(if is_long { MOST - 1 } else { MOST }).collect();
        bar.set_prefix(if is_long { format!("{what}…") } else { what });
        // Time goes by on it also when nothing is done.
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar { bar, unit }
    }

    /// Changes the words behind the numbers.
    pub fn say(&self, text: String) {
        self.bar.set_message(text);
    }

    /// Says something above the bar.
    pub fn note(&self, text: &str) {
        self.bar.suspend(|| super::say(format_args!("{text}")));
    }

    /// Goes to a place.
    pub fn set(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Goes to a place where others have been before: it says nothing of the pace.
    pub fn resume(&self, position: u64) {
        self.bar.set_position(position);
        self.bar.reset_eta();
    }

    /// Takes the bar away.
    pub fn clear(&self) {
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

/// What a bar looks like. The words behind the numbers get the rest of the line, so that no line is too long.
fn style(has_total: bool, unit: Unit) -> ProgressStyle {
    let numbers = match (has_total, unit) {
        (true, Unit::Bytes) => "{bytes}/{total_bytes} {binary_bytes_per_sec}".to_owned(),
        (false, Unit::Bytes) => "{bytes} {binary_bytes_per_sec}".to_owned(),
        (true, Unit::Things(name)) => format!("{{done}}/{{all}} {name} {{rate}}/s"),
        (false, Unit::Things(name)) => format!("{{done}} {name} {{rate}}/s"),
    };
    let template = match has_total {
        true => format!("{{prefix}} {{bar:12}} {numbers} {{eta}} left {{wide_msg}}"),
        false => format!("{{prefix}} {{spinner}} {numbers} {{wide_msg}}"),
    };
    styled(&template).with_key("done", done).with_key("all", all).with_key("rate", rate)
}

fn done(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    let _ = text.write_str(&few(state.pos() as f64)); // nothing can be done about a line that takes none
}

fn all(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    let _ = text.write_str(&few(state.len().unwrap_or(0) as f64)); // likewise
}

fn rate(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    let _ = text.write_str(&few(state.per_sec())); // likewise
}

/// A number in at most five or six characters.
fn few(number: f64) -> String {
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

/// Shows progress over bytes of input.
pub struct ByteProgress {
    bar: Option<Bar>,
    quiet: bool,
    what: &'static str,
    started: Instant,
    said: Instant,
    bytes: u64,
    rows: u64,
    total: Option<u64>,
}

const EVERY: Duration = Duration::from_secs(10);

impl ByteProgress {
    /// Starts; `total` is how many bytes there will be, where that is known.
    pub fn start(what: &'static str, total: Option<u64>, quiet: bool) -> Self {
        let bar = is_live(quiet).then(|| Bar::start(what, total, Unit::Bytes));
        let now = Instant::now();
        ByteProgress { bar, quiet, what, started: now, said: now, bytes: 0, rows: 0, total }
    }

    /// Goes on.
    pub fn step(&mut self, bytes: usize, rows: usize) {
        self.bytes += bytes as u64;
        self.rows += rows as u64;
        if let Some(bar) = &self.bar {
            bar.set(self.bytes);
            if self.rows > 0 {
                bar.say(format!("{} rows", shown_count(self.rows)));
            }
        } else if !self.quiet && self.said.elapsed() >= EVERY {
            self.said = Instant::now();
            let of = self.total.map_or(String::new(), |total| format!(" of {}", shown_size(total)));
            super::say(format_args!(
                "{}: {}{of}, {} rows, {}/s{}",
                self.what,
                shown_size(self.bytes),
                shown_count(self.rows),
                shown_size(self.rate() as u64),
                self.left()
            ));
        }
    }

    fn rate(&self) -> f64 {
        self.bytes as f64 / self.started.elapsed().as_secs_f64().max(1e-9)
    }

    fn left(&self) -> String {
        match self.total {
            Some(total) => format!(", {:.0} s left", total.saturating_sub(self.bytes) as f64 / self.rate()),
            None => String::new(),
        }
    }

    /// Takes the bar away before the end; how many rows there were.
    pub fn end_bar(&mut self) -> u64 {
        self.bar.take().iter().for_each(Bar::clear);
        self.rows
    }

    /// Ends; seconds and bytes per second.
    pub fn finish(self) -> (f64, f64) {
        (self.started.elapsed().as_secs_f64(), self.rate())
    }
}

impl Drop for ByteProgress {
    fn drop(&mut self) {
        self.bar.iter().for_each(Bar::clear);
    }
}

/// Shows progress over things, on a terminal only. It goes when it is dropped, so that an error stands on a
/// line of its own.
pub struct Progress {
    bar: Option<Arc<Bar>>,
}

impl Progress {
    /// Starts.
    pub fn start(what: &str, total: Option<u64>, unit: &'static str, quiet: bool) -> Self {
        Progress { bar: is_live(quiet).then(|| Arc::new(Bar::start(what, total, Unit::Things(unit)))) }
    }

    /// Goes on.
    pub fn step(&mut self, by: u64) {
        if let Some(bar) = &self.bar {
            bar.advance(by);
        }
    }

    /// What does the work tells this one.
    pub fn meter(&self) -> SharedMeter {
        match &self.bar {
            Some(bar) => bar.clone(),
            None => unwatched(),
        }
    }

    /// Ends.
    pub fn finish(self) {}
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.iter().for_each(|bar| bar.clear());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_style_is_one() {
        for has_total in [true, false] {
            for unit in [Unit::Bytes, Unit::Things("rows")] {
                style(has_total, unit);
            }
        }
        styled(TURNING);
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.25, 99.94, 100.0, 9_999.0, 10_000.0, 1.5e6, 2e9, 4e12].map(few);
        assert_eq!(shown, ["0", "0.2", "99.9", "100", "9999", "10.0k", "1.5M", "2.0G", "4000.0G"]);
    }
}
