//! Reads and writes `run.json`, which describes the state of a pipeline run. The file is rewritten atomically after
//! each step. It tells a later run which steps are done, and it tells reports and SQL queries which outputs exist.

use super::paper::Paper;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, FileOutput, Location};
use planetree_data::catalog::RUN_MANIFEST;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// File name of the table of steps, which is written next to `run.json` when the run ends.
pub(crate) const STEPS_TABLE: &str = "steps.parquet";
const FORMAT: u32 = 1;

/// The state of a pipeline run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunManifest {
    /// Version of the file format.
    pub format: u32,
    /// Name of the pipeline.
    pub pipeline: String,
    /// Description of the pipeline; may be empty.
    #[serde(default)]
    pub description: String,
    /// Name and version of the program that wrote the file.
    pub program: String,
    /// Status of the run.
    pub status: RunStatus,
    /// Values of the parameters. The members of lists are joined by commas.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// The paper whose tables the pipeline re-obtains, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<Paper>,
    /// The steps. Every step comes after the steps that it depends on.
    pub steps: Vec<RunStep>,
}

/// Status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// The run is in progress, or it was killed.
    Running,
    /// All steps are finished.
    Complete,
    /// A step failed, or the run was interrupted.
    Failed,
}

/// The record of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStep {
    /// Name of the step in the pipeline.
    pub name: String,
    /// Command of the step: `convert`, `train`, ...
    pub kind: String,
    /// Status of the step.
    pub status: StepStatus,
    /// Hash of the inputs, the arguments and the version of the program. A later run compares it to decide whether
    /// the step must run again. Empty until the step first runs.
    #[serde(default)]
    pub fingerprint: String,
    /// Duration of the step when it last ran, in seconds.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Number of rows in the first output, if it is a table or dataset.
    #[serde(default)]
    pub rows: Option<u64>,
    /// Total size of the outputs, in bytes.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Peak memory in bytes, if known.
    #[serde(default)]
    pub peak_memory_bytes: Option<u64>,
    /// Inputs as paths or URLs, by label. Labels are `data`, `data.1` if there are several inputs, or
    /// `predictions.mart` if they have names.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    /// Outputs, by the key of the option that names them: paths relative to the run directory, absolute paths, or
    /// URLs.
    #[serde(default)]
    pub outputs: BTreeMap<String, String>,
    /// Command line, without the program.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Error message, if the step failed.
    #[serde(default)]
    pub error: Option<String>,
    /// Hashes of the contents of the inputs when the step last ran.
    #[serde(default)]
    pub input_checksums: BTreeMap<String, Digest>,
    /// Hashes of the contents of the outputs when the step wrote them.
    #[serde(default)]
    pub output_checksums: BTreeMap<String, Digest>,
}

/// Status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepStatus {
    /// The step finished in this run.
    Done,
    /// The step did not run, because nothing that affects it has changed since an earlier run.
    Skipped,
    /// The step failed.
    Failed,
    /// The step has not started or not finished.
    Pending,
}

impl StepStatus {
    /// Returns the name of the status in `run.json`.
    pub fn name(self) -> &'static str {
        match self {
            StepStatus::Done => "done",
            StepStatus::Skipped => "skipped",
            StepStatus::Failed => "failed",
            StepStatus::Pending => "pending",
        }
    }

    /// Whether the outputs of the step are complete.
    pub fn is_finished(self) -> bool {
        matches!(self, StepStatus::Done | StepStatus::Skipped)
    }
}

impl RunManifest {
    /// Creates the manifest of a new run.
    pub fn new(pipeline: &str, description: &str) -> Self {
        RunManifest {
            format: FORMAT,
            pipeline: pipeline.to_owned(),
            description: description.to_owned(),
            program: concat!("planetree ", env!("CARGO_PKG_VERSION")).to_owned(),
            status: RunStatus::Running,
            parameters: BTreeMap::new(),
            paper: None,
            steps: Vec::new(),
        }
    }

    /// Returns the record of the step with this name.
    pub fn step(&self, name: &str) -> Option<&RunStep> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// Whether a report can be written: the run is complete, or only report steps are not finished.
    pub fn is_reportable(&self) -> bool {
        let finished = |step: &RunStep| step.status.is_finished() || step.kind == "report";
        self.status == RunStatus::Complete
            || (self.status == RunStatus::Running && self.steps.iter().all(finished))
    }

    /// Reads `run.json` from a run directory; `None` if there is no such file.
    pub fn read(run: &Location) -> Result<Option<Self>> {
        let location = run.join(RUN_MANIFEST);
        let Some(bytes) = location.read_all()? else { return Ok(None) };
        let remedy = "remove the file to start over, or choose another --output";
        let manifest: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| {
            Error::place(&location, format_args!("invalid run manifest: {error}"), remedy)
        })?;
        match manifest["format"].as_u64() {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => {
                return Err(Error::place(
                    &location,
                    format_args!("unknown format version {format}"),
                    "use the version of planetree that wrote it, or a newer one",
                ));
            }
            None => {
                return Err(Error::place(&location, "invalid run manifest: no format version", remedy));
            }
        }
        serde_json::from_value(manifest)
            .map(Some)
            .map_err(|error| Error::place(&location, format_args!("invalid run manifest: {error}"), remedy))
    }

    /// Writes `run.json` to a run directory, replacing an earlier one.
    pub fn write(&self, run: &Location) -> Result<()> {
        let location = run.join(RUN_MANIFEST);
        let text = serde_json::to_string_pretty(self).expect("strings and finite numbers always serialise");
        FileOutput::put(&location, format!("{text}\n").as_bytes())
    }

    /// Returns the location of an output. `written` is its path or URL as recorded in `run.json`.
    pub fn output(run: &Location, written: &str) -> Result<Location> {
        if written.contains("://") || written.starts_with('/') {
            return Location::parse(written, planetree_base::storage::Access::Explicit);
        }
        Ok(run.join(written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> RunManifest {
        let step = RunStep {
            name: "model".into(),
            kind: "train".into(),
            status: StepStatus::Done,
            fingerprint: "0f".into(),
            seconds: Some(1.5),
            rows: Some(10),
            bytes: Some(100),
            peak_memory_bytes: None,
            inputs: [("data".to_owned(), "train".to_owned())].into(),
            outputs: [("model".to_owned(), "model.parquet".to_owned())].into(),
            arguments: vec!["train".into(), "--data".into()],
            error: None,
            input_checksums: BTreeMap::new(),
            output_checksums: [("model".to_owned(), Digest(7))].into(),
        };
        RunManifest { steps: vec![step], ..RunManifest::new("quickstart", "") }
    }

    #[test]
    fn a_manifest_round_trips_and_is_replaced() {
        let root = tempfile::tempdir().unwrap();
        let run = Location::Local(root.path().join("run"));
        assert!(RunManifest::read(&run).unwrap().is_none());
        let mut manifest = manifest();
        manifest.write(&run).unwrap();
        assert_eq!(RunManifest::read(&run).unwrap().as_ref(), Some(&manifest));
        manifest.status = RunStatus::Complete;
        manifest.write(&run).unwrap();
        let again = RunManifest::read(&run).unwrap().unwrap();
        assert_eq!(again.status, RunStatus::Complete);
        for (run, kind, step, reportable) in [
            (RunStatus::Running, "train", StepStatus::Done, true),
            (RunStatus::Running, "train", StepStatus::Pending, false),
            (RunStatus::Running, "report", StepStatus::Pending, true),
            (RunStatus::Failed, "report", StepStatus::Failed, false),
        ] {
            (manifest.status, manifest.steps[0].status) = (run, step);
            manifest.steps[0].kind = kind.to_owned();
            assert_eq!(manifest.is_reportable(), reportable);
        }
        assert_eq!(again.step("model").map(|step| step.status), Some(StepStatus::Done));
        let text = std::fs::read_to_string(root.path().join("run/run.json")).unwrap();
        assert!(text.contains("\"status\": \"complete\"") && text.contains("\"status\": \"done\""), "{text}");
    }

    #[test]
    fn invalid_manifests_are_rejected() {
        let root = tempfile::tempdir().unwrap();
        let run = Location::Local(root.path().to_owned());
        for (text, expected) in [
            ("{", "invalid run manifest"),
            ("{\"format\": 2}", "format version 2"),
            ("{\"rows\": 2}", "no format version"),
            ("{\"format\": 1}", "missing field"),
        ] {
            std::fs::write(root.path().join(RUN_MANIFEST), text).unwrap();
            let error = RunManifest::read(&run).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
