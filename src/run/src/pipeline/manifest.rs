//! `run.json`: what a run of a pipeline is, and how far it came. It is written anew after each step,
//! whole or not at all, so that a rerun knows what is done, and a report or a query what there is.

use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, FileOutput, Location};
use planetree_data::catalog::RUN_MANIFEST;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The table of the steps, beside it, there when the run is complete.
pub const STEPS_TABLE: &str = "steps.parquet";
const FORMAT: u32 = 1;

/// A run of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunManifest {
    /// Version of this form.
    pub format: u32,
    /// The pipeline's name.
    pub pipeline: String,
    /// What it is for; may be empty.
    #[serde(default)]
    pub description: String,
    /// Program and version.
    pub program: String,
    /// How far it came.
    pub status: RunStatus,
    /// The parameters that held, as text; those that are lists with commas between their members.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// The steps, each behind those it reads from.
    pub steps: Vec<RunStep>,
}

/// How far a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It is at work, or was killed.
    Running,
    /// All steps are done.
    Complete,
    /// A step failed, or the user stopped it.
    Failed,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStep {
    /// Its name in the pipeline.
    pub name: String,
    /// The command: `convert`, `train`, ...
    pub kind: String,
    /// What became of it.
    pub status: StepStatus,
    /// What decides whether it must run again: inputs, arguments and program in one hash. Empty while
    /// that is not known.
    #[serde(default)]
    pub fingerprint: String,
    /// How long it took when it last ran.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Rows of its first output, where that is a table or a dataset.
    #[serde(default)]
    pub rows: Option<u64>,
    /// Bytes of all its outputs.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// The most memory it had at any time, where the system says.
    #[serde(default)]
    pub peak_memory_bytes: Option<u64>,
    /// What it reads: local paths as given, or URLs. `data`, or `data.1` where there are several, or
    /// `predictions.mart` where they have names.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    /// What it writes: paths relative to the run directory, absolute ones, or URLs.
    #[serde(default)]
    pub outputs: BTreeMap<String, String>,
    /// The command line, without the program.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// What it said when it failed.
    #[serde(default)]
    pub error: Option<String>,
    /// The content of every input when it last ran, by the same names.
    #[serde(default)]
    pub input_checksums: BTreeMap<String, Digest>,
    /// The content of every output when it was written, by the same names.
    #[serde(default)]
    pub output_checksums: BTreeMap<String, Digest>,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepStatus {
    /// It ran in this run.
    Done,
    /// An earlier run did it, and nothing has changed since.
    Skipped,
    /// It ran and failed.
    Failed,
    /// It has not run, or not to its end.
    Pending,
}

impl StepStatus {
    /// The word of the file.
    pub fn name(self) -> &'static str {
        match self {
            StepStatus::Done => "done",
            StepStatus::Skipped => "skipped",
            StepStatus::Failed => "failed",
            StepStatus::Pending => "pending",
        }
    }

    /// Whether its outputs are there.
    pub fn is_finished(self) -> bool {
        matches!(self, StepStatus::Done | StepStatus::Skipped)
    }
}

impl RunManifest {
    /// The manifest of a run that begins.
    pub fn new(pipeline: &str, description: &str) -> Self {
        RunManifest {
            format: FORMAT,
            pipeline: pipeline.to_owned(),
            description: description.to_owned(),
            program: concat!("planetree ", env!("CARGO_PKG_VERSION")).to_owned(),
            status: RunStatus::Running,
            parameters: BTreeMap::new(),
            steps: Vec::new(),
        }
    }

    /// The step of a name.
    pub fn step(&self, name: &str) -> Option<&RunStep> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// Whether all there is to report is there: the run is complete, or about to be but for its reports.
    pub fn is_reportable(&self) -> bool {
        let finished = |step: &RunStep| step.status.is_finished() || step.kind == "report";
        self.status == RunStatus::Complete
            || (self.status == RunStatus::Running && self.steps.iter().all(finished))
    }

    /// Reads the manifest of a run directory; `None` if it has none.
    pub fn read(run: &Location) -> Result<Option<Self>> {
        let location = run.join(RUN_MANIFEST);
        let Some(bytes) = location.read_all()? else { return Ok(None) };
        let remedy = "remove it to start over, or choose another --output";
        let manifest: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| {
            Error::place(&location, format_args!("not the manifest of a run: {error}"), remedy)
        })?;
        match manifest["format"].as_u64() {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => {
                return Err(Error::place(
                    &location,
                    format_args!("version {format} of a run's form is not known"),
                    "use the planetree that wrote it, or a newer one",
                ));
            }
            None => {
                return Err(Error::place(&location, "not the manifest of a run: it has no format", remedy));
            }
        }
        serde_json::from_value(manifest).map(Some).map_err(|error| {
            Error::place(&location, format_args!("not the manifest of a run: {error}"), remedy)
        })
    }

    /// Writes the manifest into a run directory, in the place of an earlier one.
    pub fn write(&self, run: &Location) -> Result<()> {
        let location = run.join(RUN_MANIFEST);
        let text = serde_json::to_string_pretty(self).expect("strings and finite numbers always serialise");
        FileOutput::put(&location, format!("{text}\n").as_bytes())
    }

    /// Where an output of a step is.
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
    fn a_manifest_reads_back_and_is_replaced() {
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
    fn what_is_no_manifest_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let run = Location::Local(root.path().to_owned());
        for (text, says) in [
            ("{", "not the manifest of a run"),
            ("{\"format\": 2}", "version 2"),
            ("{\"rows\": 2}", "it has no format"),
            ("{\"format\": 1}", "missing field"),
        ] {
            std::fs::write(root.path().join(RUN_MANIFEST), text).unwrap();
            let error = RunManifest::read(&run).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
