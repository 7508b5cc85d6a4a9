//! Shows the progress of a training run: a bar on a terminal, otherwise a line every ten rounds.

use crate::console::{self, Console};
use crate::progress::{Bar, BarUnit, is_live};
use planetree_base::progress::{SharedMeter, unwatched};
use planetree_train::{LogEntry, Observer};
use std::sync::Arc;
use std::time::Instant;

/// Shows the phases and rounds of a training run.
pub(crate) struct TrainingProgress {
    quiet: bool,
    live: bool,
    started: Instant,
    /// Name of the current phase.
    phase: String,
    bar: Option<Arc<Bar>>,
    /// Whether the bar counts rounds.
    in_rounds: bool,
    /// Text of the last round, if it has not been printed yet.
    unprinted: Option<String>,
    /// Receives the progress instead, if the command runs inside another program. It is kept here because the training
    /// runs on other threads.
    console: Option<Arc<dyn Console>>,
}

impl TrainingProgress {
    pub(crate) fn new(quiet: bool) -> Self {
        TrainingProgress {
            quiet,
            live: is_live(quiet),
            started: Instant::now(),
            phase: "training".to_owned(),
            bar: None,
            in_rounds: false,
            unprinted: None,
            console: console::current(),
        }
    }

    /// Starts again for another training, so that rates are measured per training.
    pub(crate) fn restart(&mut self) {
        let mut next = Self::new(self.quiet);
        next.live = self.live;
        next.console = self.console.take();
        *self = next;
    }

    /// Removes the bar and prints the last round.
    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.clear();
        }
        self.in_rounds = false;
        if let Some(text) = self.unprinted.take() {
            crate::message(format_args!("{text}"));
        }
    }

    /// Replaces the bar. The old bar is removed before the new one is drawn.
    fn replace_bar(&mut self, in_rounds: bool, draw: impl FnOnce() -> Bar) -> Arc<Bar> {
        if let Some(old) = self.bar.take() {
            old.clear();
        }
        self.in_rounds = in_rounds;
        self.bar.insert(Arc::new(draw())).clone()
    }
}

impl Drop for TrainingProgress {
    fn drop(&mut self) {
        self.bar.iter().for_each(|bar| bar.clear());
    }
}

impl Observer for TrainingProgress {
    fn phase(&mut self, name: &str) {
        name.clone_into(&mut self.phase);
        tracing::info!("{name}");
        if let Some(console) = &self.console {
            console.phase(name);
        }
        if self.live {
            self.replace_bar(false, || Bar::spinner(name));
        }
    }

    fn begin(&mut self, step: &str, total: u64, unit: &'static str) -> SharedMeter {
        tracing::debug!("{step}: {total} {unit}");
        match self.live {
            true => self.replace_bar(false, || Bar::start(step, Some(total), BarUnit::Count(unit))),
            false => unwatched(),
        }
    }

    fn round(&mut self, round: u32, rounds: u32, values: &[LogEntry]) {
        tracing::debug!("round {round} of {rounds}: {:.3} s so far", self.started.elapsed().as_secs_f64());
        if self.quiet {
            return;
        }
        let values: Vec<String> = values
            .iter()
            .map(|entry| format!("{} {}: {:.6}", entry.split, entry.metric, entry.value))
            .collect();
        let values = values.join("  ");
        if let Some(console) = &self.console {
            return console.round(round, rounds, &values);
        }
        let text = match values.as_str() {
            "" => format!("[{round}] of {rounds}"), // nothing is measured, as in a forest without a validation set
            values => format!("[{round}] {values}"),
        };
        if self.live {
            let bar = match &self.bar {
                Some(bar) if self.in_rounds => bar.clone(),
                _ => {
                    let phase = self.phase.clone();
                    let total = Some(rounds.into());
                    let bar = self.replace_bar(true, || Bar::start(&phase, total, BarUnit::Count("trees")));
                    bar.resume(u64::from(round.saturating_sub(1))); // round 0 is the start model
                    bar
                }
            };
            bar.set(round.into());
            bar.set_message(values);
            self.unprinted = Some(text);
        } else if round.is_multiple_of(10) || round == 1 || round == rounds {
            crate::message(format_args!("{text}"));
            self.unprinted = None;
        } else {
            self.unprinted = Some(text);
        }
    }

    fn note(&mut self, text: &str) {
        if self.quiet {
            return;
        }
        if let Some(console) = &self.console {
            return console.message(text);
        }
        match &self.bar {
            Some(bar) => bar.print_above(text),
            None => {
                self.finish();
                crate::message(format_args!("{text}"));
            }
        }
    }
}
