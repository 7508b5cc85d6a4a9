//! Reads predictions from CSV, TSV, JSON or NDJSON, compressed or not, with the same columns as in the Parquet table.
//! Numbers are parsed exactly, and ids stay strings even if they look like numbers.

use super::predictions::PredictionColumns;
use crate::plan::{BatchIterator, OpenReader, SORT_ROWS};
use arrow::array::{ArrayRef, Float32Array, Float64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use planetree_base::error::{Error, InputError, Position, Result};
use planetree_base::storage::{FileFormat, Location, text_format};
use planetree_data::ingest::decompress;
use serde_json::{Map, Value};
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

/// Returns the format of text predictions; `None` for Parquet files and for unknown extensions.
pub(crate) fn format_of(location: &Location) -> Result<Option<FileFormat>> {
    let Some(format) = text_format(location) else { return Ok(None) };
    let Some(size) = location.size()? else { return Ok(None) };
    // A Parquet file is recognised by its first bytes, whatever its name.
    let is_parquet = size >= 4 && location.read_range(0, 4)? == b"PAR1"[..];
    Ok((!is_parquet).then_some(format))
}

/// Returns a reader of text predictions.
pub fn reader(location: &Location, format: FileFormat, by: Option<&str>) -> OpenReader {
    let (location, by) = (location.clone(), by.map(str::to_owned));
    Arc::new(move || {
        let mut rows = TextPredictions::open(&location, format, by.as_deref())?;
        let mut is_done = false;
        Ok(Box::new(std::iter::from_fn(move || {
            let batch = (!is_done).then(|| rows.next_batch()).transpose();
            let batch = batch.map(Option::flatten).transpose();
            is_done = !matches!(batch, Some(Ok(_)));
            batch
        })) as BatchIterator)
    })
}

/// Reads a text format as rows of cells.
trait CellReader: Send {
    /// Returns the column names.
    fn names(&self) -> &[String];

    /// Reads the next row into `cells`, one cell per column. Returns `false` at the end.
    fn read(&mut self, cells: &mut Vec<Option<String>>) -> Result<bool>;

    /// Creates an error that refers to the current row.
    fn fault(&self, problem: String, remedy: &str) -> Error;
}

struct TextPredictions {
    location: Location,
    cells: Box<dyn CellReader>,
    columns: PredictionColumns,
    /// Schema of the columns that are read.
    schema: SchemaRef,
    first_row: u64,
}

impl TextPredictions {
    fn open(location: &Location, format: FileFormat, by: Option<&str>) -> Result<Self> {
        let (_, input) = decompress(location.open()?).map_err(|error| Error::io(location, "read", error))?;
        let input = BufReader::with_capacity(256 << 10, input);
        let cells: Box<dyn CellReader> = match format {
            FileFormat::Tsv => Box::new(DelimitedCells::open(location, input, b'\t')?),
            FileFormat::Csv => Box::new(DelimitedCells::open(location, input, b',')?),
            _ => Box::new(JsonCells::open(location, input)?),
        };
        let fields = cells.names().iter().map(|name| {
            let kind = match name.as_str() {
                "score" => DataType::Float64,
                "label" => DataType::Float32,
                _ => DataType::Utf8,
            };
            Field::new(name, kind, true)
        });
        let whole = Schema::new(fields.collect::<Vec<_>>());
        let columns = PredictionColumns::find(&whole, location, by)?;
        let read = columns.read.iter().map(|place| whole.field(*place).clone());
        let schema = Arc::new(Schema::new(read.collect::<Vec<_>>()));
        Ok(TextPredictions { location: location.clone(), cells, columns, schema, first_row: 0 })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut read: Vec<TextColumn> =
            self.schema.fields().iter().map(|field| TextColumn::of(field.data_type())).collect();
        let (mut cells, mut rows) = (Vec::new(), 0);
        while rows < SORT_ROWS && self.cells.read(&mut cells)? {
            for (column, place) in read.iter_mut().zip(&self.columns.read) {
                column.push(cells[*place].take()).map_err(|cell| {
                    let name = &self.cells.names()[*place];
                    self.cells.fault(
                        format!("invalid {name} {cell:?}"),
                        "write a number, or leave a missing label empty",
                    )
                })?;
            }
            rows += 1;
        }
        if rows == 0 {
            return Ok(None);
        }
        let arrays = read.into_iter().map(TextColumn::finish).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays);
        let batch = batch
            .map_err(|error| Error::place(&self.location, &error, "write the file again").caused_by(error))?;
        let first_row = self.first_row;
        self.first_row += rows as u64;
        self.columns.rows(&batch, first_row, &self.location).map(Some)
    }
}

enum TextColumn {
    Text(Vec<Option<String>>),
    Score(Vec<Option<f64>>),
    Label(Vec<Option<f32>>),
}

impl TextColumn {
    fn of(kind: &DataType) -> Self {
        match kind {
            DataType::Float64 => TextColumn::Score(Vec::new()),
            DataType::Float32 => TextColumn::Label(Vec::new()),
            _ => TextColumn::Text(Vec::new()),
        }
    }

    /// Appends a cell to the column. If the cell is not a valid number, returns the cell as the error.
    fn push(&mut self, cell: Option<String>) -> Result<(), String> {
        match self {
            TextColumn::Text(texts) => texts.push(cell),
            TextColumn::Score(numbers) => numbers.push(number(cell)?),
            TextColumn::Label(numbers) => numbers.push(number(cell)?),
        }
        Ok(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            TextColumn::Text(texts) => Arc::new(StringArray::from(texts)),
            TextColumn::Score(numbers) => Arc::new(Float64Array::from(numbers)),
            TextColumn::Label(numbers) => Arc::new(Float32Array::from(numbers)),
        }
    }
}

fn number<N: fast_float2::FastFloat>(cell: Option<String>) -> Result<Option<N>, String> {
    let Some(cell) = cell else { return Ok(None) };
    fast_float2::parse::<N, _>(cell.trim()).map(Some).map_err(|_| cell)
}

type TextInput = BufReader<Box<dyn Read + Send>>;

/// Maximum length of a row in bytes: longer than any valid row, and short enough not to exhaust memory.
const MAX_ROW_BYTES: usize = 1 << 20;

/// Reads comma- or tab-separated values.
struct DelimitedCells {
    location: Location,
    input: TextInput,
    core: csv_core::Reader,
    names: Vec<String>,
    /// The current row: its text, the end of each cell in the text, and the line on which the row begins.
    text: Vec<u8>,
    ends: Vec<usize>,
    line: u64,
}

impl DelimitedCells {
    fn open(location: &Location, input: TextInput, separator: u8) -> Result<Self> {
        let core = csv_core::ReaderBuilder::new().delimiter(separator).build();
        let mut rows = DelimitedCells {
            location: location.clone(),
            input,
            core,
            names: Vec::new(),
            text: Vec::new(),
            ends: Vec::new(),
            line: 1,
        };
        if !rows.advance()? {
            return Err(Error::place(location, "empty file", "choose predictions with a header"));
        }
        let mut names = Vec::new();
        rows.cells(&mut names)?;
        let names = names.into_iter().map(Option::unwrap_or_default);
        rows.names = names.map(|name| name.trim_start_matches('\u{feff}').trim().to_owned()).collect();
        Ok(rows)
    }

    /// Reads the next row. Returns `false` at the end.
    fn advance(&mut self) -> Result<bool> {
        let (mut length, mut count) = (0, 0);
        self.line = self.core.line();
        self.text.resize(self.text.len().max(1 << 10), 0);
        self.ends.resize(self.ends.len().max(16), 0);
        loop {
            let input = self.input.fill_buf().map_err(|error| Error::io(&self.location, "read", error))?;
            let (outcome, read, written, ended) =
                self.core.read_record(input, &mut self.text[length..], &mut self.ends[count..]);
            self.input.consume(read);
            length += written;
            count += ended;
            match outcome {
                csv_core::ReadRecordResult::InputEmpty => {}
                csv_core::ReadRecordResult::OutputFull if self.text.len() >= MAX_ROW_BYTES => {
                    return Err(self.fault("row longer than 1 MiB".to_owned(), "check for an unclosed quote"));
                }
                csv_core::ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                csv_core::ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                csv_core::ReadRecordResult::Record => {
                    self.ends.truncate(count);
                    return Ok(true);
                }
                csv_core::ReadRecordResult::End => return Ok(false),
            }
        }
    }

    fn cells(&self, cells: &mut Vec<Option<String>>) -> Result<()> {
        cells.clear();
        let mut start = 0;
        for end in &self.ends {
            let text = std::str::from_utf8(&self.text[start..*end])
                .map_err(|_| self.fault("not valid UTF-8".to_owned(), "write the file in UTF-8"))?;
            cells.push((!text.is_empty()).then(|| text.to_owned()));
            start = *end;
        }
        Ok(())
    }
}

impl CellReader for DelimitedCells {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn read(&mut self, cells: &mut Vec<Option<String>>) -> Result<bool> {
        if !self.advance()? {
            return Ok(false);
        }
        if self.ends.len() != self.names.len() {
            let problem = format!("{} values, but the header has {}", self.ends.len(), self.names.len());
            return Err(self.fault(problem, "recreate the file: it may be truncated"));
        }
        self.cells(cells)?;
        Ok(true)
    }

    fn fault(&self, problem: String, remedy: &str) -> Error {
        let at = Position { file: self.location.to_string(), line: self.line, column: 1 };
        Error::Input(Box::new(InputError { at, problem, remedy: remedy.to_owned() }))
    }
}

/// Reads JSON objects, one per line or in one array.
struct JsonCells {
    location: Location,
    objects:
        serde_json::StreamDeserializer<'static, serde_json::de::IoRead<ArrayElements>, Map<String, Value>>,
    names: Vec<String>,
    /// The first object, which was read ahead for its column names.
    first: Option<Map<String, Value>>,
    number: u64,
}

impl JsonCells {
    fn open(location: &Location, input: TextInput) -> Result<Self> {
        let elements = ArrayElements { input, depth: 0, is_array: false, in_text: false, escaped: false };
        let objects = serde_json::Deserializer::from_reader(elements).into_iter();
        let mut rows =
            JsonCells { location: location.clone(), objects, names: Vec::new(), first: None, number: 0 };
        rows.first = rows.next()?;
        rows.number = 0;
        rows.names = rows.first.iter().flat_map(Map::keys).cloned().collect();
        if rows.first.is_none() {
            return Err(Error::place(location, "no rows", "choose a file that contains rows"));
        }
        Ok(rows)
    }

    fn next(&mut self) -> Result<Option<Map<String, Value>>> {
        self.number += 1;
        let object = self.objects.next().transpose();
        object.map_err(|error| {
            let at = Position {
                file: self.location.to_string(),
                line: error.line().max(1) as u64,
                column: error.column().max(1) as u64,
            };
            let problem = format!("expected JSON objects: {error}");
            let remedy = "recreate the file: it may be truncated".to_owned();
            Error::Input(Box::new(InputError { at, problem, remedy }))
        })
    }
}

impl CellReader for JsonCells {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn read(&mut self, cells: &mut Vec<Option<String>>) -> Result<bool> {
        let object = match self.first.take() {
            Some(first) => {
                self.number = 1;
                Some(first)
            }
            None => self.next()?,
        };
        let Some(mut object) = object else { return Ok(false) };
        let cell = |value: Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text),
            other => Some(other.to_string()),
        };
        cells.clear();
        cells.extend(self.names.iter().map(|name| object.remove(name).and_then(cell)));
        Ok(true)
    }

    fn fault(&self, problem: String, remedy: &str) -> Error {
        Error::place(&self.location, format_args!("row {}: {problem}", self.number), remedy)
    }
}

/// Replaces the brackets and commas of an outermost JSON array by spaces, so that its elements can be read as a
/// sequence of values at the same byte offsets.
struct ArrayElements {
    input: TextInput,
    /// Number of open brackets and braces.
    depth: usize,
    is_array: bool,
    in_text: bool,
    escaped: bool,
}

impl ArrayElements {
    fn filter(&mut self, byte: &mut u8) {
        if self.in_text {
            match (*byte, self.escaped) {
                (_, true) => self.escaped = false,
                (b'\\', false) => self.escaped = true,
                (b'"', false) => self.in_text = false,
                _ => {}
            }
            return;
        }
        match *byte {
            b'"' => self.in_text = true,
            b'[' | b'{' => {
                if self.depth == 0 && *byte == b'[' {
                    self.is_array = true;
                    *byte = b' ';
                }
                self.depth += 1;
            }
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 && self.is_array {
                    *byte = b' ';
                }
            }
            b',' if self.depth == 1 && self.is_array => *byte = b' ',
            _ => {}
        }
    }
}

impl Read for ArrayElements {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        if count == 0 && !buffer.is_empty() && self.depth > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "unterminated array"));
        }
        buffer[..count].iter_mut().for_each(|byte| self.filter(byte));
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::rows::schema;
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{Float32Type, Float64Type};

    fn read(name: &str, text: &str) -> Result<Vec<RecordBatch>> {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::Local(directory.path().join(name));
        std::fs::write(directory.path().join(name), text).unwrap();
        let format = format_of(&location)?.unwrap();
        reader(&location, format, None)()?.collect()
    }

    #[test]
    fn every_format_gives_the_same_rows() {
        let csv = "rank,query_id,doc_id,label,score\n1,007,\"a,\"\"b\"\"\nc\",2,0.30000000000000004\n2,007,,,-1e-300\n";
        let tsv = "rank\tquery_id\tdoc_id\tlabel\tscore\n1\t007\t\"a,\"\"b\"\"\nc\"\t2\t0.30000000000000004\n2\t007\t\t\t-1e-300";
        let ndjson = "{\"query_id\":\"007\",\"doc_id\":\"a,\\\"b\\\"\\nc\",\"label\":2.0,\"score\":0.30000000000000004,\"rank\":1}\n\
             {\"query_id\":\"007\",\"doc_id\":null,\"label\":null,\"score\":-1e-300,\"rank\":2}\n";
        let json = format!("[\n{}]", ndjson.trim_end().replacen("}\n{", "},{", 1));
        for (name, text) in
            [("p.csv", csv), ("p.tsv", tsv), ("p.ndjson", ndjson), ("p.json", &json), ("q.json", ndjson)]
        {
            let batches = read(name, text).unwrap();
            let [batch] = &batches[..] else { panic!("{name}: {}", batches.len()) };
            assert_eq!(batch.schema_ref(), schema());
            let queries = batch.column(0).as_string::<i32>();
            assert_eq!((queries.value(0), queries.value(1)), ("007", "007"), "{name}");
            let documents = batch.column(1).as_string::<i32>();
            assert_eq!((documents.value(0), documents.is_null(1)), ("a,\"b\"\nc", true), "{name}");
            let labels = batch.column(2).as_primitive::<Float32Type>();
            assert_eq!((labels.value(0), labels.is_null(1)), (2.0, true), "{name}");
            let scores = batch.column(3).as_primitive::<Float64Type>().values();
            assert_eq!(scores[..], [0.1 + 0.2, -1e-300], "{name}");
        }
    }

    #[test]
    fn errors_name_their_position() {
        let fails = |name: &str, text: &str, expected: &str| {
            let error = read(name, text).map(|batches| batches.len()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        fails("p.csv", "query_id,score\na,1\nb,x\n", "p.csv:3:1: invalid score \"x\"");
        fails("p.csv", "query_id,score\na,1\nb", "p.csv:3:1: 1 values, but the header has 2");
        fails("p.csv", "query_id,label\na,1\n", "no column score");
        fails("p.csv", "query_id,score\n,1\n", "row 1 has no query_id");
        fails("p.csv", "", "empty file");
        fails("p.json", "[]", "no rows");
        fails("p.json", "[{\"query_id\":\"a\",\"score\":1}", "unterminated array");
        fails("p.json", "[{\"query_id\":\"a\",\"score\":1},{\"query_id\":", "p.json:1:");
        fails(
            "p.ndjson",
            "{\"query_id\":\"a\",\"score\":1}\n{\"query_id\":\"a\",\"score\":\"high\"}\n",
            "row 2: invalid score \"high\"",
        );
        fails("p.ndjson", "{\"query_id\":\"a\",\"score\":1}\n{\"query_id\":\"a\"}\n", "row 2 has no score");
        fails("p.ndjson", "{\"query_id\":\"a\",\"score\":1}\nnonsense\n", "p.ndjson:2:");
    }
}
