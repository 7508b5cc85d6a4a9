//! The reading thread's side: opens one input after the other and hands on pieces of work.

use super::cut::{CutError, Cutter, MAX_LINE, TextChunk};
use super::decode::batch::{BatchDecoder, TableFault};
use super::decode::{Decoder, Lines};
use super::format::Format;
use super::input::Input;
use super::open::open;
use super::roles::{ColumnRole, RoleOptions, Roles};
use super::side::SideFiles;
use super::table::Table;
use super::unpack::Packing;
use crate::dataset::{FeatureNames, Layout};
use crate::rows::BlockBuilder;
use arrow::array::RecordBatch;
use planetree_base::error::{Error, InputError, Position, Result};
use planetree_base::storage::Digest;
use std::io::Read;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// How inputs are to be read.
#[derive(Debug, Clone)]
pub struct IngestOptions {
    /// The format, unless it shall be told by the content.
    pub format: Option<Format>,
    /// Index of the first feature in LETOR text.
    pub index_base: u32,
    /// Most features there may be.
    pub max_features: u32,
    /// Repair or skip faulty lines instead of stopping.
    pub lenient: bool,
    /// Names for the features of LETOR text.
    pub feature_names: Option<Vec<String>>,
    /// Columns of tables.
    pub roles: RoleOptions,
    /// Delimiter of tables, unless it shall be told by the content.
    pub delimiter: Option<u8>,
    /// Whether numbers of tables have decimal commas, whatever separates fields.
    pub decimal_comma: bool,
    /// Whether tables start with a line of names.
    pub header: bool,
    /// A CatBoost column description.
    pub description: Option<(String, String)>,
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
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
        }
    }
}

/// A piece of an input that any thread can turn into rows.
pub struct Work {
    /// Which input.
    pub input: u32,
    name: Arc<str>,
    piece: Piece,
}

enum Piece {
    Lines(TextChunk, Arc<dyn Decoder>),
    Batch(RecordBatch, Arc<BatchDecoder>, u64),
}

impl Work {
    /// Fills the builder with the piece's rows.
    pub fn decode(self, builder: &mut BlockBuilder) -> Result<()> {
        match self.piece {
            Piece::Lines(chunk, decoder) => decoder
                .decode(Lines { text: &chunk.text, first_line: chunk.first_line }, builder)
                .map_err(|fault| fault.in_file(&self.name)),
            Piece::Batch(batch, decoder, first_row) => decoder
                .decode(&batch, first_row, builder)
                .map_err(|fault| table_error(&self.name, &batch, first_row, fault)),
        }
    }
}

/// A fault of a table as the user hears it.
fn table_error(name: &str, batch: &RecordBatch, first_row: u64, fault: TableFault) -> Error {
    let column_name = |column: usize| batch.schema().field(column).name().clone();
    match fault {
        TableFault::Column { column, problem } => Error::place(
            format_args!("{name}: column {}", column_name(column)),
            problem,
            "--ignore-columns NAME leaves a column out, --categorical NAME codes words",
        ),
        TableFault::Cell { row, column, kind, found } => Error::place(
            format_args!("{name}: row {}, column {}", first_row + row as u64, column_name(column)),
            format_args!("found {found}, expected {}", kind.entry().expected),
            kind.entry().remedy,
        ),
    }
}

/// What was read in all.
#[derive(Debug, Clone, Copy)]
pub struct Totals {
    /// Bytes, unpacked.
    pub bytes: u64,
    /// Their hash, all inputs end to end.
    pub fingerprint: Digest,
}

/// Inputs of one format, the first of them open.
pub struct Ingest {
    inputs: Vec<Input>,
    options: IngestOptions,
    format: Format,
    layout: Layout,
    /// What the columns of tables hold.
    roles: Option<Roles>,
    sides: Vec<SideFiles>,
    first: Option<Opened>,
    notes: Vec<String>,
}

/// An input that has been looked into.
pub(super) enum Opened {
    /// Text of some format.
    Text { cutter: Cutter<Box<dyn Read + Send>>, packing: Packing, decoder: Arc<dyn Decoder>, format: Format },
    /// A Parquet file.
    Table { table: Box<Table>, decoder: Arc<BatchDecoder> },
    /// A file without a byte, which any format may have.
    Nothing,
}

impl Ingest {
    /// Opens the first input and decides what all of them are.
    pub fn open(inputs: Vec<Input>, options: IngestOptions) -> Result<Self> {
        let mut notes = Vec::new();
        let first_input = inputs.first().ok_or_else(|| Error::usage("there is no input", "name one"))?;
        let (opened, roles) = open(first_input, &options, &mut notes)?;
        let sides: Vec<SideFiles> = inputs.iter().map(SideFiles::of).collect::<Result<_>>()?;
        let has = |role: ColumnRole| roles.as_ref().is_some_and(|roles| roles.has(&role));
        let layout = Layout {
            features: match (&roles, &options.feature_names) {
                (Some(roles), _) => FeatureNames::Given(roles.features.clone()),
                (None, Some(names)) => FeatureNames::Given(names.clone()),
                (None, None) => FeatureNames::Numbered,
            },
            weight: has(ColumnRole::Weight) || sides[0].weights.is_some(),
            position: has(ColumnRole::Position) || sides[0].positions.is_some(),
        };
        for (input, side) in inputs.iter().zip(&sides).skip(1) {
            let differs = side.weights.is_some() != sides[0].weights.is_some()
                || side.positions.is_some() != sides[0].positions.is_some();
            if differs {
                return Err(differing(
                    input,
                    &inputs[0],
                    "its .weight or .position file, or the lack of it, differs",
                ));
            }
        }
        let format = opened.format();
        Ok(Ingest { inputs, options, format, layout, roles, sides, first: Some(opened), notes })
    }

    /// The format of the inputs.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The columns of what will come out.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The names of the inputs, for messages.
    pub fn names(&self) -> Vec<String> {
        self.inputs.iter().map(|input| input.name.clone()).collect()
    }

    /// What lies beside each input.
    pub fn sides(&self) -> &[SideFiles] {
        &self.sides
    }

    /// What the user should know about how the inputs are understood.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Bytes on disk of all inputs, where they are known and not packed.
    pub fn plain_bytes(&self) -> Option<u64> {
        match &self.first {
            Some(Opened::Text { packing: Packing::Plain, .. }) => self.inputs.iter().map(Input::size).sum(),
            _ => None,
        }
    }

    /// Reads everything and hands it on piece by piece; `hand_on` says how many bytes it is.
    pub fn run(mut self, hand_on: &mut dyn FnMut(Work, usize) -> Result<()>) -> Result<Totals> {
        let mut hasher = Box::new(Xxh3::new());
        let mut bytes = 0;
        for (number, input) in self.inputs.iter().enumerate() {
            let opened = match self.first.take() {
                Some(opened) => opened,
                None => self.open_next(input)?,
            };
            let name: Arc<str> = input.name.as_str().into();
            let mut send = |piece: Piece, size: usize| {
                hand_on(Work { input: number as u32, name: name.clone(), piece }, size)
            };
            bytes += opened.read(input, &mut hasher, &mut send)?;
        }
        Ok(Totals { bytes, fingerprint: Digest(hasher.digest128()) })
    }

    /// Opens another input, which must have the same columns as the first.
    fn open_next(&self, input: &Input) -> Result<Opened> {
        let (opened, roles) = open(input, &self.options, &mut Vec::new())?;
        if matches!(opened, Opened::Nothing) {
            return Ok(opened);
        }
        let first = &self.inputs[0];
        if opened.format() != self.format {
            return Err(differing(input, first, "its format differs"));
        }
        if let (Some(mine), Some(theirs)) = (&self.roles, &roles) {
            if mine.features != theirs.features || mine.parts() != theirs.parts() {
                return Err(differing(input, first, "its columns differ"));
            }
            if let Some(feature) = mine.first_different_kind(theirs) {
                return Err(Error::place(
                    format_args!("{}: column {feature}", input.name),
                    format_args!("words here and numbers in {}, or the other way round", first.name),
                    format_args!(
                        "pass --categorical {feature} to take both as words, or --ignore-columns {feature}"
                    ),
                ));
            }
        }
        Ok(opened)
    }
}

fn differing(input: &Input, first: &Input, problem: &str) -> Error {
    Error::place(
        &input.name,
        format_args!("{problem} from {}", first.name),
        "convert inputs of different kinds one by one",
    )
}

impl Opened {
    fn format(&self) -> Format {
        match self {
            Opened::Text { format, .. } => *format,
            Opened::Table { .. } => Format::Parquet,
            Opened::Nothing => Format::Letor,
        }
    }

    /// Reads to the end; how many bytes there were.
    fn read(
        self,
        input: &Input,
        hasher: &mut Xxh3,
        send: &mut dyn FnMut(Piece, usize) -> Result<()>,
    ) -> Result<u64> {
        match self {
            Opened::Text { mut cutter, packing, decoder, .. } => {
                let mut total = 0;
                while let Some(chunk) =
                    cutter.next_chunk().map_err(|error| cut_error(input, packing, error))?
                {
                    let size = chunk.input_bytes;
                    hasher.update(&chunk.text[..size]);
                    total += size as u64;
                    send(Piece::Lines(chunk, decoder.clone()), size)?;
                }
                if cutter.lacks_newline() {
                    tracing::warn!("{}: no final newline; check that the file is whole", input.name);
                }
                Ok(total)
            }
            Opened::Nothing => Ok(0),
            Opened::Table { mut table, decoder } => {
                let (mut row, mut total) = (1, 0);
                while let Some(batch) = table.next_batch()? {
                    let size = batch.get_array_memory_size();
                    for column in batch.columns() {
                        hash_column(column, hasher);
                    }
                    total += size as u64;
                    let rows = batch.num_rows() as u64;
                    send(Piece::Batch(batch, decoder.clone(), row), size)?;
                    row += rows;
                }
                Ok(total)
            }
        }
    }
}

/// The content of a column, whatever its type: its buffers as they are in memory.
fn hash_column(column: &arrow::array::ArrayRef, hasher: &mut Xxh3) {
    let data = column.to_data();
    for buffer in data.buffers() {
        hasher.update(buffer);
    }
    if let Some(nulls) = data.nulls() {
        hasher.update(nulls.validity());
    }
}

pub(super) fn cut_error(input: &Input, packing: Packing, error: CutError) -> Error {
    let at = |line: u64| Position { file: input.name.clone(), line, column: 1 };
    match error {
        CutError::Io(error, lines) => read_error(input, packing, error, lines),
        CutError::LineTooLong(line) => Error::Input(Box::new(InputError {
            at: at(line),
            problem: format!("found a line of more than {} MiB, expected lines of text", MAX_LINE >> 20),
            remedy: "check that this is a text file with line ends".to_owned(),
        })),
        CutError::QuoteOpen(line) => crate::rows::fault::Fault {
            kind: crate::rows::fault::FaultKind::QuoteOpen,
            line,
            column: 1,
            found: "the end of the file".to_owned(),
        }
        .in_file(&input.name),
    }
}

/// A failed read: of the system, of the store, or of what was packed.
pub(super) fn read_error(input: &Input, packing: Packing, error: std::io::Error, lines: u64) -> Error {
    if error.get_ref().is_some_and(|inner| inner.is::<Error>()) {
        // Ours, on its way through a reader.
        if let Some(Ok(error)) = error.into_inner().map(|inner| inner.downcast::<Error>()) {
            return *error;
        }
        return Error::place(&input.name, "cannot be read", "check the file");
    }
    if packing == Packing::Plain || error.raw_os_error().is_some() {
        return Error::io(&input.name, "read", &error);
    }
    let problem = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            format!("the {} data end early, after {lines} lines", packing.name())
        }
        _ => format!("the {} data are damaged after {lines} lines: {error}", packing.name()),
    };
    Error::place(&input.name, problem, "the file is truncated or damaged: copy or download it again")
}
