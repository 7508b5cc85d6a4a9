//! Log messages on stderr. Only those of planetree: dependencies may log confidential data.

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging; `quiet` keeps errors only.
pub fn start(level: Level, quiet: bool) {
    let level = if quiet { Level::ERROR } else { level };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_target(false)
        .without_time()
        .with_ansi(false);
    let ours = Targets::new().with_target("planetree", level);
    let _ = tracing_subscriber::registry().with(lines).with(ours).try_init(); // already started: keep the first level
}
