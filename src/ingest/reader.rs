//! The reading thread's side: opens one input after the other and hands on pieces of work.

use super::block::{Block, BlockBuilder};
use super::cut::{CutError, Cutter, MAX_LINE, TextChunk};
use super::decode::batch::decode_batch;
use super::decode::delimited::DelimitedDecoder;
use super::decode::letor::LetorDecoder;
use super::decode::{Decoder, Lines};
use super::format::{self, Format};
use super::input::Input;
use super::roles::{ColumnRole, RoleOptions, Roles, unnamed};
use super::side::SideFiles;
use super::table::Table;
use super::unpack::{Packing, unpack};
use crate::dataset::{FeatureNames, Layout};
use crate::error::{Error, InputError, Position, Result};
use crate::storage::Digest;
use arrow::array::RecordBatch;
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
    /// Whether tables start with a line of names.
    pub header: bool,
    /// A CatBoost column description.
    pub description: Option<(String, String)>,
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
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
    Batch(RecordBatch, Arc<Roles>, u64),
}

impl Work {
    /// Fills the builder with the piece's rows.
    pub fn decode(self, builder: &mut BlockBuilder) -> Result<()> {
        match self.piece {
            Piece::Lines(chunk, decoder) => decoder
                .decode(Lines { text: &chunk.text, first_line: chunk.first_line }, builder)
                .map_err(|fault| fault.in_file(&self.name)),
            Piece::Batch(batch, roles, first_row) => decode_batch(&batch, &roles, first_row, builder)
                .map_err(|fault| {
                    let column = batch.schema().field(fault.column).name().clone();
                    Error::Place {
                        place: format!(
                            "{}: row {}, column {column}",
                            self.name,
                            first_row + fault.row as u64
                        ),
                        problem: fault.problem,
                        remedy: "correct the table and run the command again".to_owned(),
                    }
                }),
        }
    }

    /// Turns the piece into a block of columns.
    pub fn into_block(self, builder: &mut BlockBuilder) -> Result<Block> {
        self.decode(builder)?;
        Ok(builder.finish())
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
    sides: Vec<SideFiles>,
    first: Option<Opened>,
    notes: Vec<String>,
}

/// An input that has been looked into.
enum Opened {
    Text { cutter: Cutter<Box<dyn Read + Send>>, packing: Packing, decoder: Arc<dyn Decoder>, format: Format },
    Table { table: Box<Table>, roles: Arc<Roles> },
}

impl Ingest {
    /// Opens the first input and decides what all of them are.
    pub fn open(inputs: Vec<Input>, options: IngestOptions) -> Result<Self> {
        let mut notes = Vec::new();
        let first_input = inputs.first().ok_or_else(|| Error::usage("there is no input", "name one"))?;
        let (opened, roles) = open(first_input, &options, &mut notes)?;
        let sides: Vec<SideFiles> = inputs.iter().map(SideFiles::of).collect();
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
        let format = opened.format();
        Ok(Ingest { inputs, options, format, layout, sides, first: Some(opened), notes })
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
        let features = roles.map(|roles| roles.features);
        let same = opened.format() == self.format
            && (self.format == Format::Letor
                || features
                    .as_ref()
                    .is_some_and(|names| self.layout.features == FeatureNames::Given(names.clone())));
        if same {
            return Ok(opened);
        }
        Err(Error::place(
            &input.name,
            format_args!("its format or its columns differ from those of {}", self.inputs[0].name),
            "convert inputs of different kinds one by one",
        ))
    }
}

/// Opens an input and looks at its start.
fn open(input: &Input, options: &IngestOptions, notes: &mut Vec<String>) -> Result<(Opened, Option<Roles>)> {
    let (packing, mut reader) =
        unpack(input.open()?).map_err(|error| read_error(input, Packing::Plain, error, 0))?;
    if packing == Packing::Parquet || options.format == Some(Format::Parquet) {
        let table = Table::open(input, Some(&mut reader))?;
        let roles = table.roles(&options.roles)?;
        if !roles.has(&ColumnRole::Query) {
            return Err(unnamed(&table.names, "query", &input.name));
        }
        note_categories(&roles, notes);
        return Ok((Opened::Table { table: Box::new(table), roles: Arc::new(roles.clone()) }, Some(roles)));
    }
    let mut cutter = Cutter::new(reader, options.chunk_bytes);
    let start = cutter.next_chunk().map_err(|error| cut_error(input, packing, error))?;
    let text = start.as_ref().map_or(&b""[..], |chunk| &chunk.text);
    let format = options.format.unwrap_or_else(|| Format::of_text(text));
    let (decoder, roles): (Arc<dyn Decoder>, _) = match format {
        Format::Csv => {
            let (decoder, roles) = delimited(input, text, options, notes)?;
            (Arc::new(decoder), Some(roles))
        }
        _ => (Arc::new(letor(input, text, options)), None),
    };
    if let Some(start) = start {
        cutter.put_back(start);
    }
    cutter.set_quoted(format == Format::Csv);
    Ok((Opened::Text { cutter, packing, decoder, format }, roles))
}

fn letor(input: &Input, text: &[u8], options: &IngestOptions) -> LetorDecoder {
    let given = options.feature_names.as_ref().map(|names| names.len() as u32);
    LetorDecoder {
        index_base: options.index_base,
        max_features: given.unwrap_or(options.max_features).min(options.max_features),
        lenient: options.lenient,
        query_in_line: format::names_query(text) || input.beside(".query").is_none(),
    }
}

fn delimited(
    input: &Input,
    text: &[u8],
    options: &IngestOptions,
    notes: &mut Vec<String>,
) -> Result<(DelimitedDecoder, Roles)> {
    let lines = Lines { text, first_line: 1 };
    let delimiter = options.delimiter.unwrap_or_else(|| format::delimiter_of_text(text));
    let names = format::first_record(lines, delimiter);
    let beside = match &options.description {
        Some((text, name)) => Some((text.clone(), name.clone())),
        None => match input.beside(".cd") {
            Some(location) => {
                let bytes = location.read_all()?.unwrap_or_default();
                Some((String::from_utf8_lossy(&bytes).into_owned(), location.to_string()))
            }
            None => None,
        },
    };
    // A file that a description goes with has no line of names; CatBoost's convention.
    let header = options.header && beside.is_none();
    let mut roles = match &beside {
        Some((text, described_by)) => Roles::by_description(text, names.len(), &input.name, described_by)?,
        None if header => Roles::by_names(&names, &options.roles, &input.name)?,
        None => {
            let numbers: Vec<String> = (0..names.len()).map(|place| place.to_string()).collect();
            Roles::by_names(&numbers, &options.roles, &input.name)?
        }
    };
    if roles.features.len() > options.max_features as usize {
        return Err(Error::place(
            &input.name,
            format_args!(
                "it has {} features, more than --max-features {}",
                roles.features.len(),
                options.max_features
            ),
            "raise --max-features",
        ));
    }
    if !roles.has(&ColumnRole::Query) && input.beside(".query").is_none() {
        return Err(unnamed(&names, "query", &input.name));
    }
    if beside.is_none() {
        format::find_categories(lines, delimiter, header, &mut roles);
    }
    note_categories(&roles, notes);
    Ok((DelimitedDecoder { roles: roles.clone(), delimiter, header, lenient: options.lenient }, roles))
}

fn note_categories(roles: &Roles, notes: &mut Vec<String>) {
    let names: Vec<&str> = roles
        .columns
        .iter()
        .filter_map(|role| match role {
            ColumnRole::Category(feature) => Some(roles.features[*feature as usize].as_str()),
            _ => None,
        })
        .collect();
    if !names.is_empty() {
        notes.push(format!(
            "words in {} are coded 0, 1, 2, ... in order of appearance (the manifest lists them)",
            names.join(", ")
        ));
    }
}

impl Opened {
    fn format(&self) -> Format {
        match self {
            Opened::Text { format, .. } => *format,
            Opened::Table { .. } => Format::Parquet,
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
            Opened::Table { mut table, roles } => {
                let (mut row, mut total) = (1, 0);
                while let Some(batch) = table.next_batch()? {
                    let size = batch.get_array_memory_size();
                    for column in batch.columns() {
                        hash_column(column, hasher);
                    }
                    total += size as u64;
                    let rows = batch.num_rows() as u64;
                    send(Piece::Batch(batch, roles.clone(), row), size)?;
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

fn cut_error(input: &Input, packing: Packing, error: CutError) -> Error {
    let at = |line: u64| Position { file: input.name.clone(), line, column: 1 };
    match error {
        CutError::Io(error, lines) => read_error(input, packing, error, lines),
        CutError::LineTooLong(line) => Error::Input(Box::new(InputError {
            at: at(line),
            problem: format!("found a line of more than {} MiB, expected lines of text", MAX_LINE >> 20),
            remedy: "check that this is a text file with line ends".to_owned(),
        })),
        CutError::QuoteOpen(line) => super::fault::Fault {
            kind: super::fault::FaultKind::QuoteOpen,
            line,
            column: 1,
            found: "the end of the file".to_owned(),
        }
        .in_file(&input.name),
    }
}

/// A failed read: of the system, of the store, or of what was packed.
fn read_error(input: &Input, packing: Packing, error: std::io::Error, lines: u64) -> Error {
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
