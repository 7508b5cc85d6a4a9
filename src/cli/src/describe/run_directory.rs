//! Describes the directory of a pipeline run: its parameters, and the status, time and outputs of each step.

use super::{TableDescription, line};
use planetree_base::error::Result;
use planetree_base::size::{shown_count, shown_size};
use planetree_base::storage::Location;
use planetree_run::pipeline::RunManifest;
use serde_json::json;
use std::fmt::Write;

/// Describes a run directory. Returns `None` if the location is none.
pub(super) fn describe(location: &Location) -> Result<Option<TableDescription>> {
    let Some(run) = RunManifest::read(location)? else { return Ok(None) };
    let mut text = String::new();
    line(&mut text, "run of", &run.pipeline);
    if !run.description.is_empty() {
        line(&mut text, "description", &run.description);
    }
    line(&mut text, "directory", location);
    line(&mut text, "written by", &run.program);
    line(&mut text, "status", format!("{:?}", run.status).to_lowercase());
    // Writing to a String cannot fail.
    for (name, value) in &run.parameters {
        let _ = writeln!(text, "  {name} = {value}");
    }
    let _ = writeln!(
        text,
        "\n{:<24} {:<9} {:<8} {:>9} {:>12} {:>11}  outputs",
        "step", "kind", "status", "seconds", "rows", "size"
    );
    let shown = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    for step in &run.steps {
        let outputs: Vec<&str> = step.outputs.values().map(String::as_str).collect();
        let _ = writeln!(
            text,
            "{:<24} {:<9} {:<8} {:>9} {:>12} {:>11}  {}",
            step.name,
            step.kind,
            step.status.name(),
            shown(step.seconds.map(|seconds| format!("{seconds:.2}"))),
            shown(step.rows.map(shown_count)),
            shown(step.bytes.map(shown_size)),
            outputs.join(" "),
        );
        if let Some(error) = &step.error {
            let _ = writeln!(text, "  error: {error}");
        }
    }
    let json = json!({
        "pipeline": run.pipeline,
        "status": run.status,
        "writer": run.program,
        "parameters": run.parameters,
        "steps": run.steps,
    });
    Ok(Some(TableDescription { text, json }))
}
