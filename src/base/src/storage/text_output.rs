//! Writes text files atomically, with or without compression.

use super::format::Compression;
use super::guard::Guard;
use super::location::Location;
use super::staging::FileOutput;
use crate::error::{Error, Result};
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// A text file that becomes visible only at [`TextOutput::commit`]. Equal text gives equal bytes, even with
/// compression.
pub struct TextOutput {
    sink: Sink,
    shown: Location,
}

enum Sink {
    Plain(FileOutput),
    Gzip(GzEncoder<FileOutput>),
    Zstd(zstd::Encoder<'static, FileOutput>),
}

impl TextOutput {
    /// Prepares to write a file. Fails if a file exists and the guard does not permit replacing it.
    pub fn create(target: &Location, compression: Compression, guard: Guard) -> Result<Self> {
        let output = FileOutput::guarded(target, guard)?;
        let sink = match compression {
            Compression::None => Sink::Plain(output),
            Compression::Gzip => Sink::Gzip(GzEncoder::new(output, flate2::Compression::default())),
            Compression::Zstd => Sink::Zstd(
                zstd::Encoder::new(output, zstd::DEFAULT_COMPRESSION_LEVEL)
                    .map_err(|error| Error::io(target, "write", error))?,
            ),
        };
        Ok(TextOutput { sink, shown: target.clone() })
    }

    /// Completes the file and makes it visible.
    pub fn commit(self) -> Result<()> {
        let output = match self.sink {
            Sink::Plain(output) => Ok(output),
            Sink::Gzip(encoder) => encoder.finish(),
            Sink::Zstd(encoder) => encoder.finish(),
        };
        output.map_err(|error| Error::io(&self.shown, "write", error))?.commit()
    }
}

impl Write for TextOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Plain(output) => output.write(bytes),
            Sink::Gzip(encoder) => encoder.write(bytes),
            Sink::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // the encoder is flushed at the end, because flushing earlier would reduce the compression
    }
}
