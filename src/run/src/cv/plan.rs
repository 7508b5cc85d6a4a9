//! Reads and writes `cv.json`, which describes the data and folds of a cross-validation. The file is written before
//! all other outputs, so that a later run with different data in the same directory is rejected.

use super::{CvRequest, ValidationPart};
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, FileOutput, Location, replaces};
use planetree_data::dataset::{DatasetReader, Manifest};
use serde::{Deserialize, Serialize};
use std::io::Write;

const FILE: &str = "cv.json";
/// Version of the file format. Since version 2, datasets are identified by the fingerprints of their rows.
const FORMAT: u32 = 2;

/// The contents of `cv.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CvPlan {
    planetree_cv: u32,
    writer: String,
    folds: usize,
    /// Seed for the split; `None` if several datasets are given.
    fold_seed: Option<u64>,
    validate: bool,
    /// Whether the part for validation is not used at all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unused_valid: bool,
    data: Vec<CvData>,
}

/// Identifies a dataset by its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CvData {
    rows: u64,
    queries: u64,
    fingerprint: Digest,
}

impl CvPlan {
    /// Creates the plan for a request.
    pub(super) fn of(request: &CvRequest, folds: usize, readers: &[DatasetReader]) -> Result<Self> {
        let data = readers.iter().map(|reader| {
            let Manifest { rows, queries, .. } = *reader.manifest();
            Ok(CvData { rows, queries, fingerprint: reader.fingerprint()? })
        });
        Ok(CvPlan {
            planetree_cv: FORMAT,
            writer: concat!("planetree ", env!("CARGO_PKG_VERSION")).to_owned(),
            folds,
            fold_seed: (readers.len() == 1).then_some(request.fold_seed),
            validate: request.validation == ValidationPart::Validate,
            unused_valid: request.validation == ValidationPart::Unused,
            data: data.collect::<Result<_>>()?,
        })
    }

    /// Checks that the directory does not contain another cross-validation.
    pub(super) fn check(&self, output: &Location) -> Result<()> {
        let Some(bytes) = output.join(FILE).read_all()? else { return Ok(()) };
        let existing: Option<CvPlan> = serde_json::from_slice(&bytes).ok();
        let difference = match existing {
            Some(existing) => self.difference(&existing),
            None => Some(format!("{FILE} is unreadable")),
        };
        match difference {
            None => Ok(()),
            Some(difference) => Err(Error::place(
                output,
                format_args!("contains another cross-validation: {difference}"),
                "choose another --output, or remove the directory",
            )),
        }
    }

    fn difference(&self, existing: &CvPlan) -> Option<String> {
        let seed = |plan: &CvPlan| plan.fold_seed.map_or("none".to_owned(), |seed| seed.to_string());
        if existing.planetree_cv != self.planetree_cv {
            Some(format!("written by {}, which identified data by their files", existing.writer))
        } else if existing.folds != self.folds {
            Some(format!("it has {} folds, not {}", existing.folds, self.folds))
        } else if existing.data != self.data {
            Some("its data differ".to_owned())
        } else if existing.fold_seed != self.fold_seed {
            Some(format!("its --fold-seed is {}, not {}", seed(existing), seed(self)))
        } else if existing.option() != self.option() {
            Some(match (existing.option(), self.option()) {
                (Some(option), _) => format!("it was run with {option}"),
                (None, option) => format!("it was run without {}", option.unwrap_or_default()),
            })
        } else {
            None
        }
    }

    /// Returns the option for the validation part; `None` if folds validate.
    fn option(&self) -> Option<&'static str> {
        match (self.validate, self.unused_valid) {
            (true, _) => None,
            (false, false) => Some("--no-valid"),
            (false, true) => Some("--unused-valid"),
        }
    }

    /// Writes the plan to a directory.
    pub(super) fn write(&self, output: &Location) -> Result<()> {
        let location = output.join(FILE);
        let text = serde_json::to_string_pretty(self).expect("numbers and strings always serialise");
        let mut file = FileOutput::guarded(&location, replaces(|head| head.has(b"planetree_cv")))?;
        writeln!(file, "{text}").map_err(|error| Error::io(&location, "write", error))?;
        file.commit()
    }
}
