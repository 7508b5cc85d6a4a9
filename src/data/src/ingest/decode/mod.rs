//! Decoding bytes into rows. Decoders perform no I/O: they receive whole lines and the number of the first
//! one.

pub mod batch;
pub mod delimited;
pub mod letor;

use crate::rows::BlockBuilder;
use crate::rows::fault::Fault;

/// Consecutive whole lines of one input.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    /// The text; its last byte is a newline.
    pub text: &'a [u8],
    /// Number of the first line, from 1.
    pub first_line: u64,
}

/// Decodes lines into rows. The result does not depend on how the input is split into chunks.
pub trait Decoder: Send + Sync {
    /// Decodes all rows of `lines`. Stops at the first fault, unless the decoder is lenient. After a fault
    /// the builder is empty.
    fn decode(&self, lines: Lines<'_>, builder: &mut BlockBuilder) -> Result<(), Fault>;
}

/// Whether a byte separates tokens within a line.
#[inline(always)]
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// Validates a label: its value, NaN for -1 (unjudged), or the fault.
pub(super) fn checked_label(value: f32) -> Result<f32, crate::rows::fault::FaultKind> {
    if value >= 0.0 {
        Ok(value + 0.0) // turns -0 into 0
    } else if value == -1.0 {
        Ok(f32::NAN)
    } else {
        Err(crate::rows::fault::FaultKind::LabelNegative)
    }
}
