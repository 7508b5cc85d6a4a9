//! Reads text files line by line, compressed or not, and reports errors with their line numbers.

use planetree_base::error::{Error, InputError, Position, Result};
use planetree_base::storage::Location;
use planetree_data::ingest::{
    decompress, has_only_carriage_returns, only_carriage_returns, refuse_other_encodings,
};
use std::io::{BufRead, BufReader, Read};

/// Reads the lines of a text file that are not blank.
pub struct TextLines {
    location: Location,
    reader: BufReader<Box<dyn Read + Send>>,
    buffer: Vec<u8>,
    number: u64,
}

impl TextLines {
    /// Opens a file, which may be compressed.
    pub fn open(location: &Location) -> Result<Self> {
        if location.size()?.is_none() {
            return Err(location.absent());
        }
        let failed = |error| Error::io(location, "read", error);
        let (_, reader) = decompress(location.open()?).map_err(failed)?;
        let reader = BufReader::with_capacity(256 << 10, reader);
        Ok(TextLines { location: location.clone(), reader, buffer: Vec::new(), number: 0 })
    }

    /// Reads the next line that is not blank. Returns `false` at the end of the file.
    pub fn advance(&mut self) -> Result<bool> {
        /// Maximum length of a line in bytes: longer than any valid line, and short enough not to exhaust memory.
        const MAX_LINE: u64 = 1 << 20;
        loop {
            self.buffer.clear();
            let mut limited = (&mut self.reader).take(MAX_LINE);
            let read = limited.read_until(b'\n', &mut self.buffer);
            let count = read.map_err(|error| Error::io(&self.location, "read", error))?;
            if count == 0 {
                return Ok(false);
            }
            self.number += 1;
            if self.number == 1 {
                refuse_other_encodings(&self.location, &self.buffer)?;
                if has_only_carriage_returns(&self.buffer) {
                    return Err(only_carriage_returns(&self.location));
                }
            }
            if count as u64 == MAX_LINE {
                return Err(self.fault("line longer than 1 MiB", "choose a text file"));
            }
            if self.buffer.iter().any(|byte| !byte.is_ascii_whitespace()) {
                break;
            }
        }
        match std::str::from_utf8(&self.buffer) {
            Ok(_) => Ok(true),
            Err(_) => Err(self.fault("not valid UTF-8", "choose a text file in UTF-8")),
        }
    }

    /// Returns the current line without surrounding white space.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.buffer).unwrap_or_default().trim()
    }

    /// Returns the number of the current line, counted from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the location of the file.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Creates an error that refers to the current line.
    pub fn fault(&self, problem: impl std::fmt::Display, remedy: impl std::fmt::Display) -> Error {
        Error::Input(Box::new(InputError {
            at: Position { file: self.location.to_string(), line: self.number.max(1), column: 1 },
            problem: problem.to_string(),
            remedy: remedy.to_string(),
        }))
    }
}
