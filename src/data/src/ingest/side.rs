//! Reads side files, which follow a convention of LightGBM. A side file is next to an input and contains query sizes,
//! weights or positions, with one number per line.

use super::decompress::decompress;
use super::input::Input;
use crate::rows::{Block, QueryRun};
use planetree_base::error::{Error, InputError, Position, Result};
use planetree_base::storage::Location;
use std::io::{BufRead, BufReader, Read};

/// The locations of the side files of an input; `None` for those that do not exist.
#[derive(Debug, Clone, Default)]
pub struct SideFiles {
    /// The number of rows of each query, for inputs without query ids.
    pub queries: Option<Location>,
    /// The weight of each row.
    pub weights: Option<Location>,
    /// The position of each row.
    pub positions: Option<Location>,
}

impl SideFiles {
    /// Finds the side files next to an input.
    pub fn of(input: &Input) -> Result<Self> {
        Ok(SideFiles {
            queries: input.sibling(".query")?,
            weights: input.sibling(".weight")?,
            positions: input.sibling(".position")?,
        })
    }

    /// Opens the side files, to be read along with the rows.
    pub fn open(&self, input: &str) -> Result<SideReader> {
        let open = |location: &Option<Location>| location.as_ref().map(NumberFile::open).transpose();
        Ok(SideReader {
            input: input.to_owned(),
            queries: None,
            query_file: self.queries.clone(),
            weights: open(&self.weights)?,
            positions: open(&self.positions)?,
            rows_left_in_query: 0,
            rows: 0,
        })
    }
}

/// Reads the side files of an input along with its rows.
pub struct SideReader {
    input: String,
    /// The file of query sizes. It is opened only when rows without query ids occur.
    queries: Option<NumberFile>,
    query_file: Option<Location>,
    weights: Option<NumberFile>,
    positions: Option<NumberFile>,
    rows_left_in_query: u64,
    rows: u64,
}

impl SideReader {
    /// Adds the next lines of the side files to a block. `query` is the number of queries so far whose sizes come
    /// from side files, over all inputs. The ids of such queries are their numbers, counted from 1.
    pub fn add_to(&mut self, block: &mut Block, query: &mut u64) -> Result<()> {
        let rows = block.rows();
        if block.runs.is_empty() && rows > 0 {
            self.add_queries(block, query)?;
        }
        self.rows += rows as u64;
        let in_step = self.queries.is_some() || self.weights.is_some() || self.positions.is_some();
        if in_step && block.repairs.skipped_lines() {
            return Err(Error::place(
                &self.input,
                "lines were skipped, so the side files no longer match the rows",
                "correct the lines; without --lenient, the first of them is reported",
            ));
        }
        let (input, total) = (self.input.as_str(), self.rows);
        if let Some(numbers) = &mut self.weights {
            let read = (0..rows).map(|_| Ok(numbers.required(input, total)? as f32)).collect::<Result<_>>();
            block.weights = Some(read?);
        }
        if let Some(numbers) = &mut self.positions {
            let read = (0..rows).map(|_| numbers.position(input, total).map(Some)).collect::<Result<_>>();
            block.positions = Some(read?);
        }
        Ok(())
    }

    fn add_queries(&mut self, block: &mut Block, query: &mut u64) -> Result<()> {
        if self.queries.is_none() {
            self.queries = self.query_file.as_ref().map(NumberFile::open).transpose()?;
        }
        let Some(numbers) = &mut self.queries else { return Ok(()) };
        let mut row = 0;
        while row < block.rows() {
            while self.rows_left_in_query == 0 {
                let count = numbers.required(&self.input, self.rows + row as u64 + 1)?;
                if count < 0.0 || count.fract() != 0.0 {
                    return Err(numbers
                        .fault(format!("found {count}, expected a row count: a whole number, at least 0")));
                }
                self.rows_left_in_query = count as u64;
                *query += u64::from(count > 0.0);
            }
            block.query_names.extend_from_slice(query.to_string().as_bytes());
            block.runs.push(QueryRun {
                first_row: row as u32,
                name_end: block.query_names.len() as u32,
                line: self.rows + row as u64 + 1,
            });
            let taken = self.rows_left_in_query.min((block.rows() - row) as u64);
            self.rows_left_in_query -= taken;
            row += taken as usize;
        }
        Ok(())
    }

    /// Fails if a side file covers more rows than its input has.
    pub fn finish(mut self) -> Result<()> {
        let rows = self.rows;
        if self.rows_left_in_query > 0
            && let Some(numbers) = &self.queries
        {
            return Err(numbers.too_many(&self.input, rows));
        }
        for numbers in [&mut self.queries, &mut self.weights, &mut self.positions].into_iter().flatten() {
            if numbers.next()?.is_some() {
                return Err(numbers.too_many(&self.input, rows));
            }
        }
        Ok(())
    }
}

/// A file with one number per line.
struct NumberFile {
    location: Location,
    reader: BufReader<Box<dyn Read + Send>>,
    line: u64,
    text: String,
}

impl NumberFile {
    fn open(location: &Location) -> Result<Self> {
        let (_, reader) = decompress(location.open()?).map_err(|error| Error::io(location, "read", error))?;
        Ok(NumberFile {
            location: location.clone(),
            reader: BufReader::new(reader),
            line: 0,
            text: String::new(),
        })
    }

    fn next(&mut self) -> Result<Option<f64>> {
        loop {
            self.text.clear();
            let count = self
                .reader
                .by_ref()
                .take(1 << 16) // longer than any number, so that a binary file is not read as one huge line
                .read_line(&mut self.text)
                .map_err(|error| Error::io(&self.location, "read", error))?;
            if count == 0 {
                return Ok(None);
            }
            self.line += 1;
            let number = self.text.trim();
            if number.is_empty() {
                continue;
            }
            return match number.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(Some(value)),
                _ => Err(self.fault(format!(
                    "found {}, expected a number",
                    crate::rows::fault::quoted_token(number.as_bytes())
                ))),
            };
        }
    }

    fn required(&mut self, input: &str, rows: u64) -> Result<f64> {
        self.next()?.ok_or_else(|| {
            Error::place(
                &self.location,
                format_args!("ends before row {rows} of {input}"),
                "write one line per query (.query) or per row (.weight, .position)",
            )
        })
    }

    fn position(&mut self, input: &str, rows: u64) -> Result<i32> {
        let value = self.required(input, rows)?;
        if value.fract() != 0.0 || value.abs() >= f64::from(i32::MAX) {
            return Err(self.fault(format!("found {value}, expected a whole number as the position")));
        }
        Ok(value as i32)
    }

    fn fault(&self, problem: String) -> Error {
        Error::Input(Box::new(InputError {
            at: Position { file: self.location.to_string(), line: self.line, column: 1 },
            problem,
            remedy: "write one number per line".to_owned(),
        }))
    }

    fn too_many(&self, input: &str, rows: u64) -> Error {
        Error::place(
            &self.location,
            format_args!("covers more than the {rows} rows of {input}"),
            "check that the two files belong together",
        )
    }
}
