//! Converts input files to a dataset.

use planetree_base::error::Result;
use planetree_base::storage::{Access, Location};
use planetree_data::convert::{ConvertOptions, convert};
use planetree_data::dataset::DatasetReader;
use planetree_data::ingest::{Ingest, IngestOptions, expand};

/// Converts text, CSV or Parquet to a dataset, like `planetree convert`.
///
/// ```
/// use planetree::ConvertRequest;
///
/// # fn main() -> planetree::error::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let (text, dataset) = (directory.path().join("train.txt"), directory.path().join("train"));
/// std::fs::write(&text, "2 qid:1 1:0.5 2:1\n0 qid:1 1:0.1\n").unwrap();
/// let dataset = ConvertRequest::new([text.to_str().unwrap()], dataset.to_str().unwrap()).run()?;
/// assert_eq!((dataset.manifest().rows, dataset.manifest().queries), (2, 1));
/// # Ok(())
/// # }
/// ```
pub struct ConvertRequest {
    inputs: Vec<String>,
    output: String,
    overwrite: bool,
    /// Options of the inputs, such as format, columns and delimiter.
    pub ingest: IngestOptions,
    /// Where credentials for object stores come from.
    pub access: Access,
}

impl ConvertRequest {
    /// Creates a request to convert files, directories, patterns or URLs to the dataset `output`, which is a directory
    /// or a URL.
    pub fn new<'a>(inputs: impl IntoIterator<Item = &'a str>, output: &str) -> Self {
        ConvertRequest {
            inputs: inputs.into_iter().map(str::to_owned).collect(),
            output: output.to_owned(),
            overwrite: false,
            ingest: IngestOptions::default(),
            access: Access::default(),
        }
    }

    /// Sets whether an existing dataset is replaced. By default it is not, and the conversion fails.
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Converts the inputs and opens the dataset.
    pub fn run(self) -> Result<DatasetReader> {
        let output = Location::parse(&self.output, self.access)?;
        let ingest = Ingest::open(expand(&self.inputs, self.access)?, self.ingest)?;
        let options = ConvertOptions { overwrite: self.overwrite, ..ConvertOptions::new(output.clone()) };
        convert(ingest, &options, &mut |_| {})?;
        DatasetReader::open(&output)
    }
}
