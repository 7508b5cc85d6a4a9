//! Where results go: standard output, or a file that appears whole in the end.

use planetree_base::error::{Error, Result};
use planetree_base::storage::{Compression, Guard, Location, TextOutput};
use planetree_data::catalog::refuse_ours;
use planetree_data::table::TableReader;
use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// See the module.
pub struct Destination {
    to: To,
    /// Whether the reader has gone away, which is no failure (`| head`).
    is_closed: Arc<AtomicBool>,
}

/// Which files a result may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// Those that say that they are results of SQL: Parquet files of ours.
    Results,
    /// Any that is no table or dataset of ours.
    Anything,
}

enum To {
    Stdout(BufWriter<Stdout>),
    File(Box<TextOutput>),
}

impl Destination {
    /// Standard output.
    pub fn stdout() -> Self {
        Destination { to: To::Stdout(BufWriter::new(io::stdout())), is_closed: Arc::default() }
    }

    /// A file. A table of planetree's is never replaced: it is a model, or took hours to make. Nor is what SQL
    /// did not write, unless the user says so: text does not tell who wrote it.
    pub fn file(location: &Location, compression: Compression, replace: Replace) -> Result<Self> {
        let guard: Guard = Arc::new(move |location| {
            refuse_ours(location)?;
            match replace {
                Replace::Anything => Ok(()),
                Replace::Results if TableReader::is_result(location)? => Ok(()),
                Replace::Results => Err(Error::place(
                    location,
                    "refusing to overwrite: not recognisable as created by planetree",
                    "choose another name, or pass --overwrite to replace it",
                )),
            }
        });
        refuse_ours(location)?;
        let output = TextOutput::create(location, compression, guard)?;
        Ok(Destination { to: To::File(Box::new(output)), is_closed: Arc::default() })
    }

    /// Whether nobody wants any more.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Tells the same while the output is in use.
    pub fn closed(&self) -> Arc<AtomicBool> {
        self.is_closed.clone()
    }

    /// Makes a file visible.
    pub fn commit(mut self) -> Result<()> {
        self.flush().map_err(super::failed)?;
        match self.to {
            To::Stdout(_) => Ok(()),
            To::File(output) => output.commit(),
        }
    }

    fn heard(&mut self, outcome: io::Result<()>) -> io::Result<()> {
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
        let outcome = match &mut self.to {
            To::Stdout(stdout) => stdout.write_all(bytes),
            To::File(file) => file.write_all(bytes),
        };
        self.heard(outcome)
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = match &mut self.to {
            _ if self.is_closed.load(Ordering::Relaxed) => Ok(()),
            To::Stdout(stdout) => stdout.flush(),
            To::File(_) => Ok(()), // it flushes when it is complete
        };
        self.heard(outcome)
    }
}
