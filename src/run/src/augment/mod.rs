//! Augments a dataset: adds the scores of models as features, and samples of its queries as further queries.

mod resample;

pub use resample::{DocumentSample, SAMPLE_SUFFIX};

use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, Location, digest_of};
use planetree_data::dataset::{DatasetReader, GroupReader, Manifest};
use planetree_data::rewrite::{RewriteRequest, RewrittenQuery, RowChange, rewrite};
use planetree_model::model::Model;
use planetree_model::predict::{GroupPredictor, model_fingerprint};
use std::fmt::Write;

/// A model whose scores become features.
#[derive(Debug)]
pub struct ScoringModel {
    /// Name of the model, with which the names of its columns begin.
    pub name: String,
    /// File of the model.
    pub location: Location,
}

/// What to add to a dataset.
#[derive(Debug)]
pub struct AugmentRequest<'a> {
    /// The new dataset.
    pub output: &'a Location,
    /// Whether to replace an existing dataset.
    pub overwrite: bool,
    /// Number of rows per file; `None` for the default file size.
    pub partition_rows: Option<usize>,
    /// Models whose scores are added, one column each.
    pub models: &'a [ScoringModel],
    /// The share of documents of every query to add as a further query, if requested.
    pub sample: Option<DocumentSample>,
}

/// Augments a dataset. Returns the manifest of the new dataset, and warnings for the user.
pub fn augment(reader: &DatasetReader, request: &AugmentRequest<'_>) -> Result<(Manifest, Vec<String>)> {
    let names: Vec<String> = request.models.iter().map(|model| score_column(&model.name)).collect();
    check_names(reader, &names)?;
    let models =
        request.models.iter().map(|model| Model::read(&model.location)).collect::<Result<Vec<_>>>()?;
    let predictors =
        models.iter().map(|model| GroupPredictor::new(model, reader)).collect::<Result<Vec<_>>>()?;
    let warnings = request.models.iter().zip(&predictors);
    let warnings =
        warnings.filter_map(|(model, predictor)| Some(format!("{}: {}", model.name, predictor.warning()?)));
    let warnings = warnings.collect();
    let change = Augmentation { reader, predictors, names: &names, sample: request.sample };
    let rewritten = RewriteRequest {
        target: request.output,
        overwrite: request.overwrite,
        partition_rows: request.partition_rows,
        new_features: &names,
        origin: origin(reader, request)?,
    };
    Ok((rewrite(reader, &rewritten, &change)?, warnings))
}

/// Returns the name of the column with the scores of a model.
pub fn score_column(model: &str) -> String {
    format!("{model}_score")
}

/// Checks that new columns differ from each other and from those of the dataset.
fn check_names(reader: &DatasetReader, names: &[String]) -> Result<()> {
    for (index, name) in names.iter().enumerate() {
        if reader.manifest().features.contains(name) {
            return Err(Error::place(
                reader.location(),
                format_args!("there is already a feature {name}"),
                "give the model another name: --model NAME=FILE",
            ));
        }
        if names[..index].contains(name) {
            return Err(Error::usage(
                format_args!("two models have the column {name}"),
                "give the models different names: --model NAME=FILE",
            ));
        }
    }
    Ok(())
}

/// Returns a hash of everything that the new rows depend on.
fn origin(reader: &DatasetReader, request: &AugmentRequest<'_>) -> Result<Digest> {
    let mut text = format!("{} augmented", reader.fingerprint()?);
    for model in request.models {
        // Writing to a String cannot fail.
        let _ = write!(text, " by {} {}", score_column(&model.name), model_fingerprint(&model.location)?);
    }
    if let Some(DocumentSample { share, seed }) = request.sample {
        let _ = write!(text, " with {share} of the documents by {seed}");
    }
    Ok(digest_of(text.as_bytes()))
}

/// Adds scores to all rows, and samples after every query.
struct Augmentation<'a> {
    reader: &'a DatasetReader,
    predictors: Vec<GroupPredictor>,
    names: &'a [String],
    sample: Option<DocumentSample>,
}

impl RowChange for Augmentation<'_> {
    fn new_values(&self, group: &GroupReader) -> Result<Vec<Vec<f32>>> {
        let column = |(predictor, name): (&GroupPredictor, &String)| {
            let scores = predictor.scores(self.reader, group)?;
            let values: Vec<f32> = scores.iter().map(|score| *score as f32).collect();
            match values.iter().position(|value| !value.is_finite()) {
                None => Ok(values),
                Some(row) => Err(Error::place(
                    self.reader.location(),
                    format_args!(
                        "{name} of row {} is {:e}, which is beyond the range of float32",
                        group.first_row() + row as u64 + 1,
                        scores[row]
                    ),
                    "check the leaf values of the model",
                )),
            }
        };
        self.predictors.iter().zip(self.names).map(column).collect()
    }

    fn queries(&self, query: &str, rows: usize) -> Result<Vec<RewrittenQuery>> {
        let mut queries = vec![RewrittenQuery { id: query.to_owned(), rows: (0..rows).collect() }];
        if let Some(sample) = self.sample {
            if query.ends_with(SAMPLE_SUFFIX) {
                return Err(Error::place(
                    self.reader.location(),
                    format_args!("query {query:?} is a sample already: its id ends with {SAMPLE_SUFFIX}"),
                    "augment the original dataset, or rename its queries",
                ));
            }
            let id = format!("{query}{SAMPLE_SUFFIX}");
            queries.push(RewrittenQuery { id, rows: sample.rows(query, rows) });
        }
        Ok(queries)
    }
}
