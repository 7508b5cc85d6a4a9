//! Reads the inputs of a conversion: opens them one after the other and splits them into decoding tasks.

use super::batches::{BatchSource, BatchStream, SourceBatch, column_names, roles_of};
use super::chunk::{LineChunker, TextChunk};
use super::decode::batch::BatchDecoder;
use super::decode::{Decoder, Lines};
use super::decompress::InputCompression;
use super::feature_choice::{ChosenFeaturesDecoder, TextFeatures};
use super::format::InputFormat;
use super::input::{Input, partition_keys};
use super::input_error::{chunk_error, input_mismatch, table_error};
use super::open::{open, opened_table};
use super::roles::{AmbiguousLabel, ColumnRole, RoleOptions, Roles};
use super::side::SideFiles;
use super::text_slices::text_slices;
use crate::dataset::{FeatureNames, Layout};
use crate::rows::BlockBuilder;
use arrow::array::{RecordBatch, RecordBatchReader};
use planetree_base::error::{Error, Result};
use planetree_base::storage::Digest;
use std::io::Read;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Options for reading inputs.
#[derive(Debug, Clone)]
pub struct IngestOptions {
    /// The input format; detected if `None`.
    pub format: Option<InputFormat>,
    /// Index of the first feature in LETOR text.
    pub index_base: u32,
    /// Maximum number of features.
    pub max_features: u32,
    /// Whether to repair or skip faulty lines instead of stopping at the first fault.
    pub lenient: bool,
    /// Names of the features of LETOR text; `f1`, `f2`, ... if `None`.
    pub feature_names: Option<Vec<String>>,
    /// Roles of the columns of tables.
    pub roles: RoleOptions,
    /// Delimiter of CSV tables; detected if `None`.
    pub delimiter: Option<u8>,
    /// Whether numbers in tables have decimal commas, regardless of the delimiter.
    pub decimal_comma: bool,
    /// Whether tables start with a header line.
    pub header: bool,
    /// Content of a CatBoost column description, and the name of its file for messages.
    pub description: Option<(String, String)>,
    /// Approximate size of a chunk in bytes.
    pub chunk_bytes: usize,
    /// Memory limit in bytes, which the pages of Parquet inputs must fit in.
    pub memory_limit: u64,
}

impl Default for IngestOptions {
    fn default() -> Self {
        IngestOptions {
            format: None,
            index_base: 1,
            max_features: 10_000,
            lenient: false,
            feature_names: None,
            roles: RoleOptions::default(),
            delimiter: None,
            decimal_comma: false,
            header: true,
            description: None,
            chunk_bytes: 1 << 20,
            memory_limit: u64::MAX,
        }
    }
}

/// A chunk of an input that any thread can decode.
pub struct DecodeTask {
    /// Index of the input.
    pub input: u32,
    name: Arc<str>,
    piece: TaskData,
}

enum TaskData {
    Lines(TextChunk, Arc<dyn Decoder>),
    Batch(RecordBatch, Arc<BatchDecoder>, u64),
}

impl DecodeTask {
    /// Decodes the chunk into the builder.
    pub fn decode(self, builder: &mut BlockBuilder) -> Result<()> {
        match self.piece {
            TaskData::Lines(chunk, decoder) => decoder
                .decode(Lines { text: &chunk.text, first_line: chunk.first_line }, builder)
                .map_err(|fault| fault.in_file(&self.name)),
            TaskData::Batch(batch, decoder, first_row) => decoder
                .decode(&batch, first_row, builder)
                .map_err(|fault| table_error(&self.name, &decoder.names, first_row, fault)),
        }
    }
}

/// Totals over all inputs.
#[derive(Debug, Clone, Copy)]
pub struct IngestTotals {
    /// Number of bytes after decompression.
    pub bytes: u64,
    /// Hash of the decompressed bytes of all inputs, concatenated.
    pub fingerprint: Digest,
}

/// A list of inputs that have the same format. The first input is open.
pub struct Ingest {
    inputs: Vec<Input>,
    options: IngestOptions,
    format: InputFormat,
    layout: Layout,
    /// Roles of the columns; `None` for LETOR text.
    roles: Option<Roles>,
    /// The features of LETOR text that are kept; `None` if all are.
    text_features: Option<Arc<TextFeatures>>,
    sides: Vec<SideFiles>,
    first: Option<OpenInput>,
    notes: Vec<String>,
}

/// An open input whose format is known.
pub(super) enum OpenInput {
    /// Text in one of the text formats.
    Text {
        chunker: LineChunker<Box<dyn Read + Send>>,
        compression: InputCompression,
        decoder: Arc<dyn Decoder>,
        format: InputFormat,
    },
    /// A Parquet file, or a stream of record batches.
    Table { table: Box<dyn BatchSource>, decoder: Arc<BatchDecoder> },
    /// An empty file, which is valid in any format.
    Empty,
}

impl Ingest {
    /// Opens the first input and determines the format and columns of all inputs.
    pub fn open(inputs: Vec<Input>, options: IngestOptions) -> Result<Self> {
        let mut notes = Vec::new();
        let keys = if inputs.len() > 1 { partition_keys(&inputs) } else { Vec::new() };
        if !keys.is_empty() {
            notes
                .push(format!("folders by {}: their values are not columns of the dataset", keys.join(", ")));
        }
        let first_input = inputs.first().ok_or_else(|| Error::usage("no input", "pass at least one file"))?;
        let (opened, roles) = open(first_input, &options, &mut notes)?;
        let chosen = match roles {
            Some(_) => None,
            None => TextFeatures::find(&options, &first_input.name)?,
        };
        let (text_features, chosen_names) = match chosen {
            Some((features, names)) => (Some(Arc::new(features)), Some(names)),
            None => (None, None),
        };
        let opened = opened.with_features(text_features.as_ref());
        let sides: Vec<SideFiles> = inputs.iter().map(SideFiles::of).collect::<Result<_>>()?;
        check_side_files(&sides[0], &options.roles, &mut notes)?;
        let has = |role: ColumnRole| roles.as_ref().is_some_and(|roles| roles.has(&role));
        let layout = Layout {
            features: match (&roles, chosen_names, &options.feature_names) {
                (Some(roles), ..) => FeatureNames::Given(roles.features.clone()),
                (None, Some(names), _) => names,
                (None, None, Some(names)) => FeatureNames::Given(names.clone()),
                (None, None, None) => FeatureNames::Numbered,
            },
            weight: has(ColumnRole::Weight) || sides[0].weights.is_some(),
            position: has(ColumnRole::Position) || sides[0].positions.is_some(),
        };
        for (input, side) in inputs.iter().zip(&sides).skip(1) {
            let differs = side.weights.is_some() != sides[0].weights.is_some()
                || side.positions.is_some() != sides[0].positions.is_some();
            if differs {
                return Err(input_mismatch(
                    input,
                    &inputs[0],
                    "does not have the same side files (.weight, .position) as",
                ));
            }
        }
        let format = opened.format();
        let first = Some(opened);
        Ok(Ingest { inputs, options, format, layout, roles, text_features, sides, first, notes })
    }

    /// Reads rows from record batches, such as those of a data frame. Roles are assigned to the columns as in Parquet
    /// files. `name` is the name of the rows in messages.
    pub fn of_batches(
        name: &str,
        batches: Box<dyn RecordBatchReader + Send>,
        options: IngestOptions,
    ) -> Result<Self> {
        let mut notes = Vec::new();
        let schema = batches.schema();
        let roles = roles_of(&schema, &options.roles, name)?;
        let stream = BatchStream::new(name, batches)?;
        let input = Input { location: None, name: name.to_owned(), part: None, categories: Vec::new() };
        let first =
            opened_table(Box::new(stream), &roles, &column_names(&schema), &input, &options, &mut notes)?;
        let sides = vec![SideFiles::of(&input)?];
        let layout = Layout {
            features: FeatureNames::Given(roles.features.clone()),
            weight: roles.has(&ColumnRole::Weight),
            position: roles.has(&ColumnRole::Position),
        };
        let format = first.format();
        Ok(Ingest {
            inputs: vec![input],
            options,
            format,
            layout,
            roles: Some(roles),
            text_features: None,
            sides,
            first: Some(first),
            notes,
        })
    }

    /// Returns the format of the inputs.
    pub fn format(&self) -> InputFormat {
        self.format
    }

    /// Returns the columns of the dataset to be written.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the names of the inputs, for messages.
    pub fn names(&self) -> Vec<String> {
        self.inputs.iter().map(|input| input.name.clone()).collect()
    }

    /// Returns the side files of each input.
    pub fn sides(&self) -> &[SideFiles] {
        &self.sides
    }

    /// Returns the features of LETOR text that are kept; `None` if all are.
    pub(crate) fn text_features(&self) -> Option<&Arc<TextFeatures>> {
        self.text_features.as_ref()
    }

    /// Checks whether the inputs have labels: LETOR text, or a table with a column of labels.
    pub(crate) fn has_label_column(&self) -> bool {
        self.roles.as_ref().is_none_or(|roles| roles.has(&ColumnRole::Label))
    }

    /// Returns notes for the user on how the inputs were interpreted.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the total size of all inputs in bytes, or `None` if it is unknown or the inputs are compressed.
    pub fn plain_bytes(&self) -> Option<u64> {
        match &self.first {
            Some(OpenInput::Text { compression: InputCompression::Plain, .. }) => {
                self.inputs.iter().map(Input::size).sum()
            }
            _ => None,
        }
    }

    /// Reads all inputs and passes every chunk and its size in bytes to `submit`, in the order of the input.
    pub fn run(mut self, submit: &mut dyn FnMut(DecodeTask, usize) -> Result<()>) -> Result<IngestTotals> {
        if let Some(AmbiguousLabel { label, others }) =
            self.roles.as_ref().and_then(|roles| roles.ambiguous_label.as_ref())
        {
            let others = others.join(", ");
            tracing::warn!(
                "{}: column {label} is the label, but {others}, by its name, may be one, too, and is used as a feature: \
                 choose with --label-column, and leave out the other with --ignore-columns",
                self.inputs[0].name
            );
        }
        let mut hasher = Box::new(Xxh3::new());
        let mut bytes = 0;
        for (number, input) in self.inputs.iter().enumerate() {
            let opened = match self.first.take() {
                Some(opened) => opened,
                None => self.open_next(input)?,
            };
            tracing::info!("reading {}: {}", input.name, opened.format().name());
            let name: Arc<str> = input.name.as_str().into();
            let mut send = |piece: TaskData, size: usize| {
                submit(DecodeTask { input: number as u32, name: name.clone(), piece }, size)
            };
            bytes += opened.read(input, &mut hasher, &mut send)?;
        }
        Ok(IngestTotals { bytes, fingerprint: Digest(hasher.digest128()) })
    }

    /// Opens another input. Fails if its format or columns differ from those of the first input.
    fn open_next(&self, input: &Input) -> Result<OpenInput> {
        let (opened, roles) = open(input, &self.options, &mut Vec::new())?;
        if matches!(opened, OpenInput::Empty) {
            return Ok(opened);
        }
        let opened = opened.with_features(self.text_features.as_ref());
        let first = &self.inputs[0];
        if opened.format() != self.format {
            return Err(input_mismatch(input, first, "does not have the same format as"));
        }
        if let (Some(mine), Some(theirs)) = (&self.roles, &roles) {
            if mine.features != theirs.features || mine.non_features() != theirs.non_features() {
                return Err(input_mismatch(input, first, "does not have the same columns as"));
            }
            if let Some(feature) = mine.first_different_kind(theirs) {
                return Err(Error::place(
                    format_args!("{}: column {feature}", input.name),
                    format_args!("categorical here and numeric in {}, or vice versa", first.name),
                    format_args!(
                        "pass --categorical {feature} to treat both as categorical, or --ignore-columns {feature}"
                    ),
                ));
            }
        }
        Ok(opened)
    }
}

/// Notes the side files that give weights and positions. Fails if the options name columns for the same.
fn check_side_files(sides: &SideFiles, roles: &RoleOptions, notes: &mut Vec<String>) -> Result<()> {
    for (file, column, option, content) in [
        (&sides.weights, &roles.weight, "--weight-column", "row weights"),
        (&sides.positions, &roles.position, "--position-column", "positions at which documents were shown"),
    ] {
        let Some(file) = file else { continue };
        if column.is_some() && !roles.is_partial {
            return Err(Error::usage(
                format_args!("{option}: {file}, which is next to the data, gives the {content}"),
                format_args!("remove {option}, or rename {file} to use the column"),
            ));
        }
        notes.push(format!("{file} gives the {content}; rename it to leave them out"));
    }
    Ok(())
}

impl OpenInput {
    /// Keeps the given features of LETOR text, or all if there are none given.
    fn with_features(self, features: Option<&Arc<TextFeatures>>) -> Self {
        match (self, features) {
            (OpenInput::Text { chunker, compression, decoder, format }, Some(features))
                if format == InputFormat::Letor =>
            {
                let decoder = Arc::new(ChosenFeaturesDecoder { decoder, features: features.clone() });
                OpenInput::Text { chunker, compression, decoder, format }
            }
            (opened, _) => opened,
        }
    }

    fn format(&self) -> InputFormat {
        match self {
            OpenInput::Text { format, .. } => *format,
            OpenInput::Table { .. } => InputFormat::Parquet,
            OpenInput::Empty => InputFormat::Letor,
        }
    }

    /// Reads the input to its end, passes every chunk to `send`, and returns the number of bytes.
    fn read(
        self,
        input: &Input,
        hasher: &mut Xxh3,
        send: &mut dyn FnMut(TaskData, usize) -> Result<()>,
    ) -> Result<u64> {
        match self {
            OpenInput::Text { mut chunker, compression, decoder, .. } => {
                let mut total = 0;
                while let Some(chunk) =
                    chunker.next_chunk().map_err(|error| chunk_error(input, compression, error))?
                {
                    let size = chunk.input_bytes;
                    hasher.update(&chunk.text[..size]);
                    total += size as u64;
                    send(TaskData::Lines(chunk, decoder.clone()), size)?;
                }
                if chunker.lacks_newline() {
                    tracing::warn!("{}: no final newline; check that the file is complete", input.name);
                }
                Ok(total)
            }
            OpenInput::Empty => Ok(0),
            OpenInput::Table { mut table, decoder } => {
                let (mut row, mut total) = (1, 0);
                while let Some(SourceBatch { batch, bytes }) = table.next_batch(&decoder.roles, hasher)? {
                    for (rows, size) in text_slices(&batch, bytes, &input.name, row)? {
                        let batch = batch.slice(rows.start, rows.len());
                        total += size as u64;
                        send(TaskData::Batch(batch, decoder.clone(), row), size)?;
                        row += rows.len() as u64;
                    }
                }
                Ok(total)
            }
        }
    }
}
