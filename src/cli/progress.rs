//! How far a long step is: a bar with rate and time left on a terminal, a line now and then
//! elsewhere.

use super::size::{shown_count, shown_size};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Shows progress over bytes of input.
pub struct ByteProgress {
    bar: Option<ProgressBar>,
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
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
            let template = match total {
                Some(_) => "{msg} {bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta} left",
                None => "{msg} {spinner} {bytes} {binary_bytes_per_sec}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.set_message(what);
            bar
        });
        let now = Instant::now();
        ByteProgress { bar, quiet, what, started: now, said: now, bytes: 0, rows: 0, total }
    }

    /// Goes on.
    pub fn step(&mut self, bytes: usize, rows: usize) {
        self.bytes += bytes as u64;
        self.rows += rows as u64;
        if let Some(bar) = &self.bar {
            bar.set_position(self.bytes);
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

    /// Ends; seconds and bytes per second.
    pub fn finish(self) -> (f64, f64) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        (self.started.elapsed().as_secs_f64(), self.rate())
    }
}

/// Shows progress over rows, on a terminal only.
pub struct RowProgress {
    bar: Option<ProgressBar>,
}

impl RowProgress {
    /// Starts.
    pub fn start(what: &'static str, rows: u64, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(rows);
            if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} rows {eta} left") {
                bar.set_style(style);
            }
            bar.set_message(what);
            bar
        });
        RowProgress { bar }
    }

    /// Goes on.
    pub fn step(&mut self, rows: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(rows);
        }
    }

    /// Ends.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
