//! Writes query results to their destination: standard output, or a file that becomes visible only when it is
//! complete.

use planetree_base::error::{Error, Result};
use planetree_base::storage::{Compression, Guard, Location, TextOutput};
use planetree_base::terminal::printable;
use planetree_data::catalog::refuse_planetree_files;
use planetree_data::table::TableReader;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Destination of query results: standard output or a file.
pub struct Destination {
    target: OutputTarget,
    /// The file, for error messages.
    name: String,
    /// Whether the reader has closed the pipe, as in `| head`. This is not an error.
    is_closed: Arc<AtomicBool>,
    /// Whether the rows are printed on a terminal, where control characters are escaped.
    is_terminal: bool,
}

/// Which existing files a query result may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplacePolicy {
    /// Only Parquet files that an earlier query wrote. Files in other formats do not show which program wrote them.
    Results,
    /// Any file except planetree's tables and datasets.
    Anything,
}

enum OutputTarget {
    Stdout(BufWriter<Stdout>),
    File(Box<TextOutput>),
}

impl Destination {
    /// Creates a destination that writes to standard output.
    pub fn stdout() -> Self {
        Destination {
            target: OutputTarget::Stdout(BufWriter::new(io::stdout())),
            name: super::OUTPUT.to_owned(),
            is_closed: Arc::default(),
            is_terminal: io::stdout().is_terminal(),
        }
    }

    /// Creates a destination that writes to a file. Tables of planetree are never replaced, because they may be
    /// models or may have taken hours to compute. Other files are replaced only if SQL wrote them or the user allows
    /// it. Text files do not show which program wrote them, so they are replaced only if the user allows it.
    pub fn file(location: &Location, compression: Compression, replace: ReplacePolicy) -> Result<Self> {
        let guard: Guard = Arc::new(move |location| {
            refuse_planetree_files(location)?;
            match replace {
                ReplacePolicy::Anything => Ok(()),
                ReplacePolicy::Results if TableReader::is_sql_result(location)? => Ok(()),
                ReplacePolicy::Results => Err(Error::place(
                    location,
                    "refusing to overwrite: not recognisable as created by planetree",
                    "choose another name, or pass --overwrite to replace it",
                )),
            }
        });
        refuse_planetree_files(location)?;
        let output = TextOutput::create(location, compression, guard)?;
        Ok(Destination {
            target: OutputTarget::File(Box::new(output)),
            name: location.to_string(),
            is_closed: Arc::default(),
            is_terminal: false,
        })
    }

    /// Returns the name of the output for error messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the reader has closed the output.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Returns the flag behind [`is_closed`](Self::is_closed), which can be read while the destination is borrowed.
    pub fn closed(&self) -> Arc<AtomicBool> {
        self.is_closed.clone()
    }

    /// Flushes the output. If it is a file, the file becomes visible.
    pub fn commit(mut self) -> Result<()> {
        self.flush().map_err(super::failed)?;
        match self.target {
            OutputTarget::Stdout(_) => Ok(()),
            OutputTarget::File(output) => output.commit(),
        }
    }

    /// Treats a closed pipe as success.
    fn ignore_broken_pipe(&mut self, outcome: io::Result<()>) -> io::Result<()> {
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed.store(true, Ordering::Relaxed);
                Ok(())
            }
            outcome => outcome,
        }
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        let outcome = match &mut self.target {
            OutputTarget::Stdout(stdout) if self.is_terminal => {
                stdout.write_all(printable(&String::from_utf8_lossy(bytes)).as_bytes())
            }
            OutputTarget::Stdout(stdout) => stdout.write_all(bytes),
            OutputTarget::File(file) => file.write_all(bytes),
        };
        self.ignore_broken_pipe(outcome)
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = match &mut self.target {
            _ if self.is_closed.load(Ordering::Relaxed) => Ok(()),
            OutputTarget::Stdout(stdout) => stdout.flush(),
            OutputTarget::File(_) => Ok(()), // flushed by commit
        };
        self.ignore_broken_pipe(outcome)
    }
}
