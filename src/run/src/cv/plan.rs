//! What a directory of outputs is of: which data, cut into how many parts. Written first, so that a run
//! with other data is refused instead of mixed in.

use super::CvRequest;
use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, FileOutput, Location, replaces};
use planetree_data::dataset::{DatasetReader, Manifest};
use serde::{Deserialize, Serialize};
use std::io::Write;

const FILE: &str = "cv.json";
/// From 2 on, data are known by the fingerprints of their rows.
const FORMAT: u32 = 2;

/// See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    planetree_cv: u32,
    writer: String,
    folds: usize,
    /// The key of the dealing, where one dataset is dealt.
    fold_seed: Option<u64>,
    validate: bool,
    data: Vec<PlannedData>,
}

/// A dataset by its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PlannedData {
    rows: u64,
    queries: u64,
    fingerprint: Digest,
}

impl Plan {
    /// The plan of a request.
    pub fn of(request: &CvRequest, folds: usize, readers: &[DatasetReader]) -> Result<Self> {
        let data = readers.iter().map(|reader| {
            let Manifest { rows, queries, .. } = *reader.manifest();
            Ok(PlannedData { rows, queries, fingerprint: reader.fingerprint()? })
        });
        Ok(Plan {
            planetree_cv: FORMAT,
            writer: concat!("planetree ", env!("CARGO_PKG_VERSION")).to_owned(),
            folds,
            fold_seed: (readers.len() == 1).then_some(request.fold_seed),
            validate: request.validate,
            data: data.collect::<Result<_>>()?,
        })
    }

    /// An error if a directory holds something else.
    pub fn check(&self, output: &Location) -> Result<()> {
        let Some(bytes) = output.join(FILE).read_all()? else { return Ok(()) };
        let there: Option<Plan> = serde_json::from_slice(&bytes).ok();
        let difference = match there {
            Some(there) => self.difference(&there),
            None => Some(format!("its {FILE} is not readable")),
        };
        match difference {
            None => Ok(()),
            Some(difference) => Err(Error::place(
                output,
                format_args!("there is another cross-validation: {difference}"),
                "choose another --output, or remove it first",
            )),
        }
    }

    fn difference(&self, there: &Plan) -> Option<String> {
        let seed = |plan: &Plan| plan.fold_seed.map_or("none".to_owned(), |seed| seed.to_string());
        if there.planetree_cv != self.planetree_cv {
            Some(format!("it is of {}, which knew data by their files", there.writer))
        } else if there.folds != self.folds {
            Some(format!("it has {} folds, this one {}", there.folds, self.folds))
        } else if there.data != self.data {
            Some("its data are others".to_owned())
        } else if there.fold_seed != self.fold_seed {
            Some(format!("its --fold-seed is {}, this one's {}", seed(there), seed(self)))
        } else if there.validate != self.validate {
            Some(format!("it was made {} --no-valid", if there.validate { "without" } else { "with" }))
        } else {
            None
        }
    }

    /// Writes the plan into a directory.
    pub fn write(&self, output: &Location) -> Result<()> {
        let location = output.join(FILE);
        let text = serde_json::to_string_pretty(self).expect("numbers and strings always serialise");
        let mut file = FileOutput::guarded(&location, replaces(|head| head.has(b"planetree_cv")))?;
        writeln!(file, "{text}").map_err(|error| Error::io(&location, "write", &error))?;
        file.commit()
    }
}
