//! Text line by line, packed or not, with the place of every fault.

use planetree_base::error::{Error, InputError, Position, Result};
use planetree_base::storage::Location;
use planetree_data::ingest::unpack;
use std::io::{BufRead, BufReader, Read};

/// The lines of a file.
pub struct Lines {
    location: Location,
    reader: BufReader<Box<dyn Read + Send>>,
    buffer: Vec<u8>,
    number: u64,
}

impl Lines {
    /// Opens a file.
    pub fn open(location: &Location) -> Result<Self> {
        if location.size()?.is_none() {
            return Err(location.absent());
        }
        let failed = |error| Error::io(location, "read", &error);
        let (_, reader) = unpack(location.open()?).map_err(failed)?;
        let reader = BufReader::with_capacity(256 << 10, reader);
        Ok(Lines { location: location.clone(), reader, buffer: Vec::new(), number: 0 })
    }

    /// Reads the next line that is not blank; `false` at the end.
    pub fn advance(&mut self) -> Result<bool> {
        /// Far beyond any line of scores, and far below what would fill memory.
        const LONGEST: u64 = 1 << 20;
        loop {
            self.buffer.clear();
            let mut limited = (&mut self.reader).take(LONGEST);
            let read = limited.read_until(b'\n', &mut self.buffer);
            let count = read.map_err(|error| Error::io(&self.location, "read", &error))?;
            if count == 0 {
                return Ok(false);
            }
            self.number += 1;
            if count as u64 == LONGEST {
                return Err(self.fault("the line is longer than 1 MiB", "name a text file"));
            }
            if self.buffer.iter().any(|byte| !byte.is_ascii_whitespace()) {
                break;
            }
        }
        match std::str::from_utf8(&self.buffer) {
            Ok(_) => Ok(true),
            Err(_) => Err(self.fault("the line is no text", "name a text file in UTF-8")),
        }
    }

    /// The line that was read last, without white space around it.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.buffer).unwrap_or_default().trim()
    }

    /// The number of the line that was read last, counted from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Where the lines come from.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// A fault of the line that was read last.
    pub fn fault(&self, problem: impl std::fmt::Display, remedy: impl std::fmt::Display) -> Error {
        Error::Input(Box::new(InputError {
            at: Position { file: self.location.to_string(), line: self.number.max(1), column: 1 },
            problem: problem.to_string(),
            remedy: remedy.to_string(),
        }))
    }
}
