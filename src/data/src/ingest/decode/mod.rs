//! Converts input bytes to rows. Decoders perform no I/O: they receive whole lines, or batches of Parquet rows, from
//! the caller.

pub(crate) mod batch;
pub(crate) mod delimited;
pub mod letor;

use crate::rows::BlockBuilder;
use crate::rows::fault::Fault;

/// Consecutive whole lines of one input.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    /// The text of the lines. Its last byte is a newline.
    pub text: &'a [u8],
    /// Number of the first line in the input, counted from 1.
    pub first_line: u64,
}

/// A decoder of lines. The result must not depend on how the input is split into chunks.
pub trait Decoder: Send + Sync {
    /// Decodes all rows of `lines` and adds them to the builder. Unless the decoder is lenient, it fails at the first
    /// fault and leaves the builder empty.
    fn decode(&self, lines: Lines<'_>, builder: &mut BlockBuilder) -> Result<(), Fault>;
}

/// Checks whether a byte separates tokens within a line.
#[inline(always)]
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// The label of a document that was not judged, in the input.
pub(super) const UNLABELLED: f32 = -1.0;

/// Validates a label. Returns its value, or NaN for -1, which means unjudged. Fails for other negative numbers.
pub(super) fn checked_label(value: f32) -> Result<f32, crate::rows::fault::FaultKind> {
    if value >= 0.0 {
        Ok(value + 0.0) // adding 0 turns -0 into 0
    } else if value == UNLABELLED {
        Ok(f32::NAN)
    } else {
        Err(crate::rows::fault::FaultKind::LabelNegative)
    }
}
