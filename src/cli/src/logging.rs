//! Prints log messages on standard error. Only planetree's own messages are printed, because dependencies may log
//! confidential data.

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging. With `quiet`, only errors are logged.
pub(crate) fn start(level: Level, quiet: bool) {
    let level = if quiet { Level::ERROR } else { level };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_target(false)
        .without_time()
        .with_ansi(false);
    let ours = Targets::new().with_target("planetree", level);
    // This fails if logging was already started. The first level then stays in effect.
    let _ = tracing_subscriber::registry().with(lines).with(ours).try_init();
}
