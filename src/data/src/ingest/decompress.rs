//! Decompresses inputs. The compression is detected from the first bytes, not from the file name.

use std::io::{self, BufReader, Cursor, Read};

/// The compression of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputCompression {
    /// Uncompressed.
    Plain,
    /// gzip, with one or more members.
    Gzip,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
    /// zstd, with one or more frames.
    Zstd,
    /// A Parquet file, which has its own compression.
    Parquet,
}

const MAGIC: &[(&[u8], InputCompression)] = &[
    (b"\x1F\x8B", InputCompression::Gzip),
    (b"BZh", InputCompression::Bzip2),
    (b"\xFD7zXZ\0", InputCompression::Xz),
    (b"\x28\xB5\x2F\xFD", InputCompression::Zstd),
    (b"PAR1", InputCompression::Parquet),
];

/// Memory limit of the xz decoder in bytes. It is twice what files written by `xz -9` need.
const XZ_MEMORY: u64 = 144 << 20;

impl InputCompression {
    /// Returns the name of the compression in messages.
    pub fn name(self) -> &'static str {
        match self {
            InputCompression::Plain => "plain text",
            InputCompression::Gzip => "gzip",
            InputCompression::Bzip2 => "bzip2",
            InputCompression::Xz => "xz",
            InputCompression::Zstd => "zstd",
            InputCompression::Parquet => "Parquet",
        }
    }
}

/// Detects the compression from the first bytes and returns a reader of the decompressed bytes.
pub fn decompress(
    mut compressed: Box<dyn Read + Send>,
) -> io::Result<(InputCompression, Box<dyn Read + Send>)> {
    let mut head = [0; 6];
    let mut length = 0;
    while length < head.len() {
        match compressed.read(&mut head[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let head = &head[..length];
    let compression = MAGIC
        .iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map_or(InputCompression::Plain, |(_, kind)| *kind);
    let whole = Cursor::new(head.to_vec()).chain(compressed);
    const BUFFER: usize = 256 << 10;
    Ok((
        compression,
        match compression {
            InputCompression::Plain | InputCompression::Parquet => Box::new(whole),
            InputCompression::Gzip => {
                Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(BUFFER, whole)))
            }
            InputCompression::Bzip2 => {
                Box::new(bzip2::bufread::MultiBzDecoder::new(BufReader::with_capacity(BUFFER, whole)))
            }
            InputCompression::Xz => {
                let stream =
                    liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)
                        .map_err(io::Error::other)?;
                Box::new(liblzma::bufread::XzDecoder::new_stream(
                    BufReader::with_capacity(BUFFER, whole),
                    stream,
                ))
            }
            InputCompression::Zstd => {
                Box::new(zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(BUFFER, whole))?)
            }
        },
    ))
}
