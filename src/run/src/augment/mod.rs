//! Augments a dataset: adds the scores of models as features, and samples of its queries as further queries.

mod resample;

pub use resample::DocumentSample;
pub(crate) use resample::SAMPLE_SUFFIX;

use planetree_base::error::{Error, Result};
use planetree_base::storage::{Digest, Location, Staging, digest_of, refuse_dash, refuse_hidden};
use planetree_data::dataset::{DatasetReader, GroupReader, MANIFEST, Manifest};
use planetree_data::rewrite::{RewriteRequest, RewrittenQuery, RowChange, RowValues, WeightColumn, rewrite};
use planetree_model::model::Model;
use planetree_model::predict::{GroupPredictor, model_fingerprint};
use std::fmt::Write;
use std::ops::Range;

/// A kind of column that a model adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AugmentColumn {
    /// The score.
    Score,
    /// The probability of every grade, of ordinal models.
    Classes,
    /// The probability of a label of at most a grade, for every grade below the highest, of ordinal models.
    Cumulative,
}

impl AugmentColumn {
    /// Returns the value of `--columns`.
    pub fn name(self) -> &'static str {
        match self {
            AugmentColumn::Score => "score",
            AugmentColumn::Classes => "classes",
            AugmentColumn::Cumulative => "cumulative",
        }
    }
}

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
    /// Models whose columns are added.
    pub models: &'a [ScoringModel],
    /// The columns to add for every model.
    pub columns: &'a [AugmentColumn],
    /// The share of documents of every query to add as a further query, if requested.
    pub sample: Option<DocumentSample>,
}

impl AugmentRequest<'_> {
    /// Checks what can be checked before the rows are read: the columns, and whether the output may be written.
    pub fn check(&self) -> Result<()> {
        let repeated = |(place, column): (usize, &AugmentColumn)| self.columns[..place].contains(column);
        if let Some((_, column)) = self.columns.iter().enumerate().find(|entry| repeated(*entry)) {
            let name = column.name();
            return Err(Error::usage(
                format_args!("--columns lists {name} twice"),
                format_args!("list {name} once"),
            ));
        }
        refuse_dash(self.output)?;
        refuse_hidden(self.output)?;
        Staging::begin(self.output, MANIFEST, self.overwrite).map(drop)
    }
}

/// Augments a dataset. Returns the manifest of the new dataset, whose last features are the new ones, and warnings for
/// the user.
pub fn augment(reader: &DatasetReader, request: &AugmentRequest<'_>) -> Result<(Manifest, Vec<String>)> {
    let columns = request.models.iter().map(|model| ModelColumns::open(model, request.columns, reader));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let names: Vec<String> = columns.iter().flat_map(|columns| columns.names.iter().cloned()).collect();
    check_names(reader, &names)?;
    let warnings = request.models.iter().zip(&columns);
    let warnings = warnings
        .filter_map(|(model, columns)| Some(format!("{}: {}", model.name, columns.predictor.warning()?)));
    let warnings = warnings.collect();
    let origin = origin(reader, request, &names)?;
    let change = Augmentation { reader, columns, sample: request.sample };
    let rewritten = RewriteRequest {
        target: request.output,
        overwrite: request.overwrite,
        partition_rows: request.partition_rows,
        features: None,
        new_features: &names,
        weights: WeightColumn::AsBefore,
        origin,
    };
    Ok((rewrite(reader, &rewritten, &change)?, warnings))
}

/// The columns that a model adds.
struct ModelColumns {
    predictor: GroupPredictor,
    names: Vec<String>,
    /// The columns of predictions that hold the values. `None` is the score.
    sources: Vec<Option<String>>,
}

impl ModelColumns {
    fn open(model: &ScoringModel, columns: &[AugmentColumn], reader: &DatasetReader) -> Result<Self> {
        let content = Model::read(&model.location)?;
        let classes = content.classes();
        let mut sources = Vec::new();
        for column in columns {
            let prefix = match column {
                AugmentColumn::Score => {
                    sources.push(None);
                    continue;
                }
                AugmentColumn::Classes => "class.",
                AugmentColumn::Cumulative => "cumulative.",
            };
            let Some(classes) = &classes else {
                return Err(Error::usage(
                    format_args!("--columns {}: {} has no class probabilities", column.name(), model.name),
                    "use --columns score, or a model trained with target=ordinal",
                ));
            };
            sources.extend(classes.columns().into_iter().filter(|name| name.starts_with(prefix)).map(Some));
        }
        let name = |source: &Option<String>| match source {
            None => format!("{}_score", model.name),
            Some(source) => format!("{}_{}", model.name, source.replace('.', "_")),
        };
        let names = sources.iter().map(name).collect();
        let has_classes = sources.iter().any(Option::is_some);
        let predictor = GroupPredictor::with_parts(&content, reader, has_classes)?;
        Ok(ModelColumns { predictor, names, sources })
    }

    /// Returns the values of the columns for the rows of a group.
    fn values(&self, reader: &DatasetReader, group: &GroupReader) -> Result<Vec<Vec<f32>>> {
        let (scores, parts) = self.predictor.scores_and_parts(reader, group)?;
        let of_source = |source: &Option<String>| match source {
            None => Some(&scores),
            Some(name) => parts.iter().find(|part| part.name == *name).map(|part| &part.values),
        };
        let column = |(source, name): (&Option<String>, &String)| {
            let values =
                of_source(source).ok_or_else(|| Error::bug("augment", "a column of classes is missing"))?;
            match values.iter().position(|value| !(*value as f32).is_finite()) {
                None => Ok(values.iter().map(|value| *value as f32).collect()),
                Some(row) => Err(Error::place(
                    reader.location(),
                    format_args!(
                        "{name} of row {} is {:e}, which is beyond the range of float32",
                        group.first_row() + row as u64 + 1,
                        values[row]
                    ),
                    "check the leaf values of the model",
                )),
            }
        };
        self.sources.iter().zip(&self.names).map(column).collect()
    }
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
fn origin(reader: &DatasetReader, request: &AugmentRequest<'_>, names: &[String]) -> Result<Digest> {
    let mut text = format!("{} augmented by {}", reader.fingerprint()?, names.join(" "));
    for model in request.models {
        let _ = write!(text, " {}", model_fingerprint(&model.location)?); // writing to a String cannot fail
    }
    if let Some(DocumentSample { share, seed }) = request.sample {
        let _ = write!(text, " with {share} of the documents by {seed}");
    }
    Ok(digest_of(text.as_bytes()))
}

/// Adds scores to all rows, and samples after every query.
struct Augmentation<'a> {
    reader: &'a DatasetReader,
    columns: Vec<ModelColumns>,
    sample: Option<DocumentSample>,
}

impl RowChange for Augmentation<'_> {
    fn values(&self, group: &GroupReader) -> Result<RowValues> {
        let mut new = Vec::new();
        for columns in &self.columns {
            new.extend(columns.values(self.reader, group)?);
        }
        Ok(RowValues { new, ..RowValues::default() })
    }

    fn queries(&self, query: &str, rows: Range<u64>) -> Result<Vec<RewrittenQuery>> {
        let documents = (rows.end - rows.start) as usize;
        let mut queries = vec![RewrittenQuery::all(query.to_owned(), rows)];
        if let Some(sample) = self.sample {
            if query.ends_with(SAMPLE_SUFFIX) {
                return Err(Error::place(
                    self.reader.location(),
                    format_args!("query {query:?} is a sample already: its id ends with {SAMPLE_SUFFIX}"),
                    "augment the original dataset, or rename its queries",
                ));
            }
            let id = format!("{query}{SAMPLE_SUFFIX}");
            queries.push(RewrittenQuery { id, rows: sample.rows(query, documents) });
        }
        Ok(queries)
    }
}
