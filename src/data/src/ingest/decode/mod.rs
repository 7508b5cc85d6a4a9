//! Bytes to rows. A decoder knows no I/O: it is handed whole lines and where they start.

pub mod batch;
pub mod delimited;
pub mod letor;

use crate::rows::BlockBuilder;
use crate::rows::fault::Fault;

/// A stretch of whole lines of one input.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    /// The text; its last byte is a newline.
    pub text: &'a [u8],
    /// Number of the first line, counted from 1.
    pub first_line: u64,
}

/// Turns lines into rows; the same lines give the same rows wherever they were cut.
pub trait Decoder: Send + Sync {
    /// Reads all rows of `lines`; the first fault ends it, unless the decoder is lenient. After a
    /// fault the builder is empty.
    fn decode(&self, lines: Lines<'_>, builder: &mut BlockBuilder) -> Result<(), Fault>;
}

/// Whether a byte separates tokens within a line.
#[inline(always)]
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// A label as text says it: the value, NaN for -1 (unjudged), or why not.
pub(super) fn checked_label(value: f32) -> Result<f32, crate::rows::fault::FaultKind> {
    if value >= 0.0 {
        Ok(value + 0.0) // -0 is 0
    } else if value == -1.0 {
        Ok(f32::NAN)
    } else {
        Err(crate::rows::fault::FaultKind::LabelNegative)
    }
}
