//! Prints messages on standard error, as text or as JSON. Of the log, only planetree's own messages are printed, because
//! dependencies may log confidential data.

use planetree_base::terminal::printable;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write;
use std::sync::OnceLock;
use std::time::SystemTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Format of messages on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines of text
    Text,
    /// One JSON object per line, with time (seconds since 1970), level and message
    Json,
}

static FORMAT: OnceLock<LogFormat> = OnceLock::new();

/// Starts logging. With `quiet`, only errors are logged.
pub(crate) fn start(level: Level, format: LogFormat, quiet: bool) {
    let level = if quiet { Level::ERROR } else { level };
    let _ = FORMAT.set(format); // the first format stays in effect
    let ours = Targets::new().with_target("planetree", level);
    // This fails if logging was already started. The first level then stays in effect.
    let _ = tracing_subscriber::registry().with(LogLines.with_filter(ours)).try_init();
}

/// Returns whether messages are JSON objects.
pub(crate) fn is_json() -> bool {
    FORMAT.get() == Some(&LogFormat::Json)
}

/// Prints a line on standard error. Its level follows from its first word: `error:`, `warning:`, or none. A closed stream
/// is not an error.
pub(crate) fn print_line(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = if is_json() {
        let (level, message) = match text.split_once(": ") {
            Some(("error", message)) => ("error", message),
            Some(("warning", message)) => ("warning", message),
            Some(("note" | "info", message)) => ("info", message),
            Some(("debug", message)) => ("debug", message),
            Some(("trace", message)) => ("trace", message),
            _ => ("info", text),
        };
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let time = since.as_millis() as f64 / 1000.0;
        writeln!(stderr, "{}", json!({ "time": time, "level": level, "message": message }))
    } else {
        writeln!(stderr, "{}", printable(text))
    };
}

/// Prints log events in the same style as all other messages.
struct LogLines;

impl<S: Subscriber> Layer<S> for LogLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        };
        let mut text = EventText::default();
        event.record(&mut text);
        print_line(&format!("{level}: {}{}", text.message, text.fields));
    }
}

/// The message and the other fields of a log event.
#[derive(Default)]
struct EventText {
    message: String,
    fields: String,
}

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to a String cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
