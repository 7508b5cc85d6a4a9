//! Compressed inputs, told by their first bytes, not by their names.

use std::io::{self, BufReader, Cursor, Read};

/// How an input is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// gzip, one member or many.
    Gzip,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
    /// zstd, one frame or many.
    Zstd,
    /// A Parquet file, read by other means.
    Parquet,
}

const MAGIC: &[(&[u8], Packing)] = &[
    (b"\x1F\x8B", Packing::Gzip),
    (b"BZh", Packing::Bzip2),
    (b"\xFD7zXZ\0", Packing::Xz),
    (b"\x28\xB5\x2F\xFD", Packing::Zstd),
    (b"PAR1", Packing::Parquet),
];

/// What xz may take for itself; what `xz -9` needs, twice over.
const XZ_MEMORY: u64 = 144 << 20;

impl Packing {
    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Packing::Plain => "plain text",
            Packing::Gzip => "gzip",
            Packing::Bzip2 => "bzip2",
            Packing::Xz => "xz",
            Packing::Zstd => "zstd",
            Packing::Parquet => "Parquet",
        }
    }
}

/// Looks at the first bytes and unpacks what follows accordingly.
pub fn unpack(mut packed: Box<dyn Read + Send>) -> io::Result<(Packing, Box<dyn Read + Send>)> {
    let mut head = [0; 6];
    let mut length = 0;
    while length < head.len() {
        match packed.read(&mut head[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let head = &head[..length];
    let packing =
        MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map_or(Packing::Plain, |(_, kind)| *kind);
    let whole = Cursor::new(head.to_vec()).chain(packed);
    const BUFFER: usize = 256 << 10;
    Ok((
        packing,
        match packing {
            Packing::Plain | Packing::Parquet => Box::new(whole),
            Packing::Gzip => {
                Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(BUFFER, whole)))
            }
            Packing::Bzip2 => {
                Box::new(bzip2::bufread::MultiBzDecoder::new(BufReader::with_capacity(BUFFER, whole)))
            }
            Packing::Xz => {
                let stream =
                    liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)
                        .map_err(io::Error::other)?;
                Box::new(liblzma::bufread::XzDecoder::new_stream(
                    BufReader::with_capacity(BUFFER, whole),
                    stream,
                ))
            }
            Packing::Zstd => {
                Box::new(zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(BUFFER, whole))?)
            }
        },
    ))
}
